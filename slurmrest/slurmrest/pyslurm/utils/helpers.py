"""Names, ranges, host lists and sizes, as scripts use them.

Used by scripts as `pyslurm.utils`, and by every attribute that takes one of them. What always holds: None comes through,
and a text that isn't what it should be raises ValueError.
"""

from __future__ import annotations

import grp
import pwd
import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from slurmrest import hostlists
from slurmrest.pyslurm.constants import UNLIMITED

_SUFFIXES: Final = "KMGTPEZ"
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPEZ]?)(?:I?B)?", re.IGNORECASE)
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?(?:%\d+)?")
_EXACT: Final = Context(prec=100)
_MOST: Final = 1_000_000
"""The most numbers that one range may stand for."""


def uid_to_name(uid: int, err_on_invalid: bool = True) -> str | None:
    """The user with this number on this machine. Raises KeyError if there is none, or gives None."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        if err_on_invalid:
            raise
        return None


def gid_to_name(gid: int, err_on_invalid: bool = True) -> str | None:
    """The group with this number on this machine. Raises KeyError if there is none, or gives None."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        if err_on_invalid:
            raise
        return None


def user_to_uid(user: str | int, err_on_invalid: bool = True) -> int | None:
    """The number of this user on this machine; a number is taken as it is. Raises KeyError, or gives None."""
    if isinstance(user, int):
        return user
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        if err_on_invalid:
            raise
        return None


def group_to_gid(group: str | int, err_on_invalid: bool = True) -> int | None:
    """The number of this group on this machine; a number is taken as it is. Raises KeyError, or gives None."""
    if isinstance(group, int):
        return group
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        if err_on_invalid:
            raise
        return None


def expand_range_str(range_str: str) -> list[int]:
    """The numbers in "1,3-5,10-20:5", in order and as often as named. Raises ValueError for anything else.

    >>> expand_range_str("1,3-5,10-20:5")
    [1, 3, 4, 5, 10, 15, 20]
    """
    numbers: list[int] = []
    for part in filter(None, range_str.strip().strip("[]").split(",")):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise ValueError(f"{part!r:.80} is not a range of numbers")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or step < 1 or (last - first) // step + len(numbers) > _MOST:
            raise ValueError(f"{part!r:.80} is not a range of numbers, or of more than {_MOST}")
        numbers.extend(range(first, last + 1, step))
    return numbers


def nodelist_from_range_str(nodelist: str) -> list[str]:
    """The names in "node[001-003],login", by name. Raises ValueError for what is no host list."""
    return hostlists.expand(nodelist)


def nodelist_to_range_str(nodelist: Iterable[str] | str) -> str:
    """The shortest host list of these names (a list, or text with commas). Raises ValueError."""
    return hostlists.fold(hostlists.expand(nodelist) if isinstance(nodelist, str) else nodelist)


def humanize(num: int | str | None, decimals: int = 1) -> str | None:
    """So many MiB as people write it: 10240 is "10.0G".

    >>> humanize(10240)
    '10.0G'
    """
    if num is None or isinstance(num, str):
        return num
    power = 0
    while abs(num) >= 1024 ** (power + 1) and power < len(_SUFFIXES) - 2:
        power += 1
    return f"{_EXACT.divide(num, 1024**power):.{decimals}f}{_SUFFIXES[power + 1]}"


def dehumanize(humanized_str: str | int | float, target: str = "M", decimals: int = 0) -> int | float:
    """So much of the unit `target` is in "10G" (without a unit: MiB). Part of a unit is rounded up for `decimals=0`.

    >>> dehumanize("10G")
    10240
    """
    if isinstance(humanized_str, (int, float)):
        return humanized_str
    found = _SIZE.fullmatch(humanized_str.strip())
    if not found or target.upper() not in tuple(_SUFFIXES):
        raise ValueError(f"{humanized_str!r:.80} is not a size")
    power = _SUFFIXES.index((found[2] or "M").upper()) - _SUFFIXES.index(target.upper())
    value = _EXACT.multiply(Decimal(found[1]), _EXACT.power(1024, power))
    if decimals:
        return round(float(value), decimals)
    return int(value.to_integral_value(ROUND_CEILING))


def memory_to_mib(value: int | str | None) -> int | str | None:
    """MiB of 1024, "10G" or UNLIMITED; None comes through. Raises ValueError."""
    if isinstance(value, str) and value.upper() == UNLIMITED:
        return UNLIMITED
    return None if value is None else int(dehumanize(value))
