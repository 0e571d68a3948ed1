"""What slurmdbd's calls return: plain frozen values, as in `slurmrest.values`, whose conventions hold here too.

Built by `slurmrest.db_reading`, read by callers. Limits and usage that have no name here are in `raw`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slurmrest.numbers import Number
from slurmrest.states import JobStates
from slurmrest.values import NO_EXIT, NOT_KEPT, ExitCode


@dataclass(frozen=True, slots=True)
class Tres:
    """A trackable resource, and how much of it where there is a count: cpu, mem (MiB), node, gres/gpu, license/x ..."""

    type: str
    name: str = ""
    id: int | None = None
    count: int | None = None

    def __str__(self) -> str:
        kind = f"{self.type}/{self.name}" if self.name else self.type
        return kind if self.count is None else f"{kind}={self.count}"


@dataclass(frozen=True, slots=True)
class Account:
    """One account. `coordinators` are given on request."""

    name: str
    description: str = ""
    organization: str = ""
    coordinators: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class User:
    """One user. `admin_level` is None, Operator or Administrator; `coordinates` names accounts, on request."""

    name: str
    admin_level: str = ""
    default_account: str = ""
    default_wckey: str = ""
    coordinates: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Association:
    """Who (user "": the account itself) belongs to which account on which cluster; limits are in `raw`.

    v0.0.41 and v0.0.42 leave its id out; the lists of `account(..., with_assocs=True)` have it in `raw`.
    """

    account: str
    cluster: str = ""
    user: str = ""
    partition: str = ""
    id: int | None = None
    parent_account: str = ""
    shares: int | None = None
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    is_default: bool = False
    comment: str = ""
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Qos:
    """One quality of service; limits are in `raw`."""

    name: str
    id: int | None = None
    description: str = ""
    priority: Number = None
    usage_factor: float | None = None
    preempts: tuple[str, ...] = ()
    preempt_mode: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Wckey:
    """One workload characterization key of a user on a cluster."""

    name: str
    id: int | None = None
    user: str = ""
    cluster: str = ""
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster. `host` and `port` are its slurmctld's ("" while it is down); `nodes` is hostlist text."""

    name: str
    host: str = ""
    port: int | None = None
    nodes: str = ""
    rpc_version: int | None = None
    tres: tuple[Tres, ...] = ()
    flags: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Instance:
    """A cloud instance that a node ran on."""

    node_name: str
    cluster: str = ""
    instance_id: str = ""
    instance_type: str = ""
    extra: str = ""
    start_time: int | None = None
    end_time: int | None = None
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a recorded job: `step` as "7.batch". Its usage is in `raw` of the job."""

    step: str
    name: str = ""
    states: JobStates = field(default_factory=lambda: JobStates.parse(()))
    exit_code: ExitCode = NO_EXIT
    nodes: str = ""
    tasks: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    elapsed: int | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as slurmdbd keeps it. `elapsed` counts seconds, `time_limit` minutes; `nodes` is hostlist text."""

    job_id: int
    states: JobStates
    name: str = ""
    cluster: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    nodes: str = ""
    exit_code: ExitCode = NO_EXIT
    submit_time: int | None = None
    eligible_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    elapsed: int | None = None
    time_limit: Number = None
    restart_count: int = 0
    state_reason: str = ""
    comment: str = ""
    admin_comment: str = ""
    wckey: str = ""
    working_directory: str = ""
    submit_line: str = ""
    allocated: tuple[Tres, ...] = ()
    requested: tuple[Tres, ...] = ()
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_job_offset: int | None = None
    steps: tuple[StepRecord, ...] = ()
    raw: Mapping[str, Any] = field(default=NOT_KEPT, repr=False, compare=False)
