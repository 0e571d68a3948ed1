"""slurmrest: a REST client for slurmrestd, synchronous (`Slurm`) and asynchronous (`AsyncSlurm`).

Knows Slurm and nothing of Kubernetes; usable on its own. What always holds: every call has a deadline, every failure is
a `SlurmError`, every value returned is a frozen dataclass of the same form for each API version from v0.0.40 on, and a
job is submitted once per key, whatever is lost on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmrest.errors import (
    Ambiguous,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ProtocolError,
    SlurmError,
    Unavailable,
    Unsupported,
)
from slurmrest.notices import Notice, collect_warnings
from slurmrest.numbers import INFINITE, Infinite, Number, number
from slurmrest.states import JobBase, JobFlag, JobStates, NodeBase, NodeFlag, NodeStates
from slurmrest.timeouts import Timeouts
from slurmrest.tls import TLS
from slurmrest.tokens import FileToken, SignedTokens, StaticToken, TokenSource
from slurmrest.values import (
    Diag,
    ExitCode,
    Job,
    JobOutcome,
    JobState,
    License,
    Node,
    NodeShare,
    Partition,
    Ping,
    Reservation,
    Share,
    Submission,
)

if TYPE_CHECKING:
    from slurmrest.client import AsyncSlurm, Slurm
    from slurmrest.watching import AsyncWatch, Change, JobChange, NodeChange, PollFailed, PollRecovered, Watch, What

__all__ = [
    "INFINITE",
    "TLS",
    "Ambiguous",
    "AsyncSlurm",
    "AsyncWatch",
    "Authentication",
    "Change",
    "Diag",
    "ExitCode",
    "FileToken",
    "Infinite",
    "InvalidRequest",
    "Job",
    "JobBase",
    "JobChange",
    "JobFlag",
    "JobOutcome",
    "JobState",
    "JobStates",
    "License",
    "Node",
    "NodeBase",
    "NodeChange",
    "NodeFlag",
    "NodeShare",
    "NodeStates",
    "NotFound",
    "Notice",
    "Number",
    "Partition",
    "PermissionDenied",
    "Ping",
    "PollFailed",
    "PollRecovered",
    "ProtocolError",
    "Reservation",
    "Share",
    "SignedTokens",
    "Slurm",
    "SlurmError",
    "StaticToken",
    "Submission",
    "Timeouts",
    "TokenSource",
    "Unavailable",
    "Unsupported",
    "Watch",
    "What",
    "collect_warnings",
    "number",
]


_LATE = dict.fromkeys(("AsyncSlurm", "Slurm"), "client") | dict.fromkeys(
    ("AsyncWatch", "Change", "JobChange", "NodeChange", "PollFailed", "PollRecovered", "Watch", "What"), "watching"
)


def __getattr__(name: str) -> Any:
    """The clients come with asyncio, 0.1 s of import: who only reads values does without."""
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(f"slurmrest.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
