"""What the client returns: plain frozen values, the same for every API version.

Built by the version adapters (`slurmrest.versions`), read by callers. What always holds: text that Slurm leaves out is
"", a number that it leaves out is None, times are seconds since 1970 (None: not yet), memory is in MiB. What a value has
no name for is in its `raw`: the entry as it was answered; a call for one thing keeps it, a list keeps it on request, for
it takes twenty times the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slurmrest.numbers import Number
from slurmrest.states import JobStates, NodeStates


class Extra(dict[str, Any]):
    """An entry that wasn't kept. Hashable, so that a dataclass takes it for a default; nobody writes into it."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return 0


NOT_KEPT: Final[Mapping[str, Any]] = Extra()


@dataclass(frozen=True, slots=True)
class Node:
    """One node, as slurmctld has it. `gres` is what is configured, `gres_used` what jobs hold (`gpu:h100:8(IDX:0-7)`)."""

    name: str
    states: NodeStates
    address: str = ""
    hostname: str = ""
    reason: str = ""
    reason_changed_at: int | None = None
    cpus: int = 0
    alloc_cpus: int = 0
    real_memory: int = 0
    gres: str = ""
    gres_used: str = ""
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    boot_time: int | None = None
    slurmd_start_time: int | None = None
    comment: str = ""
    extra: str = ""
    active_features: tuple[str, ...] = ()
    weight: int = 0
    version: str = ""
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition. `nodes` is hostlist text, `max_time` and `default_time` are minutes."""

    name: str
    states: frozenset[str] = frozenset()
    nodes: str = ""
    node_count: int = 0
    max_time: Number = None
    default_time: Number = None
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class JobState:
    """The cheap answer about a job: its id and state, nothing else.

    `task` is the number of an array's task. While it waits, `job_id` is the array's; once it runs, it has an id of its own.
    """

    job_id: int
    states: JobStates
    task: int | None = None


@dataclass(frozen=True, slots=True)
class ExitCode:
    """How the batch script ended: `status` such as SUCCESS, ERROR, SIGNALED, PENDING; the pair behind it, if any."""

    status: str = ""
    return_code: int | None = None
    signal: int | None = None


NO_EXIT: Final = ExitCode()
"""Nothing is known of an end."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `nodes` is hostlist text ("" while pending); `time_limit` is minutes.

    Of an array, `array_job_id` is the id that it was submitted under, `array_task_id` this task's number (None: all those
    that wait). Of a heterogeneous job, `het_job_id` is the leader's id, `het_job_offset` counts its parts from 0.
    """

    job_id: int
    states: JobStates
    name: str = ""
    user_name: str = ""
    user_id: int | None = None
    account: str = ""
    partition: str = ""
    state_reason: str = ""
    state_description: str = ""
    comment: str = ""
    nodes: str = ""
    node_count: int | None = None
    tasks: int | None = None
    cpus_per_task: int | None = None
    tres_per_node: str = ""
    memory_per_node: int | None = None
    time_limit: Number = None
    exit_code: ExitCode = NO_EXIT
    submit_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    restart_count: int = 0
    failed_node: str = ""
    batch_host: str = ""
    standard_output: str = ""
    current_working_directory: str = ""
    qos: str = ""
    cpus: int | None = None
    priority: int | None = None
    dependency: str = ""
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_job_offset: int | None = None
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that is in Slurm's hands. `existing`: it was found there under the same key, this call made none."""

    job_id: int
    existing: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ping:
    """One slurmctld's answer: does it respond, and is it the primary one?"""

    hostname: str
    responding: bool
    primary: bool


@dataclass(frozen=True, slots=True)
class Diag:
    """slurmctld's own figures: its scheduler's last and mean cycle in microseconds, its queues and counts of jobs."""

    server_threads: int = 0
    agent_queue: int = 0
    jobs_submitted: int = 0
    jobs_started: int = 0
    jobs_running: int = 0
    jobs_pending: int = 0
    last_cycle: int = 0
    mean_cycle: int = 0
    backfill_last_cycle: int = 0
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What a call that is about many jobs did to one of them. `number` is Slurm's error number, 0 when all is well.

    `job` is what Slurm calls it ("7", "7_[3]"); `job_id` its id, None if there is no such job.
    """

    job: str
    job_id: int | None = None
    number: int = 0
    text: str = ""

    @property
    def ok(self) -> bool:
        """Was it done?"""
        return self.number == 0


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What a running job holds on one node. `memory` is MiB; `cores` Slurm's bitmap, counted over all sockets."""

    node: str
    memory: int = 0
    sockets: int = 0
    cores_per_socket: int = 0
    cores: str = ""
    gres: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation. `nodes` is hostlist text; users, accounts and groups begin with "-" where they are shut out."""

    name: str
    start_time: int | None = None
    end_time: int | None = None
    nodes: str = ""
    node_count: int = 0
    core_count: int = 0
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    partition: str = ""
    features: str = ""
    licenses: str = ""
    tres: str = ""
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class License:
    """Licences of one name. `remote`: counted by slurmdbd."""

    name: str
    total: int = 0
    used: int = 0
    free: int = 0
    reserved: int = 0
    remote: bool = False
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Share:
    """An association's fair share: of an account (`kind` ASSOCIATION) or a user in it (USER). `usage` is in TRES-seconds.

    `shares` is what was configured, the rest what it comes to among its siblings (see man sshare).
    """

    name: str
    parent: str = ""
    cluster: str = ""
    partition: str = ""
    kind: str = ""
    shares: Number = None
    shares_normalized: float | None = None
    usage: int = 0
    usage_normalized: float | None = None
    effective_usage: float = 0.0
    fairshare: float = 0.0
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)
