"""Start-up of pyslurm's face: kept for scripts that call it; the REST client needs none.

Used by scripts. `LOCAL_CLUSTER` is the local cluster's name, asked for when it is read.
"""

from __future__ import annotations

from slurmrest.pyslurm._session import ask_local_cluster, session


def init() -> None:
    """Make the connection from the environment. Raises PyslurmError if nothing says where to."""
    session()


def __getattr__(name: str) -> str:
    if name == "LOCAL_CLUSTER":
        return ask_local_cluster()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
