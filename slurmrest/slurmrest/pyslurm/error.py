"""Errors of pyslurm's face, and Slurm's error numbers.

Raised by every call of this package. What always holds: an `RPCError` has Slurm's own number where Slurm gave one, and
no text holds a token. Numbers: slurm/slurm_errno.h.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from slurmrest.errors import (
    Ambiguous,
    Authentication,
    NotFound,
    PermissionDenied,
    ProtocolError,
    SlurmError,
    Unavailable,
    Unsupported,
)

SLURM_SUCCESS: Final = 0
SLURM_ERROR: Final = -1
ESLURM_INVALID_NODE_NAME: Final = 2018

_TEXTS: Final[dict[int, str]] = {
    SLURM_SUCCESS: "No error",
    SLURM_ERROR: "Unspecified error",
    1001: "Unable to reach the daemon",
    1005: "The protocol versions don't match",
    1007: "The daemon does not take the credentials",
    1800: "Unable to reach slurmctld",
    1803: "No answer from slurmctld",
    2000: "No such partition",
    2002: "Access denied",
    2007: "The job asks for more nodes than it may have",
    2010: "The user may not do this",
    2014: "The job can never run on this cluster as it is",
    2015: "The request doesn't suit the job's state",
    2017: "No such job",
    2018: "No such node",
    2020: "The job's step isn't there yet",
    2021: "The job has ended already",
    2024: "The job's requirements can't be met just now",
    2028: "The node can't go to that state",
    2045: "No such account, or not one of the user",
    2050: "The time limit is above what is allowed",
    2063: "No working directory is given",
    2074: "No such reservation",
    2127: "No environment is given",
}
_NUMBERS: Final[dict[type[SlurmError], int]] = {
    Authentication: 1007,
    PermissionDenied: 2002,
    Unavailable: 1001,
    Ambiguous: 1003,
    ProtocolError: 1000,
}
_last = threading.local()


class PyslurmError(Exception):
    """Base of the errors of this package: also what the REST API has no call for, with the version that has it."""


class RPCError(PyslurmError):
    """Slurm refused a call or couldn't be asked. `errno` is Slurm's number (-1: it gave none), `msg` the text."""

    def __init__(self, errno: int = SLURM_ERROR, msg: str | None = None) -> None:
        self.errno = errno
        self.msg = msg or slurm_strerror(errno)
        super().__init__(self.msg)
        _last.errno, _last.msg = errno, self.msg


def slurm_strerror(errno: int) -> str:
    """What an error number means; the operating system's text for its own numbers."""
    if errno in _TEXTS:
        return _TEXTS[errno]
    return os.strerror(errno) if 0 < errno < 1000 else f"Slurm error {errno}"


def slurm_errno() -> int:
    """The number of this thread's last `RPCError`, or 0."""
    return int(getattr(_last, "errno", SLURM_SUCCESS))


def get_last_slurm_error() -> tuple[int, str]:
    """Number and text of this thread's last `RPCError`, or (0, "No error")."""
    return slurm_errno(), str(getattr(_last, "msg", _TEXTS[SLURM_SUCCESS]))


def verify_rpc(errno: int) -> None:
    """Raise RPCError for any number but that of success."""
    if errno != SLURM_SUCCESS:
        raise RPCError(errno)


def translated(error: SlurmError, not_found: int = SLURM_ERROR) -> PyslurmError:
    """The client's error as this package's. `not_found`: the number of what the call asks for, if it isn't there."""
    if isinstance(error, Unsupported):
        return PyslurmError(str(error))
    number = getattr(error, "number", 0) or _NUMBERS.get(type(error), SLURM_ERROR)
    if isinstance(error, NotFound):
        number = getattr(error, "number", 0) or not_found
    return RPCError(number, str(error))
