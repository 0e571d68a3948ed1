"""The options of a Slurm job, once: each as a line of the #SBATCH header and as fields of the REST description.

Pure. slurmrestd reads no header, so the description rules; the header says the same, so that the script works by hand. A
test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import times
from kubeslurm.plans import JobPlan, Shape
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


def options(plan: JobPlan, shape: Shape) -> tuple[Option, ...]:
    """All that the job asks for; of a heterogeneous one, what this component does."""
    return tuple(_options(plan, shape))


def _options(plan: JobPlan, shape: Shape) -> Iterator[Option]:
    yield Option("job-name", plan.name, {"name": plan.name})
    if plan.partition:
        yield Option("partition", plan.partition, {"partition": plan.partition})
    yield from _requested(plan.request, shape, leader=shape is plan.shapes[0])
    yield from _nodes(shape)
    yield from _on_each_node(shape)
    limit = INFINITE if plan.time_minutes is None else plan.time_minutes
    yield Option("time", times.format_minutes(plan.time_minutes), {"time_limit": number(limit)})
    if plan.request.signal is not None:
        name, seconds = plan.request.signal
        fields = {"kill_warning_signal": name, "kill_warning_delay": number(seconds)}
        yield Option("signal", f"{name}@{seconds}", fields)
    workdir = plan.programs[0].workdir
    directory = workdir if workdir and plan.container is None else "/"
    yield Option("chdir", directory, {"current_working_directory": directory})
    output = f"{LOG_DIR}/batch.out"
    yield Option("output", output, {"standard_output": output})
    yield Option("requeue" if plan.requeue else "no-requeue", None, {"requeue": plan.requeue})


def _nodes(shape: Shape) -> Iterator[Option]:
    least = shape.least or shape.nodes
    text = str(shape.nodes) if least == shape.nodes else f"{least}-{shape.nodes}"
    yield Option("nodes", text, {"nodes": text, "minimum_nodes": least, "maximum_nodes": shape.nodes})
    if shape.least is None:
        # room for a full node everywhere: of fewer tasks, Slurm would give each node a part, and a replica two
        tasks = shape.nodes * shape.tasks_per_node
        yield Option("ntasks", str(tasks), {"tasks": tasks})
    else:
        yield Option("no-kill", None, {"kill_on_node_fail": False})
    yield Option("ntasks-per-node", str(shape.tasks_per_node), {"tasks_per_node": shape.tasks_per_node})


def _on_each_node(shape: Shape) -> Iterator[Option]:
    if shape.gres:
        gres = [f"{name}:{count * shape.replicas_per_node}" for name, count in shape.gres]
        yield Option("gres", ",".join(gres), {"tres_per_node": ",".join(f"gres/{one}" for one in gres)})
    if shape.cpus_per_task is not None:
        yield Option("cpus-per-task", str(shape.cpus_per_task), {"cpus_per_task": shape.cpus_per_task})
    if shape.memory_mib is not None:
        yield Option("mem", memory(shape.memory_mib), {"memory_per_node": number(shape.memory_mib)})


def _requested(request: Request, shape: Shape, *, leader: bool) -> Iterator[Option]:
    """What was asked for by annotations, or is the tenant's default. A dependency is the leader's alone."""
    features = "&".join(
        one for one in (request.constraint and _grouped(request.constraint, shape), *shape.features) if one
    )
    texts = (
        ("account", "account", request.account),
        ("qos", "qos", request.qos),
        ("constraint", "constraints", features or None),
        ("reservation", "reservation", request.reservation),
        ("dependency", "dependency", request.dependency if leader else None),
    )
    for flag, field, text in texts:
        if text is not None:
            yield Option(flag, text, {field: text})
    if shape.exclusive:
        yield Option("exclusive", None, {"shared": ["none"]})


def _grouped(constraint: str, shape: Shape) -> str:
    """So that what a node selector asks for holds with each alternative of the annotation's."""
    return f"({constraint})" if shape.features and "|" in constraint else constraint


def memory(mib: int) -> str:
    """MiB as --mem takes it, in the largest unit that is exact."""
    return f"{mib // 1024}G" if mib % 1024 == 0 else f"{mib}M"
