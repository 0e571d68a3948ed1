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
from slurmrest.numbers import INFINITE, Infinite, Number, number
from slurmrest.states import JobBase, JobFlag, JobStates, NodeBase, NodeFlag, NodeStates
from slurmrest.timeouts import Timeouts
from slurmrest.tokens import FileToken, SignedTokens, StaticToken, TokenSource
from slurmrest.values import Diag, ExitCode, Job, JobState, Node, Partition, Ping, Submission

if TYPE_CHECKING:
    from slurmrest.client import AsyncSlurm, Slurm

__all__ = [
    "INFINITE",
    "Ambiguous",
    "AsyncSlurm",
    "Authentication",
    "Diag",
    "ExitCode",
    "FileToken",
    "Infinite",
    "InvalidRequest",
    "Job",
    "JobBase",
    "JobFlag",
    "JobState",
    "JobStates",
    "Node",
    "NodeBase",
    "NodeFlag",
    "NodeStates",
    "NotFound",
    "Number",
    "Partition",
    "PermissionDenied",
    "Ping",
    "ProtocolError",
    "SignedTokens",
    "Slurm",
    "SlurmError",
    "StaticToken",
    "Submission",
    "Timeouts",
    "TokenSource",
    "Unavailable",
    "Unsupported",
    "number",
]


def __getattr__(name: str) -> Any:
    """The clients come with asyncio, 0.1 s of import: who only reads values does without."""
    if name in ("AsyncSlurm", "Slurm"):
        from slurmrest import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
