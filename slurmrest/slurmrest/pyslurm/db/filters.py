"""What is asked of slurmdbd: filters of jobs, associations and qualities of service.

Made by scripts, read by `load` and `modify` of `pyslurm.db`. What always holds: what slurmdbd can filter is sent to it,
the rest (counts of CPUs and nodes, time limits) is looked at in its answer; None doesn't filter; a value that can't be
one raises ValueError with the field's name before anything is sent. Meaning of the fields: sacct(1), sacctmgr(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, TypeAlias

from slurmrest.pyslurm.utils import date_to_timestamp, nodelist_to_range_str, timestr_to_mins

Words: TypeAlias = Iterable[str | int] | str | int | None
"""A list of names or numbers, one of them, or text with commas."""
When: TypeAlias = str | int | float | datetime | None
"""A time: seconds since 1970, a datetime, or text as sacct takes it."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True, kw_only=True)
class JobFilter:
    """Which jobs, as for sacct.

    `cpus`, `nodes` and `timelimit` (minutes, or text) are exact, or the least when `max_cpus`, `max_nodes` or
    `max_timelimit` is given too. Without `ids` and `start_time` jobs since midnight are meant, with `ids` those of any
    time. `with_script` and `with_env` ask for what slurmdbd only has if AccountingStoreFlags says so.
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

    def params(self) -> dict[str, str | int]:
        """The query of slurmdbd's `jobs/`."""
        since = date_to_timestamp(self.start_time)
        if since is None:
            since = 1 if _given(self.ids) else _midnight()
        until = date_to_timestamp(self.end_time)
        nodes = words("nodelist", self.nodelist)
        found: dict[str, str | int | None] = {"start_time": since, "end_time": until}
        found |= {name: words(field, getattr(self, field)) for field, name in _JOB_WORDS.items()}
        found["node"] = nodelist_to_range_str(nodes) if nodes else None
        flags = {
            "show_batch_script": self.with_script,
            "show_job_environment": self.with_env,
            "disable_truncate_usage_time": not self.truncate_time,
        }
        found |= {name: "true" for name, wanted in flags.items() if wanted}
        return {name: value for name, value in found.items() if value is not None}

    def takes(self, cpus: int | None, nodes: int | None, timelimit: int | str | None) -> bool:
        """Whether a job of the answer is one, by what slurmdbd doesn't filter."""
        least, most = timestr_to_mins(self.timelimit), timestr_to_mins(self.max_timelimit)
        ranges = ((cpus, self.cpus, self.max_cpus), (nodes, self.nodes, self.max_nodes), (timelimit, least, most))
        return all(_within(*one) for one in ranges)

    def selects_nothing(self) -> bool:
        """Whether a list of it is given, and empty."""
        return selects_nothing(self)


@dataclass(slots=True, kw_only=True)
class AssociationFilter:
    """Which associations: by `users`, `ids`, and (as sacctmgr does too) `accounts`, `clusters`, `partitions`, `qos`."""

    users: Words = None
    ids: Words = None
    accounts: Words = None
    clusters: Words = None
    partitions: Words = None
    qos: Words = None

    def params(self) -> dict[str, str | int]:
        """The query of slurmdbd's `associations/`."""
        return named_words(self, _ASSOCIATION_WORDS)


@dataclass(slots=True, kw_only=True)
class QualityOfServiceFilter:
    """Which qualities of service: by `names`, `ids`, `descriptions`, `preempt_modes`; `with_deleted` ones too."""

    names: Words = None
    ids: Words = None
    descriptions: Words = None
    preempt_modes: Words = None
    with_deleted: bool = False

    def params(self) -> dict[str, str | int]:
        """The query of slurmdbd's `qos/`."""
        # The flag is called "Include deleted QOS" from v0.0.42 on, and still taken under its first name.
        deleted: dict[str, str | int] = {"with_deleted": "true"} if self.with_deleted else {}
        return named_words(self, _QOS_WORDS) | deleted


_JOB_WORDS: Final = {
    "ids": "step",
    "accounts": "account",
    "association_ids": "association",
    "clusters": "cluster",
    "constraints": "constraints",
    "qos": "qos",
    "names": "job_name",
    "partitions": "partition",
    "groups": "groups",
    "users": "users",
    "wckeys": "wckey",
}
_ASSOCIATION_WORDS: Final = {
    "users": "user",
    "ids": "id",
    "accounts": "account",
    "clusters": "cluster",
    "partitions": "partition",
    "qos": "qos",
}
_QOS_WORDS: Final = {"names": "name", "ids": "id", "descriptions": "description", "preempt_modes": "preempt_mode"}


def words(field: str, value: Words) -> str | None:
    """The text of a list for a query, None for no list. Raises ValueError naming `field`."""
    if value is None:
        return None
    if isinstance(value, str):
        parts: list[str | int] = [part.strip() for part in value.split(",")]
    else:
        parts = [value] if isinstance(value, int) else list(value)
    return ",".join(_word(field, part) for part in parts if part != "") or None


def named_words(asked: AssociationFilter | QualityOfServiceFilter, names: Mapping[str, str]) -> dict[str, str | int]:
    """The query of a filter's lists."""
    found = {name: words(field, getattr(asked, field)) for field, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def selects_nothing(asked: Any) -> bool:
    """Whether a list of the filter is given, and empty: a change must not fall on everything then."""
    lists = (getattr(asked, one.name) for one in fields(asked))
    return any(not isinstance(one, (int, float, datetime)) and one is not None and not _given(one) for one in lists)


def _given(value: Words) -> bool:
    return words("ids", value) is not None


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


def _midnight() -> int:
    return int(datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp())
