"""Which fields of a `JobSubmitDescription` sbatch's options set.

Called by `JobSubmitDescription.load_sbatch_options`. What always holds: each option that a script gives is carried over,
changes nothing about a job, or raises; the error names the line. Source: sbatch(1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from slurmrest import sbatch
from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._description import merge
from slurmrest.pyslurm.error import PyslurmError
from slurmrest.sbatch import BadScript, Given, Options

_SAME: Final[Mapping[str, str]] = {
    "account": "account",
    "acctg-freq": "accounting_gather_frequency",
    "array": "array",
    "batch": "batch_constraints",
    "begin": "begin_time",
    "chdir": "working_directory",
    "cluster-constraint": "cluster_constraints",
    "clusters": "clusters",
    "comment": "comment",
    "constraint": "constraints",
    "container": "container",
    "container-id": "container_id",
    "context": "selinux_context",
    "core-spec": "cores_reserved_for_system",
    "cores-per-socket": "cores_per_socket",
    "cpu-freq": "cpu_frequency",
    "cpus-per-gpu": "cpus_per_gpu",
    "cpus-per-task": "cpus_per_task",
    "deadline": "deadline",
    "delay-boot": "delay_boot_time",
    "dependency": "dependencies",
    "distribution": "distribution",
    "error": "standard_error",
    "exclude": "excluded_nodes",
    "export": "environment",
    "extra": "extra",
    "gid": "group_id",
    "gpu-bind": "gpu_binding",
    "gpus": "gpus",
    "gpus-per-socket": "gpus_per_socket",
    "gpus-per-task": "gpus_per_task",
    "input": "standard_in",
    "job-name": "name",
    "licenses": "licenses",
    "mail-type": "mail_types",
    "mail-user": "mail_user",
    "mcs-label": "mcs_label",
    "mem": "memory_per_node",
    "mem-per-cpu": "memory_per_cpu",
    "mem-per-gpu": "memory_per_gpu",
    "mincpus": "min_cpus_per_node",
    "network": "network",
    "nodelist": "required_nodes",
    "nodes": "nodes",
    "ntasks": "ntasks",
    "ntasks-per-core": "ntasks_per_core",
    "ntasks-per-gpu": "ntasks_per_gpu",
    "ntasks-per-node": "ntasks_per_node",
    "ntasks-per-socket": "ntasks_per_socket",
    "open-mode": "log_files_open_mode",
    "output": "standard_output",
    "partition": "partitions",
    "priority": "priority",
    "profile": "profile_types",
    "qos": "qos",
    "reservation": "reservations",
    "segment": "segment_size",
    "signal": "signal",
    "sockets-per-node": "sockets_per_node",
    "switches": "switches",
    "thread-spec": "threads_reserved_for_system",
    "threads-per-core": "threads_per_core",
    "time": "time_limit",
    "time-min": "time_limit_min",
    "tmp": "temporary_disk_per_node",
    "uid": "user_id",
    "wckey": "wckey",
}
"""Options whose text is the field's value."""

_SETS: Final[Mapping[str, tuple[str, Any]]] = {
    "contiguous": ("requires_contiguous_nodes", True),
    "hold": ("priority", 0),
    "no-requeue": ("is_requeueable", False),
    "overcommit": ("overcommit", True),
    "oversubscribe": ("resource_sharing", "oversubscribe"),
    "reboot": ("requires_node_reboot", True),
    "spread-job": ("spreads_over_nodes", True),
    "use-min-nodes": ("use_min_nodes", True),
}
"""Options without a value."""

_MORE: Final[Mapping[str, Callable[[str], Mapping[str, Any]]]] = {
    "bb": lambda value: {"burst_buffer": value},
    "bbf": lambda value: {"burst_buffer": Path(value).read_text()},
    "consolidate-segments": lambda _: {"flags": ["CONSOLIDATE_SEGMENTS"]},
    "container-type": lambda value: {"container_type": forms.to_line(value)},
    "external": lambda _: {"flags": ["EXTERNAL_JOB"]},
    "gpu-freq": lambda value: {"tres_freq": f"gpu:{forms.to_line(value)}"},
    "oom-kill-step": lambda value: {"oom_kill_step": int(value or 1)},
    "prefer": lambda value: {"prefer": forms.to_line(value)},
    "spread-segments": lambda _: {"flags": ["SPREAD_SEGMENTS"]},
    "stepmgr": lambda _: {"flags": ["STEPMGR_ENABLED"]},
    "tres-bind": lambda value: {"tres_bind": forms.to_line(value)},
    "tres-per-task": lambda value: {"tres_per_task": forms.to_line(value)},
}
"""Options without a field: what they set in the request."""

_WINS_OVER_HINT: Final = frozenset({"extra-node-info", "ntasks-per-core", "threads-per-core"})
"""Next to these, sbatch drops `--hint`."""

_NOT_FOR_JOBS: Final = frozenset({"help", "ignore-pbs", "parsable", "quiet", "usage", "verbose", "version"})
"""What they change is what sbatch prints."""


def fields_of(script: str, environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that a script's options and the SBATCH_* variables set, and further fields of the request.

    Raises ValueError for what sbatch would refuse, PyslurmError for what can't be carried over.
    """
    try:
        components = sbatch.read_options(script, environment)
    except BadScript as error:
        raise ValueError(f"the script's {error}") from error
    if len(components) > 1:
        raise PyslurmError("the script describes a heterogeneous job, a JobSubmitDescription one component only")
    options = components[0]
    if options.complaints:
        raise ValueError("; ".join(map(str, options.complaints)))
    return _carried(options)


def _carried(options: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    values: dict[str, Any] = {}
    more: dict[str, Any] = {}
    named = options.last()
    for name, given in named.items():
        if name == "hint" and _WINS_OVER_HINT & named.keys():
            continue
        try:
            _carry(name, given, values, more)
        except (OSError, TypeError, ValueError, PyslurmError) as error:
            kind = PyslurmError if isinstance(error, PyslurmError) else ValueError
            raise kind(f"{given.origin}: --{name}: {error}") from error
    return values, more


def _carry(name: str, given: Given, values: dict[str, Any], more: dict[str, Any]) -> None:
    value = given.value or ""
    if name in _SAME:
        values[_SAME[name]] = value
    elif name in _SETS:
        field, fixed = _SETS[name]
        values[field] = fixed
    elif name in _MORE:
        merge(more, dict(_MORE[name](value)))
    elif name in _SPECIAL:
        values |= _SPECIAL[name](value, values)
    elif name not in _NOT_FOR_JOBS:
        raise PyslurmError("it can't be carried over to a JobSubmitDescription")


_Special = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def _gres(value: str, so_far: Mapping[str, Any]) -> Mapping[str, Any]:
    """`--gres` and `--gpus-per-node` add up."""
    return {"gres_per_node": ",".join(filter(None, [so_far.get("gres_per_node"), value]))}


def _gpus_per_node(value: str, so_far: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = [part if part.startswith("gpu:") else f"gpu:{part}" for part in forms.split(value)]
    return _gres(",".join(parts), so_far)


def _node_info(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """`-B sockets[:cores[:threads]]`; "*" asks for nothing."""
    names = ("sockets_per_node", "cores_per_socket", "threads_per_core")
    parts = value.split(":")
    if len(parts) > len(names):
        raise ValueError(f"{value!r:.80} is not sockets:cores:threads")
    return {name: part for name, part in zip(names, parts, strict=False) if part != "*"}


def _hint(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    hints: Mapping[str, Mapping[str, Any]] = {"nomultithread": {"threads_per_core": 1}, "multithread": {}}
    if value not in hints:
        raise PyslurmError(f"{value!r:.40} steers srun's binding, which a job description can't")
    return hints[value]


def _gres_flags(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for word in value.split(","):
        sharing = word.removesuffix("-task-per-sharing").removesuffix("-tasks-per-sharing")
        found |= {"gres_binding": word} if sharing == word else {"gres_tasks_per_sharing": sharing}
    return found


def _kill_on_invalid(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    if value not in ("yes", "no"):
        raise ValueError(f"{value!r:.40} is neither yes nor no")
    return {"kill_on_invalid_dependency": value == "yes"}


def _reserved_ports(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"reserved_ports": int(value) if value else 0}


def _propagate(value: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
    if value.upper() != "NONE":
        raise PyslurmError("the limits of this process are not handed on")
    return {}


_SPECIAL: Final[Mapping[str, _Special]] = {
    "exclusive": lambda value, _: {"resource_sharing": value or "exclusive"},
    "extra-node-info": _node_info,
    "get-user-env": lambda value, _: {"get_user_environment": value or True},
    "gpus-per-node": _gpus_per_node,
    "gres": _gres,
    "gres-flags": _gres_flags,
    "hint": _hint,
    "kill-on-invalid-dep": _kill_on_invalid,
    "nice": lambda value, _: {"nice": int(value or 100)},
    "no-kill": lambda value, _: {"kill_on_node_fail": value == "off"},
    "nodefile": lambda value, _: {"required_nodes": Path(value).read_text().split()},
    "propagate": _propagate,
    "requeue": lambda value, _: {"is_requeueable": True},
    "resv-ports": _reserved_ports,
    "wait-all-nodes": lambda value, _: {"wait_all_nodes": bool(int(value))},
}
