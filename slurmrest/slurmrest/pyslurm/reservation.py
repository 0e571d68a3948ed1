"""Reservations: what slurmctld knows of them, and changes to them (API v0.0.43 and newer).

Used by scripts as `pyslurm.Reservation` and `pyslurm.Reservations`. Units: times in seconds since 1970, duration in
minutes, delays in seconds. Source: scontrol(1) "create reservation", `GET reservations/` of the REST API.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Record, Setting, computed, field, setting
from slurmrest.pyslurm._session import api_version, named, request
from slurmrest.pyslurm.constants import UNLIMITED
from slurmrest.pyslurm.enums import SlurmEnum, SlurmFlag
from slurmrest.pyslurm.error import ESLURM_RESERVATION_INVALID, PyslurmError, RPCError
from slurmrest.pyslurm.xcollections import MultiClusterMap, entries, multi_reload, the_one

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,252}")
_YEAR: Final = 365 * 24 * 60


class ReservationFlags(SlurmFlag):
    """What is special about a reservation; scontrol(1), "Flags"."""

    MAINTENANCE = 1 << 0
    MAGNETIC = 1 << 1
    FLEX = 1 << 2
    IGNORE_RUNNING_JOBS = 1 << 3
    ANY_NODES = 1 << 4
    STATIC_NODES = 1 << 5
    PARTITION_NODES_ONLY = 1 << 6
    USER_DELETION = 1 << 7
    PURGE = 1 << 8
    SPECIFIC_NODES = 1 << 9
    NO_JOB_HOLD_AFTER_END = 1 << 10
    OVERLAP = 1 << 11
    ALL_NODES = 1 << 12
    SKIP = 1 << 13
    SCHED_FAILED = 1 << 14
    REPLACE_DOWN = 1 << 15


class ReservationReoccurrence(SlurmEnum):
    """How often a reservation comes again."""

    NO = "NO"
    DAILY = "DAILY"
    HOURLY = "HOURLY"
    WEEKLY = "WEEKLY"
    WEEKDAY = "WEEKDAY"
    WEEKEND = "WEEKEND"


NO: Final = ReservationReoccurrence.NO
_WORDS: Final[Mapping[str, ReservationFlags]] = {
    "MAINT": ReservationFlags.MAINTENANCE,
    "MAGNETIC": ReservationFlags.MAGNETIC,
    "FLEX": ReservationFlags.FLEX,
    "IGNORE_JOBS": ReservationFlags.IGNORE_RUNNING_JOBS,
    "ANY_NODES": ReservationFlags.ANY_NODES,
    "STATIC": ReservationFlags.STATIC_NODES,
    "PART_NODES": ReservationFlags.PARTITION_NODES_ONLY,
    "USER_DELETE": ReservationFlags.USER_DELETION,
    "PURGE_COMP": ReservationFlags.PURGE,
    "SPEC_NODES": ReservationFlags.SPECIFIC_NODES,
    "NO_HOLD_JOBS_AFTER_END": ReservationFlags.NO_JOB_HOLD_AFTER_END,
    "OVERLAP": ReservationFlags.OVERLAP,
    "ALL_NODES": ReservationFlags.ALL_NODES,
    "SKIP": ReservationFlags.SKIP,
    "REPLACE_DOWN": ReservationFlags.REPLACE_DOWN,
}
"""The API's word of each flag. SCHED_FAILED has none: the API never tells it."""


def _read_flags(raw: Any) -> ReservationFlags:
    found = ReservationFlags(0)
    for word in forms.texts(raw):
        found |= _WORDS.get(word, ReservationFlags(0))
    return found


def _write_flags(value: ReservationFlags | Iterable[str]) -> list[str]:
    flags = value if isinstance(value, ReservationFlags) else ReservationFlags.from_list(forms.to_texts(value))
    if ReservationFlags.SCHED_FAILED in flags:
        raise ValueError("SCHED_FAILED is Slurm's own to set")
    return [word for word, flag in _WORDS.items() if flag in flags]


def _read_reoccurrence(raw: Any) -> ReservationReoccurrence:
    return ReservationReoccurrence.from_flag(forms.texts(raw), NO)


def _write_reoccurrence(value: ReservationReoccurrence | str) -> list[str]:
    wanted = ReservationReoccurrence(forms.to_text(value).upper())
    return [] if wanted is NO else [str(wanted)]


def _read_cpus(raw: Any) -> int:
    """Of TRES text, or of a number that was set."""
    return forms.tallies(raw).get("cpu", 0) if isinstance(raw, str) else forms.count(raw)


def _write_tres(value: Mapping[str, int] | str) -> dict[str, int]:
    counts = forms.tallies(forms.to_line(value)) if isinstance(value, str) else value
    for name in counts:
        if name not in ("cpu", "node") and not name.startswith("license/"):
            raise ValueError(f"{name!r:.80} is none of cpu, node, license/NAME")
    return {forms.to_word(name): forms.to_integer(size) for name, size in counts.items()}


def _read_tres(raw: Any) -> dict[str, int]:
    return raw if isinstance(raw, dict) else forms.tallies(raw)


def _apart(tres: Mapping[str, int]) -> dict[str, Any]:
    """The fields that say the same. slurmrestd 26.05.5 without slurmdbd crashes when it gets a `tres`."""
    body: dict[str, Any] = {}
    for name, size in tres.items():
        kind, _, rest = name.partition("/")
        if kind == "license":
            body.setdefault("licenses", []).append(f"{rest}:{size}")
        else:
            body["core_count" if kind == "cpu" else "node_count"] = forms.to_number(size)
    return body


def _read_cores(raw: Any) -> dict[str, str]:
    return {one["node"]: one["core"] for one in raw or []}


def _write_licenses(value: Mapping[str, int] | forms.Texts) -> list[str]:
    return forms.split(forms.to_tallies(value)) or [""]


def _write_duration(value: int | str) -> dict[str, bool | int]:
    """Minutes; without a limit is a year, as scontrol has it."""
    return forms.to_minutes(_YEAR if isinstance(value, str) and value.upper() == UNLIMITED else value)


class _Duration(Setting["int | None", "int | str"]):
    """Minutes between start and end, or those that were set."""

    def find(self, instance: Record) -> int | None:
        raw = instance._raw
        start, end = forms.moment(raw.get("start_time")), forms.moment(raw.get("end_time"))
        return None if start is None or end is None else (end - start) // 60


class Reservation(Record):
    """One reservation. Attributes with a setter go to `create` and `modify`; the others only tell."""

    __slots__ = ()

    accounts = setting("accounts", read=forms.texts, write=forms.to_list)
    burst_buffer = setting("burst_buffer", read=forms.text, write=forms.to_line)
    comment = setting(
        "comment", read=forms.text, write=forms.to_text, why="the answer leaves it out; it can only be set"
    )
    cpus = setting("tres", "core_count", read=_read_cpus, write=forms.to_number, to="core_count")
    """CPUs in it; to be set in cores."""
    cpu_ids_by_node = field("core_specializations", read=_read_cores)
    """Ranges of core numbers by node, of a reservation of parts of nodes."""
    end_time = setting("end_time", read=forms.moment, write=forms.to_moment)
    features = setting("features", read=forms.texts, write=forms.to_joined)
    groups = setting("groups", read=forms.texts, write=forms.to_list)
    licenses = setting("licenses", read=forms.tallies, write=_write_licenses)
    max_start_delay = setting("max_start_delay", read=forms.integer, write=forms.to_seconds)
    name = setting("name", read=forms.word, write=forms.to_line)
    node_count = setting("node_count", read=forms.count, write=forms.to_number)
    nodes = setting("node_list", read=forms.address, write=forms.to_hosts)
    partition = setting("partition", read=forms.text, write=forms.to_word)
    purge_time = setting("purge_completed.time", read=forms.integer, write=forms.to_seconds)
    """Once it has been idle for so long, it is deleted (with the flag PURGE, which goes along when this is set)."""
    start_time = setting("start_time", read=forms.moment, write=forms.to_moment)
    duration = _Duration("duration", read=forms.integer, write=_write_duration)
    tres = setting("tres", read=_read_tres, write=_write_tres)
    """Trackable resources by name; to be set: cpu (cores), node, license/NAME."""
    users = setting("users", read=forms.texts, write=forms.to_list)
    reoccurrence = setting("flags", read=_read_reoccurrence, write=_write_reoccurrence)
    flags = setting("flags", read=_read_flags, write=_write_flags)

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def __repr__(self) -> str:
        return f"pyslurm.Reservation({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reservation) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    @computed
    def is_active(self) -> bool:
        """Does it hold now, by this machine's clock?"""
        start, end = self.start_time, self.end_time
        return start is not None and start <= time.time() and (end is None or time.time() < end)

    @classmethod
    def load(cls, name: str) -> Self:
        """The reservation as slurmctld has it. Raises RPCError: of number 2053 if there is none of this name."""
        payload = request("GET", _path(name), not_found=ESLURM_RESERVATION_INVALID).payload
        return the_one(cls, payload, "reservations", name, api_version(), ESLURM_RESERVATION_INVALID)

    def create(self) -> Self:
        """Make this reservation; gives it back. Needs API v0.0.43 and a name. Raises RPCError, also for one that exists."""
        name = self._named()
        if name in Reservations.load():
            raise RPCError(2082, f"there is a reservation {name} already")
        self._send(name, self._body())
        return self

    def modify(self, changes: Reservation | None = None) -> None:
        """Change this reservation: what `changes` (by default itself) had set; flags are added to those it has.

        Needs API v0.0.43. Raises RPCError.
        """
        name = self._named()
        present = Reservation.load(name)  # the call would make one
        wanted = self if changes is None else changes
        body = wanted._changed()
        if present.reoccurrence is not NO and "reoccurrence" in wanted._changes and wanted.reoccurrence is NO:
            body["flags"] = [*body["flags"], f"NO_{present.reoccurrence}"]
        self._send(name, body)

    def delete(self) -> None:
        """Delete this reservation. Needs slurmrestd 26.05. Raises RPCError."""
        request("DELETE", _path(self._named()), not_found=ESLURM_RESERVATION_INVALID)

    def _send(self, name: str, changes: Mapping[str, Any]) -> None:
        body = {**changes, **_apart(changes.get("tres", {})), "name": name}
        body.pop("tres", None)
        if "purge_completed" in body:
            body["flags"] = [*body.get("flags", []), "PURGE_COMP"]
        request("POST", "reservation", body=body)

    def _named(self) -> str:
        if not self.name:
            raise PyslurmError("the reservation has no name: REST makes none up")
        _path(self.name)
        return self.name


class Reservations(MultiClusterMap[str, Reservation]):
    """Reservations by name: of a dict, of a list of names or reservations, or of text with commas."""

    _ITEM = Reservation

    def __init__(self, reservations: Mapping[Any, Any] | Iterable[Any] | str | None = None) -> None:
        super().__init__(reservations)

    @classmethod
    def load(cls) -> Self:
        """All reservations that slurmctld has."""
        answer = request("GET", "reservations/")
        return cls(entries(Reservation, answer.payload, "reservations", api_version()))

    def reload(self) -> Self:
        """Bring these reservations up to date; of an empty collection, load all."""
        return multi_reload(self)


def _path(name: str) -> str:
    return named("reservation", NAME, name, "reservation name", ESLURM_RESERVATION_INVALID)
