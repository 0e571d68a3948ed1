"""What the client returns: plain frozen values, the same for every API version.

Built by the version adapters (`slurmrest.versions`), read by callers. What always holds: text that Slurm leaves out is
"", a number that it leaves out is None, times are seconds since 1970 (None: not yet), memory is in MiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurmrest.numbers import Number
from slurmrest.states import JobStates, NodeStates


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


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition. `nodes` is hostlist text, `max_time` and `default_time` are minutes."""

    name: str
    states: frozenset[str] = frozenset()
    nodes: str = ""
    node_count: int = 0
    max_time: Number = None
    default_time: Number = None


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


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `nodes` is hostlist text ("" while pending); `time_limit` is minutes."""

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
    exit_code: ExitCode = ExitCode()
    submit_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    restart_count: int = 0
    failed_node: str = ""
    batch_host: str = ""
    standard_output: str = ""
    current_working_directory: str = ""


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
