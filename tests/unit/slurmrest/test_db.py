"""slurmdbd's calls: what is asked in the words of each version, and what its odd answers mean.

That the calls have their effect is tested on a real slurmdbd (tests/integration); here are the requests themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from slurmrest import InvalidRequest, NotFound, ProtocolError, Slurm, StaticToken
from tests.unit.slurmrest.fake import EMPTY, QUICK, reply

Answers = dict[tuple[str, str], httpx.Response]


class Slurmdbd:
    """Answers as it is told, keeps the requests."""

    def __init__(self, answers: Answers | None = None, version: str = "v0.0.42") -> None:
        self.requests: list[httpx.Request] = []
        self._answers = answers or {}
        self._version = version

    def client(self) -> Slurm:
        """A client of it, with a version forced."""
        transport = httpx.MockTransport(self._answer)
        return Slurm("http://slurm", StaticToken("x"), version=self._version, timeouts=QUICK, transport=transport)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        tail = request.url.path.partition(f"/slurmdb/{self._version}/")[2]
        lists: dict[str, list[Any]] = {"accounts": [], "associations": [], "jobs": [], "qos": [], "users": []}
        return self._answers.get((request.method, tail)) or reply(200, {**EMPTY, **lists})

    @property
    def last(self) -> httpx.Request:
        """The newest request."""
        return self.requests[-1]


def found_nothing(**payload: Any) -> httpx.Response:
    """Slurm's way to say so."""
    return reply(
        200, {**EMPTY, **payload, "warnings": [{"source": "", "description": "slurmdb_x_get() found nothing"}]}
    )


@pytest.mark.parametrize("version", ["v0.0.40", "v0.0.41", "v0.0.42", "v0.0.45"])
@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (lambda db: db.accounts(with_assocs=True), "with_assocs", "WithAssociations"),
        (lambda db: db.accounts(with_deleted=True), "with_deleted", "DELETED"),
        (lambda db: db.associations(with_usage=True), "with_usage", "Include usage"),
        (lambda db: db.associations(only_defaults=True), "only_defaults", "Filter to only defaults"),
        (lambda db: db.qos(with_deleted=True), "with_deleted", "Include deleted QOS"),
        (lambda db: db.users(with_deleted=True), "with_deleted", "with_deleted"),
    ],
)
def test_flags_of_a_query_are_called_as_the_version_calls_them(
    version: str, call: Callable[[Any], object], old: str, new: str
) -> None:
    """From v0.0.42 on some bear the words of their documentation."""
    slurmdbd = Slurmdbd(version=version)
    with slurmdbd.client() as slurm:
        call(slurm.db)
    name = old if version in ("v0.0.40", "v0.0.41") else new
    assert dict(slurmdbd.last.url.params) == {name: "true"}


def test_a_flag_that_is_off_is_not_asked_about() -> None:
    """Its mere presence would switch it on."""
    slurmdbd = Slurmdbd()
    with slurmdbd.client() as slurm:
        slurm.db.accounts(with_assocs=False)
        slurm.db.associations(user="", account="")
    assert [one.url.query for one in slurmdbd.requests] == [b"", b""]


def test_names_are_repeated_and_times_written_so_that_each_version_reads_them() -> None:
    """Some lists take no commas; v0.0.40 and v0.0.41 take no plain number for a time."""
    slurmdbd = Slurmdbd()
    with slurmdbd.client() as slurm:
        slurm.db.jobs(users=["alice", "bob"], jobs=[7, "8_1"], start_time=1000, end_time="now", skip_steps=True)
    assert slurmdbd.last.url.params.multi_items() == [
        ("users", "alice"),
        ("users", "bob"),
        ("start_time", "uts1000"),
        ("end_time", "now"),
        ("skip_steps", "true"),
        ("step", "7"),
        ("step", "8_1"),
    ]


def test_several_states_are_asked_for_one_by_one_within_a_span_of_time() -> None:
    """Of several slurmdbd takes the last, and without an end it finds none."""
    slurmdbd = Slurmdbd()
    with slurmdbd.client() as slurm:
        slurm.db.jobs(state=["FAILED", "TIMEOUT"], start_time=5)
    asked = [dict(one.url.params) for one in slurmdbd.requests]
    assert asked == [{"start_time": "uts5", "end_time": "now", "state": state} for state in ("FAILED", "TIMEOUT")]


@pytest.mark.parametrize(
    "answer",
    [reply(304, ""), found_nothing(removed_qos=[]), found_nothing(deleted_wckeys=[])],
)
def test_nothing_to_delete_is_not_found(answer: httpx.Response) -> None:
    """slurmdbd answers 304, or 200 and an empty list of the deleted."""
    with Slurmdbd({("DELETE", "qos/prod"): answer}).client() as slurm, pytest.raises(NotFound):
        slurm.db.delete_qos("prod")


def test_what_was_deleted_is_told() -> None:
    """In slurmdbd's own words."""
    answer = reply(200, {**EMPTY, "removed_associations": ["C = bare A = ml U = bob"]})
    with Slurmdbd({("DELETE", "associations/"): answer}).client() as slurm:
        assert slurm.db.delete_associations(user="bob", account="ml") == ["C = bare A = ml U = bob"]


def test_one_that_isnt_there_is_not_found() -> None:
    """slurmdbd answers with an empty list."""
    answer = found_nothing(accounts=[])
    with Slurmdbd({("GET", "account/nope"): answer}).client() as slurm, pytest.raises(NotFound) as caught:
        slurm.db.account("nope")
    assert (caught.value.method, caught.value.path) == ("GET", "/slurmdb/v0.0.42/account/nope")


def test_no_instances_are_an_empty_list() -> None:
    """The one list that slurmdbd leaves out when it is empty; without its word for that it is a broken answer."""
    with Slurmdbd({("GET", "instances/"): found_nothing()}).client() as slurm:
        assert slurm.db.instances(cluster="bare") == []
    with Slurmdbd({("GET", "instances/"): reply(200, EMPTY)}).client() as slurm, pytest.raises(ProtocolError):
        slurm.db.instances(cluster="bare")


def test_what_is_there_already_is_no_error() -> None:
    """slurmdbd answers 304 to an account that it has."""
    slurmdbd = Slurmdbd({("POST", "accounts_association/"): reply(304, "")})
    with slurmdbd.client() as slurm:
        slurm.db.add_accounts(["ml"], description="d", organization="o", parent="root", fairshare=5)
    condition = {"accounts": ["ml"], "association": {"parent": "root", "fairshare": 5}}
    body = {"association_condition": condition, "account": {"description": "d", "organization": "o"}}
    assert json.loads(slurmdbd.last.content) == body


def test_users_are_put_into_accounts() -> None:
    """Only what was given is written."""
    slurmdbd = Slurmdbd()
    with slurmdbd.client() as slurm:
        slurm.db.add_users(["bob"], ["ml"], clusters=["bare"], admin_level="Operator")
    condition = {"users": ["bob"], "accounts": ["ml"], "clusters": ["bare"]}
    assert json.loads(slurmdbd.last.content) == {
        "association_condition": condition,
        "user": {"adminlevel": ["Operator"]},
    }


def test_an_association_that_isnt_there_is_never_written() -> None:
    """slurmdbd would say yes and make none."""
    there = {"account": "ml", "user": "bob", "cluster": "bare", "partition": ""}
    slurmdbd = Slurmdbd({("GET", "associations/"): reply(200, {**EMPTY, "associations": [there]})})
    with slurmdbd.client() as slurm:
        slurm.db.update_associations([{"account": "ml", "user": "bob", "qos": ["normal"]}])
        assert slurmdbd.last.method == "POST"
        for other in ({"user": "alice"}, {"user": ""}, {"partition": "gpu"}):
            with pytest.raises(NotFound, match="add_users"):
                slurm.db.update_associations([{"account": "ml", "user": "bob", **other}])
    assert [one.method for one in slurmdbd.requests] == ["GET", "POST", "GET", "GET", "GET"]


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.account("a/b"),
        lambda db: db.user("root\r\nX: y"),
        lambda db: db.delete_qos("a,b"),
        lambda db: db.wckey(""),
        lambda db: db.delete_associations(),
        lambda db: db.delete_associations(cluster="bare"),
        lambda db: db.add_accounts("ml"),
        lambda db: db.add_accounts([]),
        lambda db: db.add_users([], ["ml"]),
        lambda db: db.add_users(["bob"], []),
        lambda db: db.add_users(["a b"], ["ml"]),
        lambda db: db.jobs(users=["a\0b"]),
        lambda db: db.save_qos([{"name": "a\0b"}]),
    ],
)
def test_hostile_or_empty_arguments_never_leave_the_process(call: Callable[[Any], object]) -> None:
    """A name that is left out by mistake must not mean all."""
    slurmdbd = Slurmdbd()
    with slurmdbd.client() as slurm, pytest.raises(InvalidRequest):
        call(slurm.db)
    assert not slurmdbd.requests
