"""`pyslurm.db.JobStep` and `JobSteps`: the steps of a job, as slurmdbd has them.

Made by `pyslurm.db.Job` of its payload; REST has no call for a step alone. What always holds: `stats` is of the step's
own payload, a step's key is its number, or "batch", "extern" or "interactive".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slurmrest.pyslurm._fields import Record, computed, field, missing, plain
from slurmrest.pyslurm._forms import count, integer, limit, moment, text
from slurmrest.pyslurm.db._forms import exit_code, hosts, identity, resources, state
from slurmrest.pyslurm.db.stats import JobStepStatistics
from slurmrest.pyslurm.db.tres import GPU, GenericResources


def _governor(raw: Any) -> str | None:
    """The governor's name; Slurm writes "0" for none."""
    return None if raw == "0" else text(raw)


class JobStep(Record):
    """A step of a job in the database. All attributes are read-only; memory is MiB, times are seconds."""

    num_nodes = field("nodes.count", read=integer)
    nodelist = field("nodes.range", read=hosts)
    ntasks = field("tasks.count", read=integer)
    elapsed_time = field("time.elapsed", read=count)
    start_time = field("time.start", read=moment)
    end_time = field("time.end", read=moment)
    suspended_time = field("time.suspended", read=count)
    time_limit = field("time.limit", read=limit, since="v0.0.43")
    exit_code = field("exit_code", read=exit_code)
    exit_code_signal = field("exit_code.signal.id", read=identity)
    cpu_frequency_min = field("CPU.requested_frequency.min", read=identity)
    cpu_frequency_max = field("CPU.requested_frequency.max", read=identity)
    cpu_frequency_governor = field("CPU.governor", read=_governor)
    name = field("step.name", read=text)
    state = field("state", read=state)
    cancelled_by = field("kill_request_user", read=text)
    submit_command = field("submit_line", read=text, since="v0.0.45")
    standard_input = field("step.stdin_expanded", "step.stdin", read=text, since="v0.0.43")
    standard_output = field("step.stdout_expanded", "step.stdout", read=text, since="v0.0.43")
    standard_error = field("step.stderr_expanded", "step.stderr", read=text, since="v0.0.43")
    container = missing(text, "the answer about a step doesn't name its container")
    eligible_time = missing(moment, "the answer about a step has no such time")
    working_directory = missing(text, "the answer about a step doesn't name its directory")
    tres = field("tres.allocated", read=resources)

    @computed
    def id(self) -> int | str | None:
        """The step's number, or "batch", "extern", "interactive"."""
        return _step_id(self._raw)[1]

    @computed
    def job_id(self) -> int | None:
        """The job's id."""
        return _step_id(self._raw)[0]

    @computed
    def cpus(self) -> int:
        """CPUs that the step has."""
        return self.tres.cpu or 0

    @computed
    def memory(self) -> int:
        """Memory that the step has on all its nodes, in MiB."""
        return self.tres.memory or 0

    @computed
    def gres(self) -> GenericResources:
        """The generic resources among its resources."""
        return self.tres.gres

    @computed
    def gpus(self) -> dict[str, GPU]:
        """Its GPUs, by type."""
        return self.tres.gpus

    @computed
    def stats(self) -> JobStepStatistics:
        """What it used."""
        return JobStepStatistics._of(self._raw, self._version)


class JobSteps(dict[int | str, JobStep]):
    """The steps of one job, by their ids."""

    @classmethod
    def _of(cls, raw: Iterable[Mapping[str, Any]], version: str = "") -> JobSteps:
        steps = (JobStep._of(one, version) for one in raw)
        return cls((step.id, step) for step in steps if step.id is not None)

    def to_dict(self, recursive: bool = False) -> dict[int | str, Any]:
        """A plain dict; `recursive`: of plain dicts."""
        return {key: plain(step, recursive) for key, step in self.items()}


def _step_id(raw: Mapping[str, Any]) -> tuple[int | None, int | str | None]:
    """The job's and the step's id of "12.0", "12.batch" (and "12_3.0" of an array's task, "12+0.0" of a het job)."""
    job, _, step = str((raw.get("step") or {}).get("id") or "").rpartition(".")
    digits = job.replace("+", "_").partition("_")[0]
    return int(digits) if digits.isdigit() else None, int(step) if step.isdigit() else step or None
