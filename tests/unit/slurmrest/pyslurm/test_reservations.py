"""Reservations of pyslurm's face: what answers read as, and what changes are sent."""

from __future__ import annotations

import time
from typing import Any

import pytest

from slurmrest import number
from slurmrest.pyslurm import (
    PyslurmError,
    Reservation,
    ReservationFlags,
    ReservationReoccurrence,
    Reservations,
    RPCError,
)
from tests.unit.slurmrest.pyslurm.recorded import Recorded

RAW: dict[str, Any] = {
    "accounts": "",
    "burst_buffer": "",
    "core_count": 2,
    "core_specializations": [{"node": "n1", "core": "0,16"}],
    "end_time": number(1_796_108_555),
    "features": "",
    "flags": ["MAINT", "DAILY", "SPEC_NODES", "PURGE_COMP", "OF_THE_FUTURE"],
    "groups": "",
    "licenses": "lic:2",
    "max_start_delay": 5,
    "name": "r1",
    "node_count": 1,
    "node_list": "n[0-1]",
    "partition": "",
    "purge_completed": {"time": number(300)},
    "start_time": number(1_796_104_955),
    "tres": "cpu=32,license/lic=2",
    "users": "alice,bob",
}
"""As 24.11.5 gave one, for v0.0.42, and a flag that it doesn't know."""


@pytest.fixture
def one(newest: Recorded) -> Recorded:
    """A slurmrestd with that reservation."""
    newest.answers["reservations/"] = {"reservations": [RAW]}
    return newest


def test_reservation_reads(one: Recorded) -> None:
    """Each attribute in its form."""
    found = Reservations.load()["r1"]
    assert (found.users, found.accounts, found.groups, found.features) == (["alice", "bob"], [], [], [])
    assert (found.nodes, found.node_count, found.cpus, found.cpu_ids_by_node) == ("n[0-1]", 1, 32, {"n1": "0,16"})
    assert (found.start_time, found.end_time, found.duration) == (1_796_104_955, 1_796_108_555, 60)
    assert (found.licenses, found.tres) == ({"lic": 2}, {"cpu": 32, "license/lic": 2})
    assert (found.max_start_delay, found.purge_time, found.partition, found.burst_buffer) == (5, 300, None, None)
    assert found.reoccurrence is ReservationReoccurrence.DAILY
    assert found.flags == ReservationFlags.MAINTENANCE | ReservationFlags.SPECIFIC_NODES | ReservationFlags.PURGE


def test_every_attribute_of_a_reservation_can_be_read_but_its_comment(one: Recorded) -> None:
    """The answer leaves that out."""
    found = Reservation.load("r1")
    assert set(found.to_dict(recursive=True)) == set(Reservation._fields)
    with pytest.raises(PyslurmError, match=r"Reservation\.comment can't be had"):
        _ = found.comment
    assert found.to_dict(recursive=True)["flags"] == ["MAINTENANCE", "PURGE", "SPECIFIC_NODES"]


@pytest.mark.parametrize(("start", "end", "active"), [(-60, 60, True), (60, 120, False), (-120, -60, False)])
def test_active_between_start_and_end(start: int, end: int, active: bool) -> None:
    """By the clock of this machine."""
    now = int(time.time())
    assert Reservation._of({"start_time": number(now + start), "end_time": number(now + end)}).is_active is active


def test_new_reservation_is_sent_in_the_apis_forms(one: Recorded) -> None:
    """Flags, reoccurrence and purging in one list."""
    new = Reservation(
        "r2",
        start_time=1_800_000_000,
        duration="01:30:00",
        users="alice,bob",
        accounts=["root"],
        nodes=["n0", "n1"],
        flags=ReservationFlags.MAINTENANCE | ReservationFlags.FLEX,
        reoccurrence="weekly",
        purge_time="00:10:00",
        comment="a\nb",
        max_start_delay=5,
        licenses={"lic": 2},
    )
    assert new.create() is new
    body = {
        "name": "r2",
        "start_time": number(1_800_000_000),
        "duration": number(90),
        "users": ["alice", "bob"],
        "accounts": ["root"],
        "node_list": ["n0", "n1"],
        "flags": ["MAINT", "FLEX", "WEEKLY", "PURGE_COMP"],
        "purge_completed": {"time": number(600)},
        "comment": "a\nb",
        "max_start_delay": number(5),
        "licenses": ["lic:2"],
    }
    assert one.changes() == [("POST", "reservation", body)]


def test_resources_are_sent_as_counts(one: Recorded) -> None:
    """slurmrestd 26.05.5 without slurmdbd crashes on the field that is meant for them."""
    Reservation("r2", tres={"cpu": 2, "node": 1, "license/lic": 3}, users="a").create()
    body = {"name": "r2", "users": ["a"], "core_count": number(2), "node_count": number(1), "licenses": ["lic:3"]}
    assert one.changes() == [("POST", "reservation", body)]
    assert Reservation("r2", tres="cpu=2").tres == {"cpu": 2}
    with pytest.raises(ValueError, match="'gres/gpu' is none of"):
        Reservation("r2", tres={"gres/gpu": 1})


def test_endless_reservation_is_a_year(one: Recorded) -> None:
    """As scontrol has it."""
    assert Reservation("r2", duration="UNLIMITED").duration == 365 * 24 * 60


def test_change_sends_what_was_set(one: Recorded) -> None:
    """Of another object, or of itself."""
    Reservation("r1").modify(Reservation(duration=120))
    Reservation("r1", users=["carol"]).modify()
    assert [body for _, _, body in one.changes()] == [
        {"name": "r1", "duration": number(120)},
        {"name": "r1", "users": ["carol"]},
    ]
    with pytest.raises(PyslurmError, match="no change of the reservation"):
        Reservation("r1").modify()


def test_nothing_takes_all_away(one: Recorded) -> None:
    """Slurm overlooks an empty list, and takes an empty word for none."""
    Reservation("r1").modify(Reservation(users=[], licenses={}))
    assert one.changes() == [("POST", "reservation", {"name": "r1", "users": [""], "licenses": [""]})]


def test_end_of_reoccurrence_names_what_ends(one: Recorded) -> None:
    """The API has a word for each."""
    Reservation("r1").modify(Reservation(reoccurrence=ReservationReoccurrence.NO))
    assert one.changes() == [("POST", "reservation", {"name": "r1", "flags": ["NO_DAILY"]})]


def test_change_does_not_make_a_reservation(one: Recorded) -> None:
    """The call would make it; and a new one must not change another."""
    with pytest.raises(RPCError) as caught:
        Reservation("r7").modify(Reservation(duration=1))
    with pytest.raises(RPCError) as again:
        Reservation("r1", duration=1).create()
    assert (caught.value.errno, again.value.errno) == (2053, 2082)
    assert one.changes() == []


def test_new_reservation_needs_a_name(one: Recorded) -> None:
    """REST makes none up."""
    with pytest.raises(PyslurmError, match="has no name"):
        Reservation(users="a").create()


@pytest.mark.parametrize("name", ["a b", "a/b", "../x", "a,b", "a\0", "x=1", "a\nb"])
def test_what_is_no_reservation_name_is_not_sent(one: Recorded, name: str) -> None:
    """Neither asked for, nor made, nor deleted."""
    for call in (
        lambda: Reservation.load(name),
        lambda: Reservation(name).create(),
        lambda: Reservation(name).delete(),
    ):
        with pytest.raises((RPCError, ValueError)):
            call()
    assert one.requests == []


def test_delete_names_the_reservation(one: Recorded) -> None:
    """One call."""
    Reservation("r1").delete()
    assert one.changes() == [("DELETE", "reservation/r1", None)]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("flags", ["NO_SUCH"]),
        ("flags", ReservationFlags.SCHED_FAILED),
        ("reoccurrence", "YEARLY"),
        ("start_time", "someday"),
        ("duration", "long"),
        ("users", ["a b,c"]),
        ("node_count", "many"),
    ],
)
def test_wrong_value_is_refused_by_attribute(attribute: str, value: object) -> None:
    """Before anything is sent."""
    with pytest.raises((ValueError, TypeError), match=rf"^Reservation\.{attribute}: "):
        Reservation("r", **{attribute: value})


def test_flags_by_name_and_back() -> None:
    """A list of names and the flags say the same."""
    flags = ReservationFlags.from_list(["maintenance", "FLEX"])
    assert flags == ReservationFlags.MAINTENANCE | ReservationFlags.FLEX
    assert flags.to_list() == ["MAINTENANCE", "FLEX"]
    assert Reservation("r", flags=["MAINTENANCE"]).flags is ReservationFlags.MAINTENANCE


def test_changes_need_a_version_that_has_them(oldest: Recorded) -> None:
    """The first one is named."""
    oldest.answers["reservations/"] = {"reservations": [RAW]}
    with pytest.raises(PyslurmError, match=r"needs v0\.0\.43"):
        Reservation("r2", users="a").create()
    with pytest.raises(PyslurmError, match=r"needs v0\.0\.42"):
        Reservation("r1").delete()
    assert oldest.changes() == []
