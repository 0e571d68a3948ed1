"""libslurm's start and end, kept for scripts that call them.

Used by scripts. What always holds: nothing of slurm.conf is read; where to connect is said by `connect` or the environment.
"""

from __future__ import annotations

from slurmrest.pyslurm._session import disconnect, session
from slurmrest.pyslurm.error import PyslurmError


def slurm_init(config_path: str | None = None) -> None:
    """Make the connection from the environment. A configuration file can't be taken: raises PyslurmError for one."""
    if config_path is not None:
        raise PyslurmError("slurm_init: slurm.conf is not read; set SLURM_REST_URL or call pyslurm.connect(url)")
    session()


def slurm_fini() -> None:
    """Close the connection."""
    disconnect()
