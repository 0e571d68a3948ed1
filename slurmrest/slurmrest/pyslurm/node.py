"""Nodes: what slurmctld knows of them, and changes to them.

Used by scripts as `pyslurm.Node` and `pyslurm.Nodes`. Units: memory and disk in MiB, times in seconds since 1970, power
in watts. Source: scontrol(1) "show node", `GET nodes/` of the REST API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from slurmrest.core import NODE_NAME, STATE_WORD, checked
from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Record, computed, field, setting
from slurmrest.pyslurm._session import api_version, named, request, slurm_errors
from slurmrest.pyslurm.error import ESLURM_INVALID_NODE_NAME, PyslurmError
from slurmrest.pyslurm.utils.helpers import nodelist_from_range_str
from slurmrest.pyslurm.xcollections import MultiClusterMap, entries, multi_reload, sum_property, the_one

_CONF: Final = {
    "address": "NodeAddr",
    "hostname": "NodeHostname",
    "configured_gres": "Gres",
    "available_features": "Features",
    "weight": "Weight",
    "cpu_binding": "CpuBind",
}
"""Attributes that a new node's line in slurm.conf's form has; slurm.conf(5)."""
_UPDATED: Final = ("comment", "extra", "reason", "active_features")
"""Attributes that such a line can't have."""
_CPU_BINDS: Final = {"none": 32, "threads": 2, "cores": 4, "sockets": 8, "ldoms": 16, "off": 262144}
"""slurm/slurm.h, cpu_bind_type; all but `off` seen on 24.11.5."""
_VERBOSE: Final = 1


def read_cpu_binding(raw: Any) -> str | None:
    """Words of a binding's bits (versions before v0.0.45) or of its flags; None for none."""
    if isinstance(raw, list):
        short = [word.removeprefix("CPU_BIND_").removeprefix("TO_").lower() for word in forms.texts(raw)]
        return ",".join(short) or None
    bits = forms.count(raw)
    words = ["verbose"] if bits & _VERBOSE else []
    return ",".join(words + [word for word, bit in _CPU_BINDS.items() if bits & bit]) or None


def write_cpu_binding(value: str) -> int:
    """The bits of "cores", "sockets,verbose" and the like (one letter `s` more or less does no harm)."""
    bits = 0
    for word in forms.to_texts(value.lower()):
        known = {**_CPU_BINDS, "verbose": _VERBOSE}
        bit = known.get(word, known.get(f"{word}s"))
        if bit is None:
            raise ValueError(f"{word!r:.80} is none of {', '.join(known)}")
        bits |= bit
    return bits


def _write_state(value: str) -> list[str]:
    with slurm_errors():
        return [checked(STATE_WORD, word, "node state") for word in forms.to_text(value).upper().split("+")]


def _next_state(raw: Any) -> str | None:
    return forms.words([word for word in forms.texts(raw) if word != "INVALID"])


def _load_per_cpu(raw: Any) -> float | None:
    value = forms.integer(raw)
    return None if value is None else value / 100


class Node(Record):
    """One node. Attributes with a setter go to `create` and `modify`; the others only tell.

    `Node("n0", state="DRAIN", reason="disk")` is an object with changes, `Node.load("n0")` what slurmctld has.
    """

    __slots__ = ()

    name = setting("name", read=forms.word, write=forms.to_line)
    architecture = field("architecture", read=forms.text)
    configured_gres = setting("gres", read=forms.tallies, write=forms.to_tallies)
    """Generic resources by name: {"gpu:h100": 8}."""
    owner = field("owner", read=forms.text)
    """Who has the node alone, None: nobody."""
    address = setting("address", read=forms.address, write=forms.to_texts)
    hostname = setting("hostname", read=forms.address, write=forms.to_texts)
    extra = setting("extra", read=forms.text, write=forms.to_text)
    reason = setting("reason", read=forms.text, write=forms.to_line)
    reason_user = field("reason_set_by_user", read=forms.text)
    comment = setting("comment", read=forms.text, write=forms.to_text)
    bcast_address = field("burstbuffer_network_address", read=forms.text)
    slurm_version = field("version", read=forms.text)
    operating_system = field("operating_system", read=forms.text)
    allocated_gres = field("gres_used", read=forms.tallies)
    mcs_label = field("mcs_label", read=forms.text)
    allocated_memory = field("alloc_memory", read=forms.count)
    real_memory = field("real_memory", read=forms.count)
    free_memory = field("free_mem", read=forms.integer)
    """What the operating system says is free; None before it said so."""
    memory_reserved_for_system = field("specialized_memory", read=forms.count)
    temporary_disk = field("temporary_disk", read=forms.count)
    weight = setting("weight", read=forms.integer, write=forms.to_number)
    effective_cpus = field("effective_cpus", read=forms.count)
    """CPUs without those kept for the system."""
    total_cpus = field("cpus", read=forms.count)
    sockets = field("sockets", read=forms.count)
    cores_reserved_for_system = field("specialized_cores", read=forms.count)
    boards = field("boards", read=forms.count)
    cores_per_socket = field("cores", read=forms.count)
    threads_per_core = field("threads", read=forms.count)
    available_features = setting("features", read=forms.texts, write=forms.to_list)
    active_features = setting("active_features", read=forms.texts, write=forms.to_list, to="features_act")
    partitions = field("partitions", read=forms.texts)
    boot_time = field("boot_time", read=forms.moment)
    slurmd_start_time = field("slurmd_start_time", read=forms.moment)
    last_busy_time = field("last_busy", read=forms.moment)
    reason_time = field("reason_changed_at", read=forms.moment)
    allocated_tres = field("tres_used", read=forms.tallies)
    """Trackable resources by name; memory in MiB."""
    allocated_cpus = field("alloc_cpus", read=forms.count)
    cpu_binding = setting("cpu_binding", read=read_cpu_binding, write=write_cpu_binding, to="cpu_bind")
    """How tasks are bound by default: "cores", "sockets", "verbose,threads" ...; None for none."""
    current_watts = field("energy.current_watts", read=forms.count)
    avg_watts = field("energy.average_watts", read=forms.count)
    state = setting("state", read=forms.state, write=_write_state)
    """Such as "IDLE+DRAIN". To be set: "DRAIN", "UNDRAIN", "DOWN", "RESUME", "POWER_DOWN" ..."""
    next_state = field("next_state_after_reboot", read=_next_state)
    cpu_load = field("cpu_load", read=_load_per_cpu)
    slurmd_port = field("port", read=forms.count)

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def __repr__(self) -> str:
        return f"pyslurm.Node({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @computed
    def idle_memory(self) -> int:
        """What no job has."""
        return max(self.real_memory - self.allocated_memory, 0)

    @computed
    def idle_cpus(self) -> int:
        """Those for jobs that no job has."""
        return max(self.effective_cpus - self.allocated_cpus, 0)

    @classmethod
    def load(cls, name: str) -> Self:
        """The node as slurmctld has it. Raises RPCError: of number 2018 if there is none of this name."""
        payload = request("GET", _path(name), not_found=ESLURM_INVALID_NODE_NAME).payload
        return the_one(cls, payload, "nodes", name, api_version(), ESLURM_INVALID_NODE_NAME)

    def create(self, state: str = "future") -> Self:
        """Make this node, in state "future" or "cloud"; gives it back. Needs API v0.0.44 and room in MaxNodeCount."""
        wanted = forms.one_of("FUTURE", "CLOUD")(state)
        request("POST", "new/node/", body={"node_conf": self._conf(wanted)})
        later = Node(**{name: getattr(self, name) for name in _UPDATED if name in self._changes})
        if later._changes:
            self.modify(later)
        return self

    def modify(self, changes: Node) -> None:
        """Change this node: what `changes` had set. Raises RPCError."""
        request("POST", _path(self._named()), body=changes._changed(), not_found=ESLURM_INVALID_NODE_NAME)

    def delete(self) -> None:
        """Delete this node: one that was created, not one of slurm.conf. Raises RPCError."""
        request("DELETE", _path(self._named()), not_found=ESLURM_INVALID_NODE_NAME)

    def _named(self) -> str:
        if not self.name:
            raise PyslurmError("the node has no name")
        return self.name

    def _conf(self, state: str) -> str:
        """The node as a line of slurm.conf. Its values were checked when set; here none may end its word."""
        words = {"NodeName": self._named()}
        for name, key in _CONF.items():
            value = getattr(self, name) if name in self._changes else None
            if isinstance(value, Mapping):
                value = forms.to_tallies(value)
            if value is not None:
                words[key] = ",".join(value) if isinstance(value, list) else str(value)
        for key, word in words.items():
            if not word or any(sign.isspace() or sign in "\"'#=\\" for sign in word):
                raise PyslurmError(f"{word!r:.80} can't be the {key} of a node")
        return " ".join(f"{key}={word}" for key, word in {**words, "State": state}.items())


class Nodes(MultiClusterMap[str, Node]):
    """Nodes by name: of a dict, of a list of names or nodes, or of a host list such as "n[0-3],login"."""

    _ITEM = Node

    def __init__(self, nodes: Mapping[Any, Any] | Iterable[Any] | str | None = None) -> None:
        super().__init__(nodes)

    @classmethod
    def load(cls, preload_passwd_info: bool = False) -> Self:
        """All nodes that slurmctld has. `preload_passwd_info` does nothing: REST gives names for users already."""
        answer = request("GET", "nodes/")
        return cls(entries(Node, answer.payload, "nodes", api_version()))

    def reload(self) -> Self:
        """Bring these nodes up to date; of an empty collection, load all."""
        return multi_reload(self)

    def modify(self, changes: Node) -> None:
        """Change all these nodes in one call: what `changes` had set. Raises RPCError."""
        with slurm_errors(ESLURM_INVALID_NODE_NAME):
            names = [checked(NODE_NAME, name, "node name") for name in self]
        if names:
            body = {**changes._changed(), "name": names}
            request("POST", "nodes/", body=body, not_found=ESLURM_INVALID_NODE_NAME)

    def _split(self, text: str) -> list[str]:
        return nodelist_from_range_str(",".join(super()._split(text)))

    @property
    def free_memory(self) -> int:
        """MiB, of all."""
        return sum_property(self, Node.free_memory)

    @property
    def real_memory(self) -> int:
        """MiB, of all."""
        return sum_property(self, Node.real_memory)

    @property
    def idle_memory(self) -> int:
        """MiB, of all."""
        return sum_property(self, Node.idle_memory)

    @property
    def allocated_memory(self) -> int:
        """MiB, of all."""
        return sum_property(self, Node.allocated_memory)

    @property
    def total_cpus(self) -> int:
        """Of all."""
        return sum_property(self, Node.total_cpus)

    @property
    def idle_cpus(self) -> int:
        """Of all."""
        return sum_property(self, Node.idle_cpus)

    @property
    def allocated_cpus(self) -> int:
        """Of all."""
        return sum_property(self, Node.allocated_cpus)

    @property
    def effective_cpus(self) -> int:
        """Of all."""
        return sum_property(self, Node.effective_cpus)

    @property
    def current_watts(self) -> int:
        """Of all."""
        return sum_property(self, Node.current_watts)

    @property
    def avg_watts(self) -> int:
        """Of all."""
        return sum_property(self, Node.avg_watts)


def _path(name: str) -> str:
    return named("node", NODE_NAME, name, "node name", ESLURM_INVALID_NODE_NAME)
