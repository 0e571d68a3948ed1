"""Partitions: what slurmctld knows of them, and changes to them (API v0.0.45 and newer).

Used by scripts as `pyslurm.Partition` and `pyslurm.Partitions`. Units: memory in MiB, times in minutes, grace time in
seconds; UNLIMITED where there is no limit. Source: slurm.conf(5), `GET partitions/` of the REST API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Record, Setting, field, setting
from slurmrest.pyslurm._session import api_version, named, request
from slurmrest.pyslurm.error import ESLURM_INVALID_PARTITION_NAME, SLURM_ERROR, PyslurmError, RPCError
from slurmrest.pyslurm.node import read_cpu_binding
from slurmrest.pyslurm.xcollections import MultiClusterMap, entries, multi_reload, sum_property, the_one

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,252}")
"""slurmctld takes anything, line ends too; slurm.conf does not, and such a partition would be gone at its next start."""
_FLAGS_SINCE: Final = "v0.0.45"
_JOB_DEFAULTS: Final = "the answer leaves JobDefaults out; it can only be set"
_OVERSUBSCRIBE: Final = re.compile(r"EXCLUSIVE|NO|(?:YES|FORCE)(?::[1-9]\d{0,3})?")


def _all_or(raw: Any) -> list[str]:
    return forms.texts(raw) or ["ALL"]


def _oversubscribe(raw: Any) -> str | None:
    """Of a text (v0.0.45), or of a number of jobs and the flag "force"."""
    if not isinstance(raw, dict):
        return forms.text(raw)
    jobs = forms.count(raw.get("jobs"))
    if jobs < 2 and not raw.get("flags"):
        return "NO" if jobs else "EXCLUSIVE"
    return f"{'FORCE' if 'force' in forms.texts(raw.get('flags')) else 'YES'}:{jobs}"


def _write_oversubscribe(value: str) -> str:
    word = forms.to_text(value).upper()
    if not _OVERSUBSCRIBE.fullmatch(word):
        raise ValueError(f"{value!r:.80} is none of EXCLUSIVE, NO, YES[:jobs], FORCE[:jobs]")
    return word


def _write_binding(value: str) -> list[str]:
    words = [f"{word.lower().removesuffix('s')}s" for word in forms.to_texts(value)]
    known = {"threads", "cores", "sockets", "ldoms", "nones", "offs"}
    if not known.issuperset(words):
        raise ValueError(f"{value!r:.80} is none of threads, cores, sockets, ldoms, none, off")
    short = {"nones": "CPU_BIND_NONE", "offs": "CPU_BIND_OFF"}
    return [short.get(word, f"CPU_BIND_TO_{word.upper()}") for word in words]


def _write_hosts(value: forms.Texts) -> str:
    return ",".join(forms.to_hosts(value))


def _write_states(*allowed: str) -> Callable[[str], list[str]]:
    one = forms.one_of(*allowed)
    return lambda value: [one(value)]


def _write_default(key: str) -> Callable[[int | str], list[str]]:
    """A part of JobDefaults."""

    def write(value: int | str) -> list[str]:
        return [f"{key}={forms.to_memory(value)['number'] if 'Mem' in key else forms.to_integer(value)}"]

    return write


def _read_default(raw: Any) -> int | None:
    return None if raw is None else int(raw[0].partition("=")[2])


def _read_exclusive(raw: Any) -> bool:
    return forms.text(raw) == "USER"


def _write_exclusive(value: bool) -> str:
    return "USER" if forms.to_truth(value) else "NO"


def _flag(name: str, *, inverse: bool = False) -> Setting[bool, bool]:
    """A yes or no that is one of the partition's flags. `inverse`: the flag says no."""

    def read(raw: Any) -> bool:
        return (name in forms.texts(raw)) is not inverse

    def write(value: bool) -> list[str]:
        return [name if forms.to_truth(value) is not inverse else f"{name}_CLEAR"]

    return setting("flags", read=read, write=write, since=_FLAGS_SINCE)


class _Oversubscribe(Setting["str | None", str]):
    """How far jobs share nodes. From v0.0.45 on a partition is exclusive by another field, as users can be."""

    def find(self, instance: Record) -> Any:
        alone = (instance._raw.get("partition") or {}).get("exclusive") == "NODE"
        return "EXCLUSIVE" if alone else super().find(instance)


class Partition(Record):
    """One partition. Attributes with a setter go to `create` and `modify`; the others only tell.

    Memory may be set as "10G", times as "1-12:00:00".
    """

    __slots__ = ()

    name = setting("name", read=forms.word, write=forms.to_line)
    allowed_submit_nodes = setting("nodes.allowed_allocation", read=_all_or, write=_write_hosts)
    allowed_accounts = setting("accounts.allowed", read=_all_or, write=forms.to_joined)
    allowed_groups = setting("groups.allowed", read=_all_or, write=forms.to_joined)
    allowed_qos = setting("qos.allowed", read=_all_or, write=forms.to_joined)
    alternate = setting("alternate", read=forms.text, write=forms.to_name)
    select_type_parameters = field("select_type", read=forms.texts, since="v0.0.41")
    cpu_binding = setting("cpus.task_binding", read=read_cpu_binding, write=_write_binding)
    default_memory_per_cpu = setting(
        "defaults.partition_memory_per_cpu", read=forms.memory_limit, write=forms.to_memory
    )
    default_memory_per_node = setting(
        "defaults.partition_memory_per_node", read=forms.memory_limit, write=forms.to_memory
    )
    max_memory_per_cpu = setting("maximums.partition_memory_per_cpu", read=forms.memory_limit, write=forms.to_memory)
    max_memory_per_node = setting("maximums.partition_memory_per_node", read=forms.memory_limit, write=forms.to_memory)
    default_time = setting("defaults.time", read=forms.limit, write=forms.to_minutes)
    denied_qos = setting("qos.deny", read=forms.texts, write=forms.to_joined)
    denied_accounts = setting("accounts.deny", read=forms.texts, write=forms.to_joined)
    preemption_grace_time = setting("grace_time", read=forms.integer, write=forms.to_integer)
    default_cpus_per_gpu = setting(
        "defaults.job", read=_read_default, write=_write_default("DefCpuPerGPU"), why=_JOB_DEFAULTS
    )
    default_memory_per_gpu = setting(
        "defaults.job", read=_read_default, write=_write_default("DefMemPerGPU"), why=_JOB_DEFAULTS
    )
    max_cpus_per_node = setting("maximums.cpus_per_node", read=forms.limit, write=forms.to_number)
    max_cpus_per_socket = setting("maximums.cpus_per_socket", read=forms.limit, write=forms.to_number)
    max_nodes = setting("maximums.nodes", read=forms.limit, write=forms.to_number)
    min_nodes = setting("minimums.nodes", read=forms.count, write=forms.to_integer)
    max_time = setting("maximums.time", read=forms.limit, write=forms.to_minutes)
    oversubscribe = _Oversubscribe(
        "partition.oversubscribe", "maximums.oversubscribe", read=_oversubscribe, write=_write_oversubscribe
    )
    """ "EXCLUSIVE", "NO", "YES:4" or "FORCE:4"."""
    nodes = setting("nodes.configured", read=forms.text, write=_write_hosts)
    nodesets = setting("node_sets", read=forms.texts, write=forms.to_joined)
    over_time_limit = setting("maximums.over_time_limit", read=forms.limit, write=forms.to_minutes)
    preempt_mode = setting(
        "preempt_mode",
        read=forms.words,
        write=_write_states("CLUSTER_GLOBAL", "DISABLED", "SUSPEND", "REQUEUE", "CANCEL", "PRIORITY"),
        since=_FLAGS_SINCE,
    )
    priority_job_factor = setting("priority.job_factor", read=forms.count, write=forms.to_integer)
    priority_tier = setting("priority.tier", read=forms.count, write=forms.to_integer)
    qos = setting("qos.assigned", read=forms.text, write=forms.to_name)
    total_cpus = field("cpus.total", read=forms.count)
    total_nodes = field("nodes.total", read=forms.count)
    state = setting("partition.state", read=forms.state, write=_write_states("UP", "DOWN", "DRAIN", "INACTIVE"))
    is_default = _flag("DEFAULT")
    allow_root_jobs = _flag("NO_ROOT", inverse=True)
    is_user_exclusive = setting(
        "partition.exclusive",
        read=_read_exclusive,
        write=_write_exclusive,
        since=_FLAGS_SINCE,
    )
    is_hidden = _flag("HIDDEN")
    least_loaded_nodes_scheduling = _flag("LLN")
    is_root_only = _flag("ROOT_ONLY")
    requires_reservation = _flag("REQ_RESV")
    power_down_on_idle = _flag("PDOI")

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def __repr__(self) -> str:
        return f"pyslurm.Partition({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @classmethod
    def load(cls, name: str) -> Self:
        """The partition as slurmctld has it. Raises RPCError: of number 2000 if there is none of this name."""
        payload = request("GET", _path(name), not_found=ESLURM_INVALID_PARTITION_NAME).payload
        return the_one(cls, payload, "partitions", name, api_version(), ESLURM_INVALID_PARTITION_NAME)

    def create(self) -> Self:
        """Make this partition; gives it back. Needs API v0.0.45. Raises RPCError, also for one that exists."""
        name = self._named()
        _path(name)
        if name in Partitions.load():
            raise RPCError(SLURM_ERROR, f"there is a partition {name} already")
        self._send(name, self._body())
        return self

    def modify(self, changes: Partition) -> None:
        """Change this partition: what `changes` had set. Needs API v0.0.45. Raises RPCError."""
        name = self._named()
        present = Partition.load(name)  # the call would make one
        self._send(name, changes._changed(), was_exclusive=present.oversubscribe == "EXCLUSIVE")

    def delete(self) -> None:
        """Delete this partition. Needs API v0.0.45. Raises RPCError."""
        request("DELETE", _path(self._named()), not_found=ESLURM_INVALID_PARTITION_NAME)

    def _send(self, name: str, changes: Mapping[str, Any], *, was_exclusive: bool = False) -> None:
        body = {**changes, "name": name}
        sharing = body.get("partition", {})
        if sharing.get("oversubscribe") == "EXCLUSIVE":
            sharing.pop("oversubscribe")
            sharing["exclusive"] = "NODE"
        elif "oversubscribe" in sharing and was_exclusive:
            sharing.setdefault("exclusive", "NO")
        defaults = body.get("defaults", {})
        if "job" in defaults:
            defaults["job"] = ",".join(defaults["job"])
        request("POST", "partitions/", body={"partitions": [body]}, not_found=ESLURM_INVALID_PARTITION_NAME)

    def _named(self) -> str:
        if not self.name:
            raise PyslurmError("the partition has no name")
        return self.name


class Partitions(MultiClusterMap[str, Partition]):
    """Partitions by name: of a dict, of a list of names or partitions, or of text with commas."""

    _ITEM = Partition

    def __init__(self, partitions: Mapping[Any, Any] | Iterable[Any] | str | None = None) -> None:
        super().__init__(partitions)

    @classmethod
    def load(cls) -> Self:
        """All partitions that slurmctld has."""
        answer = request("GET", "partitions/")
        return cls(entries(Partition, answer.payload, "partitions", api_version()))

    def reload(self) -> Self:
        """Bring these partitions up to date; of an empty collection, load all."""
        return multi_reload(self)

    def modify(self, changes: Partition) -> None:
        """Change all these partitions: what `changes` had set. Needs API v0.0.45. Raises RPCError."""
        for partition in self.values():
            partition.modify(changes)

    @property
    def total_cpus(self) -> int:
        """Of all; a node in two partitions counts in both."""
        return sum_property(self, Partition.total_cpus)

    @property
    def total_nodes(self) -> int:
        """Of all; a node in two partitions counts in both."""
        return sum_property(self, Partition.total_nodes)


def _path(name: str) -> str:
    return named("partition", NAME, name, "partition name", ESLURM_INVALID_PARTITION_NAME)
