"""Numbers of a job description within what Slurm's fields hold: slurmrestd cuts off what is larger, without a word.

Used by `slurmrest.pyslurm._description`. Pure. What always holds: TypeError for what is no number, ValueError for what is
out of bounds. Sizes of fields: slurm/slurm.h, job_desc_msg_t; the last values of each size stand for "not set" and the like.
"""

from __future__ import annotations

from typing import Any, Final

from slurmrest.numbers import INFINITE, number
from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm.utils import dehumanize, timestr_to_mins

_MOST: Final = 2**31 - 3
_MOST_SHORT: Final = 2**16 - 3
_MOST_MEBIBYTES: Final = 2**40


def integer(value: int | str) -> int:
    """A whole number, also below zero."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"expected a whole number, got {type(value).__name__}")
    return _at_most(_MOST, int(value))


def natural(value: int | str) -> int:
    """A whole number, not below zero."""
    return _at_most(_MOST, forms.to_integer(value))


def positive(value: int | str) -> int:
    """A whole number from one on."""
    found = natural(value)
    if found < 1:
        raise ValueError(f"{found} is below one")
    return found


def short(value: int | str) -> int:
    """A whole number from one on, for a field of 16 bits."""
    return _at_most(_MOST_SHORT, positive(value))


def short_natural(value: int | str) -> int:
    """A whole number, not below zero, for a field of 16 bits."""
    return _at_most(_MOST_SHORT, natural(value))


def minutes(value: int | str) -> dict[str, Any]:
    """Minutes, "1-12:00:00" or UNLIMITED. As with sbatch 0 is no limit: REST would end the job at once."""
    found = timestr_to_mins(value)
    return number(_at_most(_MOST, forms.to_integer(found)) or INFINITE) if isinstance(found, int) else number(INFINITE)


def mebibytes(value: int | str) -> int:
    """MiB, or "10G"."""
    found = forms.to_integer(value) if isinstance(value, int) else int(dehumanize(forms.to_line(value)))
    return _at_most(_MOST_MEBIBYTES, found)


def memory(value: int | str) -> dict[str, Any]:
    """The same, or UNLIMITED; 0 is all of a node."""
    endless = isinstance(value, str) and value.strip().upper() == "UNLIMITED"
    return number(0 if endless else mebibytes(value))


def _at_most(most: int, value: int) -> int:
    if abs(value) > most:
        raise ValueError(f"{value} is more than Slurm can hold ({most})")
    return value
