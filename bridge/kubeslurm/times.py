"""Slurm's time limits (`48:00:00`, `2-12`, `UNLIMITED`) as minutes and back. Pure; see sbatch(1), --time.

Slurm counts whole minutes; seconds round up. None is no limit.
"""

from __future__ import annotations

import math
import re
from typing import Final

UNLIMITED: Final = frozenset({"UNLIMITED", "INFINITE"})
MAX_MINUTES: Final = (2**31 - 1) // 60
"""Slurm reads time limits as seconds in 32 bits."""

_DAYS = re.compile(r"(\d{1,5})-(\d{1,3})(?::(\d{1,3}))?(?::(\d{1,3}))?", re.ASCII)
_PLAIN = re.compile(r"(\d{1,8})(?::(\d{1,8}))?(?::(\d{1,8}))?", re.ASCII)


def parse_minutes(text: str) -> int | None:
    """`minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`; ValueError otherwise."""
    if text.upper() in UNLIMITED:
        return None
    minutes = _minutes(text)
    if minutes > MAX_MINUTES:
        raise ValueError(f"{text[:40]!r} is more than Slurm can count")
    return minutes


def _minutes(text: str) -> int:
    if match := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return (days * 24 + hours) * 60 + minutes + math.ceil(seconds / 60)
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no time limit, such as 48:00:00, 2-12:00:00 or UNLIMITED")
    first, second, third = match.groups()
    if third is not None:
        return int(first) * 60 + int(second) + math.ceil(int(third) / 60)
    return int(first) + math.ceil(int(second or 0) / 60)


def minutes_of(seconds: int) -> int:
    """Whole minutes, rounded up."""
    return math.ceil(seconds / 60)


def format_minutes(minutes: int | None) -> str:
    """`HH:MM:00` as sbatch takes it, `UNLIMITED` for None."""
    return "UNLIMITED" if minutes is None else f"{minutes // 60:02d}:{minutes % 60:02d}:00"
