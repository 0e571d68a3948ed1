"""`pyslurm.db.Job` and `Jobs`: jobs as slurmdbd has them, also those that slurmctld has forgotten.

Used by scripts for accounting. What always holds: a job's key is its id, on the cluster that ran it; changing one needs
API v0.0.44; what wasn't accounted for is None. Memory is MiB, times are seconds since 1970, durations seconds, time
limits minutes. Fields: sacct(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from slurmrest.numbers import number, read_int
from slurmrest.pyslurm import _session
from slurmrest.pyslurm._fields import Record, computed, field, missing, setting
from slurmrest.pyslurm._forms import count, integer, limit, moment, text, texts, to_line, to_text
from slurmrest.pyslurm.db._forms import exit_code, hosts, identity, resources, state, to_exit_code
from slurmrest.pyslurm.db.connection import Connection, ask, change
from slurmrest.pyslurm.db.filters import JobFilter, QualityOfServiceFilter, selects_nothing, words
from slurmrest.pyslurm.db.qos import QualitiesOfService
from slurmrest.pyslurm.db.stats import JobStatistics
from slurmrest.pyslurm.db.step import JobSteps
from slurmrest.pyslurm.db.tres import GPU, GenericResources, TrackableResources
from slurmrest.pyslurm.enums import SchedulerType
from slurmrest.pyslurm.error import PyslurmError, RPCError
from slurmrest.pyslurm.utils import group_to_gid, user_to_uid
from slurmrest.pyslurm.xcollections import MultiClusterMap

_MODIFIABLE = "v0.0.44"
_STARTED_BY = {
    "STARTED_ON_SUBMIT": SchedulerType.SUBMIT,
    "STARTED_ON_SCHEDULE": SchedulerType.MAIN,
    "STARTED_ON_BACKFILL": SchedulerType.BACKFILL,
}


def _scheduler(raw: Any) -> SchedulerType:
    return next((_STARTED_BY[flag] for flag in texts(raw) if flag in _STARTED_BY), SchedulerType.UNKNOWN)


def _received(raw: Any) -> bool:
    return "START_RECEIVED" in texts(raw)


class Job(Record):
    """A job in the database. `comment`, `admin_comment`, `system_comment`, `extra`, `wckey` and `derived_exit_code` may
    be set, to give to `modify`. `cluster` is by default the local one.
    """

    account = field("account", read=text)
    admin_comment = setting("comment.administrator", read=text, write=to_text)
    comment = setting("comment.job", read=text, write=to_text)
    system_comment = setting("comment.system", read=text, write=to_text)
    extra = setting("extra", read=text, write=to_text)
    derived_exit_code = setting("derived_exit_code.return_code", read=integer, write=to_exit_code)
    derived_exit_code_signal = field("derived_exit_code.signal.id", read=identity)
    wckey = setting("wckey.wckey", "wckey", read=text, write=to_line, to="wckey")
    wckey_id = missing(integer, "the answer has the wckey's name only")
    array_id = field("array.job_id", read=identity)
    array_tasks_parallel = field("array.limits.max.running.tasks", read=identity)
    array_task_id = field("array.task_id", read=integer)
    array_tasks_waiting = field("array.task", read=text)
    association_id = field("association.id", read=identity)
    block_id = field("block", read=text)
    constraints = field("constraints", read=text)
    container = field("container", read=text)
    db_index = missing(integer, "the answer leaves out the row's number")
    elapsed_time = field("time.elapsed", read=count)
    eligible_time = field("time.eligible", read=moment)
    end_time = field("time.end", read=moment)
    start_time = field("time.start", read=moment)
    submit_time = field("time.submission", read=moment)
    suspended_time = field("time.suspended", read=count)
    time_limit = field("time.limit", read=limit)
    exit_code = field("exit_code", read=exit_code)
    exit_code_signal = field("exit_code.signal.id", read=identity)
    failed_node = field("failed_node", read=text)
    group_name = field("group", read=text)
    user_name = field("user", read=text)
    heterogeneous_id = field("het.job_id", read=identity)
    heterogeneous_offset = field("het.job_offset", read=integer)
    name = field("name", read=text)
    mcs_label = field("mcs.label", read=text)
    nodelist = field("nodes", read=hosts)
    partition = field("partition", read=text)
    priority = field("priority", read=limit)
    qos = field("qos", read=text)
    requeue_count = field("restart_cnt", read=count, since="v0.0.42")
    requested_reservations = field("reservation.requested", read=texts, since="v0.0.43")
    reservation = field("reservation.name", read=text)
    reservation_id = field("reservation.id", read=identity)
    script = field("script", read=text)
    environment = missing(text, "slurmrestd asks slurmdbd for it and leaves it out of its answer")
    state = field("state.current", read=state)
    state_reason = field("state.reason", read=text)
    cancelled_by = field("kill_request_user", read=text)
    submit_command = field("submit_line", read=text)
    working_directory = field("working_directory", read=text)
    lineage = missing(text, "the answer about a job names its association only")
    licenses = field("licenses", read=text)
    standard_input = field("stdin_expanded", "stdin", read=text, since="v0.0.41")
    standard_output = field("stdout_expanded", "stdout", read=text, since="v0.0.41")
    standard_error = field("stderr_expanded", "stderr", read=text, since="v0.0.41")
    segment_size = field("segment_size", read=identity, since="v0.0.43")
    scheduler = field("flags", read=_scheduler)
    start_rpc_received = field("flags", read=_received)
    allocated_tres = field("tres.allocated", read=resources)
    requested_tres = field("tres.requested", read=resources)

    __slots__ = ("_cluster", "_id")

    def __init__(self, job_id: int = 0, cluster: str | None = None, **kwargs: Any) -> None:
        self._id, self._cluster = int(job_id), cluster
        super().__init__(**kwargs)

    def _prepare(self) -> None:
        self._id, self._cluster = int(self._raw["job_id"]), self._raw.get("cluster") or None

    @computed
    def id(self) -> int:
        """The job's number."""
        return self._id

    @computed
    def cluster(self) -> str:
        """The cluster that it ran on."""
        return self._cluster or _session.ask_local_cluster()

    @computed
    def tres(self) -> TrackableResources:
        """What it was given, or what it asks for as long as that is nothing."""
        return self.allocated_tres if any(True for _ in self.allocated_tres) else self.requested_tres

    @computed
    def gres(self) -> GenericResources:
        """The generic resources among `tres`."""
        return self.tres.gres

    @computed
    def gpus(self) -> dict[str, GPU]:
        """The GPUs among `tres`, by type."""
        return self.tres.gpus

    @computed
    def num_nodes(self) -> int | None:
        """Nodes that it was given, or asks for."""
        return self._given()[1]

    @computed
    def cpus(self) -> int:
        """CPUs that it was given, or asks for."""
        return self._given()[0]

    @computed
    def memory(self) -> int | None:
        """Memory on all its nodes, in MiB."""
        return self._given()[2]

    def _given(self) -> tuple[int, int | None, int | None]:
        """CPUs, nodes and memory at once: reading resources is what takes the time of 10,000 jobs."""
        tres, required = self.tres, self._raw.get("required") or {}
        return (
            tres.cpu or count(required.get("CPUs")),
            tres.nodes or integer(self._raw.get("allocation_nodes")),
            tres.memory,
        )

    @computed
    def user_id(self) -> int | None:
        """The user's number on this machine; None if the user is unknown here."""
        return user_to_uid(self.user_name, err_on_invalid=False) if self.user_name else None

    @computed
    def group_id(self) -> int | None:
        """The group's number on this machine; None if the group is unknown here."""
        return group_to_gid(self.group_name, err_on_invalid=False) if self.group_name else None

    @computed
    def steps(self) -> JobSteps:
        """Its steps, by id."""
        return JobSteps._of(self._raw.get("steps") or (), self._version)

    @computed
    def stats(self) -> JobStatistics:
        """What it used."""
        return JobStatistics.of_job(self._raw)

    @classmethod
    def load(cls, job_id: int, cluster: str | None = None, with_script: bool = False, with_env: bool = False) -> Job:
        """One job, its latest run if it was requeued. Raises RPCError if the database has no such job."""
        wanted = JobFilter(ids=[int(job_id)], clusters=cluster, with_script=with_script, with_env=with_env)
        found = [job for job in Jobs.load(wanted).values() if job.id == int(job_id)]
        if not found:
            raise RPCError(msg=f"the database has no job {int(job_id)}")
        return found[-1]

    def modify(self, changes: Job, db_connection: Connection | None = None) -> None:
        """Change it in the database, as `Jobs.modify`."""
        Jobs.modify(JobFilter(ids=[self.id], clusters=self.cluster), changes, db_connection)

    def __repr__(self) -> str:
        return f"pyslurm.db.Job({self._id})"


class Jobs(MultiClusterMap[int, Job]):
    """Jobs of the database by their ids; made of jobs, ids, or text with ids.

    `stats`, `cpus`, `nodes` and `memory` are sums over all its jobs, as of `load` or the last `calc_stats`.
    """

    _ITEM, _ID, _KEY = Job, "id", int

    def __init__(self, jobs: Mapping[Any, Any] | Iterable[Job | int | str] | str | None = None) -> None:
        super().__init__(jobs, typ="db.Jobs")
        self.stats = JobStatistics()
        self.cpus = self.nodes = self.memory = 0

    @classmethod
    def load(cls, db_filter: JobFilter | Jobs | None = None, db_connection: Connection | None = None) -> Jobs:
        """The jobs that fit; without a filter those since midnight. A collection stands for its ids."""
        wanted = _filter(db_filter)
        if wanted.with_env:
            raise _session.impossible("the environment of a job in the database")
        version = _session.api_version()
        found = cls()
        for raw in _ask(wanted, db_connection):
            job = Job._of(raw, version)
            if not wanted.looks() or wanted.takes(job.cpus, job.num_nodes, job.time_limit, job.group_name):
                found.add(job)
        found.calc_stats()
        return found

    def calc_stats(self) -> None:
        """Add up what the jobs used and were given anew."""
        self.stats = JobStatistics()
        self.cpus = self.nodes = self.memory = 0
        for job in self.values():
            self.stats.add(job.stats)
            cpus, nodes, memory = job._given()
            self.cpus += cpus
            self.nodes += nodes or 0
            self.memory += memory or 0

    @staticmethod
    def modify(db_filter: JobFilter | Jobs, changes: Job, db_connection: Connection | None = None) -> list[int]:
        """Change all jobs that fit, at once or at the connection's commit; gives their ids.

        Raises PyslurmError where the API is older than v0.0.44, and for changes that are none.
        """
        _session.require("changing a job in the database", _MODIFIABLE)
        body = changes._body()
        if not body:
            raise PyslurmError("nothing to change is set")
        if selects_nothing(_filter(db_filter)):
            return []
        ids = sorted(Jobs.load(db_filter, db_connection).keys())
        if ids:
            request = {"job_id_list": [str(one) for one in ids], "job_rec": _with_status(body)}
            change(lambda: _send(request), db_connection)
        return ids


def _filter(asked: JobFilter | Jobs | None) -> JobFilter:
    if isinstance(asked, Jobs):
        return JobFilter(ids=list(asked.keys()), clusters=list(asked.clusters()) or None)
    return asked if asked is not None else JobFilter()


def _ask(wanted: JobFilter, connection: Connection | None) -> list[Mapping[str, Any]]:
    """slurmdbd's jobs. It gives scripts of jobs that are named only: those of a search are asked for by their ids."""
    asked = words("qos", wanted.qos)
    known = QualitiesOfService.load(QualityOfServiceFilter(names=asked), connection) if asked else {}
    qos_ids = [one.id for one in known.values() if one.id]
    if asked and not qos_ids:
        return []
    if wanted.with_script and not words("ids", wanted.ids):
        found = ask("jobs/", "jobs", replace(wanted, with_script=False).params(qos_ids), connection)
        ids = [raw["job_id"] for raw in found]
        if not ids:
            return []
        wanted = replace(wanted, ids=ids)
    return ask("jobs/", "jobs", wanted.params(qos_ids), connection)


def _with_status(body: dict[str, Any]) -> dict[str, Any]:
    """slurmrestd 26.05 stores the exit code that it is told as wait(2)'s status: 9 would be signal 9."""
    code = read_int((body.pop("derived_exit_code", None) or {}).get("return_code"))
    return body if code is None else body | {"derived_exit_code": {"return_code": number(code << 8)}}


def _send(body: Mapping[str, Any]) -> None:
    _session.request("POST", "jobs/", api="slurmdb", body=body)
