"""Jobs that slurmctld knows, and what can be done with them.

Used by scripts as `pyslurm.Job` and `pyslurm.Jobs`. Units: memory and disk in MiB, times in seconds since 1970, time
limits in minutes, nodes as host lists. What always holds: cancelling and signalling go through `slurmrest.Slurm`, which
never sends what slurmctld would hang on. Source: scontrol(1) "show job", `GET jobs/` of the REST API.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, Self

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm import _job_forms as job_forms
from slurmrest.pyslurm._fields import Field, Record, T, computed, field, missing
from slurmrest.pyslurm._session import (
    api_version,
    ask_local_cluster,
    impossible,
    request,
    require,
    session,
    slurm_errors,
)
from slurmrest.pyslurm.constants import UNLIMITED
from slurmrest.pyslurm.db._forms import hosts, identity
from slurmrest.pyslurm.db.tres import GPU, GenericResources, TrackableResources
from slurmrest.pyslurm.error import PyslurmError, RPCError
from slurmrest.pyslurm.step import JobSteps
from slurmrest.pyslurm.submission import JobSubmitDescription
from slurmrest.pyslurm.xcollections import MultiClusterMap, entries, multi_reload, sum_property

NO_SUCH_JOB: Final = 2017
_STEPS: Final = {"all": ["FULL_JOB"], "batch": ["BATCH_JOB"], "children": ["FULL_STEPS_ONLY"]}
_RUNNING: Final = ("RUNNING", "COMPLETING", "STOPPED", "RESIZING", "SIGNALING", "CONFIGURING", "STAGE_OUT")


class Job(Record):
    """A job. All attributes are read-only; `Job(7)` is enough to act on job 7, `Job.load(7)` tells of it."""

    __slots__ = ("_alone", "_id", "_steps")

    name = field("name", read=forms.text)
    association_id = field("association_id", read=identity)
    account = field("account", read=forms.text)
    user_id = field("user_id", read=forms.integer)
    user_name = field("user_name", read=forms.text)
    group_id = field("group_id", read=forms.integer)
    group_name = field("group_name", read=forms.text)
    priority = field("priority", read=forms.integer)
    nice = field("nice", read=forms.integer)
    qos = field("qos", read=forms.text)
    min_cpus_per_node = field("minimum_cpus_per_node", read=forms.count)
    state = field("job_state", read=job_forms.job_state)
    """One word: "PENDING", "RUNNING", "COMPLETING", ..."""
    state_reason = field("state_reason", read=lambda raw: raw or "None")
    is_requeueable = field("requeue", read=forms.truth)
    requeue_count = field("restart_cnt", read=forms.count)
    is_batch_job = field("batch_flag", read=forms.truth)
    requires_node_reboot = field("reboot", read=forms.truth)
    dependencies = field("dependency", read=job_forms.dependencies)
    """Ids of jobs by kind ("afterok"), "singleton" and "satisfy" ("all" or "any")."""
    time_limit = field("time_limit", read=forms.limit)
    time_limit_min = field("time_minimum", read=identity)
    submit_time = field("submit_time", read=forms.moment)
    eligible_time = field("eligible_time", read=forms.moment)
    accrue_time = field("accrue_time", read=forms.moment)
    start_time = field("start_time", read=forms.moment)
    end_time = field("end_time", read=forms.moment)
    resize_time = field("resize_time", read=forms.moment)
    deadline = field("deadline", read=forms.moment)
    preempt_eligible_time = field("preemptable_time", read=forms.moment)
    preempt_time = field("preempt_time", read=forms.moment)
    suspend_time = field("suspend_time", read=forms.moment)
    last_sched_evaluation_time = field("last_sched_evaluation", read=forms.moment)
    pre_suspension_time = field("pre_sus_time", read=forms.count)
    """Seconds that it ran before it was suspended the last time."""
    mcs_label = field("mcs_label", read=forms.text)
    partition = field("partition", read=forms.text)
    submit_host = field("allocating_node", read=forms.text)
    submit_session_id = missing(forms.integer, "the answer about a job doesn't name its session")
    batch_host = field("batch_host", read=forms.text)
    num_nodes = field("node_count", read=forms.count)
    max_nodes = field("max_nodes", read=identity)
    allocated_nodes = field("nodes", read=hosts)
    required_nodes = field("required_nodes", read=forms.text)
    excluded_nodes = field("excluded_nodes", read=forms.text)
    scheduled_nodes = field("scheduled_nodes", read=forms.text)
    derived_exit_code = field("derived_exit_code.return_code", read=forms.integer)
    derived_exit_code_signal = field("derived_exit_code.signal.id", read=identity)
    exit_code = field("exit_code.return_code", read=forms.integer)
    exit_code_signal = field("exit_code.signal.id", read=identity)
    batch_constraints = field("batch_features", read=forms.texts)
    federation_origin = field("federation_origin", read=forms.text)
    federation_siblings_active = field("federation_siblings_active", read=forms.text)
    federation_siblings_viable = field("federation_siblings_viable", read=forms.text)
    cpus = field("cpus", read=forms.count)
    cpus_per_task = field("cpus_per_task", read=identity)
    cpus_per_gpu = field("cpus_per_tres", read=job_forms.per_gpu)
    boards_per_node = missing(forms.integer, "the answer about a job has no such count")
    sockets_per_board = field("sockets_per_board", read=identity)
    sockets_per_node = field("sockets_per_node", read=forms.integer)
    cores_per_socket = field("cores_per_socket", read=forms.integer)
    threads_per_core = field("threads_per_core", read=forms.integer)
    ntasks = field("tasks", read=forms.count)
    ntasks_per_node = field("tasks_per_node", read=identity)
    ntasks_per_board = field("tasks_per_board", read=identity)
    ntasks_per_socket = field("tasks_per_socket", read=job_forms.per_core_limit)
    ntasks_per_core = field("tasks_per_core", read=job_forms.per_core_limit)
    ntasks_per_gpu = field("tasks_per_tres", read=job_forms.per_core_limit)
    delay_boot_time = field("delay_boot", read=identity)
    """Seconds."""
    constraints = field("features", read=forms.texts)
    preferred_features = field("prefer", read=forms.texts)
    cluster_constraints = field("cluster_features", read=forms.texts)
    reservation = field("resv_name", read=forms.text)
    resource_sharing = field("shared", read=job_forms.sharing)
    requires_contiguous_nodes = field("contiguous", read=forms.truth)
    licenses = field("licenses", read=forms.texts)
    allocated_licenses = field("licenses_allocated", read=forms.texts, since="v0.0.43")
    network = field("network", read=forms.text)
    command = field("command", read=forms.text)
    working_directory = field("current_working_directory", read=forms.text)
    admin_comment = field("admin_comment", read=forms.text)
    system_comment = field("system_comment", read=forms.text)
    container = field("container", read=forms.text)
    container_id = field("container_id", read=forms.text)
    comment = field("comment", read=forms.text)
    standard_input = field("stdin_expanded", "standard_input", read=forms.text)
    standard_output = field("stdout_expanded", "standard_output", read=forms.text)
    standard_error = field("stderr_expanded", "standard_error", read=forms.text)
    required_switches = field("required_switches", "minimum_switches", read=identity)
    max_wait_time_switches = field("maximum_switch_wait_time", read=identity)
    """Seconds."""
    burst_buffer = field("burst_buffer", read=forms.text)
    burst_buffer_state = field("burst_buffer_state", read=forms.text)
    cpu_frequency_min = field("cpu_frequency_minimum", read=job_forms.frequency)
    cpu_frequency_max = field("cpu_frequency_maximum", read=job_forms.frequency)
    cpu_frequency_governor = field("cpu_frequency_governor", read=job_forms.frequency)
    billable_tres = field("billable_tres.number", read=lambda raw: None if raw is None else float(raw))
    wckey = field("wckey", read=forms.text)
    mail_user = field("mail_user", read=forms.texts)
    mail_types = field("mail_type", read=job_forms.mail_types)
    heterogeneous_id = field("het_job_id", read=identity)
    temporary_disk_per_node = field("minimum_tmp_disk_per_node", read=forms.count)
    array_id = field("array_job_id", read=identity)
    array_tasks_parallel = field("array_max_tasks", read=identity)
    array_task_id = field("array_task_id", read=forms.integer)
    array_tasks_waiting = field("array_task_string", read=forms.text)
    cores_reserved_for_system = field("core_spec", read=identity)
    threads_reserved_for_system = field("thread_spec", read=job_forms.threads_reserved)
    memory_per_cpu = field("memory_per_cpu", read=identity)
    memory_per_node = field("memory_per_node", read=identity)
    memory_per_gpu = field("memory_per_tres", read=job_forms.per_gpu)
    gres_per_node = field("tres_per_node", read=forms.tallies)
    """Generic resources by name: {"gpu:h100": 8}."""
    tres_per_node = field("tres_per_node", read=job_forms.resources)
    tres_per_task = field("tres_per_task", read=job_forms.resources)
    tres_per_job = field("tres_per_job", read=job_forms.resources)
    tres_per_socket = field("tres_per_socket", read=job_forms.resources)
    allocated_tres = field("tres_alloc_str", read=job_forms.resources)
    requested_tres = field("tres_req_str", read=job_forms.resources)
    profile_types = field("profile", read=job_forms.profiles)
    gres_binding = field("flags", read=job_forms.gres_binding)
    gres_tasks_per_sharing = missing(forms.text, "no flag of the answer stands for it")
    kill_on_invalid_dependency = field("flags", read=job_forms.flagged("KILL_INVALID_DEPENDENCY"))
    kill_step_when_oom = missing(forms.truth, "the answer about a job leaves it out")
    spreads_over_nodes = field("flags", read=job_forms.flagged("SPREAD_JOB"))
    is_cronjob = field("flags", read=job_forms.flagged("CRON_JOB"))
    cronjob_time = field("cron", read=forms.text)
    submit_line = field("submit_line", read=forms.text, since="v0.0.44")
    extra = field("extra", read=forms.text)
    failed_node = field("failed_node", read=forms.text)
    reserved_ports = missing(forms.text, "the answer about a job leaves them out")
    selinux_context = field("selinux_context", read=forms.text)
    segment_size = field("segment_size", read=identity, since="v0.0.43")
    spread_segments = field("flags", read=job_forms.flagged("SPREAD_SEGMENTS"), since="v0.0.44")
    consolidate_segments = field("flags", read=job_forms.flagged("CONSOLIDATE_SEGMENTS"), since="v0.0.44")
    slurm_protocol_version = missing(forms.integer, "the REST API hides it")
    pids = missing(forms.texts, "REST doesn't ask the nodes for the processes of a job; scontrol listpids does")
    stats = missing(forms.integer, "REST doesn't ask the nodes what a job uses; pyslurm.db.Job.stats is of slurmdbd")

    def __init__(self, job_id: int) -> None:
        super().__init__()
        self._id = int(job_id)
        self._steps: JobSteps | None = None
        self._alone = False

    def _prepare(self) -> None:
        self._id = int(self._raw["job_id"])
        self._steps = None
        self._alone = False

    def __repr__(self) -> str:
        return f"pyslurm.Job({self._id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def _read(self, one: Field[T]) -> T | None:
        """For `to_dict`: steps that were not asked for are None."""
        return None if one.name == "steps" and self._steps is None else super()._read(one)

    @computed
    def id(self) -> int:
        """The job's number."""
        return self._id

    @computed
    def cluster(self) -> str:
        """The cluster that it is on."""
        return self._raw.get("cluster") or ask_local_cluster()

    @computed
    def heterogeneous_offset(self) -> int | None:
        """Which component of its heterogeneous job it is."""
        return forms.integer(self._raw.get("het_job_offset")) if self.heterogeneous_id else None

    @computed
    def steps(self) -> JobSteps:
        """Its steps by id, of slurmdbd: asked for now for a job of `Job.load`, before by `Jobs.load_steps` for others."""
        if self._steps is None:
            if not self._alone:
                raise PyslurmError("Job.steps: not loaded; see Jobs.load_steps()")
            self._steps = JobSteps.load_all([self._id]).get(self._id, JobSteps())
        return self._steps

    @computed
    def run_time(self) -> int:
        """Seconds that it has run, without those of suspension."""
        started = self.start_time
        if not started or self.state == "PENDING":
            return 0
        before, since = (self.pre_suspension_time, self.suspend_time) if self.suspend_time else (0, started)
        if self.state == "SUSPENDED":
            return before
        until = int(time.time()) if self.state in _RUNNING else self.end_time or since
        return max(until - since, 0) + before

    @computed
    def run_time_remaining(self) -> int | str | None:
        """Seconds up to its time limit while it runs; UNLIMITED without one."""
        if self.state not in _RUNNING or self.time_limit is None:
            return None
        return UNLIMITED if isinstance(self.time_limit, str) else max(self.time_limit * 60 - self.run_time, 0)

    @computed
    def elapsed_cpu_time(self) -> int:
        """Seconds that it has run, times its CPUs."""
        return self.cpus * self.run_time

    @computed
    def tres(self) -> TrackableResources:
        """What it was given, or what it asks for as long as that is nothing."""
        return self.allocated_tres if any(True for _ in self.allocated_tres) else self.requested_tres

    @computed
    def memory(self) -> int:
        """On all its nodes."""
        return self.tres.memory or 0

    @computed
    def gres(self) -> GenericResources:
        """Generic resources that it was given, or asks for, on all its nodes."""
        held = job_forms.layouts(forms.texts(self._raw.get("gres_detail")))
        return self.tres.gres or held

    @computed
    def gpus(self) -> dict[str, GPU]:
        """The GPUs among `gres`, by type."""
        return self.gres.gpus

    @classmethod
    def load(cls, job_id: int) -> Self:
        """The job as slurmctld has it (of an array its first task). Raises RPCError: of number 2017 if it has none."""
        answer = request("GET", f"job/{int(job_id)}", not_found=NO_SUCH_JOB)
        for job in entries(cls, answer.payload, "jobs", api_version()):
            if job.id == int(job_id):
                job._alone = True
                return job
        raise RPCError(NO_SUCH_JOB, f"slurmctld answered without job {int(job_id)}")

    def send_signal(self, signal: str | int, steps: str = "children", hurry: bool = False) -> None:
        """Send a signal ("SIGUSR1", 10) to "children" (all steps but the script), "batch" (the script) or "all".

        `hurry`: don't stage out burst buffers. Raises RPCError.
        """
        if steps not in _STEPS:
            raise ValueError(f"{steps!r:.80} is none of {', '.join(_STEPS)}")
        flags = [*_STEPS[steps], *(["HURRY"] if hurry else [])]
        with slurm_errors(NO_SUCH_JOB):
            session().signal(self._id, signal, flags=flags)

    def cancel(self) -> None:
        """Cancel it. A job that has ended already is no error. Raises RPCError."""
        with slurm_errors(NO_SUCH_JOB):
            session().cancel(self._id)

    def suspend(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("Job.suspend", "scontrol suspend does it")

    def unsuspend(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("Job.unsuspend", "scontrol resume does it")

    def modify(self, changes: JobSubmitDescription) -> None:
        """Change it: the fields of `changes` that are set. Raises RPCError for what Slurm doesn't let change."""
        body = changes._changes(api_version())
        with slurm_errors(NO_SUCH_JOB):
            session().update_job(self._id, body)

    def hold(self, mode: str | None = None) -> None:
        """Keep it from starting. `mode` "user": its user may release it; by default only who could hold it as we do."""
        if mode not in (None, "user", "admin"):
            raise ValueError(f'{mode!r:.80} is neither "user" nor "admin"')
        with slurm_errors(NO_SUCH_JOB):
            # A hold by its owner is one that the owner may end. REST has no other way to say so.
            session().hold(self._id, user=self.load(self._id).user_name if mode == "user" else None)

    def release(self) -> None:
        """Let it start. Raises RPCError."""
        with slurm_errors(NO_SUCH_JOB):
            session().release(self._id)

    def requeue(self, hold: bool = False) -> None:
        """Put it back into the queue, held if `hold`. Needs API v0.0.45."""
        require("Job.requeue", "v0.0.45")
        with slurm_errors(NO_SUCH_JOB):
            session().requeue(self._id, hold=hold)

    def notify(self, msg: str) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("Job.notify", "scontrol notify does it")

    def load_stats(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("Job.load_stats", "pyslurm.db.Job.stats has what slurmdbd was told")

    def get_batch_script(self) -> str:
        """Its script, if slurmdbd keeps scripts (AccountingStoreFlags=job_script). Raises PyslurmError if not."""
        from slurmrest.pyslurm.db.job import Job as Recorded

        script = Recorded.load(self._id, with_script=True).script
        if not script:
            raise PyslurmError(
                f"slurmdbd has no script of job {self._id}: it keeps none without AccountingStoreFlags=job_script"
            )
        return script

    def get_resource_layout_per_node(self) -> dict[str, dict[str, Any]]:
        """By node: "cpu_ids" as ranges, "memory" in MiB, "gres" by type with the indexes. Needs API v0.0.41.

        Empty for a job that holds nothing.
        """
        if self._version < "v0.0.41":
            require("Job.get_resource_layout_per_node", "v0.0.41")
        return job_forms.node_layouts(self._raw)


class Jobs(MultiClusterMap[int, Job]):
    """Jobs by id: of a dict, of jobs, of ids, or of text with ids and commas.

    `frozen`: `reload` neither adds jobs nor takes any out.
    """

    _ITEM, _ID, _KEY = Job, "id", int

    def __init__(
        self, jobs: Mapping[Any, Any] | Iterable[Job | int | str] | str | None = None, frozen: bool = False
    ) -> None:
        super().__init__(jobs)
        self.frozen = frozen

    @classmethod
    def load(cls, preload_passwd_info: bool = False, frozen: bool = False) -> Self:
        """All jobs that slurmctld knows. `preload_passwd_info` does nothing: REST gives names for users already."""
        answer = request("GET", "jobs/")
        return cls(entries(Job, answer.payload, "jobs", api_version()), frozen=frozen)

    def reload(self) -> Self:
        """Bring these jobs up to date; of an empty collection, load all."""
        return multi_reload(self, frozen=self.frozen)

    def load_steps(self) -> None:
        """Ask for the steps of these jobs: `Job.steps` has them then. Needs slurmdbd."""
        every = JobSteps.load_all(self.keys())
        for job in self.values():
            job._steps = every.get(job.id, JobSteps())

    def load_stats(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("Jobs.load_stats", "pyslurm.db.Jobs has what slurmdbd was told")

    @property
    def memory(self) -> int:
        """MiB, of all."""
        return sum_property(self, Job.memory)

    @property
    def cpus(self) -> int:
        """Of all."""
        return sum_property(self, Job.cpus)

    @property
    def ntasks(self) -> int:
        """Of all."""
        return sum_property(self, Job.ntasks)

    @property
    def elapsed_cpu_time(self) -> int:
        """Seconds, of all."""
        return sum_property(self, Job.elapsed_cpu_time)
