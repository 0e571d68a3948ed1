"""What slurmdbd must hold, and the steps to it: only additions, each once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeslurm import accounting
from kubeslurm.accounting import AddQos, Found, MakeAccounts, MakeMember, MakeQos, Membership, Step, Wanted
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.errors import InvalidObject
from slurmrest.db_values import Association
from tests.unit import examples
from tests.unit.examples import Raw

DATABASE = {"host": "mariadb", "passwordSecret": {"name": "db"}}
EMPTY = Found(frozenset({"normal"}), (Association("root"), Association("root", user="root")))


def cluster(*tenants: Raw, **given: Any) -> SlurmCluster:
    """The example with managed accounting; alice has accounts ml and vision, and two QOS."""

    def change(raw: Raw) -> None:
        raw["spec"]["accounting"] = {"database": DATABASE, "manage": True, **given}
        raw["spec"]["tenants"][0] |= {"accounts": ["ml", "vision"], "qos": ["normal", "urgent"], "shares": 3}
        raw["spec"]["tenants"] += tenants

    return examples.cluster(change)


def settle(want: Wanted, found: Found) -> tuple[Found, list[Step]]:
    """Take all steps, as slurmdbd would."""
    taken: list[Step] = []
    while todo := accounting.steps(want, found):
        assert len(taken) < 50
        for step in todo:
            taken.append(step)
            found = after(found, step)
    return found, taken


def after(found: Found, step: Step) -> Found:
    """What slurmdbd holds after a step."""
    match step:
        case MakeQos(entries):
            return Found(found.qos | {one["name"] for one in entries}, found.associations)
        case MakeAccounts(accounts):
            return Found(found.qos, (*found.associations, *(Association(one) for one in accounts)))
        case MakeMember(one):
            made = Association(one.account, user=one.user, qos=one.qos, raw={"qos": list(one.qos)})
            return Found(found.qos, (*found.associations, made))
        case AddQos(user, account, _, entry):
            kept = [one for one in found.associations if (one.user, one.account) != (user, account)]
            return Found(found.qos, (*kept, Association(account, user=user, qos=tuple(entry["qos"]), raw=entry)))


def test_an_empty_slurmdbd_gets_all_that_tenants_name() -> None:
    """QOS first, then accounts, then the user with its default account first."""
    _, taken = settle(accounting.wanted(cluster()), EMPTY)
    assert [accounting.explain(step) for step in taken] == [
        "QOS urgent made",
        "accounts ml, vision made",
        "user alice put into account ml",
        "user alice put into account vision",
    ]
    members = [step for step in taken if isinstance(step, MakeMember)]
    assert [step.default for step in members] == [True, False]
    assert members[0].membership == Membership("alice", "ml", ("normal", "urgent"), 3)


@given(st.sets(st.sampled_from(["normal", "urgent", "low"])), st.integers(0, 6), st.integers(0, 6))
def test_whatever_was_done_before_the_end_is_the_same(qos: set[str], first: int, second: int) -> None:
    """An operator that dies after any step, twice, leaves nothing undone and nothing doubled."""
    want = accounting.wanted(cluster(qos=[{"name": "urgent", "preempts": ["low"]}, {"name": "low"}]))
    found = Found(frozenset(qos), EMPTY.associations)
    for died in (first, second):
        for step in accounting.steps(want, found)[:died]:
            found = after(found, step)
    found, _ = settle(want, found)
    assert found.qos >= {"normal", "urgent", "low"}
    places = [(one.user, one.account) for one in found.associations]
    assert sorted(places) == sorted(
        [("", "root"), ("root", "root"), ("", "ml"), ("", "vision"), ("alice", "ml"), ("alice", "vision")]
    )
    assert all(set(one.qos) >= {"normal", "urgent"} for one in found.associations if one.user == "alice")


def test_where_all_is_there_is_no_step() -> None:
    """Idempotent, and what others made is let be."""
    want = accounting.wanted(cluster())
    found, _ = settle(want, EMPTY)
    others = (Association("physics"), Association("physics", user="alice", qos=("normal",)))
    assert accounting.steps(want, Found(found.qos | {"theirs"}, (*found.associations, *others))) == ()


def test_only_what_is_missing_is_added_to_an_association() -> None:
    """The whole entry goes back: slurmdbd takes away what is left out."""
    limits = {"account": "ml", "user": "alice", "qos": ["normal", "theirs"], "max": {"jobs": 3}, "shares_raw": 9}
    there = Association("ml", user="alice", qos=("normal", "theirs"), raw=limits)
    want = accounting.wanted(cluster())
    found = Found(frozenset({"normal", "urgent"}), (Association("ml"), Association("vision"), there))
    added, joined = accounting.steps(want, found)
    assert isinstance(added, AddQos)
    assert added.entry == limits | {"qos": ["normal", "theirs", "urgent"]}
    assert isinstance(joined, MakeMember)
    assert not joined.default


def test_an_association_for_one_partition_is_not_the_one_for_all() -> None:
    """A job in another partition would find none."""
    there = Association("ml", user="alice", partition="p", qos=("normal", "urgent"))
    found = Found(frozenset({"normal", "urgent"}), (Association("ml"), Association("vision"), there))
    taken = accounting.steps(accounting.wanted(cluster()), found)
    assert {step.membership.account for step in taken if isinstance(step, MakeMember)} == {"ml", "vision"}


def test_a_qos_is_made_after_those_that_it_preempts() -> None:
    """With its priority and its limit."""
    qos = [{"name": "urgent", "priority": 100, "preempts": ["low"], "gpusPerUser": 16}, {"name": "low"}]
    _, taken = settle(accounting.wanted(cluster(qos=qos)), EMPTY)
    first, second = [step.entries for step in taken if isinstance(step, MakeQos)]
    assert [one["name"] for one in first] == ["low"]
    assert second[0]["preempt"] == {"list": ["low"]}
    assert second[0]["priority"]["number"] == 100
    assert second[0]["limits"]["max"]["tres"]["per"]["user"] == [{"type": "gres", "name": "gpu", "count": 16}]


def test_qos_that_preempt_in_a_circle_are_told_and_hold_up_nothing() -> None:
    """Accounts and users are made all the same."""
    qos = [{"name": "urgent", "preempts": ["low"]}, {"name": "low", "preempts": ["urgent"]}]
    want = accounting.wanted(cluster(qos=qos))
    found, taken = settle(want, EMPTY)
    assert accounting.unmakeable(want, found) == ("low", "urgent")
    members = [step.membership for step in taken if isinstance(step, MakeMember)]
    assert [one.qos for one in members] == [("normal",), ("normal",)]


def test_one_user_of_two_tenants_may_use_what_either_may() -> None:
    """In the account that both name."""
    second = {
        "namespaces": ["lab"],
        "user": {"name": "alice", "uid": 1000, "gid": 1000},
        "partitions": ["gpu_partition"],
        "accounts": ["vision"],
        "qos": ["night"],
    }
    want = accounting.wanted(cluster(second))
    assert want.memberships[1] == Membership("alice", "vision", ("normal", "urgent", "night"), 3)


def test_managed_accounting_needs_an_account_of_each_tenant() -> None:
    """Else its jobs would be refused by Slurm, one by one."""

    def change(raw: Raw) -> None:
        raw["spec"]["accounting"] = {"database": DATABASE, "manage": True}

    with pytest.raises(InvalidObject, match=r"^spec.tenants\[0\].accounts: missing"):
        examples.cluster(change)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"database": {**DATABASE, "host": "a b"}}, "spec.accounting.database.host"),
        ({"database": {**DATABASE, "host": "db\nStoragePass=x"}}, "spec.accounting.database.host"),
        ({"database": {**DATABASE, "user": "a\nb"}}, "spec.accounting.database.user"),
        ({"database": {**DATABASE, "name": "../x"}}, "spec.accounting.database.name"),
        ({"database": {**DATABASE, "passwordSecret": {"name": "../x"}}}, "spec.accounting.database.passwordSecret"),
        ({"enforce": ["everything"]}, "spec.accounting.enforce"),
        ({"qos": [{"name": "a"}, {"name": "a"}]}, "spec.accounting.qos[1].name"),
    ],
)
def test_accounting_that_is_not_right_is_refused(change: Raw, path: str) -> None:
    """By the field's path, and nothing of it gets into slurmdbd.conf."""
    with pytest.raises(InvalidObject) as caught:
        cluster(**change)
    assert caught.value.path.startswith(path)
