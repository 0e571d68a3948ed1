"""Reads sbatch's options, and srun's where they say the same, into what a job asks for.

Pure; called by `manifest`. What always holds: each option is understood, or listed with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from kubeslurm import names, times
from kubeslurm.directives import LOG_DIR
from kubeslurm.from_sbatch.found import Asked, LeftOut, NoJob
from slurmrest.sbatch import Given, Options

_MEMORY: Final = re.compile(r"(\d{1,15})([KMGT]?)B?\Z", re.ASCII | re.IGNORECASE)
_SCALE: Final = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024 * 1024}
_SIGNAL: Final = re.compile(r"(?:SIG)?[A-Z][A-Z0-9]{1,9}@[0-9]{1,5}\Z")
_NOTED: Final = {
    "account": names.ANNOTATION_ACCOUNT,
    "partition": names.ANNOTATION_PARTITION,
    "qos": names.ANNOTATION_QOS,
    "constraint": names.ANNOTATION_CONSTRAINT,
    "reservation": names.ANNOTATION_RESERVATION,
    "dependency": names.ANNOTATION_DEPENDENCY,
}
_LOGS: Final = frozenset({"output", "error", "open-mode", "input"})
_SILENT: Final = frozenset({"mpi", "kill-on-bad-exit", "label", "unbuffered", "distribution", "gpu-bind", "export"})
"""What a PyTorchJob does anyway, or kubeslurm chooses for itself."""


def apply(options: Options, asked: Asked, left: list[LeftOut], line: int = 0) -> None:
    """Take each option that counts. `line`: where they stand, if the options themselves do not say."""
    for given in options.last().values():
        where = given.line or line
        try:
            why = _take(given, asked)
        except ValueError as error:
            raise NoJob(f"--{given.option.name}={given.value}: {error}", where) from None
        if why is not None:
            text = f"--{given.option.name}" + (f"={given.value}" if given.value is not None else "")
            left.append(LeftOut(where, text, why))


def _take(given: Given, asked: Asked) -> str | None:
    """None, or why the option is left out."""
    name, value = given.option.name, given.value or ""
    if name in _NOTED:
        asked.annotations[_NOTED[name]] = value
    elif name in _READ:
        return _READ[name](value, asked)
    elif name == "output" and value.startswith(LOG_DIR):
        return None  # a script of ours
    elif name in _LOGS:
        return "kubectl logs shows what the replicas write"
    elif name == "array":
        raise ValueError("an array is many jobs, a PyTorchJob is one")
    elif name not in _SILENT:
        return "a PyTorchJob has no word for it"
    return None


def _count(value: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,6}", value, re.ASCII):
        raise ValueError("a number is wanted")
    return int(value)


def _nodes(value: str, asked: Asked) -> str | None:
    least, dash, most = value.partition("-")
    asked.nodes = _count(most if dash else least)
    return f"{asked.nodes} are asked for; spec.elasticPolicy says how few are enough" if dash else None


def _number(field: str) -> Callable[[str, Asked], str | None]:
    def take(value: str, asked: Asked) -> None:
        setattr(asked, field, _count(value))

    return take


def _devices(value: str) -> tuple[int, str | None]:
    """`8`, `h100:8`."""
    kind, colon, count = value.rpartition(":")
    return _count(count or value), kind if colon else None


def _gpus(field: str) -> Callable[[str, Asked], str | None]:
    def take(value: str, asked: Asked) -> str | None:
        count, kind = _devices(value)
        setattr(asked, field, count)
        return _typed(kind)

    return take


def _typed(kind: str | None) -> str | None:
    return f"the type {kind} is a node selector's to choose (jobs.nodeLabels of the SlurmCluster)" if kind else None


def _gres(value: str, asked: Asked) -> str | None:
    why = None
    for one in value.split(","):
        name, _, rest = one.removeprefix("gres/").replace("gres:", "").partition(":")
        if name == "none":
            continue
        if name != "gpu":
            why = f"{name} has no resource of that name in Kubernetes"
            continue
        asked.gpus_per_node, kind = _devices(rest or "1")
        why = _typed(kind) or why
    return why


def mib(value: str) -> int:
    """--mem's words as MiB, rounded up; ValueError otherwise."""
    match = _MEMORY.match(value)
    if match is None:
        raise ValueError("an amount such as 120G is wanted")
    return -(-int(int(match.group(1)) * _SCALE[match.group(2).upper()] * 1024) // 1024)


def _memory(field: str) -> Callable[[str, Asked], str | None]:
    def take(value: str, asked: Asked) -> str | None:
        amount = mib(value)
        if not amount:
            return "all of a node's memory can't be asked for"
        setattr(asked, field, amount)
        return None

    return take


def _time(value: str, asked: Asked) -> str | None:
    minutes = times.parse_minutes(value)
    asked.minutes, asked.unlimited = minutes, minutes is None
    return None


def _signal(value: str, asked: Asked) -> str | None:
    batch, colon, rest = value.rpartition(":")
    text = rest if "@" in rest else f"{rest}@60"
    if not _SIGNAL.match(text):
        return "no signal that kubeslurm sends"
    asked.annotations[names.ANNOTATION_SIGNAL] = text.removeprefix("SIG")
    return f"{batch}: the replicas get it, not a batch script" if colon else None


def _text(field: str) -> Callable[[str, Asked], str | None]:
    def take(value: str, asked: Asked) -> None:
        setattr(asked, field, value)

    return take


def _switch(field: str, *, on: bool) -> Callable[[str, Asked], str | None]:
    def take(_: str, asked: Asked) -> None:
        setattr(asked, field, on)

    return take


_READ: Final[Mapping[str, Callable[[str, Asked], str | None]]] = {
    "nodes": _nodes,
    "ntasks": _number("tasks"),
    "ntasks-per-node": _number("tasks_per_node"),
    "cpus-per-task": _number("cpus_per_task"),
    "cpus-per-gpu": _number("cpus_per_gpu"),
    "gres": _gres,
    "gpus-per-node": _gpus("gpus_per_node"),
    "gpus-per-task": _gpus("gpus_per_task"),
    "gpus": _gpus("gpus"),
    "mem": _memory("memory_mib"),
    "mem-per-cpu": _memory("memory_per_cpu"),
    "mem-per-gpu": _memory("memory_per_gpu"),
    "time": _time,
    "signal": _signal,
    "job-name": _text("name"),
    "chdir": _text("chdir"),
    "requeue": _switch("requeue", on=True),
    "no-requeue": _switch("requeue", on=False),
    "exclusive": _switch("exclusive", on=True),
}
