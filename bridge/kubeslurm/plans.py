"""JobPlan: one gang of processes, in neither system's words.

Readers (`readers`) make it of a Kubernetes object, `scripts` and `descriptions` make a Slurm job of it. What always holds:
everything in a plan has been checked; numbers are what Slurm counts in (MiB, whole CPUs, minutes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def is_gpu(gres: str) -> bool:
    """Is it a GPU, of whatever type?"""
    return gres.partition(":")[0] == "gpu"


@dataclass(frozen=True, slots=True)
class Role:
    """`replicas` equal members of the gang; `template` is their pod, as the user wrote it."""

    name: str
    replicas: int
    template: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Program:
    """What the replicas of a role run. `roles`: which, in their order; one program for both where they don't differ."""

    roles: tuple[str, ...]
    argv: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...]
    workdir: str | None

    @property
    def words(self) -> tuple[Word, ...]:
        """All that may refer to what only the running task knows."""
        return (*self.argv, *(value for _, value in self.environment))


@dataclass(frozen=True, slots=True)
class Shape:
    """Equal nodes, and equal replicas on them: the whole job, or one component of a heterogeneous one.

    `gres`: what each replica has of what Slurm calls so (`gpu`, `gpu:h100`). `memory_mib` is a node's, 0 all it has; no
    `cpus_per_task` where the nodes are taken whole. `least`: with so many replicas it can start already (elastic).
    """

    roles: tuple[str, ...]
    replicas: int
    replicas_per_node: int = 1
    tasks_per_replica: int = 1
    cpus_per_task: int | None = None
    memory_mib: int | None = None
    gres: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()
    exclusive: bool = False
    least: int | None = None

    @property
    def nodes(self) -> int:
        """How many, at most."""
        return -(-self.replicas // self.replicas_per_node)

    @property
    def tasks(self) -> int:
        """All of them."""
        return self.replicas * self.tasks_per_replica

    @property
    def tasks_per_node(self) -> int:
        """At most; the last node may have fewer."""
        return self.replicas_per_node * self.tasks_per_replica

    @property
    def even(self) -> bool:
        """Is the last node as full as the others?"""
        return self.replicas % self.replicas_per_node == 0

    @property
    def gpus_per_replica(self) -> int:
        """Of whatever type."""
        return sum(count for name, count in self.gres if is_gpu(name))


@dataclass(frozen=True, slots=True)
class Elastic:
    """The rendezvous of a job that goes on with fewer replicas: torchrun's variables, of `least` to `most` nodes."""

    least: int
    most: int
    rdzv_id: str
    conf: tuple[tuple[str, str], ...]
    max_restarts: int | None
    standalone: bool
    port: int | None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The gang. No `time_minutes`, no limit.

    `shapes`: more than one where the roles ask for different resources. `ranked`: there is a Master, so each task gets
    RANK and WORLD_SIZE. `processes_per_task`: so many ranks a task's own launcher starts, where the object says so;
    else 1. `notes`: what is done otherwise than the object says, for the user to read.
    """

    name: str
    namespace: str
    uid: str
    attempt: int
    user: User | None
    partition: str | None
    shapes: tuple[Shape, ...]
    programs: tuple[Program, ...]
    processes_per_task: int
    time_minutes: int | None
    launcher: Launcher
    launcher_reason: str
    mpi: str
    restart_policy: RestartPolicy
    backoff_limit: int | None
    port: int | None
    roles: tuple[Role, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...] = ()
    materials: Materials = NONE
    container: Container | None = None
    request: Request = NO_REQUEST
    elastic: Elastic | None = None
    ranked: bool = True

    @property
    def key(self) -> str:
        """Names this attempt, in the Slurm job's comment."""
        return f"{self.uid}/{self.attempt}"

    @property
    def replicas(self) -> int:
        """All members of the gang."""
        return sum(shape.replicas for shape in self.shapes)

    @property
    def nodes(self) -> int:
        """Of all components, at most."""
        return sum(shape.nodes for shape in self.shapes)

    @property
    def tasks(self) -> int:
        """Of all components."""
        return sum(shape.tasks for shape in self.shapes)

    @property
    def requeue(self) -> bool:
        """May Slurm start it again after the loss of a node?"""
        return self.restart_policy is not RestartPolicy.NEVER

    def component_of(self, place: int) -> int:
        """Which component of the job the replica at this place is in; Slurm numbers them on from the job's own number."""
        for number, shape in enumerate(self.shapes):
            if place < shape.replicas:
                return number
            place -= shape.replicas
        return 0

    def node_of(self, place: int) -> int:
        """Which of the job's nodes, counted over all components, the replica at this place is on."""
        nodes = 0
        for shape in self.shapes:
            if place < shape.replicas:
                return nodes + place // shape.replicas_per_node
            place -= shape.replicas
            nodes += shape.nodes
        return nodes

    def first_ranks(self, hosts: Sequence[str]) -> dict[str, int]:
        """The first rank of the component that a node belongs to; `hosts` in the order of the job's nodes."""
        found: dict[str, int] = {}
        nodes = ranks = 0
        for shape in self.shapes:
            found |= dict.fromkeys(hosts[nodes : nodes + shape.nodes], ranks)
            nodes, ranks = nodes + shape.nodes, ranks + shape.tasks
        return found
