"""Renders a layout into the files that Slurm reads: slurm.conf, gres.conf, cgroup.conf, the Prolog and the Epilog.

Pure; called by the operator's pool loop and by `kubeslurm render`. What always holds: the same layout gives the same
bytes, and every value that a user gave passes `slurmconf`'s check again on its way into a line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import jinja2

from kubeslurm import slurmconf, times
from kubeslurm.layout import NodeGroup, PoolLayout

CONTROLLER_PORT: Final = 6817
OWN_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "SlurmctldParameters": ("enable_configless",),
    "SlurmdParameters": ("config_overrides",),
}
"""What must stand in the list-valued keys whatever the spec adds: configless pods, and CPUs beyond the machine's."""

DEFAULTS: Final[Mapping[str, str]] = {
    "MessageTimeout": "10",
    "MpiDefault": "none",
    "SelectTypeParameters": "CR_Core_Memory",
    "SchedulerType": "sched/backfill",
    "ResumeTimeout": "120",
    "KillOnBadExit": "1",
}
"""Keys with a default of ours, which the spec may change."""


ACCOUNTED: Final[Mapping[str, str]] = {
    "AccountingStorageTRES": "gres/gpu",
    "AccountingStoreFlags": "job_comment",
    "PriorityFlags": "MAX_TRES",
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "100000",
    "PriorityWeightQOS": "100000",
}
"""The same with slurmdbd: GPUs are counted, fair share weighs, a job costs what of a node it keeps from others, and a job
that slurmctld has forgotten is still known by its key."""


@dataclass(frozen=True, slots=True)
class RenderedConfig:
    """Files by name, and one digest of all."""

    files: Mapping[str, str]
    digest: str


def render(layout: PoolLayout) -> RenderedConfig:
    """All files."""
    context = {
        "cluster": slurmconf.check_name(layout.cluster),
        "controller": controller_pod(layout.cluster),
        "service": controller_service(layout.cluster),
        "settings": _settings(layout),
        "groups": [{"hostlist": group.hostlist(), "group": group} for group in layout.groups],
        "partitions": layout.partitions,
        # with slurmdbd GPUs are counted from the first day on: slurmctld learns of a new kind only when it starts
        "has_gpus": layout.enforced is not None or any(group.gpu for group in layout.groups),
        "enforced": layout.enforced,
        "slurmdbd": accounting_service(layout.cluster),
        "gres_lines": _gres_lines(layout.groups),
    }
    files = {name: _environment().get_template(f"{name}.j2").render(context) for name in _FILES}
    text = "\0".join(f"{name}\0{content}" for name, content in sorted(files.items()))
    return RenderedConfig(files, hashlib.sha256(text.encode()).hexdigest())


_FILES: Final = ("slurm.conf", "gres.conf", "cgroup.conf", "prolog.sh", "epilog.sh")


def controller_service(cluster: str) -> str:
    """The Service in front of slurmctld; its address outlives the pod."""
    return f"{cluster}-controller"


def controller_pod(cluster: str) -> str:
    """The pod that slurmctld runs in, which is its host name."""
    return f"{cluster}-controller-0"


def accounting_service(cluster: str) -> str:
    """The Service in front of slurmdbd, which is slurmdbd's host name, too."""
    return f"{cluster}-dbd"


def _settings(layout: PoolLayout) -> list[tuple[str, str]]:
    given = {key: value if isinstance(value, tuple) else (value,) for key, value in layout.config}
    for key, ours in OWN_LISTS.items():
        given[key] = (*ours, *(one for one in given.get(key, ()) if one not in ours))
    defaults = DEFAULTS if layout.enforced is None else {**DEFAULTS, **ACCOUNTED}
    merged = {key: (value,) for key, value in defaults.items()} | given
    return sorted(
        (slurmconf.check_key(key), ",".join(map(slurmconf.check_value, value))) for key, value in merged.items()
    )


def _gres_lines(groups: tuple[NodeGroup, ...]) -> list[str]:
    """One line for all nodes where all have the same GPUs, else one for each group that has some."""
    lines = [(group.hostlist(), _gres_line(group)) for group in groups]
    if len({line for _, line in lines}) == 1:
        return [line for _, line in lines[:1] if line]
    return [f"NodeName={hosts} {line}" for hosts, line in lines if line]


def _gres_line(group: NodeGroup) -> str:
    if group.gpu is None:
        return ""
    kind = f" Type={slurmconf.check_name(group.gpu.type)}" if group.gpu.type else ""
    return f"Name=gpu{kind} File={slurmconf.check_value(group.gpu.devices)}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kubeslurm_templates", ""),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - config files, not HTML; every value goes through a checking filter
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "checked": slurmconf.check_name,
        "value": slurmconf.check_value,
        "time": lambda text: times.format_minutes(times.parse_minutes(text)),
    }
    return environment
