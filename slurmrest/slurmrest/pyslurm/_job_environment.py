"""The environment of a job: what is taken over from the process that submits it, and what sbatch would add.

Called by `slurmrest.pyslurm.submission`. The REST API hands on just the variables that a request holds: without those
that sbatch sets, `srun` inside the script would not know how many CPUs a task has, or where the job came from. What always
holds: the token in SLURM_JWT isn't taken over. Source: sbatch(1), "--export" and "OUTPUT ENVIRONMENT VARIABLES";
measured against sbatch on 24.11 and 26.05.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_SECRET: Final = frozenset({"SLURM_JWT"})
_NAME: Final = re.compile(r"[^=\0]+")
_UMASK: Final = re.compile(r"^Umask:\s*([0-7]+)$", re.MULTILINE)
_GPU: Final = "gres/gpu:"

_TOLD: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "account_gather_frequency": ("SLURM_ACCTG_FREQ", str),
    "cpu_frequency": ("SLURM_CPU_FREQ_REQ", str),
    "cpus_per_task": ("SLURM_CPUS_PER_TASK", str),
    "cpus_per_tres": ("SLURM_CPUS_PER_GPU", lambda text: text.removeprefix(_GPU)),
    "memory_per_tres": ("SLURM_MEM_PER_GPU", lambda text: text.removeprefix(_GPU)),
    "ntasks_per_tres": ("SLURM_NTASKS_PER_GPU", str),
    "open_mode": ("SLURM_OPEN_MODE", lambda modes: modes[0][0].lower()),
    "overcommit": ("SLURM_OVERCOMMIT", lambda on: "1" if on else ""),
    "profile": ("SLURM_PROFILE", lambda words: ",".join(word.capitalize() for word in words)),
    "tasks_per_core": ("SLURM_NTASKS_PER_CORE", str),
    "tasks_per_node": ("SLURM_NTASKS_PER_NODE", str),
    "tasks_per_socket": ("SLURM_NTASKS_PER_SOCKET", str),
    "threads_per_core": ("SLURM_THREADS_PER_CORE", str),
    "tres_bind": ("SLURM_TRES_BIND", str),
    "tres_per_job": ("SLURM_GPUS", lambda text: text.replace(_GPU, "")),
    "tres_per_socket": ("SLURM_GPUS_PER_SOCKET", lambda text: text.replace(_GPU, "")),
    "tres_per_task": ("SLURM_TRES_PER_TASK", str),
}
"""What sbatch tells the job of its own options, by the field of the request."""


def variables(
    asked: Mapping[str, Any] | str | None, user_environment: bool | None, body: Mapping[str, Any]
) -> list[str]:
    """The `environment` of a request: "NAME=value" each.

    `asked`: None or "ALL" for this process's variables, text as `sbatch --export` takes it, or a dict of variables.
    `user_environment`: have slurmd load the user's login environment too (None: as sbatch does, if not all is taken over).
    `body` is the rest of the job description. Raises ValueError and TypeError.
    """
    found, partly = _asked(asked)
    if user_environment or (user_environment is None and partly):
        found["SLURM_GET_USER_ENV"] = "1"
    if isinstance(asked, str):
        found["SLURM_EXPORT_ENV"] = asked
    found.update(_of_submission())
    found.update(_of_options(body))
    return [f"{name}={value}" for name, value in found.items()]


def _asked(asked: Mapping[str, Any] | str | None) -> tuple[dict[str, str], bool]:
    """The variables, and whether the user's own environment is wanted besides."""
    if asked is None or asked == "ALL":
        return _all(), False
    if isinstance(asked, str):
        return _exported(asked), asked != "NIL"
    return dict(_checked(asked)), True


def _all() -> dict[str, str]:
    """This process's variables. What isn't UTF-8, which JSON can't hold, has U+FFFD for the bytes that are wrong."""
    own = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items() if name not in _SECRET}
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, value in own.items()}


def _exported(text: str) -> dict[str, str]:
    """Of "ALL,A=b,HOME": names are taken over, what has a value is set."""
    if text in ("NONE", "NIL"):
        return {}
    found: dict[str, str] = {}
    own = _all()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not name or "\0" in part:
            raise ValueError(f"{part!r:.80} is not a variable")
        if equals:
            found[name] = value
        elif name == "ALL":
            found = own | found
        elif name in own:  # one that isn't set can't be taken over: sbatch says nothing either
            found[name] = own[name]
    return found


def _checked(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(asked, Mapping):
        raise TypeError(f"expected a dict or text, got {type(asked).__name__}")
    for name, value in asked.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"{name!r:.80} is not the name of a variable")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or "\0" in str(value):
            raise ValueError(f"the value of {name} is not text without NUL")
        yield name, str(value)


def _of_submission() -> dict[str, str]:
    """Where the job comes from, and what it inherits from there."""
    found = {
        "SLURM_SUBMIT_DIR": os.getcwd(),
        "SLURM_SUBMIT_HOST": socket.gethostname(),
        "SLURM_PRIO_PROCESS": str(os.getpriority(os.PRIO_PROCESS, 0)),
    }
    try:
        umask = _UMASK.search(Path("/proc/self/status").read_text())
    except OSError:  # no Linux: the node's own holds
        umask = None
    return found | ({"SLURM_UMASK": umask[1]} if umask else {})


def _of_options(body: Mapping[str, Any]) -> dict[str, str]:
    found = {name: write(body[field]) for field, (name, write) in _TOLD.items() if body.get(field)}
    method, _, size = str(body.get("distribution") or "").partition("=")
    if method:
        found["SLURM_DISTRIBUTION"] = method
    if size:
        found["SLURM_DIST_PLANESIZE"] = size.partition(",")[0]
    return {name: value for name, value in found.items() if value}
