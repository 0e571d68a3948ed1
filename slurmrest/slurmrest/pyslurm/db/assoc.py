"""`pyslurm.db.Association` and `Associations`: who may use which account, and how much of the cluster.

Used by scripts. What always holds: an association's key is its id; a limit that isn't set is UNLIMITED; `modify` changes
what is set in `changes` and leaves the rest as it is. Times are minutes. Fields: sacctmgr(1), "association".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurmrest.pyslurm import _session
from slurmrest.pyslurm._fields import Record, field, missing, setting
from slurmrest.pyslurm._forms import (
    integer,
    limit,
    text,
    texts,
    to_integer,
    to_minutes,
    to_number,
    to_texts,
    to_word,
)
from slurmrest.pyslurm.db._forms import identity, resources, to_resources
from slurmrest.pyslurm.db.connection import Connection, ask, change
from slurmrest.pyslurm.db.filters import AssociationFilter, selects_nothing
from slurmrest.pyslurm.error import PyslurmError, RPCError
from slurmrest.pyslurm.xcollections import MultiClusterMap

_KEY: Final = ("account", "cluster", "partition", "user")
"""What slurmdbd tells associations apart by."""
_DENIED: Final = 2002
"""ESLURM_ACCESS_DENIED of slurm/slurm_errno.h."""


class Association(Record):
    """One association. `group_...` limits are for all of an account's jobs together, `max_...` for each.

    Of resources, `modify` sets all that are given for a limit, and takes those away that aren't.
    """

    account = setting("account", read=text, write=to_word)
    cluster = setting("cluster", read=text, write=to_word)
    partition = setting("partition", read=text, write=to_word)
    user = setting("user", read=text, write=to_word)
    comment = field("comment", read=text)
    id = setting("id.id", "id", read=identity, write=to_integer, to="id")
    is_default = field("is_default", read=bool)
    parent_account = field("parent_account", read=text)
    parent_account_id = missing(integer, "the answer has the parent's name only")
    priority = setting("priority", read=limit, write=to_number)
    shares = setting("shares_raw", read=integer, write=to_integer)
    qos = setting("qos", read=texts, write=to_texts)
    min_priority_threshold = setting("min.priority_threshold", read=limit, write=to_number)
    group_jobs = setting("max.jobs.per.count", read=limit, write=to_number)
    group_jobs_accrue = setting("max.jobs.per.accruing", read=limit, write=to_number)
    group_submit_jobs = setting("max.jobs.per.submitted", read=limit, write=to_number)
    group_wall_time = setting("max.per.account.wall_clock", read=limit, write=to_minutes)
    group_tres = setting("max.tres.total", read=resources, write=to_resources)
    group_tres_mins = setting("max.tres.group.minutes", read=resources, write=to_resources)
    group_tres_run_mins = setting("max.tres.group.active", read=resources, write=to_resources)
    max_jobs = setting("max.jobs.active", read=limit, write=to_number)
    max_jobs_accrue = setting("max.jobs.accruing", read=limit, write=to_number)
    max_submit_jobs = setting("max.jobs.total", read=limit, write=to_number)
    max_wall_time_per_job = setting("max.jobs.per.wall_clock", read=limit, write=to_minutes)
    max_tres_mins_per_job = setting("max.tres.minutes.per.job", read=resources, write=to_resources)
    max_tres_run_mins_per_user = setting("max.tres.minutes.total", read=resources, write=to_resources)
    max_tres_per_job = setting("max.tres.per.job", read=resources, write=to_resources)
    max_tres_per_node = setting("max.tres.per.node", read=resources, write=to_resources)

    def __repr__(self) -> str:
        return f"pyslurm.db.Association({self.id}, {self.account}, {self.user})"


class Associations(MultiClusterMap[int, Association]):
    """Associations by their ids; made of associations, ids, or text with ids."""

    _ITEM, _ID, _KEY = Association, "id", int

    def __init__(self, assocs: Mapping[Any, Any] | Iterable[Association] | None = None) -> None:
        super().__init__(assocs, typ="db.Associations")

    @classmethod
    def load(
        cls, db_filter: AssociationFilter | Associations | None = None, db_connection: Connection | None = None
    ) -> Associations:
        """The associations that fit; without a filter all. A collection stands for its ids."""
        version = _session.api_version()
        raws = ask("associations/", "associations", _filter(db_filter).params(), db_connection)
        if any(not identity(raw.get("id")) for raw in raws if not isinstance(raw.get("id"), dict)):
            raws = _with_ids(raws, db_connection)
        found = cls()
        for raw in raws:
            found.add(Association._of(raw, version))
        return found

    @staticmethod
    def modify(
        db_filter: AssociationFilter | Associations, changes: Association, db_connection: Connection | None = None
    ) -> list[int]:
        """Change all associations that fit, at once or at the connection's commit; gives their ids.

        Raises PyslurmError for changes that are none, or that would make another association of it.
        """
        body = changes._body()
        named = sorted({*_KEY, "id"} & set(body))
        if named:
            raise PyslurmError(f"{', '.join(named)} of an association can't be changed")
        if not body:
            raise PyslurmError("nothing to change is set")
        if selects_nothing(_filter(db_filter)):
            return []
        found = list(Associations.load(db_filter, db_connection).values())
        entries = [_changed(one._raw, body) for one in found]
        ids = sorted(one.id for one in found if one.id is not None)
        if entries:
            change(lambda: _send(entries, ids, changes), db_connection)
        return ids


def _filter(asked: AssociationFilter | Associations | None) -> AssociationFilter:
    if isinstance(asked, Associations):
        return AssociationFilter(ids=list(asked.keys()))
    return asked if asked is not None else AssociationFilter()


def _key(raw: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(raw.get(name) or "" for name in _KEY)


def _with_ids(raws: Iterable[Mapping[str, Any]], connection: Connection | None) -> list[Mapping[str, Any]]:
    """Associations with their ids. v0.0.41 and v0.0.42 (24.11, 26.05) have 0 for each; the accounts' answer has them."""
    accounts = ask("accounts/", "accounts", {"WithAssociations": "true"}, connection)
    ids = {_key(one): one.get("id") for account in accounts for one in account.get("associations") or ()}
    try:
        return [{**raw, "id": ids[_key(raw)]} for raw in raws]
    except KeyError as error:
        raise PyslurmError(f"slurmdbd tells no id of the association {error}") from error


def _changed(raw: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The request for one association. slurmdbd drops every limit on resources that a request leaves out."""
    kept = {"max": {"tres": (raw.get("max") or {}).get("tres") or {}}}
    return dict(zip(_KEY, _key(raw), strict=True)) | _merged(kept, body)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new` within `old`, at any depth."""
    both = (name for name in new if isinstance(old.get(name), dict) and isinstance(new[name], Mapping))
    return {**old, **new, **{name: _merged(old[name], new[name]) for name in both}}


def _send(entries: list[dict[str, Any]], ids: list[int], changes: Association) -> None:
    """Change them. slurmdbd answers "nothing to change" both to what is so already and to whom may not change it."""
    if _session.request("POST", "associations/", api="slurmdb", body={"associations": entries}).payload:
        return
    now = Associations.load(AssociationFilter(ids=ids)).values()
    for name in changes._changes:
        if any(getattr(one, name) != getattr(changes, name) for one in now):
            raise RPCError(_DENIED, f"slurmdbd left {name} as it was: it does so when the user may not change it")
