"""slurmctld's own figures, as sdiag(1) shows them.

Used by scripts as `pyslurm.slurmctld.diag()`. Units: cycles and times in microseconds, moments in seconds since 1970.
What always holds: a figure that a version of the API lacks raises PyslurmError with the first one that has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Computed, Field, Record, field
from slurmrest.pyslurm._session import api_version, impossible, request
from slurmrest.pyslurm.error import PyslurmError
from slurmrest.pyslurm.xcollections import dict_recursive

R = TypeVar("R", bound="_Rpc")
_LATER = "v0.0.41"


def _number(*paths: str, since: str = "") -> Field[int]:
    return field(*paths, read=forms.count, since=since)


class ScheduleExitStatistics(Record):
    """How often the main scheduler's cycle ended for which reason."""

    __slots__ = ()

    end_of_job_queue = _number("end_job_queue")
    default_queue_depth = _number("default_queue_depth")
    max_job_start = _number("max_job_start")
    max_rpc_count = _number("max_rpc_cnt")
    max_sched_time = _number("max_sched_time")
    blocked_on_licenses = _number("licenses")


class BackfillExitStatistics(Record):
    """How often the backfill scheduler's cycle ended for which reason."""

    __slots__ = ()

    end_of_job_queue = _number("end_job_queue")
    max_job_start = _number("bf_max_job_start")
    max_job_test = _number("bf_max_job_test")
    max_time = _number("bf_max_time")
    node_space_size = _number("bf_node_space_size")
    state_changed = _number("state_changed")


class _Rpc(Record):
    __slots__ = ()

    count = _number("count")

    def __repr__(self) -> str:
        return f"pyslurm.slurmctld.{type(self).__name__}({self.to_dict()})"


class RPCPending(_Rpc):
    """Messages of one kind that wait to be sent."""

    __slots__ = ()

    id = _number("type_id")
    name = field("message_type", read=forms.text)


class RPCType(_Rpc):
    """Messages of one kind that were handled."""

    __slots__ = ()

    id = _number("type_id")
    name = field("message_type", read=forms.text)
    time = _number("total_time")
    average_time = _number("average_time")
    queued = _number("queued", since=_LATER)
    dropped = _number("dropped", since=_LATER)
    cycle_last = _number("cycle_last", since=_LATER)
    cycle_max = _number("cycle_max", since=_LATER)


class RPCUser(_Rpc):
    """Messages of one user that were handled."""

    __slots__ = ()

    user_id = _number("user_id")
    user_name = field("user", read=forms.text)
    time = _number("total_time")
    average_time = _number("average_time")


class _RpcStatistics(dict[str, R], Generic[R]):
    def __init__(self, data: Mapping[str, R] | None = None) -> None:
        super().__init__(data or {})

    @property
    def count(self) -> int:
        """Messages in all."""
        return sum(one.count for one in self.values())

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """A plain dict; `recursive`: of dicts."""
        return dict_recursive(self) if recursive else dict(self)


class RPCTypeStatistics(_RpcStatistics[RPCType]):
    """By the message's name."""

    @property
    def time(self) -> int:
        """Microseconds in all."""
        return sum(one.time for one in self.values())

    @property
    def queued(self) -> int:
        """Waiting in all."""
        return sum(one.queued for one in self.values())

    @property
    def dropped(self) -> int:
        """Dropped in all."""
        return sum(one.dropped for one in self.values())


class RPCUserStatistics(_RpcStatistics[RPCUser]):
    """By the user's name."""

    @property
    def time(self) -> int:
        """Microseconds in all."""
        return sum(one.time for one in self.values())


class RPCPendingStatistics(_RpcStatistics[RPCPending]):
    """By the message's name."""


def _handled_by_type(statistics: Statistics) -> RPCTypeStatistics:
    """Handled messages by kind."""
    return RPCTypeStatistics(_by("message_type", RPCType, statistics, "rpcs_by_message_type"))


def _handled_by_user(statistics: Statistics) -> RPCUserStatistics:
    """Handled messages by user."""
    return RPCUserStatistics(_by("user", RPCUser, statistics, "rpcs_by_user"))


def _pending(statistics: Statistics) -> RPCPendingStatistics:
    """Messages that wait to be sent, by kind."""
    return RPCPendingStatistics(_by("message_type", RPCPending, statistics, "pending_rpcs"))


def _by(key: str, kind: type[R], statistics: Statistics, name: str) -> dict[str, R]:
    return {str(raw[key]): kind._of(raw, statistics._version) for raw in statistics._raw.get(name) or []}


class Statistics(Record):
    """All figures since `data_since`."""

    __slots__ = ()

    request_time = field("req_time", read=forms.moment)
    data_since = field("req_time_start", read=forms.moment)
    server_thread_count = _number("server_thread_count")
    agent_queue_size = _number("agent_queue_size")
    agent_count = _number("agent_count")
    agent_thread_count = _number("agent_thread_count")
    dbd_agent_queue_size = _number("dbd_agent_queue_size")
    gettimeofday_latency = _number("gettimeofday_latency")
    jobs_submitted = _number("jobs_submitted")
    jobs_started = _number("jobs_started")
    jobs_completed = _number("jobs_completed")
    jobs_canceled = _number("jobs_canceled")
    jobs_failed = _number("jobs_failed")
    jobs_pending = _number("jobs_pending")
    jobs_running = _number("jobs_running")
    schedule_cycle_last = _number("schedule_cycle_last")
    schedule_cycle_max = _number("schedule_cycle_max")
    schedule_cycle_counter = _number("schedule_cycle_total")
    schedule_cycle_mean = _number("schedule_cycle_mean")
    schedule_cycle_mean_depth = _number("schedule_cycle_mean_depth")
    schedule_cycle_sum = _number("schedule_cycle_sum", since=_LATER)
    schedule_cycle_depth = _number("schedule_cycle_depth", since=_LATER)
    schedule_cycles_per_minute = _number("schedule_cycle_per_minute")
    schedule_queue_length = _number("schedule_queue_length")
    backfill_active = field("bf_active", read=forms.truth)
    backfilled_jobs = _number("bf_backfilled_jobs")
    last_backfilled_jobs = _number("bf_last_backfilled_jobs")
    backfilled_het_jobs = _number("bf_backfilled_het_jobs")
    backfill_last_cycle_when = field("bf_when_last_cycle", read=forms.moment)
    backfill_cycle_counter = _number("bf_cycle_counter")
    backfill_cycle_last = _number("bf_cycle_last")
    backfill_cycle_max = _number("bf_cycle_max", since=_LATER)
    backfill_cycle_mean = _number("bf_cycle_mean")
    backfill_cycle_sum = _number("bf_cycle_sum")
    backfill_last_depth = _number("bf_last_depth")
    backfill_last_depth_try = _number("bf_last_depth_try")
    backfill_depth_sum = _number("bf_depth_sum")
    backfill_depth_try_sum = _number("bf_depth_try_sum")
    backfill_mean_depth = _number("bf_depth_mean")
    backfill_mean_depth_try = _number("bf_depth_mean_try")
    backfill_queue_length = _number("bf_queue_len")
    backfill_queue_length_sum = _number("bf_queue_len_sum")
    backfill_queue_length_mean = _number("bf_queue_len_mean")
    backfill_table_size = _number("bf_table_size")
    backfill_table_size_sum = _number("bf_table_size_sum", since=_LATER)
    backfill_table_size_mean = _number("bf_table_size_mean")
    schedule_exit = field("schedule_exit", read=ScheduleExitStatistics._of)
    backfill_exit = field("bf_exit", read=BackfillExitStatistics._of)
    rpcs_by_type = Computed(_handled_by_type)
    rpcs_by_user = Computed(_handled_by_user)
    rpcs_pending = Computed(_pending, since=_LATER)

    @classmethod
    def load(cls) -> Self:
        """The figures as they are now. Raises RPCError."""
        payload = request("GET", "diag/").payload
        if not isinstance(payload.get("statistics"), dict):
            raise PyslurmError("the answer holds no statistics")
        return cls._of(payload["statistics"], api_version())

    @staticmethod
    def reset() -> None:
        """REST can't: raises PyslurmError."""
        raise impossible("Statistics.reset", "use sdiag --reset")


def diag() -> Statistics:
    """slurmctld's figures as they are now. Raises RPCError."""
    return Statistics.load()
