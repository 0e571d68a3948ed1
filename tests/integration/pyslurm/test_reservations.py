"""Reservations of pyslurm's face on a real Slurm, against what scontrol prints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurmrest.pyslurm import (
    PyslurmError,
    Reservation,
    ReservationFlags,
    ReservationReoccurrence,
    Reservations,
)
from slurmrest.pyslurm.utils import date_to_timestamp, timestamp_to_date
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.reached import OLD, acting, begun, refused, shown

pytestmark = pytest.mark.slurm


@pytest.fixture
def empty(newest: BareSlurm) -> Iterator[BareSlurm]:
    """26.05 without a reservation."""
    yield newest
    for reservation in Reservations.load().values():
        reservation.delete()


def test_without_any_there_are_none(slurm: BareSlurm) -> None:
    """An empty collection, no error."""
    assert len(Reservations.load()) == 0
    refused(2053, Reservation.load, "nope")


def test_a_reservation_reads_as_scontrol_made_it(slurm: BareSlurm) -> None:
    """Nodes, users, times and flags."""
    words = ["StartTime=now+1hour", "Duration=90", "Users=alice,bob", "Nodes=n[0-1]", "Licenses=lic:2"]
    flags = "Flags=MAINT,DAILY,FLEX,PURGE_COMP=00:10:00"
    slurm.run("scontrol", "create", "reservation", "ReservationName=r1", *words, flags, "MaxStartDelay=1")
    found, truth = Reservation.load("r1"), shown(slurm, "reservation", "r1")
    assert (found.users, found.accounts, found.nodes, found.node_count) == (["alice", "bob"], [], "n[0-1]", 2)
    assert (found.duration, timestamp_to_date(found.start_time)) == (90, truth["StartTime"])
    assert timestamp_to_date(found.end_time) == truth["EndTime"]
    assert (found.licenses, str(found.cpus), found.tres) == ({"lic": 2}, truth["CoreCnt"], {"cpu": found.cpus})
    assert (found.purge_time, found.max_start_delay, found.is_active) == (600, 60, False)
    assert found.reoccurrence is ReservationReoccurrence.DAILY
    assert found.flags.to_list() == ["MAINTENANCE", "FLEX", "PURGE", "SPECIFIC_NODES"]
    refused(2053, Reservation.load, "r2")
    slurm.run("scontrol", "delete", "reservation", "r1")


def test_a_reservation_of_cores_tells_which(slurm: BareSlurm) -> None:
    """By node, and holding now."""
    words = ["StartTime=now", "Duration=10", "Accounts=root", "NodeCnt=1", "CoreCnt=2", "PartitionName=main"]
    slurm.run("scontrol", "create", "reservation", "ReservationName=cores", *words)
    found = Reservations.load()["cores"]
    assert (found.cpus, found.accounts, found.partition, found.is_active) == (2, ["root"], "main", True)
    assert list(found.cpu_ids_by_node) == [found.nodes]
    slurm.run("scontrol", "delete", "reservation", "cores")


def test_made_reservation_is_what_was_asked_for(empty: BareSlurm) -> None:
    """Each attribute that can be set, in scontrol's words."""
    start = date_to_timestamp("now+1hour") or 0
    Reservation(
        "made",
        start_time=start,
        duration="02:00:00",
        users=["alice"],
        accounts=["root"],
        nodes=["n0", "n1"],
        flags=ReservationFlags.MAINTENANCE | ReservationFlags.IGNORE_RUNNING_JOBS,
        reoccurrence="WEEKLY",
        comment="disks",
        licenses={"lic": 2},
        max_start_delay=60,
        purge_time=300,
        burst_buffer="bb",
        partition="main",
    ).create()
    truth = shown(empty, "reservation", "made")
    assert (truth["StartTime"], truth["Duration"]) == (timestamp_to_date(start), "02:00:00")
    assert (truth["Users"], truth["Accounts"], truth["Nodes"]) == ("alice", "root", "n[0-1]")
    assert set(truth["Flags"].split(",")) == {"MAINT", "IGNORE_JOBS", "WEEKLY", "SPEC_NODES", "PURGE_COMP=00:05:00"}
    assert (truth["Licenses"], truth["MaxStartDelay"], truth["Comment"]) == ("lic:2", "00:01:00", "disks")
    assert (truth["BurstBuffer"], truth["PartitionName"]) == ("bb", "main")


def test_counts_instead_of_names(empty: BareSlurm) -> None:
    """So many nodes, cores or licences; slurmrestd lives on."""
    Reservation("nodes", start_time="now+1hour", duration=5, users="alice", node_count=1, partition="main").create()
    Reservation("cores", start_time="now+2hours", duration=5, users="alice", tres={"cpu": 2, "node": 1}).create()
    Reservation(
        "lic", start_time="now+3hours", duration=5, users="alice", tres="license/lic=3", flags="ANY_NODES"
    ).create()
    found = Reservations.load()
    assert (found["nodes"].node_count, found["cores"].cpus, found["lic"].licenses) == (1, 2, {"lic": 3})
    assert found["lic"].node_count == 0
    assert shown(empty, "reservation", "cores")["CoreCnt"] == "2"


def test_changes_show(empty: BareSlurm) -> None:
    """Times, users, flags, nodes, and how often it comes again."""
    made = Reservation(
        "r", start_time="now+1hour", duration=60, users="alice", nodes="n0", reoccurrence="DAILY"
    ).create()
    made.modify(Reservation(duration=120, users=["alice", "bob"]))
    made.modify(Reservation(flags=["MAINTENANCE"], nodes="n[0-1]"))
    found = Reservation.load("r")
    assert (found.duration, found.users, found.nodes) == (120, ["alice", "bob"], "n[0-1]")
    assert ReservationFlags.MAINTENANCE in found.flags
    made.modify(Reservation(reoccurrence="NO"))
    assert Reservation.load("r").reoccurrence is ReservationReoccurrence.NO
    made.modify(Reservation(reoccurrence="HOURLY"))
    assert Reservation.load("r").reoccurrence is ReservationReoccurrence.HOURLY


@pytest.mark.parametrize("version", ["v0.0.43", "v0.0.44", "v0.0.45"])
def test_every_version_that_can_makes_the_same(empty: BareSlurm, version: str) -> None:
    """From the first one on."""
    with acting(empty, version=version):
        Reservation("r", start_time="now+1hour", duration=5, users="alice", nodes="n0", flags=["MAINTENANCE"]).create()
        found = Reservation.load("r")
        assert (found.duration, found.users, found.nodes) == (5, ["alice"], "n0")
        assert found.flags.to_list() == ["MAINTENANCE", "SPECIFIC_NODES"]
        found.delete()


def test_nothing_takes_all_away(empty: BareSlurm) -> None:
    """Users and licences of a reservation that accounts keep."""
    made = Reservation(
        "r", start_time="now+1hour", duration=5, users="alice", accounts="root", nodes="n0", licenses="lic:1"
    )
    made.create().modify(Reservation(users=[], licenses={}))
    found = Reservation.load("r")
    assert (found.users, found.licenses, found.accounts) == ([], {}, ["root"])


def test_endless_reservation_lasts_a_year(empty: BareSlurm) -> None:
    """As scontrol's own UNLIMITED."""
    Reservation("long", start_time="now", duration="UNLIMITED", users="alice", nodes="n0").create()
    assert shown(empty, "reservation", "long")["Duration"] == "365-00:00:00"
    assert Reservation.load("long").is_active


def test_refusals_have_slurms_numbers(empty: BareSlurm) -> None:
    """Nothing reserved for nobody, nothing twice, nothing that isn't there."""
    refused(2053, Reservation("x", start_time="now", duration=5, nodes="n0").create)
    refused(2053, Reservation("x").delete)
    refused(2053, Reservation("x").modify, Reservation(duration=5))
    Reservation("x", start_time="now", duration=5, nodes="n0", users="alice").create()
    refused(2082, Reservation("x", start_time="now", duration=5, nodes="n1", users="alice").create)
    assert list(Reservations.load()) == ["x"]


def test_nobody_but_an_administrator_reserves(empty: BareSlurm) -> None:
    """Alice is refused."""
    with acting(empty, "alice"):
        refused(2010, Reservation("x", start_time="now", duration=5, nodes="n0", users="alice").create)


def test_changes_on_a_slurm_without_them_say_since_when() -> None:
    """24.11 can read reservations only."""
    with begun(OLD) as slurm, acting(slurm):
        with pytest.raises(PyslurmError, match=r"needs v0\.0\.43 \(Slurm 25\.05\)"):
            Reservation("x", users="alice").create()
        with pytest.raises(PyslurmError):
            Reservation("x").delete()
