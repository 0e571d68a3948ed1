"""Enumerations of pyslurm's face, and their two bases.

Used by scripts. What always holds: a word of a newer Slurm never raises where an answer is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, StrEnum
from typing import Self


class SlurmEnum(StrEnum):
    """An enumeration that compares equal to Slurm's own word."""

    @classmethod
    def from_flag(cls, words: Iterable[str], default: Self) -> Self:
        """The first member among `words`, or `default`."""
        known = {str(member): member for member in cls}
        return next((known[word] for word in words if word in known), default)


class SlurmFlag(Flag):
    """A set of named flags: combine with `|`, ask with `in`."""

    @classmethod
    def from_list(cls, names: Iterable[str]) -> Self:
        """The flags with these names (upper or lower case). Raises ValueError for a name that isn't one."""
        found = cls(0)
        for name in names:
            member = cls.__members__.get(name.upper())
            if member is None:
                raise ValueError(f"{name!r:.80} is none of {', '.join(cls.__members__)}")
            found |= member
        return found

    def to_list(self) -> list[str]:
        """The names of the flags that are set."""
        return [name for name, member in type(self).__members__.items() if member in self and member.value]


class SchedulerType(SlurmEnum):
    """What started or will start a job."""

    SUBMIT = "SUBMIT"
    MAIN = "MAIN"
    BACKFILL = "BACKFILL"
    UNKNOWN = "UNKNOWN"
