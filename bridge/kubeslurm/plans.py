"""JobPlan: one gang of processes, in neither system's words.

Readers (`readers`) make it of a Kubernetes object, `scripts` and `descriptions` make a Slurm job of it. What always holds:
everything in a plan has been checked; numbers are what Slurm counts in (MiB, whole CPUs, minutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kubeslurm.api.tenants import User
from kubeslurm.containers import Container
from kubeslurm.expansion import Word
from kubeslurm.materials import NONE, Materials
from kubeslurm.requests import NONE as NO_REQUEST
from kubeslurm.requests import Request


class Launcher(StrEnum):
    """How a replica's processes are started."""

    RANK = "rank"
    """One Slurm task for each GPU."""

    POD = "pod"
    """One Slurm task for each replica; it starts its own processes (torchrun and its like)."""


class RestartPolicy(StrEnum):
    """What to do when a replica fails."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"
    EXIT_CODE = "ExitCode"


@dataclass(frozen=True, slots=True)
class Role:
    """`replicas` equal members of the gang; `template` is their pod, as the user wrote it."""

    name: str
    replicas: int
    template: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The gang. One node for each replica; `memory_mib` and `gpus_per_node` are per node; no `time_minutes`, no limit.

    `processes_per_task`: so many ranks a task's own launcher starts, where the object says so; else 1.
    """

    name: str
    namespace: str
    uid: str
    attempt: int
    user: User | None
    partition: str | None
    nodes: int
    tasks_per_node: int
    processes_per_task: int
    cpus_per_task: int | None
    memory_mib: int | None
    gpus_per_node: int
    time_minutes: int | None
    launcher: Launcher
    launcher_reason: str
    argv: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...]
    workdir: str | None
    mpi: str
    restart_policy: RestartPolicy
    backoff_limit: int | None
    port: int | None
    roles: tuple[Role, ...]
    ignored: tuple[str, ...]
    materials: Materials = NONE
    container: Container | None = None
    request: Request = NO_REQUEST

    @property
    def key(self) -> str:
        """Names this attempt, in the Slurm job's comment."""
        return f"{self.uid}/{self.attempt}"

    @property
    def tasks(self) -> int:
        """All of them."""
        return self.nodes * self.tasks_per_node

    @property
    def requeue(self) -> bool:
        """May Slurm start it again after the loss of a node?"""
        return self.restart_policy is not RestartPolicy.NEVER
