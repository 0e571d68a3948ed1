"""Writes an object as YAML for a person: no anchors, fields in the order that they are usually in.

Pure; called by `kubeslurm translate`. What always holds: read again, it is the same object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

_BREAKS: Final = re.compile("[\\x85\\u2028\\u2029]")
"""PyYAML takes them for line breaks, and folds them where they are not in double quotes."""


def written(made: Mapping[str, Any]) -> str:
    """The document."""
    return str(yaml.dump(made, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000))


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(data) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Plain.add_representer(str, _text)
