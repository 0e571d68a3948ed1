"""The visible rule by which a job's launch shape is chosen: one task for each GPU, or one for each replica.

Pure; used by the readers. The reason goes onto the job, so that a user sees why.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence
from typing import Final

from kubeslurm import names
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import Launcher

OWN_LAUNCHERS: Final = frozenset(
    {"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "ray", "tune", "composer"}
)
_PYTHON: Final = re.compile(r"python(3(\.\d+)?)?\Z")
_SWITCHES: Final = re.compile(r"-[uBOEsSIbqP]+\Z")
_LAUNCH_MODULES: Final = frozenset({"torch.distributed.run", "torch.distributed.launch"})


def choose(argv: Sequence[str], gpus: int, nproc: str | None, annotations: Mapping[str, str]) -> tuple[Launcher, str]:
    """The shape and why. `nproc` is spec.nprocPerNode."""
    path = f"metadata.annotations[{names.ANNOTATION_LAUNCHER}]"
    wish = annotations.get(names.ANNOTATION_LAUNCHER)
    if wish is not None:
        return _wished(wish, argv, gpus, nproc, path)
    program = os.path.basename(argv[0]) if argv else ""
    if program in OWN_LAUNCHERS or _runs_module(argv):
        return Launcher.POD, f"{program} starts its own processes: one task for each replica"
    if _runs_script(argv) and gpus > 1 and nproc in _all_gpus(gpus):
        return Launcher.RANK, f"plain {program} with {gpus} GPUs: one task for each GPU"
    return Launcher.POD, "neither a known launcher nor plain python with several GPUs: one task for each replica"


def _all_gpus(gpus: int) -> tuple[str | None, ...]:
    return (None, "auto", "gpu", str(gpus))


def _wished(wish: str, argv: Sequence[str], gpus: int, nproc: str | None, path: str) -> tuple[Launcher, str]:
    if wish not in list(Launcher):
        raise InvalidObject(path, f"{wish[:40]!r} is neither rank nor pod")
    if wish == Launcher.RANK and any("torchrun" in word for word in argv):
        raise InvalidObject(path, "rank would start torchrun once for each GPU")
    ranks = max(1, gpus)
    if wish == Launcher.RANK and nproc not in _all_gpus(ranks):
        raise InvalidObject("spec.nprocPerNode", f"{nproc}, but the launcher rank starts {ranks} on each node")
    return Launcher(wish), f"annotation {names.ANNOTATION_LAUNCHER}"


def _runs_script(argv: Sequence[str]) -> bool:
    """`python train.py`, with or without the interpreter's plain switches, such as -u."""
    if not argv or not _PYTHON.match(os.path.basename(argv[0])):
        return False
    script = next((word for word in argv[1:] if not _SWITCHES.match(word)), "")
    return script.endswith(".py")


def _runs_module(argv: Sequence[str]) -> bool:
    return (
        len(argv) > 2
        and bool(_PYTHON.match(os.path.basename(argv[0])))
        and "-m" in argv
        and bool(_LAUNCH_MODULES & set(argv))
    )
