"""What is asked of slurmdbd: filters of jobs, associations and qualities of service.

Made by scripts, read by `load` and `modify` of `pyslurm.db`. What always holds: what slurmdbd can filter is sent to it,
the rest (counts of CPUs and nodes, time limits, groups unknown here) is looked at in its answer; None doesn't filter; a
value that can't be one raises ValueError with the field's name before anything is sent. Meaning: sacct(1), sacctmgr(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, TypeAlias

from slurmrest.pyslurm.utils import date_to_timestamp, group_to_gid, nodelist_to_range_str, timestr_to_mins

Words: TypeAlias = Iterable[str | int] | str | int | None
"""A list of names or numbers, one of them, or text with commas."""
When: TypeAlias = str | int | float | datetime | None
"""A time: seconds since 1970, a datetime, or text as sacct takes it."""
Query: TypeAlias = dict[str, "str | list[str]"]
"""The parameters of a call."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True, kw_only=True)
class JobFilter:
    """Which jobs, as for sacct.

    `cpus`, `nodes` and `timelimit` (minutes, or text) are exact, or the least when `max_cpus`, `max_nodes` or
    `max_timelimit` is given too. Without `ids` and `start_time` jobs since midnight are meant, with `ids` those of any
    time. `with_script` asks for what slurmdbd only has if AccountingStoreFlags says so; `with_env` can't be had.
    """

    ids: Words = None
    start_time: When = None
    end_time: When = None
    accounts: Words = None
    association_ids: Words = None
    clusters: Words = None
    constraints: Words = None
    cpus: int | None = None
    max_cpus: int | None = None
    nodes: int | None = None
    max_nodes: int | None = None
    qos: Words = None
    names: Words = None
    partitions: Words = None
    groups: Words = None
    timelimit: int | str | None = None
    max_timelimit: int | str | None = None
    users: Words = None
    wckeys: Words = None
    nodelist: Words = None
    with_script: bool = False
    with_env: bool = False
    truncate_time: bool = False

    def params(self, qos_ids: Iterable[int] = ()) -> Query:
        """The query of slurmdbd's `jobs/`. `qos_ids`: the numbers of `qos`, slurmdbd takes no names."""
        since = date_to_timestamp(self.start_time)
        if since is None:
            since = 0 if words("ids", self.ids) else _midnight()
        until = date_to_timestamp(self.end_time)
        found: Query = {"start_time": _moment(since)}
        if until is not None:
            found["end_time"] = _moment(until)
        found |= named_words(self, _JOB_WORDS)
        if nodes := words("nodelist", self.nodelist):
            found["node"] = nodelist_to_range_str(",".join(nodes))
        if groups := self._group_ids():
            found["groups"] = groups
        if numbers := [str(one) for one in qos_ids]:
            found["qos"] = numbers
        flags = {"show_batch_script": self.with_script, "disable_truncate_usage_time": not self.truncate_time}
        found |= {name: "true" for name, wanted in flags.items() if wanted}
        return found

    def looks(self) -> bool:
        """Whether there is anything that `takes` has to look at."""
        counts = (self.cpus, self.max_cpus, self.nodes, self.max_nodes, self.timelimit, self.max_timelimit)
        return self.groups is not None or any(one is not None for one in counts)

    def takes(self, cpus: int | None, nodes: int | None, timelimit: int | str | None, group: str | None) -> bool:
        """Whether a job of the answer is one, by what slurmdbd doesn't filter."""
        least, most = timestr_to_mins(self.timelimit), timestr_to_mins(self.max_timelimit)
        ranges = ((cpus, self.cpus, self.max_cpus), (nodes, self.nodes, self.max_nodes), (timelimit, least, most))
        groups = [] if self._group_ids() else words("groups", self.groups)
        return all(_within(*one) for one in ranges) and (not groups or group in groups)

    def _group_ids(self) -> list[str]:
        """The groups' numbers: slurmrestd wants those, 24.11 dies of a name. None if one is unknown on this machine."""
        numbers = [_group_id(one) for one in words("groups", self.groups)]
        return [] if None in numbers else [str(one) for one in numbers]


@dataclass(slots=True, kw_only=True)
class AssociationFilter:
    """Which associations: by `users`, `ids`, and (as sacctmgr does too) `accounts`, `clusters`, `partitions`."""

    users: Words = None
    ids: Words = None
    accounts: Words = None
    clusters: Words = None
    partitions: Words = None

    def params(self) -> Query:
        """The query of slurmdbd's `associations/`."""
        return named_words(self, _ASSOCIATION_WORDS)


@dataclass(slots=True, kw_only=True)
class QualityOfServiceFilter:
    """Which qualities of service: by `names`, `ids`, `descriptions`, `preempt_modes`; `with_deleted` ones too.

    slurmdbd is asked for all: slurmrestd 24.11 and 26.05 drop the filters of this call.
    """

    names: Words = None
    ids: Words = None
    descriptions: Words = None
    preempt_modes: Words = None
    with_deleted: bool = False

    def takes(self, name: str | None, number: int | None, description: str | None, modes: Iterable[str]) -> bool:
        """Whether a quality of service is asked for."""
        asked = (
            ([one.lower() for one in words("names", self.names)], [name]),  # slurmdbd keeps all names so
            (words("ids", self.ids), [str(number)]),
            (words("descriptions", self.descriptions), [description]),
            (words("preempt_modes", self.preempt_modes), list(modes)),
        )
        return all(not some or set(some) & set(values) for some, values in asked)


_JOB_WORDS: Final = {
    "ids": "step",
    "accounts": "account",
    "association_ids": "association",
    "clusters": "cluster",
    "constraints": "constraints",
    "names": "job_name",
    "partitions": "partition",
    "users": "users",
    "wckeys": "wckey",
}
_ASSOCIATION_WORDS: Final = {
    "users": "user",
    "ids": "id",
    "accounts": "account",
    "clusters": "cluster",
    "partitions": "partition",
}


def words(field: str, value: Words) -> list[str]:
    """The words of a list; none for None. Raises ValueError naming `field`."""
    if value is None:
        return []
    if isinstance(value, str):
        parts: list[str | int] = [part.strip() for part in value.split(",")]
    else:
        parts = [value] if isinstance(value, int) else list(value)
    return [_word(field, part) for part in parts if part != ""]


def named_words(asked: JobFilter | AssociationFilter, names: Mapping[str, str]) -> Query:
    """The query of a filter's lists: each word is a parameter of its own, slurmrestd doesn't part them at commas."""
    found = {name: words(field, getattr(asked, field)) for field, name in names.items()}
    return {name: value for name, value in found.items() if value}


def selects_nothing(asked: Any) -> bool:
    """Whether a list of the filter is given, and empty: a change must not fall on everything then."""
    lists = (getattr(asked, one.name) for one in fields(asked))
    return any(
        one is not None and not isinstance(one, (int, float, datetime)) and not words("it", one) for one in lists
    )


def _word(field: str, part: object) -> str:
    if isinstance(part, bool) or not isinstance(part, (str, int)):
        raise ValueError(f"{field}: {part!r:.80} is neither text nor a number")
    text = str(part)
    if "," in text or _CONTROL.search(text):
        raise ValueError(f"{field}: {text!r:.80} holds a comma or a control character")
    return text


def _within(value: int | str | None, least: int | str | None, most: int | str | None) -> bool:
    """Whether a count lies in a range; only `least`: whether it is that. UNLIMITED is more than any number."""
    if least is None and most is None:
        return True
    if value is None:
        return False
    low, high, number = (
        None if one is None else (one if isinstance(one, int) else 1 << 64) for one in (least, most, value)
    )
    if high is None:
        return number == low
    return (low or 0) <= (number or 0) <= high


def _moment(when: int) -> str:
    """A time as every version takes it; v0.0.40 and v0.0.41 refuse a plain number, all refuse what is before 1970-01-12."""
    return f"uts{max(when, 1_000_000)}"


def _group_id(group: str) -> int | None:
    return int(group) if group.isascii() and group.isdigit() else group_to_gid(group, err_on_invalid=False)


def _midnight() -> int:
    return int(datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp())
