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
    PermissionDenied,
    ProtocolError,
    SlurmError,
    Unavailable,
    Unsupported,
)

SLURM_SUCCESS: Final = 0
SLURM_ERROR: Final = -1
ESLURM_INVALID_PARTITION_NAME: Final = 2000
ESLURM_INVALID_JOB_ID: Final = 2017
ESLURM_INVALID_NODE_NAME: Final = 2018
ESLURM_RESERVATION_INVALID: Final = 2053

_EMPTY: Final = 9000
"""slurmrestd's own number when it found nothing, or nothing to do."""

_TEXTS: Final[dict[int, str]] = {
    SLURM_SUCCESS: "No error",
    SLURM_ERROR: "Unspecified error",
    1000: "An unexpected message came",
    1001: "The daemon can't be reached",
    1002: "The message could not be sent",
    1003: "No answer was received",
    1005: "Client and daemon speak different versions",
    1007: "The credentials are not taken",
    1800: "slurmctld can't be reached",
    1801: "slurmctld: the message could not be sent",
    1802: "slurmctld: no answer was received",
    1804: "Too many requests, try again in a moment",
    2000: "No such partition",
    2001: "No partition is given and there is no default one",
    2002: "Access denied",
    2003: "The user's groups may not use this partition",
    2004: "The nodes asked for are not in this partition",
    2005: "More CPUs are asked for than allowed",
    2006: "Not a valid number of nodes",
    2007: "No further job is taken (MaxJobCount)",
    2009: "No job script is given",
    2010: "The user may not do this",
    2014: "No nodes are configured as the job asks for",
    2015: "The partition's limits don't allow it at present",
    2016: "The nodes asked for are busy",
    2017: "No such job",
    2018: "No such node",
    2020: "The job can't be altered at present",
    2021: "The job has ended or is ending",
    2024: "The job is still pending",
    2027: "This slurmctld is a standby",
    2028: "The node can't go to that state",
    2029: "No such node feature",
    2031: "Only available features can be active",
    2036: "This system doesn't support it",
    2037: "It is disabled at present",
    2038: "The dependency can't be",
    2044: "So much memory per task isn't available",
    2045: "No such account, or not with this partition",
    2048: "No such licence",
    2050: "A limit of the accounting or of the QOS forbids it",
    2051: "Not a valid time limit",
    2052: "Access to the reservation denied",
    2053: "No such reservation",
    2054: "Not a valid time",
    2055: "The reservation is in use",
    2063: "No working directory is given",
    2066: "No such QOS",
    2075: "The partition is in use",
    2080: "A reservation needs users, groups or accounts",
    2082: "A reservation of this name exists",
    2101: "The partition is down",
    2127: "No environment is given",
    2168: "A node of this name exists",
    2169: "There is no room for the node (MaxNodeCount)",
    2187: "The node can't be powered so",
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
    """The client's error as this package's. `not_found`: what it means if Slurm says no more than that nothing came."""
    if isinstance(error, Unsupported):
        return PyslurmError(str(error))
    number = error.number
    if not number or (number == _EMPTY and not_found != SLURM_ERROR):
        number = _NUMBERS.get(type(error), not_found)
    return RPCError(number, str(error))
