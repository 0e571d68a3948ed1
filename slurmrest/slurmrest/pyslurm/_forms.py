"""Readers and writers of attributes: the REST API's forms to pyslurm's values and back.

Used in declarations of `slurmrest.pyslurm._fields`. Readers take what stands in a payload, None included; writers take
what a script sets. What always holds: text without content reads as None, a number that isn't set as None, no limit as
UNLIMITED, memory is MiB, times are seconds since 1970; a writer raises TypeError or ValueError for a value that isn't
what it should be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from slurmrest.numbers import INFINITE, number, read_int, read_number
from slurmrest.pyslurm.constants import UNLIMITED
from slurmrest.pyslurm.utils.ctime import date_to_timestamp, timestr_to_mins, timestr_to_secs
from slurmrest.pyslurm.utils.helpers import memory_to_mib

Limit: TypeAlias = int | str | None
"""A number, UNLIMITED, or None for not set."""
Texts: TypeAlias = Iterable[str] | str
"""A list of words, or text with commas."""
_HOSTS = re.compile(r"[A-Za-z0-9_.-]+(?:\[[0-9,-]+\][A-Za-z0-9_.-]*)*")
_NONE = frozenset({"", "(null)", "N/A", "n/a", "None"})


# -- readers


def text(raw: Any) -> str | None:
    """Text; None for what stands for none."""
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {type(raw).__name__}")
    return None if raw in _NONE else raw


def word(raw: Any) -> str:
    """A name; "" for none."""
    return text(raw) or ""


def integer(raw: Any) -> int | None:
    """A number in either form."""
    return read_int(raw)


def count(raw: Any) -> int:
    """A number that is 0 when it isn't set."""
    return read_int(raw) or 0


def limit(raw: Any) -> Limit:
    """A number that may be without limit."""
    value = read_number(raw)
    return UNLIMITED if value is INFINITE else value if isinstance(value, int) else None


def memory_limit(raw: Any) -> Limit:
    """MiB; Slurm's 0 stands for no limit."""
    value = limit(raw)
    return UNLIMITED if value == 0 else value


def moment(raw: Any) -> int | None:
    """Seconds since 1970; Slurm's 0 stands for never."""
    return read_int(raw) or None


def truth(raw: Any) -> bool:
    """Yes or no; no if nothing is said."""
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    if isinstance(raw, str) and raw.lower() in ("yes", "no", "true", "false", ""):
        return raw.lower() in ("yes", "true")
    raise TypeError(f"expected true or false, got {type(raw).__name__}")


def texts(raw: Any) -> list[str]:
    """A list of words, or text with commas (which may stand in brackets) as one."""
    if isinstance(raw, str):
        return [] if raw in _NONE else split(raw)
    if not isinstance(raw, (list, type(None))):
        raise TypeError(f"expected a list, got {type(raw).__name__}")
    return [word for word in raw or [] if text(word) is not None]


def seconds(raw: Any) -> Limit:
    """Seconds of a duration's text."""
    found = text(raw)
    return None if found in (None, "NONE") else timestr_to_secs(found)


def address(raw: Any) -> str | None:
    """A name or address; a request has a list of one."""
    return ",".join(texts(raw)) or None


def state(raw: Any) -> str:
    """The words of a state as Slurm prints them, joined with "+"; "" for none."""
    return "+".join(texts(raw))


def words(raw: Any) -> str | None:
    """As `state`; None for none."""
    return state(raw) or None


def tallies(raw: Any) -> dict[str, int]:
    """Counts by name: "gpu:h100:8(S:0-1),shard:2" is {"gpu:h100": 8, "shard": 2}, "cpu=4,mem=2G" {"cpu": 4, "mem": 2048}.

    A name without a count counts one. Memory is MiB.
    """
    found: dict[str, int] = {}
    for part in texts(raw):
        entry = part.split("(", 1)[0].removeprefix("gres/").removeprefix("gres:")
        name, _, size = entry.partition("=") if "=" in entry else entry.rpartition(":")
        if not name or not size[:1].isdigit():
            name, size = entry, "1"
        found[name] = found.get(name, 0) + _tally(name, size)
    return found


def split(joined: str) -> list[str]:
    """The parts between commas that stand in no bracket: "n[1,3],m" is two."""
    parts, depth = [""], 0
    for sign in joined:
        depth += (sign in "[({") - (sign in "])}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part]


def _tally(name: str, size: str) -> int:
    if size.isdigit():
        return int(size)
    if name == "mem":
        return int(memory_to_mib(size) or 0)
    units = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
    unit = units.get(size[-1:].upper())
    if unit is None:
        raise ValueError(f"{size!r:.40} is not a count")
    return int(float(size[:-1]) * unit)


# -- writers


def to_text(value: str) -> str:
    """Text without control signs other than tabs and line ends."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    if any(ord(sign) < 32 and sign not in "\t\n\r" for sign in value) or "\x7f" in value:
        raise ValueError("the text holds control characters")
    return value


def to_word(value: str) -> str:
    """Text for a name: on one line, without commas, spaces at its ends or control signs."""
    word = to_text(value)
    if not word or word != word.strip() or any(sign in ",\t\n\r" for sign in word):
        raise ValueError(f"{value!r:.80} is not a name")
    return word


def to_line(value: str) -> str:
    """Text on one line."""
    if any(sign in "\n\r" for sign in to_text(value)):
        raise ValueError(f"{value!r:.80} is more than one line")
    return value


def to_texts(value: Texts) -> list[str]:
    """A list of words."""
    parts = split(value) if isinstance(value, str) else list(value)
    return [to_word(part.strip() if isinstance(part, str) else part) for part in parts]


def to_list(value: Texts) -> list[str]:
    """A list of words that takes the place of the one there: Slurm overlooks an empty list, of one empty word it takes all
    away.
    """
    return to_texts(value) or [""]


def to_name(value: str) -> str:
    """A name, or "" for none any more."""
    return to_word(value) if value != "" else ""


def to_hosts(value: Texts) -> list[str]:
    """A list of host names and ranges ("n[0-3,7]")."""
    parts = [part.strip() for part in (split(value) if isinstance(value, str) else map(to_text, value))]
    for part in parts:
        if not _HOSTS.fullmatch(part):
            raise ValueError(f"{part!r:.80} is not a host name or a range of them")
    return parts


def to_joined(value: Texts) -> str:
    """Text with commas."""
    return ",".join(to_texts(value)) if not isinstance(value, str) else to_line(value)


def to_integer(value: int | str) -> int:
    """A whole number, not below zero."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"expected a whole number, got {type(value).__name__}")
    found = int(value)
    if found < 0:
        raise ValueError(f"{found} is below zero")
    return found


def to_number(value: int | str) -> dict[str, bool | int]:
    """A number in the API's form, or UNLIMITED."""
    if isinstance(value, str) and value.upper() in (UNLIMITED, "INFINITE"):
        return number(INFINITE)
    return number(to_integer(value))


def to_memory(value: int | str) -> dict[str, bool | int]:
    """MiB, "10G" or UNLIMITED (which Slurm writes as 0)."""
    size = memory_to_mib(value)
    return number(0) if size == UNLIMITED else to_number(0 if size is None else size)


def to_minutes(value: int | str) -> dict[str, bool | int]:
    """Minutes, "1-12:00:00" or UNLIMITED."""
    minutes = timestr_to_mins(value)
    return to_number(0 if minutes is None else minutes)


def to_seconds(value: int | str) -> dict[str, bool | int]:
    """Seconds, "00:05:00" or UNLIMITED."""
    seconds = timestr_to_secs(value)
    return to_number(0 if seconds is None else seconds)


def to_moment(value: int | str | datetime) -> dict[str, bool | int]:
    """A time: seconds since 1970, a datetime, or text as `sbatch --begin` takes it."""
    return number(date_to_timestamp(value))


def to_truth(value: bool) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"expected True or False, got {type(value).__name__}")
    return value


def to_tallies(value: Mapping[str, int] | Texts) -> str:
    """Counts by name as text: {"gpu:h100": 8} is "gpu:h100:8"; text and lists as they are."""
    if not isinstance(value, Mapping):
        return to_joined(value)
    return ",".join(f"{to_word(name)}:{to_integer(size)}" for name, size in value.items())


def one_of(*allowed: str) -> Callable[[str], str]:
    """A writer that takes these words only (upper or lower case)."""

    def write(value: str) -> str:
        word = to_text(value).upper()
        if word not in allowed:
            raise ValueError(f"{value!r:.80} is none of {', '.join(allowed)}")
        return word

    return write
