"""What is read of an sbatch script, in neither system's words, and what is left out of it.

Pure values; the modules of this package fill them in. What always holds: whatever a script says is in one of them, or in
`LeftOut` with the number of its line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubeslurm.errors import BridgeError


class NoJob(BridgeError):  # noqa: N818 - named after what is wrong, as slurmrest's BadScript
    """No PyTorchJob can be made of the script; `line` counts from 1, 0 is the whole of it."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"{line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What has no counterpart: the text of it, and why."""

    line: int
    what: str
    why: str

    def __str__(self) -> str:
        what = " ".join(self.what.split())
        return f"{self.line}: {what[:80]}: {self.why}"


@dataclass
class Asked:
    """What the options ask of Slurm. Counts as they stand; `gpus` are a node's, `memory_mib` too, None where not said."""

    name: str = ""
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    minutes: int | None = None
    unlimited: bool = False
    requeue: bool = False
    exclusive: bool = False
    chdir: str | None = None
    image: str | None = None
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """The program: words and variables as Kubernetes takes them, `$(NAME)` and all."""

    line: int
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    workdir: str | None
