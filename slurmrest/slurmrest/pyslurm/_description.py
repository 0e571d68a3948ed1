"""Turns the values of a `JobSubmitDescription` into the job description of the REST API.

Called by `slurmrest.pyslurm.submission`. Pure: nothing is sent. What always holds: a value that isn't what the field
takes raises ValueError or TypeError naming the field, a field that the API version lacks raises PyslurmError naming the
first one that has it, and nothing is left out. Source: sbatch(1), and the schemas job_desc_msg of v0.0.40 to v0.0.45;
measured against sbatch on 24.11 and 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from slurmrest.numbers import number
from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._bounds import integer, mebibytes, memory, minutes, natural, positive, short, short_natural
from slurmrest.pyslurm.error import PyslurmError
from slurmrest.pyslurm.task_dist import TaskDistribution
from slurmrest.pyslurm.utils import date_to_timestamp, group_to_gid, timestr_to_secs

Body: TypeAlias = dict[str, Any]
Write: TypeAlias = Callable[[Any], Body]

_COUNT: Final = re.compile(r"\d{1,9}[kKmM]?")
_NODES: Final = re.compile(r"\d{1,9}[kKmM]?(-\d{1,9}[kKmM]?(:\d+)?)?(,\d{1,9}[kKmM]?(-\d{1,9}[kKmM]?(:\d+)?)?)*")
_HOSTS: Final = re.compile(r"[A-Za-z0-9_.\[\],-]+")
_GRES: Final = re.compile(r"[A-Za-z_][\w.-]*(:[A-Za-z_][\w.-]*)?([:=]\d+[kKmMgGtTpP]?)?", re.ASCII)
_GPU: Final = re.compile(r"([A-Za-z_][\w.-]*|\d+\w*\.\w+)?(:?\d+[kKmM]?)?", re.ASCII)
_FREQUENCY: Final = re.compile(r"\w+(-\w+)?(:\w+)?", re.ASCII)
_SIGNAL: Final = re.compile(r"(?:([RB]{1,2}):)?([A-Za-z0-9]{1,12})(?:@(\d+))?")
_DEPENDENCY: Final = frozenset({"after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok"})
_JOBS: Final = re.compile(r"\d+(_(\d+|\*))?(\+\d+)?")
_MAIL: Final = {
    "TIME_LIMIT": "TIME=100%",
    "TIME_LIMIT_90": "TIME=90%",
    "TIME_LIMIT_80": "TIME=80%",
    "TIME_LIMIT_50": "TIME=50%",
    "INVALID_DEPEND": "INVALID_DEPENDENCY",
}
_MAILS: Final = ("BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY")
_MORE_MAILS: Final = ("ARRAY_TASKS", *(word for word in _MAIL.values() if "=" in word))
_PROFILES: Final = ("ENERGY", "LUSTRE", "NETWORK", "TASK")
_SHARING: Final = {
    "oversubscribe": "oversubscribe",
    "yes": "oversubscribe",
    "user": "user",
    "mcs": "mcs",
    "topo": "topo",
    "no": "none",
    "exclusive": "none",
}


def as_(field: str, write: Callable[[Any], Any]) -> Write:
    """A writer of one field."""
    return lambda value: {field: write(value)}


def _list(value: Any) -> str:
    """A list, or text, joined with commas; each part on one line."""
    if isinstance(value, str):
        return forms.to_line(value)
    return ",".join(forms.to_line(one) if isinstance(one, str) else str(integer(one)) for one in value)


def _nodes(value: Any) -> Body:
    if isinstance(value, Mapping):
        unknown = set(value) - {"min", "max"}
        if unknown or not value:
            raise ValueError('a range of nodes has "min", "max" or both')
        low, high = (None if value.get(name) is None else positive(value[name]) for name in ("min", "max"))
        if low and high and high < low:
            raise ValueError(f"the maximum {high} is below the minimum {low}")
        return {"minimum_nodes": low} if high is None else {"nodes": f"{low or 1}-{high}"}
    text = str(positive(value)) if isinstance(value, int) else forms.to_line(value).strip()
    if not _NODES.fullmatch(text):
        raise ValueError(f"{value!r:.80} is not a count or range of nodes")
    return {"nodes": text}


def _hosts(value: Any) -> list[str]:
    parts = forms.split(value) if isinstance(value, str) else list(value)
    for part in parts:
        if not isinstance(part, str) or not _HOSTS.fullmatch(part):
            raise ValueError(f"{part!r:.80} is not a host or a host list")
    if not parts:
        raise ValueError("no host is named")
    return parts


def _date(value: Any) -> int:
    found = date_to_timestamp(value)
    if found is None or isinstance(value, bool):
        raise ValueError("it is not a date")
    return found


def _delay(value: int | str) -> int:
    """Seconds of minutes, or of a duration."""
    found = timestr_to_secs(str(natural(value)) if isinstance(value, int) else value)
    if not isinstance(found, int):
        raise ValueError(f"{value!r:.80} is not a duration")
    return natural(found)


def _memory_per_gpu(value: int | str) -> Body:
    return {"memory_per_tres": f"gres/gpu:{mebibytes(value)}"}


def gres(value: Any) -> str:
    """Generic resources as TRES text: {"gpu:tesla": 1}, "gpu:tesla:1,shard:2" and the like."""
    if isinstance(value, Mapping):
        parts = [f"{forms.to_word(name)}:{natural(count)}" for name, count in value.items()]
    else:
        parts = forms.to_texts(value)
    for part in parts:
        if not _GRES.fullmatch(part.removeprefix("gres/").removeprefix("gres:")):
            raise ValueError(f"{part!r:.80} is not a generic resource")
    if not parts:
        raise ValueError("no generic resource is named")
    return ",".join(f"gres/{part.removeprefix('gres/').removeprefix('gres:')}" for part in parts)


def gpus(value: Any, count_after: str = ":") -> tuple[str, int]:
    """GPUs as TRES text, and how many in all: {"tesla": 1}, "tesla:1,volta:5", "6", 6."""
    if isinstance(value, bool):
        raise TypeError("expected GPUs, got bool")
    if isinstance(value, int):
        pairs = [("", positive(value))]
    elif isinstance(value, Mapping):
        pairs = [(forms.to_word(name), positive(count)) for name, count in value.items()]
    else:
        pairs = [_gpu(part) for part in forms.to_texts(value)]
    if not pairs or not all(_GPU.fullmatch(name) for name, _ in pairs):
        raise ValueError(f"{value!r:.80} are no GPUs")
    named = [f"gres/gpu{f':{name}' if name else ''}{count_after}{count}" for name, count in pairs]
    return ",".join(named), sum(count for _, count in pairs)


def _gpu(part: str) -> tuple[str, int]:
    name, colon, count = part.removeprefix("gpu:").rpartition(":")
    if not colon and not _COUNT.fullmatch(count):
        name, count = count, "1"
    if not _COUNT.fullmatch(count):
        raise ValueError(f"{part!r:.80} is not a type and a count of GPUs")
    factor = {"k": 1024, "m": 1024**2}.get(count[-1].lower(), 1)
    return name, positive(count.rstrip("kKmM")) * factor


def _gpus_per_task(value: Any) -> Body:
    text, count = gpus(value, "=")
    # As sbatch has it: without that each task sees the GPUs of all tasks on its node.
    return {"tres_per_task": text, "tres_bind": f"gres/gpu:per_task:{count}"}


def _frequency(value: Any) -> str:
    if isinstance(value, Mapping):
        unknown = set(value) - {"min", "max", "governor"}
        if unknown or not value:
            raise ValueError('a CPU frequency has "min", "max" and "governor"')
        low, high, governor = (value.get(name) for name in ("min", "max", "governor"))
        bounds = "-".join(str(one) for one in (low, high) if one is not None)
        value = ":".join(part for part in (bounds, governor) if part)
    text = str(value) if isinstance(value, int) else forms.to_line(value)
    if not _FREQUENCY.fullmatch(text):
        raise ValueError(f"{value!r:.80} is not a CPU frequency")
    return text


def dependencies(value: Any) -> str:
    """What `sbatch -d` takes: of text, or of {"afterok": [1, 2], "singleton": True, "satisfy": "any"}."""
    if not isinstance(value, Mapping):
        return forms.to_line(value)
    parts, satisfy = [], value.get("satisfy") or "all"
    if satisfy not in ("all", "any"):
        raise ValueError(f'"satisfy" is {satisfy!r:.40}, neither "all" nor "any"')
    for kind, jobs in value.items():
        if kind == "singleton":
            parts += ["singleton"] if jobs else []
        elif kind in _DEPENDENCY:
            parts += [":".join([kind, *map(_job, [jobs] if isinstance(jobs, (int, str)) else jobs)])] if jobs else []
        elif kind != "satisfy":
            raise ValueError(f"{kind!r:.40} is none of {', '.join(sorted(_DEPENDENCY))}, singleton, satisfy")
    if not parts:
        raise ValueError("no job to depend on is named")
    return ("," if satisfy == "all" else "?").join(parts)


def _job(job: int | str) -> str:
    if isinstance(job, bool) or not _JOBS.fullmatch(str(job)):
        raise ValueError(f"{job!r:.80} is not the id of a job")
    return str(job)


def _mails(value: Any) -> list[str]:
    found: list[str] = []
    for word in forms.to_texts(value):
        upper = word.upper()
        if upper == "NONE":
            found = []
        elif upper == "ALL":
            found += _MAILS
        elif _MAIL.get(upper, upper) in (*_MAILS, *_MORE_MAILS):
            found.append(_MAIL.get(upper, upper))
        else:
            raise ValueError(f"{word!r:.80} is none of ALL, NONE, {', '.join((*_MAILS, *_MORE_MAILS[:1], *_MAIL))}")
    return list(dict.fromkeys(found))


def _profiles(value: Any) -> list[str]:
    words = [word.upper() for word in forms.to_texts(value)]
    for word in words:
        if word not in (*_PROFILES, "ALL", "NONE"):
            raise ValueError(f"{word!r:.80} is none of {', '.join(_PROFILES)}, ALL, NONE")
    return ["NONE"] if "NONE" in words else list(_PROFILES) if "ALL" in words else words


def _gather(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{forms.to_word(name)}={forms.to_integer(seconds)}" for name, seconds in value.items())
    return str(forms.to_integer(value)) if isinstance(value, int) else forms.to_line(value)


def _sharing(value: str) -> list[str]:
    word = _SHARING.get(forms.to_line(value).lower())
    if word is None:
        raise ValueError(f"{value!r:.80} is none of {', '.join(_SHARING)}")
    return [word]


def _distribution(value: str | TaskDistribution) -> str:
    given = value if isinstance(value, TaskDistribution) else TaskDistribution.from_str(value)
    return str(value).strip() if isinstance(value, str) else given.to_str()


def _switches(value: Any) -> Body:
    if isinstance(value, Mapping):
        if set(value) - {"count", "max_wait_time"} or "count" not in value:
            raise ValueError('switches have "count", and may have "max_wait_time"')
        count, wait = value["count"], value.get("max_wait_time")
    else:
        count, _, wait = str(value).partition("@")
    body: Body = {"required_switches": number(natural(count))}
    return body | ({"wait_for_switch": _delay(wait)} if wait not in (None, "") else {})


def _signal(value: Any) -> Body:
    if isinstance(value, Mapping):
        if set(value) - {"signal", "time", "batch_only", "allow_reservation_overlap"} or "signal" not in value:
            raise ValueError('a signal has "signal", and may have "time", "batch_only", "allow_reservation_overlap"')
        marks = "R" * bool(value.get("allow_reservation_overlap")) + "B" * bool(value.get("batch_only"))
        after = "" if value.get("time") is None else f"@{forms.to_integer(value['time'])}"
        value = f"{marks}:{value['signal']}{after}" if marks else f"{value['signal']}{after}"
    found = _SIGNAL.fullmatch(str(value))
    if not found or (found[3] and int(found[3]) > 65535):
        raise ValueError(f"{value!r:.80} is not a signal and the seconds before the end (up to 65535)")
    names = {"R": "RESERVATION_JOB", "B": "BATCH_JOB"}
    flags = [names[mark] for mark in dict.fromkeys(found[1] or "")]
    warned = number(int(found[3] or 60))  # sbatch's own default
    return {"kill_warning_signal": found[2], "kill_warning_delay": warned} | (
        {"kill_warning_flags": flags} if flags else {}
    )


def flag(on: str, off: str = "") -> Write:
    """A writer of one of the job's flags; False sends `off`, or nothing."""

    def write(value: bool) -> Body:
        word = on if forms.to_truth(value) else off
        return {"flags": [word]} if word else {}

    return write


def _gres_binding(value: str) -> Body:
    words = {"enforce-binding": "GRES_BINDING_ENFORCED", "disable-binding": "GRES_BINDING_DISABLED"}
    return {"flags": [words[_one_of(value, *words)]]}


def _one_of(value: str, *allowed: str) -> str:
    word = forms.to_line(value).lower()
    if word not in allowed:
        raise ValueError(f"{value!r:.80} is none of {', '.join(allowed)}")
    return word


def _open_mode(value: str) -> list[str]:
    return [{"a": "append", "t": "truncate"}.get(value, _one_of(value, "append", "truncate", "a", "t")).upper()]


def _user(value: str | int) -> str:
    """A name or number as text: that is what the API takes."""
    return str(forms.to_integer(value)) if isinstance(value, int) else forms.to_word(value)


def _group(value: str | int) -> str:
    """The number as text: a name ends slurmrestd 24.11 ("fatal: invalid type")."""
    if isinstance(value, str) and not value.isdigit():
        try:
            value = group_to_gid(forms.to_word(value)) or 0
        except KeyError as error:
            raise ValueError(f"the group {value!r:.80} is not known on this machine: give its number") from error
    return str(forms.to_integer(value))


def _cpus_per_task(value: Any) -> Body:
    """As sbatch has it: the resources of a task tell `srun` the count."""
    count = short(value)
    return {"cpus_per_task": count, "tres_per_task": f"cpu={count}", "flags": ["EXACT_CPU_COUNT_REQUESTED"]}


def _ntasks_per_gpu(value: Any) -> Body:
    return {"ntasks_per_tres": short(value), "flags": ["EXACT_TASK_COUNT_REQUESTED"]}


def _text(value: str) -> str:
    if not forms.to_text(value):
        raise ValueError("the text is empty")
    return value


def _path(value: str) -> str:
    if not forms.to_line(value):
        raise ValueError("the path is empty")
    return value


WRITERS: Final[dict[str, Write]] = {
    "name": as_("name", forms.to_line),
    "account": as_("account", forms.to_line),
    "user_id": as_("user_id", _user),
    "group_id": as_("group_id", _group),
    "priority": lambda value: {"priority": number(natural(value))},
    "site_factor": as_("site_factor", integer),
    "wckey": as_("wckey", forms.to_line),
    "array": as_("array", _list),
    "batch_constraints": as_("batch_features", _list),
    "begin_time": lambda value: {"begin_time": number(_date(value))},
    "clusters": as_("clusters", _list),
    "cluster_constraints": as_("cluster_constraint", _list),
    "comment": as_("comment", forms.to_text),
    "admin_comment": as_("admin_comment", forms.to_text),
    "requires_contiguous_nodes": as_("contiguous", forms.to_truth),
    "cores_reserved_for_system": as_("core_specification", short_natural),
    "threads_reserved_for_system": as_("thread_specification", short_natural),
    "working_directory": as_("current_working_directory", _path),
    "cpu_frequency": as_("cpu_frequency", _frequency),
    "nodes": _nodes,
    "deadline": as_("deadline", _date),
    "delay_boot_time": as_("delay_boot", _delay),
    "dependencies": as_("dependency", dependencies),
    "excluded_nodes": as_("excluded_nodes", _hosts),
    "required_nodes": as_("required_nodes", _hosts),
    "constraints": as_("constraints", _list),
    "kill_on_node_fail": as_("kill_on_node_fail", forms.to_truth),
    "licenses": as_("licenses", lambda value: forms.to_tallies(value) if isinstance(value, Mapping) else _list(value)),
    "mail_user": as_("mail_user", _list),
    "mail_types": as_("mail_type", _mails),
    "mcs_label": as_("mcs_label", forms.to_line),
    "memory_per_cpu": as_("memory_per_cpu", memory),
    "memory_per_node": as_("memory_per_node", memory),
    "memory_per_gpu": _memory_per_gpu,
    "network": as_("network", forms.to_line),
    "nice": as_("nice", integer),
    "log_files_open_mode": as_("open_mode", _open_mode),
    "overcommit": as_("overcommit", forms.to_truth),
    "partitions": as_("partition", _list),
    "profile_types": as_("profile", _profiles),
    "accounting_gather_frequency": as_("account_gather_frequency", _gather),
    "qos": as_("qos", forms.to_line),
    "requires_node_reboot": as_("reboot", forms.to_truth),
    "is_requeueable": as_("requeue", forms.to_truth),
    "reservations": as_("reservation", _list),
    "resource_sharing": as_("shared", _sharing),
    "distribution": as_("distribution", _distribution),
    "time_limit": as_("time_limit", minutes),
    "time_limit_min": as_("time_minimum", minutes),
    "container": as_("container", _path),
    "container_id": as_("container_id", forms.to_line),
    "cpus_per_task": _cpus_per_task,
    "cpus_per_gpu": lambda value: {"cpus_per_tres": f"gres/gpu:{positive(value)}"},
    "sockets_per_node": as_("sockets_per_node", short),
    "cores_per_socket": as_("cores_per_socket", short),
    "threads_per_core": as_("threads_per_core", short),
    "gpus": lambda value: {"tres_per_job": gpus(value)[0]},
    "gpus_per_socket": lambda value: {"tres_per_socket": gpus(value)[0]},
    "gpus_per_task": _gpus_per_task,
    "gres_per_node": as_("tres_per_node", gres),
    "gpu_binding": lambda value: {"tres_bind": f"gres/gpu:{_text(forms.to_line(value))}"},
    "ntasks": as_("tasks", positive),
    "ntasks_per_node": as_("tasks_per_node", short),
    "ntasks_per_socket": as_("tasks_per_socket", short),
    "ntasks_per_core": as_("tasks_per_core", short),
    "ntasks_per_gpu": _ntasks_per_gpu,
    "switches": _switches,
    "signal": _signal,
    "standard_in": as_("standard_input", _path),
    "standard_output": as_("standard_output", _path),
    "standard_error": as_("standard_error", _path),
    "kill_on_invalid_dependency": flag("KILL_INVALID_DEPENDENCY", "NO_KILL_INVALID_DEPENDENCY"),
    "spreads_over_nodes": flag("SPREAD_JOB"),
    "use_min_nodes": flag("PREFER_MINIMUM_NODE_COUNT"),
    "gres_binding": _gres_binding,
    "temporary_disk_per_node": as_("temporary_disk_per_node", mebibytes),
    "min_cpus_per_node": as_("minimum_cpus_per_node", short),
    "wait_all_nodes": as_("wait_all_nodes", forms.to_truth),
    "selinux_context": as_("selinux_context", forms.to_line),
    "segment_size": lambda value: {"segment_size": number(short(value))},
    "reserved_ports": as_("reserve_ports", short_natural),
    "extra": as_("extra", forms.to_text),
}
"""How each field of a `JobSubmitDescription` is written, but `script`, `script_args` and `environment`."""

_LACKING: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "cores_per_socket": (frozenset({"v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"}), "v0.0.45 (and in v0.0.40)"),
    "distribution": (frozenset({"v0.0.40"}), "v0.0.41"),
    "segment_size": (frozenset({"v0.0.40"}), "v0.0.41"),
}
"""The versions in which slurmrestd ignores a field, and the first one that has it. Measured."""

_JOINED: Final = ("tres_per_task",)
"""Fields with text of several attributes: CPUs and GPUs of a task."""


def describe(values: Mapping[str, Any], version: str, owner: str = "JobSubmitDescription") -> Body:
    """The job description for these values (None: not set). Raises ValueError, TypeError, PyslurmError."""
    body: Body = {}
    for name, value in values.items():
        if value is None:
            continue
        versions, since = _LACKING.get(name, (frozenset(), ""))
        if version in versions:
            raise PyslurmError(f"{owner}.{name} needs API {since}; this slurmrestd speaks {version}")
        try:
            merge(body, WRITERS[name](value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{owner}.{name}: {error}") from error
    return body


def merge(body: Body, more: Body) -> None:
    """Add fields: flags and the resources of a task add up, anything else is replaced."""
    for name, value in more.items():
        if name in body and isinstance(value, list) and name == "flags":
            body[name] = [*body[name], *value]
        elif name in body and name in _JOINED:
            body[name] = f"{body[name]},{value}"
        else:
            body[name] = value


_APART: Final = (
    ("memory_per_cpu", "memory_per_node", "memory_per_gpu"),
    ("cores_reserved_for_system", "threads_reserved_for_system"),
    ("cpus_per_task", "cpus_per_gpu"),
)
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "gpus_per_socket": ("sockets_per_node",),
    "gpus_per_task": ("ntasks", "gpus"),
}


def check_together(given: Iterable[str], owner: str = "JobSubmitDescription") -> None:
    """Raises ValueError for fields that exclude each other, and for those that another one is missing for."""
    names = set(given)
    for group in _APART:
        both = [name for name in group if name in names]
        if len(both) > 1:
            raise ValueError(f"{owner}.{both[0]} and {both[1]} exclude each other")
    for name, others in _TOGETHER.items():
        if name in names and not names.intersection(others):
            raise ValueError(f"{owner}.{name} needs {' or '.join(others)} too")
