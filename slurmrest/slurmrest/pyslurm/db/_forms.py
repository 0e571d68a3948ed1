"""Readers and writers of attributes that only slurmdbd's answers have: resources, split times, exit codes, states.

Used in the declarations of `pyslurm.db`, next to `slurmrest.pyslurm._forms`. What always holds: as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from slurmrest.numbers import number, read_int
from slurmrest.pyslurm._forms import text, texts, to_integer
from slurmrest.pyslurm.db.tres import TrackableResource, TrackableResources

Resources: TypeAlias = TrackableResources | Mapping[str, int | str] | str
"""Resources as a script may give them: "cpu=4,gres/gpu=8", or counts by name."""


def resources(raw: Any) -> TrackableResources:
    """Of a list of resources; empty for none."""
    if not isinstance(raw, (list, type(None))):
        raise TypeError(f"expected a list of resources, got {type(raw).__name__}")
    return TrackableResources.from_list(raw)


def to_resources(value: Resources) -> list[dict[str, Any]]:
    """The list of resources, for a request."""
    if isinstance(value, str):
        return TrackableResources.from_str(value, on_empty=TrackableResources()).to_list()
    if isinstance(value, TrackableResources):
        return value.to_list()
    if not isinstance(value, Mapping):
        raise TypeError(f"expected resources, got {type(value).__name__}")
    found = (TrackableResource.from_type_and_count(name, count) for name, count in value.items())
    return TrackableResources.of(found).to_list()


def identity(raw: Any) -> int | None:
    """A number of a thing; Slurm's 0 stands for none."""
    return read_int(raw) or None


def seconds(raw: Any) -> int:
    """Whole seconds of {"seconds", "microseconds"}; 0 for nothing."""
    return int(raw.get("seconds") or 0) if raw is not None else 0


def state(raw: Any) -> str | None:
    """The word for a job's or step's state that sacct shows: "COMPLETED", "REQUEUED"; None for nothing."""
    from slurmrest.pyslurm._job_forms import job_state  # which imports this package

    return job_state(texts(raw)) if raw else None


def hosts(raw: Any) -> str | None:
    """A host list; None while there is none ("None assigned")."""
    found = text(raw)
    return None if found == "None assigned" else found


def exit_code(raw: Any) -> int | None:
    """The exit code; 0 for what a signal ended (as sacct has it), None for what hasn't ended."""
    if raw is None:
        return None
    code = read_int(raw.get("return_code"))
    return 0 if code is None and read_int((raw.get("signal") or {}).get("id")) else code


def to_exit_code(value: int) -> dict[str, bool | int]:
    """An exit code of a process."""
    code = to_integer(value)
    if code > 255:
        raise ValueError(f"{code} is not an exit code (0 to 255)")
    return number(code)
