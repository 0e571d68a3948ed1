"""Steps of jobs: as much as REST tells of them, which is what slurmdbd was told.

Used by scripts as `pyslurm.JobStep` and `pyslurm.JobSteps`. slurmctld's REST API has no call about steps: they are read
from slurmdbd, which hears of a step when it starts and when it ends. What always holds: what can't be had or done raises
PyslurmError saying so. Units: times in seconds since 1970, time limits in minutes, memory in MiB.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm import _job_forms as job_forms
from slurmrest.pyslurm._fields import Record, computed, field, missing, plain, setting
from slurmrest.pyslurm._session import api_version, impossible
from slurmrest.pyslurm.constants import UNLIMITED
from slurmrest.pyslurm.db._forms import hosts, resources, state
from slurmrest.pyslurm.db.step import _step_id
from slurmrest.pyslurm.db.tres import GPU, GenericResources
from slurmrest.pyslurm.error import RPCError

if TYPE_CHECKING:
    from slurmrest.pyslurm.job import Job

_UNTOLD = "slurmdbd's answer about a step leaves it out, and slurmctld's REST API has no call about steps"


class JobStep(Record):
    """One step. `id` is its number, or "batch", "extern", "interactive"."""

    __slots__ = ("_ids", "_job")

    name = field("step.name", read=forms.text)
    time_limit = setting("time.limit", read=forms.limit, write=forms.to_minutes, since="v0.0.43")
    network = missing(forms.text, _UNTOLD)
    cpu_frequency_min = field("CPU.requested_frequency.min", read=job_forms.frequency)
    cpu_frequency_max = field("CPU.requested_frequency.max", read=job_forms.frequency)
    cpu_frequency_governor = field("CPU.governor", read=forms.text)
    reserved_ports = missing(forms.text, _UNTOLD)
    srun_host = missing(forms.text, _UNTOLD)
    srun_process_id = missing(forms.integer, _UNTOLD)
    container = missing(forms.text, _UNTOLD)
    container_id = missing(forms.text, _UNTOLD)
    allocated_nodes = field("nodes.range", read=hosts)
    start_time = field("time.start", read=forms.moment)
    state = field("state", read=state)
    ntasks = field("tasks.count", read=forms.count)
    distribution = field("task.distribution", read=forms.text)
    command = field("submit_line", read=forms.text, since="v0.0.45")
    slurm_protocol_version = missing(forms.integer, "the REST API hides it")
    standard_input = field("step.stdin_expanded", "step.stdin", read=forms.text, since="v0.0.43")
    standard_output = field("step.stdout_expanded", "step.stdout", read=forms.text, since="v0.0.43")
    standard_error = field("step.stderr_expanded", "step.stderr", read=forms.text, since="v0.0.43")
    working_directory = missing(forms.text, _UNTOLD)
    tres = field("tres.allocated", read=resources)
    tres_per_step = missing(forms.text, _UNTOLD)
    tres_per_socket = missing(forms.text, _UNTOLD)
    tres_per_node = missing(forms.text, _UNTOLD)
    tres_per_task = missing(forms.text, _UNTOLD)
    stats = missing(
        forms.integer, "REST doesn't ask the nodes what a step uses; pyslurm.db.JobStep.stats is of slurmdbd"
    )

    def __init__(self, job_id: int = 0, step_id: int | str = 0, **kwargs: Any) -> None:
        self._ids = (int(job_id), step_id)
        self._job: Mapping[str, Any] = {}
        super().__init__(**kwargs)

    @classmethod
    def _of_job(cls, raw: Mapping[str, Any], job: Mapping[str, Any], version: str) -> Self:
        """A step of slurmdbd's job."""
        step = cls._of(raw, version)
        _, number = _step_id(raw)
        step._ids = (int(job["job_id"]), number if number is not None else "")
        step._job = job
        return step

    def __repr__(self) -> str:
        return f"pyslurm.JobStep({self._ids[0]}, {self._ids[1]!r})"

    @computed
    def id(self) -> int | str:
        """Its number, or "batch", "extern", "interactive"."""
        return self._ids[1]

    @computed
    def job_id(self) -> int:
        """The job's number."""
        return self._ids[0]

    @computed
    def user_name(self) -> str | None:
        """Whose job it is of."""
        return forms.text(self._job.get("user"))

    @computed
    def user_id(self) -> int | None:
        """The user's number on this machine; None if the user is unknown here."""
        from slurmrest.pyslurm.utils import user_to_uid

        return user_to_uid(self.user_name, err_on_invalid=False) if self.user_name else None

    @computed
    def cluster(self) -> str | None:
        """The cluster that it ran on."""
        return forms.text(self._job.get("cluster"))

    @computed
    def partition(self) -> str | None:
        """Its job's."""
        return forms.text(self._job.get("partition"))

    @computed
    def array_id(self) -> int | None:
        """Its job's array, if it is a task of one."""
        return forms.integer((self._job.get("array") or {}).get("job_id")) or None

    @computed
    def array_task_id(self) -> int | None:
        """Which task of the array its job is."""
        return forms.integer((self._job.get("array") or {}).get("task_id"))

    @computed
    def cpus(self) -> int:
        """CPUs that it has."""
        return self.tres.cpu or 0

    @computed
    def gres(self) -> GenericResources:
        """The generic resources among `tres`."""
        return self.tres.gres

    @computed
    def gpus(self) -> dict[str, GPU]:
        """Its GPUs, by type."""
        return self.gres.gpus

    @computed
    def run_time(self) -> int:
        """Seconds that it has run."""
        if self.state == "RUNNING" and self.start_time:
            return max(int(time.time()) - self.start_time, 0)
        return forms.count((self._raw.get("time") or {}).get("elapsed"))

    @computed
    def run_time_remaining(self) -> int | str | None:
        """Seconds up to its job's time limit while it runs; UNLIMITED without one."""
        limit = forms.limit((self._job.get("time") or {}).get("limit"))
        if self.state != "RUNNING" or limit is None:
            return None
        return UNLIMITED if isinstance(limit, str) else max(limit * 60 - self.run_time, 0)

    @computed
    def elapsed_cpu_time(self) -> int:
        """Seconds that it has run, times its CPUs."""
        return self.cpus * self.run_time

    @classmethod
    def load(cls, job_id: int | Job, step_id: int | str) -> JobStep:
        """One step, of slurmdbd. Raises RPCError if there is none, or no slurmdbd."""
        steps = JobSteps.load(job_id)
        if step_id not in steps:
            raise RPCError(msg=f"slurmdbd knows no step {step_id} of job {_number(job_id)}")
        return steps[step_id]

    def load_stats(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("JobStep.load_stats", "pyslurm.db.JobStep.stats has what slurmdbd was told")

    def send_signal(self, signal: str | int) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("JobStep.send_signal", "Job.send_signal reaches all steps of a job, scancel a single one")

    def cancel(self) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("JobStep.cancel", "Job.cancel ends the whole job, scancel a single step")

    def modify(self, changes: JobStep) -> NoReturn:
        """Not over REST: always raises PyslurmError."""
        raise impossible("JobStep.modify", "scontrol update StepId=... does it")


class JobSteps(dict[int | str, JobStep]):
    """The steps of one job, by id."""

    def __init__(self, steps: Mapping[int | str, JobStep] | Iterable[JobStep] | None = None) -> None:
        if isinstance(steps, Mapping):
            super().__init__(steps)
        else:
            super().__init__((step.id, step) for step in steps or ())

    @classmethod
    def load(cls, job: int | Job) -> JobSteps:
        """The steps of a job, of slurmdbd. Raises RPCError for a job that it doesn't know."""
        number = _number(job)
        found = cls.load_all([number])
        if number not in found:
            raise RPCError(msg=f"slurmdbd knows no job {number}")
        return found[number]

    @classmethod
    def load_all(cls, ids: Iterable[int] | None = None) -> dict[int, JobSteps]:
        """The steps by job: of these jobs, or of all that run."""
        from slurmrest.pyslurm.db.connection import ask
        from slurmrest.pyslurm.db.filters import JobFilter

        wanted = None if ids is None else [int(one) for one in ids]
        if wanted == []:
            return {}
        every = JobFilter(start_time=1, end_time="now").params() | {"state": ["RUNNING"]}
        params = every if wanted is None else JobFilter(ids=wanted).params()
        version = api_version()
        jobs = ask("jobs/", "jobs", params)
        return {int(job["job_id"]): cls(_steps(job, version)) for job in jobs}

    def to_dict(self, recursive: bool = False) -> dict[int | str, Any]:
        """A plain dict; `recursive`: of plain dicts."""
        return {key: plain(step, recursive) for key, step in self.items()}


def _steps(job: Mapping[str, Any], version: str) -> list[JobStep]:
    return [JobStep._of_job(raw, job, version) for raw in job.get("steps") or ()]


def _number(job: int | Job) -> int:
    return job if isinstance(job, int) else job.id
