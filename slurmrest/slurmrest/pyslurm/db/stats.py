"""What jobs and steps used, as slurmdbd's REST answers tell it.

Made by `pyslurm.db.Job` and `pyslurm.db.JobStep` of their payloads. What always holds: what was not measured
(JobAcctGatherType=none) is 0, or None where it is the name of a node or a task. Units: seconds of processor time, joules,
bytes, kHz. Source: sacct(1), the fields AveRSS, MaxDiskRead and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurmrest.numbers import read_int
from slurmrest.pyslurm._fields import Field, Record, computed, field
from slurmrest.pyslurm._forms import count, text
from slurmrest.pyslurm.db._forms import resources, seconds

_IN: Final = "tres.requested."
_OUT: Final = "tres.consumed."
"""The parser's names for what a step took in and what it put out (Slurm's tres_usage_in_* and tres_usage_out_*)."""


def _find(name: str, raw: Any) -> Mapping[str, Any]:
    """The entry of a resource ("cpu", "fs/disk") in a list of them; empty if there is none."""
    kind, _, sub = name.partition("/")
    return next((one for one in raw or () if (one.get("type"), one.get("name") or "") == (kind, sub)), {})


def _amount(path: str, name: str, divisor: int = 1) -> Field[int]:
    """The attribute of a resource's amount; slurmdbd keeps CPU time in milliseconds."""
    return field(path, read=lambda raw: _count(name, raw) // divisor)


def _node(path: str, name: str) -> Field[str | None]:
    """The attribute of the node that had a resource's extreme."""
    return field(path, read=lambda raw: text(_find(name, raw).get("node")))


def _task(path: str, name: str) -> Field[int | None]:
    """The attribute of the task that had a resource's extreme."""
    return field(path, read=lambda raw: read_int(_find(name, raw).get("task")))


class JobStepStatistics(Record):
    """What one step used: averages over its tasks, and the extremes with the node and the task that had them."""

    consumed_energy = field("statistics.energy.consumed", read=count)
    total_cpu_time = field("time.total", read=seconds)
    user_cpu_time = field("time.user", read=seconds)
    system_cpu_time = field("time.system", read=seconds)
    avg_cpu_frequency = field("statistics.CPU.actual_frequency", read=count)
    avg_cpu_time = _amount(_IN + "average", "cpu", 1000)
    avg_disk_read = _amount(_IN + "average", "fs/disk")
    avg_disk_write = _amount(_OUT + "average", "fs/disk")
    avg_page_faults = _amount(_IN + "average", "pages")
    avg_resident_memory = _amount(_IN + "average", "mem")
    avg_virtual_memory = _amount(_IN + "average", "vmem")
    max_disk_read = _amount(_IN + "max", "fs/disk")
    max_disk_read_node = _node(_IN + "max", "fs/disk")
    max_disk_read_task = _task(_IN + "max", "fs/disk")
    max_disk_write = _amount(_OUT + "max", "fs/disk")
    max_disk_write_node = _node(_OUT + "max", "fs/disk")
    max_disk_write_task = _task(_OUT + "max", "fs/disk")
    max_page_faults = _amount(_IN + "max", "pages")
    max_page_faults_node = _node(_IN + "max", "pages")
    max_page_faults_task = _task(_IN + "max", "pages")
    max_resident_memory = _amount(_IN + "max", "mem")
    max_resident_memory_node = _node(_IN + "max", "mem")
    max_resident_memory_task = _task(_IN + "max", "mem")
    max_virtual_memory = _amount(_IN + "max", "vmem")
    max_virtual_memory_node = _node(_IN + "max", "vmem")
    max_virtual_memory_task = _task(_IN + "max", "vmem")
    min_cpu_time = _amount(_IN + "min", "cpu", 1000)
    min_cpu_time_node = _node(_IN + "min", "cpu")
    min_cpu_time_task = _task(_IN + "min", "cpu")

    @computed
    def elapsed_cpu_time(self) -> int:
        """CPUs times seconds."""
        return elapsed_cpu_time(self._raw)


class JobStatistics:
    """What a job used: sums over its steps; of memory the most that one step had. Jobs are added up with `add`."""

    def __init__(self) -> None:
        self.total_cpu_time = 0
        self.user_cpu_time = 0
        self.system_cpu_time = 0
        self.elapsed_cpu_time = 0
        self.consumed_energy = 0
        self.disk_read = 0
        self.disk_write = 0
        self.page_faults = 0
        self.resident_memory = 0
        self.virtual_memory = 0

    @classmethod
    def of_job(cls, raw: Mapping[str, Any]) -> JobStatistics:
        """Of a job's payload."""
        made = cls()
        times = raw.get("time") or {}
        made.total_cpu_time, made.user_cpu_time = seconds(times.get("total")), seconds(times.get("user"))
        made.system_cpu_time, made.elapsed_cpu_time = seconds(times.get("system")), elapsed_cpu_time(raw)
        for step in raw.get("steps") or ():
            made._add_step(step)
        return made

    def add(self, other: JobStatistics) -> None:
        """Add another job's; memory is the larger one here too."""
        for name, value in other.to_dict().items():
            mine = getattr(self, name)
            setattr(self, name, max(mine, value) if name in _PEAKS else mine + value)

    def to_dict(self, recursive: bool = False) -> dict[str, int]:
        """Its figures by name."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"JobStatistics({self.to_dict()})"

    def _add_step(self, raw: Mapping[str, Any]) -> None:
        step = JobStepStatistics._of(raw)
        tres = raw.get("tres") or {}
        taken, put = ((tres.get(kind) or {}).get("total") for kind in ("requested", "consumed"))
        self.consumed_energy += step.consumed_energy
        self.disk_read += _count("fs/disk", taken)
        self.disk_write += _count("fs/disk", put)
        self.page_faults += _count("pages", taken)
        self.resident_memory = max(self.resident_memory, _count("mem", taken))
        self.virtual_memory = max(self.virtual_memory, _count("vmem", taken))


_PEAKS: Final = frozenset({"resident_memory", "virtual_memory"})


def elapsed_cpu_time(raw: Mapping[str, Any]) -> int:
    """CPUs times seconds of a job's or a step's payload."""
    allocated = resources((raw.get("tres") or {}).get("allocated"))
    return (allocated.cpu or 0) * ((raw.get("time") or {}).get("elapsed") or 0)


def _count(name: str, raw: Iterable[Mapping[str, Any]] | None) -> int:
    return read_int(_find(name, raw).get("count")) or 0
