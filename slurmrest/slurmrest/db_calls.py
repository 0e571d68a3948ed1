"""The calls of slurmdbd's REST: `slurm.db` on both clients.

What always holds: what is there already and needs no change is no error (slurmdbd answers 304), what isn't there is
NotFound where one thing was asked for or deleted. Entries that are written have the API's form. Needs a slurmrestd that
was started with slurmdbd's calls: else each raises Unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from slurmrest.answers import Answer
from slurmrest.core import USER, Core, Params, checked, refuse_unwritable, segment, written_time
from slurmrest.db_values import Account, Association, Cluster, Instance, JobRecord, Qos, Tres, User, Wckey
from slurmrest.errors import InvalidRequest, NotFound, ProtocolError
from slurmrest.job_calls import job_number
from slurmrest.messages import Steps, T
from slurmrest.streams import Entries, Raw
from slurmrest.values import Ping

NAME: Final = re.compile(r"[^/\\,\"'\x00-\x20\x7f]{1,200}")
_TIMES: Final = frozenset({"start_time", "end_time", "time_start", "time_end"})
_FLAGS: Final = ("with_", "without_", "only_", "skip_", "show_", "disable_", "whole_", "usage_time_")


class JobFilters(TypedDict, total=False):
    """Which recorded jobs; what isn't given is not asked about. Several of one kind are alternatives.

    `start_time` and `end_time` (seconds since 1970, or Slurm's words such as "now-1day") bound the time in which a job
    was there, or in one of the states (without them, with `state`: the last day). `jobs` are ids: 7,
    "7", "7_3", "7.0".
    """

    jobs: Iterable[int | str]
    users: Iterable[str]
    account: Iterable[str]
    cluster: Iterable[str]
    partition: Iterable[str]
    qos: Iterable[str]
    state: Iterable[str]
    job_name: Iterable[str]
    wckey: Iterable[str]
    reservation: Iterable[str]
    node: str
    association: Iterable[str]
    constraints: Iterable[str]
    groups: Iterable[str]
    """By number: a name would end slurmrestd 24.11, and is refused."""
    reason: Iterable[str]
    exit_code: str
    start_time: int | str
    end_time: int | str
    skip_steps: bool
    show_duplicates: bool
    show_batch_script: bool
    show_job_environment: bool


class InstanceFilters(TypedDict, total=False):
    """Which cloud instances; times are seconds since 1970."""

    cluster: str
    extra: str
    instance_id: str
    instance_type: str
    node_list: str
    time_start: int
    time_end: int


class Options(TypedDict, total=False):
    """What a list holds besides; each call names those that it takes."""

    only_defaults: bool
    with_assocs: bool
    with_coords: bool
    with_deleted: bool
    with_raw_qos: bool
    with_sub_accts: bool
    with_usage: bool
    with_wckeys: bool
    without_parent_info: bool
    without_parent_limits: bool


class Limits(TypedDict, total=False):
    """What a new association gets, as the API's `association`: fairshare, parent, qoslevel, defaultqos, maxjobs ..."""

    comment: str
    defaultqos: str
    fairshare: int
    grpjobs: Mapping[str, Any]
    grpsubmitjobs: Mapping[str, Any]
    grptres: Sequence[Mapping[str, Any]]
    grptresmins: Sequence[Mapping[str, Any]]
    grpwall: Mapping[str, Any]
    maxjobs: Mapping[str, Any]
    maxsubmitjobs: Mapping[str, Any]
    maxtresperjob: Sequence[Mapping[str, Any]]
    maxtrespernode: Sequence[Mapping[str, Any]]
    maxwalldurationperjob: Mapping[str, Any]
    parent: str
    priority: Mapping[str, Any]
    qoslevel: Sequence[str]


class DbCalls:
    """The calls of slurmdbd, over a core."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- the daemon

    def ping(self) -> Steps[list[Ping]]:
        """Each slurmdbd, and whether it responds. API v0.0.42 or newer."""
        return (yield from self._list("ping/", (yield from self._core.adapt()).each_ping()))

    def diag(self) -> Steps[Raw]:
        """slurmdbd's own figures, as the API has them."""
        return (yield from self._object("diag/", "statistics"))

    def conf(self) -> Steps[Raw]:
        """slurmdbd.conf as slurmdbd has it. API v0.0.45 or newer."""
        return (yield from self._object("conf", "slurmdbd_conf"))

    def config(self) -> Steps[Raw]:
        """Everything in one object of lists: clusters, tres, accounts, users, qos, wckeys, associations."""
        answer = yield from self._core.call("GET", "config", api="slurmdb", repeatable=True, safe=True)
        return answer.payload

    def load_config(self, config: Mapping[str, Sequence[Mapping[str, Any]]]) -> Steps[None]:
        """Add or change what `config` holds, in the form that `config()` gives; what it lacks stays.

        `clusters` must be in it: 24.11.5 and 26.05.5 refuse a list that isn't there only of these.
        """
        yield from self._post("config", dict(config))

    # -- accounts

    def accounts(self, *, raw: bool = False, **options: Unpack[Options]) -> Steps[list[Account]]:
        """All accounts. Options: with_assocs, with_coords, with_deleted."""
        entries = (yield from self._core.adapt()).each_account(raw)
        return (yield from self._list("accounts/", entries, options))

    def account(self, name: str, **options: Unpack[Options]) -> Steps[Account]:
        """One account with its raw entry, or NotFound. Options as for `accounts`."""
        tail = f"account/{segment(NAME, name, 'account name')}"
        entries = (yield from self._core.adapt()).each_account(raw=True)
        return (yield from self._one(tail, entries, lambda found: found.name == name.lower(), name, options))

    def add_accounts(
        self,
        names: Iterable[str],
        *,
        description: str = "",
        organization: str = "",
        clusters: Iterable[str] = (),
        **limits: Unpack[Limits],
    ) -> Steps[None]:
        """Make accounts, with associations on these clusters or on all. What is there already stays as it is."""
        condition = _condition({"accounts": names, "clusters": clusters}, limits)
        account = {"description": description, "organization": organization}
        yield from self._post("accounts_association/", {"association_condition": condition, "account": account})

    def update_accounts(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Change accounts, each as in `raw`: name, description and organization, none left out."""
        yield from self._post("accounts/", {"accounts": [dict(one) for one in entries]})

    def delete_account(self, name: str) -> Steps[None]:
        """Delete an account with its associations. Raises NotFound; InvalidRequest while jobs of it run."""
        yield from self._delete(f"account/{segment(NAME, name, 'account name')}")

    # -- users

    def users(self, *, raw: bool = False, **options: Unpack[Options]) -> Steps[list[User]]:
        """All users. Options: with_assocs (without it there is no default account), with_coords, with_deleted,
        with_wckeys."""
        return (yield from self._list("users/", (yield from self._core.adapt()).each_user(raw), options))

    def user(self, name: str, **options: Unpack[Options]) -> Steps[User]:
        """One user with its raw entry, or NotFound. Options as for `users`."""
        tail = f"user/{segment(USER, name, 'user name')}"
        entries = (yield from self._core.adapt()).each_user(raw=True)
        return (yield from self._one(tail, entries, lambda found: found.name == name, name, options))

    def add_users(
        self,
        names: Iterable[str],
        accounts: Iterable[str],
        *,
        clusters: Iterable[str] = (),
        partitions: Iterable[str] = (),
        wckeys: Iterable[str] = (),
        admin_level: str | None = None,
        default_account: str | None = None,
        **limits: Unpack[Limits],
    ) -> Steps[None]:
        """Make users and put them into accounts, on these clusters or on all. What is there already stays as it is."""
        lists = {"users": names, "accounts": accounts, "clusters": clusters, "partitions": partitions, "wckeys": wckeys}
        user: dict[str, Any] = {"adminlevel": [admin_level] if admin_level else None, "defaultaccount": default_account}
        given = {name: value for name, value in user.items() if value is not None}
        yield from self._post("users_association/", {"association_condition": _condition(lists, limits), "user": given})

    def update_users(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Change users, each as in `raw`: name, default, administrator_level ..."""
        yield from self._post("users/", {"users": [dict(one) for one in entries]})

    def delete_user(self, name: str) -> Steps[None]:
        """Delete a user with all associations, or NotFound."""
        yield from self._delete(f"user/{segment(USER, name, 'user name')}")

    # -- associations

    def associations(
        self,
        *,
        account: str = "",
        user: str = "",
        cluster: str = "",
        partition: str = "",
        raw: bool = False,
        **options: Unpack[Options],
    ) -> Steps[list[Association]]:
        """Who belongs to what; lists are written "a,b". Options: with_sub_accts, with_usage, with_deleted, only_defaults,
        with_raw_qos, without_parent_info, without_parent_limits."""
        entries = (yield from self._core.adapt()).each_association(raw)
        chosen = {"account": account, "user": user, "cluster": cluster, "partition": partition}
        return (yield from self._list("associations/", entries, {**chosen, **options}))

    def update_associations(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Change associations, each as in `raw`; account, cluster, user and partition name it.

        Makes none: slurmdbd would say yes and do nothing (24.11.5, 26.05.5). What isn't there raises NotFound, before
        anything is changed: `add_accounts` and `add_users` make associations.
        """
        bodies = [dict(one) for one in entries]
        for body in bodies:
            yield from self._refuse_new(body)
        yield from self._post("associations/", {"associations": bodies})

    def _refuse_new(self, body: Mapping[str, Any]) -> Steps[None]:
        wanted = {part: str(body.get(part) or "") for part in ("account", "user", "cluster", "partition")}
        chosen = {part: text for part, text in wanted.items() if text}
        found = yield from self.associations(**chosen)  # type: ignore[arg-type] # texts only, by their names
        if not any(one.user == wanted["user"] and one.partition == wanted["partition"] for one in found):
            name = ", ".join(f"{part} {text}" for part, text in chosen.items())
            raise NotFound(f"no such association: {name}; add_accounts and add_users make them")

    def delete_associations(
        self, *, account: str = "", user: str = "", cluster: str = "", partition: str = ""
    ) -> Steps[list[str]]:
        """Delete all associations that match; their names as slurmdbd tells them. Raises NotFound if none does."""
        chosen = {"account": account, "user": user, "cluster": cluster, "partition": partition}
        if not (account or user):
            raise InvalidRequest("neither an account nor a user: all associations would be meant")
        answer = yield from self._delete("associations/", _query(chosen))
        return [str(one) for one in answer.payload.get("removed_associations") or ()]

    # -- qualities of service

    def qos(self, *, raw: bool = False, **options: Unpack[Options]) -> Steps[list[Qos]]:
        """All qualities of service. Option: with_deleted."""
        return (yield from self._list("qos/", (yield from self._core.adapt()).each_qos(raw), options))

    def one_qos(self, name: str) -> Steps[Qos]:
        """One quality of service with its raw entry, or NotFound."""
        tail = f"qos/{segment(NAME, name, 'QOS name')}"
        entries = (yield from self._core.adapt()).each_qos(raw=True)
        return (yield from self._one(tail, entries, lambda found: found.name == name.lower(), name))

    def save_qos(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Make qualities of service, or change those that are there; each as in `raw`."""
        yield from self._post("qos/", {"qos": [dict(one) for one in entries]})

    def delete_qos(self, name: str) -> Steps[None]:
        """Delete a quality of service, or NotFound."""
        yield from self._delete(f"qos/{segment(NAME, name, 'QOS name')}")

    # -- wckeys, resources, clusters, instances

    def wckeys(self, *, raw: bool = False, **options: Unpack[Options]) -> Steps[list[Wckey]]:
        """All wckeys. Options: with_deleted, with_usage, only_defaults."""
        return (yield from self._list("wckeys/", (yield from self._core.adapt()).each_wckey(raw), options))

    def wckey(self, name: str) -> Steps[list[Wckey]]:
        """The wckeys of this name, of each user that has one, with their raw entries. NotFound if nobody has."""
        tail = f"wckey/{segment(NAME, name, 'wckey')}"
        found = yield from self._list(tail, (yield from self._core.adapt()).each_wckey(raw=True))
        if not found:
            raise NotFound(f"slurmdbd knows no wckey {name}", method="GET", path=tail)
        return found

    def save_wckeys(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Make wckeys: name, user, cluster."""
        yield from self._post("wckeys/", {"wckeys": [dict(one) for one in entries]})

    def delete_wckey(self, name: str) -> Steps[None]:
        """Delete the wckeys of this name, of all users, or NotFound."""
        yield from self._delete(f"wckey/{segment(NAME, name, 'wckey')}")

    def tres(self) -> Steps[list[Tres]]:
        """All trackable resources."""
        return (yield from self._list("tres/", (yield from self._core.adapt()).each_tres()))

    def add_tres(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Make trackable resources: type, name. 24.11.5 and 26.05.5 have the call, and refuse it (2036)."""
        yield from self._post("tres/", {"TRES": [dict(one) for one in entries]})

    def clusters(self, *, raw: bool = False) -> Steps[list[Cluster]]:
        """All clusters that slurmdbd knows."""
        return (yield from self._list("clusters/", (yield from self._core.adapt()).each_cluster(raw)))

    def cluster(self, name: str) -> Steps[Cluster]:
        """One cluster with its raw entry, or NotFound."""
        tail = f"cluster/{segment(NAME, name, 'cluster name')}"
        entries = (yield from self._core.adapt()).each_cluster(raw=True)
        return (yield from self._one(tail, entries, lambda found: found.name == name.lower(), name))

    def add_clusters(self, entries: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Make clusters: name."""
        yield from self._post("clusters/", {"clusters": [dict(one) for one in entries]})

    def delete_cluster(self, name: str) -> Steps[None]:
        """Delete a cluster and all that belongs to it, or NotFound."""
        yield from self._delete(f"cluster/{segment(NAME, name, 'cluster name')}")

    def instances(self, **filters: Unpack[InstanceFilters]) -> Steps[list[Instance]]:
        """Cloud instances. Filters: cluster, extra, instance_id, instance_type, node_list, time_start, time_end."""
        entries = (yield from self._core.adapt()).each_instance()
        query = _query(filters)
        answer = yield from self._core.call(
            "GET", "instances/", api="slurmdb", params=query, repeatable=True, safe=True
        )
        if not answer.payload.get("instances") and any("found nothing" in text for text in answer.warnings):
            return []  # the one list that slurmdbd leaves out when it is empty
        return entries.read_all(answer.payload)

    # -- jobs

    def jobs(self, *, raw: bool = False, **filters: Unpack[JobFilters]) -> Steps[list[JobRecord]]:
        """Recorded jobs: see `JobFilters`. Read while they arrive; 12 KB each on the wire."""
        given: dict[str, Any] = dict(filters)
        if "jobs" in given:
            given["step"] = [str(one) for one in given.pop("jobs")]
        entries = (yield from self._core.adapt()).each_job_record(raw)
        if given.get("qos"):
            given["qos"] = yield from self._qos_ids(_several(given["qos"]))
        if given.get("state"):  # slurmdbd finds nothing without an end to look in
            given = {"start_time": "now-1day", "end_time": "now"} | given
        found: list[JobRecord] = []
        for state in _several(given.pop("state", ())) or [""]:  # of several in a query slurmdbd takes the last one
            found += yield from self._list("jobs/", entries, given | {"state": state})
        return found

    def _qos_ids(self, names: list[str]) -> Steps[list[str]]:
        """A query takes ids only: at a name it answers "Unspecified error"."""
        known = {one.name: str(one.id) for one in (yield from self.qos())}
        for name in names:
            if name.lower() not in known and not name.isdecimal():
                raise InvalidRequest(f"no such QOS: {name!r:.80}")
        return [known.get(name.lower(), name) for name in names]

    def job(self, job_id: int | str) -> Steps[JobRecord]:
        """One recorded job with its raw entry (of an array its first record), or NotFound."""
        entries = (yield from self._core.adapt()).each_job_record(raw=True)
        return (yield from self._one(f"job/{job_number(job_id)}", entries, lambda job: True, str(job_id)))

    def update_job(self, job_id: int | str, fields: Mapping[str, Any]) -> Steps[None]:
        """Change a record: comment, derived_exit_code, extra, wckey. API v0.0.44 or newer."""
        yield from self._post(f"job/{job_number(job_id)}", dict(fields))

    def update_jobs(self, job_ids: Iterable[int | str], fields: Mapping[str, Any]) -> Steps[None]:
        """Change several records alike. API v0.0.44 or newer."""
        yield from self._post("jobs/", {"job_id_list": [str(one) for one in job_ids], "job_rec": dict(fields)})

    # -- how all of them are sent

    def _list(self, tail: str, entries: Entries[T], query: Mapping[str, Any] | None = None) -> Steps[list[T]]:
        adapter = yield from self._core.adapt()
        params = {adapter.parameter(tail, name): value for name, value in _query(query or {}).items()}
        return (yield from self._core.stream(tail, entries, api="slurmdb", params=params))

    def _one(
        self,
        tail: str,
        entries: Entries[T],
        is_it: Callable[[T], bool],
        wanted: str,
        query: Mapping[str, Any] | None = None,
    ) -> Steps[T]:
        params = _query(query or {})
        return (yield from self._core.one(tail, entries, is_it, wanted, api="slurmdb", params=params))

    def _object(self, tail: str, field: str) -> Steps[Raw]:
        answer = yield from self._core.call("GET", tail, api="slurmdb", repeatable=True, safe=True)
        found = answer.payload.get(field)
        if not isinstance(found, dict):
            raise ProtocolError(f"the answer holds no {field}", method="GET", path=tail)
        return found

    def _post(self, tail: str, body: Mapping[str, Any]) -> Steps[None]:
        yield from self._core.call("POST", tail, api="slurmdb", body=body, repeatable=True)

    def _delete(self, tail: str, params: Params | None = None) -> Steps[Answer]:
        """Raises NotFound when there was nothing to delete: slurmdbd tells by 304, or by an empty list of the deleted."""
        answer = yield from self._core.call("DELETE", tail, api="slurmdb", params=params, repeatable=True)
        deleted = [value for name, value in answer.payload.items() if name.startswith(("removed_", "deleted_"))]
        if not answer.payload or (deleted and not any(deleted)):
            raise NotFound("there is no such thing to delete", method="DELETE", path=tail)
        return answer


def _query(given: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """A query as slurmdbd reads it: a list is repeated, since some kinds take no commas; nothing for what is empty."""
    query: dict[str, str | list[str]] = {}
    for name, value in given.items():
        if isinstance(value, bool) or name.startswith(_FLAGS):
            query |= {name: "true"} if value else {}
        elif name in _TIMES:
            query[name] = written_time(value)
        elif isinstance(value, (str, int)):
            query |= {name: str(value)} if value != "" else {}
        elif parts := [str(part) for part in value]:
            query[name] = parts
    refuse_unwritable(query)
    return query


def _several(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _condition(lists: Mapping[str, Iterable[str]], limits: Mapping[str, Any]) -> dict[str, Any]:
    condition: dict[str, Any] = {}
    for kind, names in lists.items():
        if isinstance(names, str):
            raise InvalidRequest(f"{kind} are to be a list of names")
        condition[kind] = [checked(NAME, name, f"name ({kind})") for name in names]
    if not condition["accounts"] or not condition.get("users", ("",)):
        raise InvalidRequest("no name to add")
    given = {kind: names for kind, names in condition.items() if names}
    return given | ({"association": dict(limits)} if limits else {})
