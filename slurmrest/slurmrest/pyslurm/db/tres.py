"""Trackable resources (TRES) and generic resources (GRES): Slurm's texts and REST's lists to objects and back.

Used by `pyslurm.db`, by `pyslurm.Job` and `pyslurm.Node`. Pure: nothing but `TrackableResources.load` asks Slurm. What
always holds: `from_str(str(x)) == x`, memory is in MiB, a kind of resource that a newer Slurm brings is kept in `other`,
and a text that is no such list raises ValueError. Forms: sacctmgr(1), slurm.conf(5), gres.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

if TYPE_CHECKING:
    from slurmrest.pyslurm.db.connection import Connection

_D = TypeVar("_D")
_IDS: Final = {1: "cpu", 2: "mem", 3: "energy", 4: "node", 5: "billing", 6: "fs/disk", 7: "vmem", 8: "pages"}
_NUMBERS: Final = {name: number for number, name in _IDS.items()}
"""The ids that every slurmdbd gives to the same resources; `sacctmgr show tres` lists them."""
_HIDDEN: Final = "dynamic_offset"
"""slurmdbd's mark of where ids of resources begin; sacctmgr doesn't show it either."""
_UNITS: Final = "KMGTPE"
_COUNT: Final = re.compile(r"(-?\d+)(\.\d+)?([KMGTPE]?)(?:iB|B)?", re.IGNORECASE)
_KEY: Final = re.compile(r"[A-Za-z0-9_.:/+@-]{1,256}")
_GRES: Final = re.compile(r"(?:gres[/:])?([A-Za-z][A-Za-z0-9_-]*)((?:[:=][A-Za-z0-9_.+-]+)*)(?:\(([^()]*)\))?")
_NONE: Final = frozenset({"", "(null)", "N/A", "None"})
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class TrackableResource:
    """One resource: `tres_type` such as "cpu" or "gres", `name` such as "gpu:h100", how many, and slurmdbd's id."""

    tres_type: str
    count: int
    name: str | None = None
    tres_id: int | None = None

    @property
    def type(self) -> str:
        """The type, such as "cpu", "mem", "gres", "license", "fs"."""
        return self.tres_type

    @property
    def id(self) -> int | None:
        """slurmdbd's number for it, None if unknown."""
        return self.tres_id if self.tres_id is not None else _NUMBERS.get(self.type_and_name)

    @property
    def type_and_name(self) -> str:
        """As TRES texts name it: "cpu", "gres/gpu:h100"."""
        return f"{self.tres_type}/{self.name}" if self.name else self.tres_type

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Its values by name."""
        return {"type": self.tres_type, "name": self.name, "id": self.id, "count": self.count}

    @classmethod
    def from_type_and_count(cls, tres_type: str, count: int | str) -> TrackableResource:
        """Of "gres/gpu:h100" and 8; memory may be text with a unit. Raises ValueError."""
        if not isinstance(tres_type, str) or not _KEY.fullmatch(tres_type):
            raise ValueError(f"{tres_type!r:.80} is not a trackable resource")
        kind, _, name = tres_type.partition("/")
        return cls(kind, read_count(count, memory=kind == "mem"), name or None)


@dataclass(frozen=True, slots=True)
class GPU:
    """So many GPUs of one type (None: of any)."""

    count: int
    gpu_type: str | None = None
    tres_id: int | None = None

    @property
    def name(self) -> str:
        """As GRES texts name it: "gpu" or "gpu:h100"."""
        return f"gpu:{self.gpu_type}" if self.gpu_type else "gpu"

    @property
    def type_and_name(self) -> str:
        """As TRES texts name it: "gres/gpu:h100"."""
        return f"gres/{self.name}"

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Its values by name."""
        return {"name": self.name, "gpu_type": self.gpu_type, "id": self.tres_id, "count": self.count}

    @classmethod
    def from_tres(cls, tres: TrackableResource) -> GPU:
        """Of the resource "gres/gpu" or "gres/gpu:TYPE". Raises ValueError for any other."""
        kind, _, gpu_type = (tres.name or "").partition(":")
        if tres.tres_type != "gres" or kind != "gpu":
            raise ValueError(f"{tres.type_and_name} is not a GPU")
        return cls(tres.count, gpu_type or None, tres.tres_id)


class _Resources(dict[str, TrackableResource]):
    """The resources of one type, by name."""

    TYPE = ""

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """A plain dict; `recursive`: of plain dicts."""
        return {name: one.to_dict(recursive) if recursive else one for name, one in self.items()}


class FilesystemResources(_Resources):
    """`fs/disk` and the like, by name ("disk"); bytes."""

    TYPE = "fs"


class GenericResources(_Resources):
    """`gres/...`, by name: "gpu" counts all GPUs, "gpu:h100" those of one type."""

    TYPE = "gres"

    @property
    def gpus(self) -> dict[str, GPU]:
        """The GPUs by type. Those without a type are under "gpu", unless others have one: "gpu" is their sum then."""
        found = [GPU.from_tres(one) for name, one in self.items() if name.partition(":")[0] == "gpu"]
        typed = [gpu for gpu in found if gpu.gpu_type]
        return {gpu.gpu_type or "gpu": gpu for gpu in typed or found}


class InterconnectResources(_Resources):
    """`ic/...`, by name ("ofed")."""

    TYPE = "ic"


class LicenseResources(_Resources):
    """`license/...`, by name."""

    TYPE = "license"


class OtherResources(_Resources):
    """What is none of the others (`bb/...`, and what a newer Slurm brings), by type and name."""


@dataclass(slots=True)
class GenericResourceLayout:
    """Generic resources of one name and type on one node: `gpu:h100:8(IDX:0-7)`; `indexes` is a range text."""

    name: str
    typ: str | None = None
    count: int = 1
    indexes: str | None = None
    sockets: str | None = None

    @property
    def key(self) -> str:
        """Name and type: "gpu:h100"."""
        return f"{self.name}:{self.typ}" if self.typ else self.name

    def __str__(self) -> str:
        notes = [f"{mark}:{text}" for mark, text in (("IDX", self.indexes), ("S", self.sockets)) if text]
        return f"{self.key}:{self.count}" + "".join(f"({note})" for note in notes[:1])

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Its values by name."""
        return {"name": self.name, "type": self.typ, "count": self.count, "indexes": self.indexes}

    @classmethod
    def from_str(cls, gres_str: str | None) -> dict[str, GenericResourceLayout]:
        """All that a GRES text names, by name and type; what it names twice is added up. Raises ValueError.

        >>> str(GenericResourceLayout.from_str("gpu:h100:8(IDX:0-7),shard:4")["gpu:h100"])
        'gpu:h100:8(IDX:0-7)'
        """
        found: dict[str, GenericResourceLayout] = {}
        for part in _split_gres(gres_str):
            one = _layout(part)
            known = found.get(one.key)
            found[one.key] = _together(known, one) if known else one
        return found


class TrackableResourceFilter:
    """Which resources `TrackableResources.load` returns: by `ids`, `names` ("gpu") and `types` ("gres")."""

    def __init__(self, *, ids: Iterable[int] = (), names: Iterable[str] = (), types: Iterable[str] = ()) -> None:
        self.ids, self.names, self.types = frozenset(ids), frozenset(names), frozenset(types)

    def takes(self, one: TrackableResource) -> bool:
        """Whether a resource is asked for."""
        wanted = ((self.ids, one.id), (self.names, one.name), (self.types, one.tres_type))
        return all(not some or value in some for some, value in wanted)


class TrackableResources:
    """A list of resources. A count that isn't in it is None (or missing from its group).

    `cpu`, `nodes`, `billing`, `energy` (J), `pages`; `memory` and `vmem` in MiB and bytes as Slurm keeps them; the groups
    `gres`, `filesystem`, `interconnect`, `license`, `other`. Groups may be given as dicts of counts, memory with a unit:
    `TrackableResources(cpu=4, memory="16G", gres={"gpu:h100": 8})`.
    """

    def __init__(
        self,
        global_tres_data: TrackableResources | None = None,
        *,
        cpu: int | None = None,
        memory: int | str | None = None,
        nodes: int | None = None,
        billing: int | None = None,
        energy: int | None = None,
        vmem: int | None = None,
        pages: int | None = None,
        gres: Mapping[str, int | TrackableResource] | None = None,
        filesystem: Mapping[str, int | TrackableResource] | None = None,
        interconnect: Mapping[str, int | TrackableResource] | None = None,
        license: Mapping[str, int | TrackableResource] | None = None,  # noqa: A002 - the name is pyslurm's
        other: Mapping[str, int | TrackableResource] | None = None,
    ) -> None:
        self._ids = {} if global_tres_data is None else {one.type_and_name: one.id for one in global_tres_data}
        self.cpu, self.nodes, self.billing, self.energy, self.pages = cpu, nodes, billing, energy, pages
        self.memory = None if memory is None else read_count(memory, memory=True)
        self.vmem = vmem
        self.gres = self._filled(GenericResources(), gres)
        self.filesystem = self._filled(FilesystemResources(), filesystem)
        self.interconnect = self._filled(InterconnectResources(), interconnect)
        self.license = self._filled(LicenseResources(), license)
        self.other = self._filled(OtherResources(), other)

    @overload
    @classmethod
    def from_str(
        cls, tres_str: str | None, global_tres_data: TrackableResources | None = None, on_empty: None = None
    ) -> Self | None: ...

    @overload
    @classmethod
    def from_str(
        cls, tres_str: str | None, global_tres_data: TrackableResources | None = None, *, on_empty: _D
    ) -> Self | _D: ...

    @classmethod
    def from_str(
        cls,
        tres_str: str | None,
        global_tres_data: TrackableResources | None = None,
        on_empty: object = None,
    ) -> object:
        """Of "cpu=4,mem=16G,gres/gpu:h100=8", or of ids: "1=4,1001=8" (other ids than Slurm's own need
        `global_tres_data`). `on_empty` is returned for a text without any. Raises ValueError.
        """
        if tres_str is None or tres_str.strip() in _NONE:
            return on_empty
        known = _IDS | {one.id: one.type_and_name for one in global_tres_data or () if one.id is not None}
        return cls.of((_item(part, known) for part in tres_str.strip().split(",")), global_tres_data)

    @classmethod
    def from_list(cls, entries: Iterable[Mapping[str, Any]] | None) -> Self:
        """Of REST's list of {"type", "name", "id", "count"}. A count below zero is one that Slurm doesn't know."""
        return cls.of(one for one in map(_entry, entries or ()) if one.count >= 0)

    @classmethod
    def of(cls, resources: Iterable[TrackableResource], global_tres_data: TrackableResources | None = None) -> Self:
        """Of resources; what is there twice counts once, the later one."""
        made = cls(global_tres_data)
        for one in resources:
            made._put(one)
        return made

    @classmethod
    def load(cls, db_connection: Connection | None = None, *, db_filter: TrackableResourceFilter | None = None) -> Self:
        """All resources that slurmdbd tracks, with their ids. Counts are those of the cluster, mostly 0."""
        from slurmrest.pyslurm.db.connection import ask

        found = map(_entry, ask("tres/", "TRES", connection=db_connection))
        wanted = db_filter or TrackableResourceFilter()
        return cls.of(one for one in found if one.tres_type != _HIDDEN and wanted.takes(one))

    @property
    def gpus(self) -> dict[str, GPU]:
        """The GPUs among the generic resources, by type."""
        return self.gres.gpus

    def __iter__(self) -> Iterator[TrackableResource]:
        for name, attribute in _SCALARS.items():
            count = getattr(self, attribute)
            if count is not None:
                yield TrackableResource(name, count, tres_id=_NUMBERS[name])
        for group in self._groups():
            yield from group.values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrackableResources):
            return NotImplemented
        return _counts(self) == _counts(other)

    __hash__ = None  # type: ignore[assignment] # counts may be changed

    def __str__(self) -> str:
        return ",".join(f"{one.type_and_name}={write_count(one)}" for one in self)

    def __repr__(self) -> str:
        return f"TrackableResources({str(self)!r})"

    def to_list(self) -> list[dict[str, Any]]:
        """REST's form."""
        return [{"type": one.tres_type, "name": one.name or "", "count": one.count} for one in self]

    def to_dict(self, recursive: bool = False, flatten_limits: bool = False) -> dict[str, Any]:
        """Its values by name, groups as dicts; `flatten_limits`: counts by type and name ("gres/gpu"), memory as "mem"."""
        if flatten_limits:
            return _counts(self)
        scalars = {attribute: getattr(self, attribute) for attribute in _SCALARS.values()}
        return scalars | {name: getattr(self, name).to_dict(recursive) for name in _GROUPS}

    def _groups(self) -> list[_Resources]:
        return [getattr(self, name) for name in _GROUPS]

    def _put(self, one: TrackableResource) -> None:
        if one.name is None and one.tres_type in _SCALARS:
            setattr(self, _SCALARS[one.tres_type], one.count)
            return
        group = next((group for group in self._groups() if one.name and one.tres_type == group.TYPE), self.other)
        number = one.tres_id if one.tres_id is not None else self._ids.get(one.type_and_name)
        key = one.type_and_name if group is self.other else str(one.name)
        group[key] = TrackableResource(one.tres_type, one.count, one.name, number)

    def _filled(self, group: _G, given: Mapping[str, int | TrackableResource] | None) -> _G:
        for name, value in (given or {}).items():
            count = value.count if isinstance(value, TrackableResource) else value
            one = TrackableResource.from_type_and_count(f"{group.TYPE}/{name}" if group.TYPE else name, count)
            group[name] = TrackableResource(one.tres_type, one.count, one.name, self._ids.get(one.type_and_name))
        return group


_G = TypeVar("_G", bound=_Resources)
_SCALARS: Final = {
    "cpu": "cpu",
    "mem": "memory",
    "node": "nodes",
    "billing": "billing",
    "energy": "energy",
    "vmem": "vmem",
    "pages": "pages",
}
"""The types without names, and the attributes that hold them."""
_GROUPS: Final = ("gres", "filesystem", "interconnect", "license", "other")


def read_count(value: int | str, *, memory: bool = False) -> int:
    """A count: a number, or text with a unit (1024 each). Memory is MiB, rounded up. Raises ValueError."""
    if isinstance(value, int):
        return value
    found = _COUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        clock = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
        if not clock:
            raise ValueError(f"{value!r:.80} is not a count")
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    power = _UNITS.find(found[3].upper()) + 1 if found[3] else (2 if memory else 0)
    exact = Decimal(found[1] + (found[2] or "")) * 1024**power / (1024**2 if memory else 1)
    return int(exact.to_integral_value(rounding="ROUND_CEILING"))


def write_count(one: TrackableResource) -> str:
    """The count as TRES texts have it: memory with the largest unit that it is a whole number of."""
    if one.tres_type != "mem" or one.count <= 0:
        return str(one.count)
    count, power = one.count, 1
    while count % 1024 == 0 and power < len(_UNITS) - 1:
        count, power = count // 1024, power + 1
    return f"{count}{_UNITS[power]}"


def _counts(resources: TrackableResources) -> dict[str, int]:
    return {one.type_and_name: one.count for one in resources}


def _item(part: str, known: Mapping[int, str]) -> TrackableResource:
    name, found, count = part.strip().partition("=")
    if not found:
        raise ValueError(f"{part!r:.80} is not a resource and its count")
    if name.isascii() and name.isdigit():
        number = int(name)
        if number not in known:
            raise ValueError(f"no resource with the id {number} is known: give global_tres_data")
        made = TrackableResource.from_type_and_count(known[number], count)
        return TrackableResource(made.tres_type, made.count, made.name, number)
    return TrackableResource.from_type_and_count(name, count)


def _entry(raw: Mapping[str, Any]) -> TrackableResource:
    return TrackableResource(
        str(raw.get("type") or ""), int(raw.get("count") or 0), raw.get("name") or None, raw.get("id") or None
    )


def _split_gres(text: str | None) -> Iterator[str]:
    """The parts between commas; those within brackets divide nothing."""
    if text is None or text.strip() in _NONE:
        return
    yield from re.split(r",(?![^(]*\))", text.strip())


def _layout(part: str) -> GenericResourceLayout:
    found = _GRES.fullmatch(part.strip())
    if not found:
        raise ValueError(f"{part!r:.80} is not a generic resource")
    words = [word for word in re.split("[:=]", found[2])[1:] if word != "no_consume"]
    count = read_count(words.pop()) if words and _COUNT.fullmatch(words[-1]) else 1
    if len(words) > 1:
        raise ValueError(f"{part!r:.80} is not a generic resource")
    marks = dict(note.partition(":")[::2] for note in [found[3] or ""])
    ranges = {mark: None if text in _NONE else text for mark, text in marks.items()}
    return GenericResourceLayout(found[1], words[0] if words else None, count, ranges.get("IDX"), ranges.get("S"))


def _together(one: GenericResourceLayout, more: GenericResourceLayout) -> GenericResourceLayout:
    def joined(*ranges: str | None) -> str | None:
        return ",".join(text for text in ranges if text) or None

    indexes, sockets = joined(one.indexes, more.indexes), joined(one.sockets, more.sockets)
    return GenericResourceLayout(one.name, one.typ, one.count + more.count, indexes, sockets)
