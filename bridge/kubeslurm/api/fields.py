"""The kinds of text that several models share: names, times, quantities, each checked as it is read.

Used by the models of this package. What always holds: what passed here can stand in slurm.conf, in a script's header and in
a Kubernetes name without ending its line or starting another.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from kubeslurm import quantities, slurmconf, times

# the pattern is for the schema alone: the validator's message is clearer than one about a pattern
_NAME_SCHEMA = Field(max_length=63, json_schema_extra={"pattern": slurmconf.NAME})
PartitionName = Annotated[str, AfterValidator(slurmconf.check_partition), _NAME_SCHEMA]
SlurmName = Annotated[str, AfterValidator(slurmconf.check_name), _NAME_SCHEMA]

IMAGE = r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


def _time(text: str) -> str:
    times.parse_minutes(text)
    return text


def _quantity(value: str) -> str:
    quantities.parse_quantity(value)
    return value


def _folded(text: str) -> str:
    """slurmdbd keeps the names of accounts and QOS in lower case, and compares them so."""
    if slurmconf.check_name(text) != text.lower():
        raise ValueError(f"{text[:64]!r}: Slurm knows names of accounts and QOS in lower case only")
    return text


SlurmTime = Annotated[str, AfterValidator(_time), Field(max_length=32)]
Quantity = Annotated[str, AfterValidator(_quantity), Field(max_length=quantities.MAX_LENGTH)]
AccountName = Annotated[
    str, AfterValidator(_folded), Field(max_length=63, json_schema_extra={"pattern": "^[a-z0-9_][a-z0-9_.-]{0,62}$"})
]
"""An account's or a QOS's."""


def is_label(text: str) -> bool:
    """A DNS label: a namespace's or one of our objects' name."""
    return re.fullmatch(DNS_LABEL, text) is not None
