"""pyslurm's names over REST: `import slurmrest.pyslurm as pyslurm`, and a script for pyslurm 25.11 runs.

Where to connect is said by `connect(...)` or the environment (SLURM_REST_URL and SLURM_JWT, SLURM_JWT_FILE or
SLURM_REST_KEY_FILE). What always holds: units are pyslurm's (memory in MiB, times in seconds since 1970, hosts as
ranges), every failure is a `PyslurmError`, and what REST can't do says so, with the version that can, if any.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from slurmrest.pyslurm._session import connect, disconnect
from slurmrest.pyslurm.error import PyslurmError, RPCError

if TYPE_CHECKING:
    from slurmrest.pyslurm import (
        api,
        constants,
        db,
        enums,
        error,
        settings,
        slurmctld,
        utils,
        xcollections,
    )
    from slurmrest.pyslurm.api import slurm_fini, slurm_init
    from slurmrest.pyslurm.job import Job, Jobs
    from slurmrest.pyslurm.node import Node, Nodes
    from slurmrest.pyslurm.partition import Partition, Partitions
    from slurmrest.pyslurm.reservation import (
        Reservation,
        ReservationFlags,
        ReservationReoccurrence,
        Reservations,
    )
    from slurmrest.pyslurm.step import JobStep, JobSteps
    from slurmrest.pyslurm.submission import JobSubmitDescription
    from slurmrest.pyslurm.task_dist import TaskDistribution

_MODULES: Final = frozenset(
    {"api", "constants", "db", "enums", "error", "settings", "slurmctld", "utils", "xcollections"}
)
_PLACES: Final = {
    "Job": "job",
    "JobStep": "step",
    "JobSteps": "step",
    "JobSubmitDescription": "submission",
    "Jobs": "job",
    "Node": "node",
    "Nodes": "node",
    "Partition": "partition",
    "Partitions": "partition",
    "Reservation": "reservation",
    "ReservationFlags": "reservation",
    "ReservationReoccurrence": "reservation",
    "Reservations": "reservation",
    "TaskDistribution": "task_dist",
    "slurm_fini": "api",
    "slurm_init": "api",
}
"""Where the names are that are imported at their first use."""

__all__ = [
    "Job",
    "JobStep",
    "JobSteps",
    "JobSubmitDescription",
    "Jobs",
    "Node",
    "Nodes",
    "Partition",
    "Partitions",
    "PyslurmError",
    "RPCError",
    "Reservation",
    "ReservationFlags",
    "ReservationReoccurrence",
    "Reservations",
    "TaskDistribution",
    "api",
    "connect",
    "constants",
    "db",
    "disconnect",
    "enums",
    "error",
    "settings",
    "slurm_fini",
    "slurm_init",
    "slurmctld",
    "utils",
    "xcollections",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
