"""Slurm's numbers: `{"set": bool, "infinite": bool, "number": int}`, or a plain integer in some fields and versions.

Used by the version adapters to read answers, and by callers to write requests. None stands for "not set".
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, TypeAlias


class Infinite(Enum):
    """The type of `INFINITE`, Slurm's "no limit"."""

    INFINITE = "infinite"

    def __repr__(self) -> str:
        return "INFINITE"


INFINITE: Final = Infinite.INFINITE
Number: TypeAlias = int | Infinite | None

_INT_SENTINELS: Final = frozenset({0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE})  # NO_VAL, NO_VAL64
_INT_INFINITE: Final = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})  # INFINITE, INFINITE64


def read_number(raw: Any) -> Number:
    """The number in `raw`; raises TypeError if `raw` is neither an object, an integer nor null."""
    if isinstance(raw, dict):
        if raw.get("infinite"):
            return INFINITE
        return int(raw["number"]) if raw.get("set") else None
    if raw is None or raw in _INT_SENTINELS:
        return None
    if not isinstance(raw, int):
        raise TypeError(f"expected a number, got {type(raw).__name__}")
    return INFINITE if raw in _INT_INFINITE else raw


def read_int(raw: Any) -> int | None:
    """As `read_number`, for what can't be infinite: such an answer reads as "not set"."""
    if isinstance(raw, dict):  # said again here: nearly all numbers come this way, 17 in each job
        return int(raw["number"]) if raw.get("set") and not raw.get("infinite") else None
    value = read_number(raw)
    return value if isinstance(value, int) else None


def number(value: Number) -> dict[str, bool | int]:
    """The written form, for a job description or an update."""
    if isinstance(value, int):
        return {"set": True, "infinite": False, "number": value}
    return {"set": False, "infinite": value is INFINITE, "number": 0}
