"""Reads single texts of a pod template: words of a command, a directory, a variable's name. Pure; called by the readers.

What always holds: a text that comes out of here holds no NUL, is valid Unicode and of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubeslurm.errors import InvalidObject

Raw = Mapping[str, Any]

MAX_TEXT: Final = 100_000
_ENV_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,255}\Z")
_ENV_TAKEN = re.compile(r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SCANCEL|SPANK|PMI|PMIX|PYXIS|ENROOT|APPTAINER|SINGULARITY)_")
_ENV_OURS = re.compile(r"KUBESLURM_")


def text(path: str, value: Any) -> str:
    """The text itself."""
    if not isinstance(value, str):
        raise InvalidObject(path, "text is wanted")
    if "\0" in value or len(value) > MAX_TEXT:
        raise InvalidObject(path, f"NUL, or more than {MAX_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidObject(path, "not valid Unicode") from None
    return value


def workdir(path: str, container: Raw) -> str | None:
    """`path` is the container's; None where it says nothing."""
    given = container.get("workingDir")
    if given in (None, ""):
        return None
    directory = text(f"{path}.workingDir", given)
    if not directory.startswith("/") or not re.match(r"[A-Za-z0-9_./+@=-]{1,1024}\Z", directory):
        raise InvalidObject(f"{path}.workingDir", "an absolute path of plain characters is wanted")
    return directory


def env_name(path: str, name: str) -> None:
    """Is it a variable that a user may set in a Slurm task?"""
    if not _ENV_NAME.match(name):
        raise InvalidObject(path, f"{name[:40]!r} is no name of a variable")
    if _ENV_TAKEN.match(name):
        raise InvalidObject(path, f"{name[:40]!r} belongs to Slurm")
    if _ENV_OURS.match(name):
        raise InvalidObject(path, f"{name[:40]!r} belongs to kubeslurm")
