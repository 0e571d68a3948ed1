"""The options of a Slurm job, once: each as a line of the #SBATCH header and as fields of the REST description.

Pure. slurmrestd reads no header, so the description rules; the header says the same, so that the script works by hand. A
test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import times
from kubeslurm.plans import JobPlan
from kubeslurm.requests import Request
from slurmrest import INFINITE, number

LOG_DIR: Final = "/var/log/jobs/%j"


@dataclass(frozen=True, slots=True)
class Option:
    """`--flag=value`, or a bare flag, and what it is in REST (v0.0.42)."""

    flag: str
    value: str | None
    fields: dict[str, Any]

    @property
    def line(self) -> str:
        """The header's line."""
        return f"#SBATCH --{self.flag}" + (f"={self.value}" if self.value is not None else "")


def options(plan: JobPlan) -> tuple[Option, ...]:
    """All that the job asks for."""
    return tuple(_options(plan))


def _options(plan: JobPlan) -> Iterator[Option]:
    yield Option("job-name", plan.name, {"name": plan.name})
    if plan.partition:
        yield Option("partition", plan.partition, {"partition": plan.partition})
    yield from _requested(plan.request)
    nodes = {"nodes": str(plan.nodes), "minimum_nodes": plan.nodes, "maximum_nodes": plan.nodes}
    yield Option("nodes", str(plan.nodes), nodes)
    yield Option("ntasks", str(plan.tasks), {"tasks": plan.tasks})
    yield Option("ntasks-per-node", str(plan.tasks_per_node), {"tasks_per_node": plan.tasks_per_node})
    if plan.gpus_per_node:
        gres = f"gpu:{plan.gpus_per_node}"
        yield Option("gres", gres, {"tres_per_node": f"gres/{gres}"})
    if plan.cpus_per_task is not None:
        yield Option("cpus-per-task", str(plan.cpus_per_task), {"cpus_per_task": plan.cpus_per_task})
    if plan.memory_mib is not None:
        yield Option("mem", memory(plan.memory_mib), {"memory_per_node": number(plan.memory_mib)})
    limit = INFINITE if plan.time_minutes is None else plan.time_minutes
    yield Option("time", times.format_minutes(plan.time_minutes), {"time_limit": number(limit)})
    directory = plan.workdir if plan.workdir and plan.container is None else "/"
    yield Option("chdir", directory, {"current_working_directory": directory})
    output = f"{LOG_DIR}/batch.out"
    yield Option("output", output, {"standard_output": output})
    yield Option("requeue" if plan.requeue else "no-requeue", None, {"requeue": plan.requeue})


def _requested(request: Request) -> Iterator[Option]:
    """What was asked for by annotations, or is the tenant's default."""
    texts = (
        ("account", "account", request.account),
        ("qos", "qos", request.qos),
        ("constraint", "constraints", request.constraint),
        ("reservation", "reservation", request.reservation),
        ("dependency", "dependency", request.dependency),
    )
    for flag, field, text in texts:
        if text is not None:
            yield Option(flag, text, {field: text})
    if request.exclusive:
        yield Option("exclusive", None, {"shared": ["none"]})


def memory(mib: int) -> str:
    """MiB as --mem takes it, in the largest unit that is exact."""
    return f"{mib // 1024}G" if mib % 1024 == 0 else f"{mib}M"
