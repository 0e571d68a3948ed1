"""slurmctld's calls on a real slurmctld, in each release and API version: the effect as scontrol sees it, and read back.

Submitting, waiting and failing are in test_slurmrest_client, others' jobs in test_slurmrest_strangers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slurmrest import (
    InvalidRequest,
    JobBase,
    License,
    Node,
    NodeBase,
    NodeFlag,
    NotFound,
    PermissionDenied,
    SignedTokens,
    Slurm,
    Unsupported,
    collect_warnings,
    number,
)
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import slurms

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nexec sleep 300\n"
JOB: dict[str, Any] = {
    "name": "held",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/usr/bin:/bin"],
    "standard_output": "/dev/null",
    "time_limit": number(10),
}
HELD = JOB | {"hold": True}
AT_ONCE = JOB | {"immediate": True, "tres_per_node": "gres/gpu:2"}


@pytest.fixture(scope="module")
def running() -> Iterator[Callable[[str], BareSlurm]]:
    """One Slurm per release, with room for dynamic nodes and with licences."""
    lines = ["MaxNodeCount=20", "Licenses=matlab:5"]
    with slurms(lambda suite: BareSlurm(nodes=2, gpus=8, suite=suite, config_lines=lines)) as of:
        yield of


@pytest.fixture
def slurm(pair: tuple[BareSlurm, str]) -> Iterator[Slurm]:
    """Root's client of it; what a test left of alice's jobs is cancelled."""
    bare, version = pair
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as client:
        yield client
        client.cancel_jobs(filters={"user_name": "alice"})


def shown(bare: BareSlurm, *what: str) -> dict[str, str]:
    """scontrol's own view of one thing: its fields."""
    text = bare.run("scontrol", "-o", "show", *what).stdout
    return dict(re.findall(r"(\w+)=(.*?)(?=\s+\w+=|\s*$)", text))


@contextmanager
def since(slurm: Slurm, version: str) -> Iterator[None]:
    """Works in `version` and newer; older ones say so, naming it."""
    if slurm.version() >= version:
        yield
    else:
        with pytest.raises(Unsupported, match=re.escape(version)):
            yield


def test_every_field_of_a_node_that_can_be_changed_is_changed(bare: BareSlurm, slurm: Slurm) -> None:
    """Of one node, and of several alike."""
    slurm.update_node("n0", state=["DRAIN"], reason="disk", comment="seen", extra="e", features=["a", "b"], weight=7)
    node = slurm.node("n0")
    assert NodeFlag.DRAIN in node.states.flags
    assert (node.reason, node.comment, node.extra) == ("disk", "seen", "e")
    assert (node.features, node.active_features, node.weight) == (("a", "b"), ("a", "b"), 7)
    there = shown(bare, "node", "n0")
    assert (there["Comment"], there["Extra"], there["AvailableFeatures"], there["Weight"]) == ("seen", "e", "a,b", "7")
    slurm.update_node("n0", state="RESUME")
    slurm.update_nodes(["n0", "n1"], features=[], active_features=[], comment="", extra="", weight=1)
    for name in ("n0", "n1"):
        node = slurm.node(name)
        assert NodeFlag.DRAIN not in node.states.flags
        assert (node.features, node.comment, node.extra, node.weight) == ((), "", "", 1)
    slurm.update_node("n1", active_features=["x"], features=["x", "y"])
    assert shown(bare, "node", "n1")["ActiveFeatures"] == "x"
    slurm.update_node("n1", features=[], active_features=[])


def test_a_node_that_isnt_there_is_not_found_by_any_call(slurm: Slurm) -> None:
    """And a node of slurm.conf is not deleted."""
    attempts: list[Callable[[], object]] = [
        lambda: slurm.node("n9"),
        lambda: slurm.update_node("n9", state="RESUME"),
        lambda: slurm.update_nodes(["n9"], state="RESUME"),
        lambda: slurm.delete_node("n9"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            attempt()
    with pytest.raises(InvalidRequest, match="2028"):
        slurm.delete_node("n0")


def test_dynamic_nodes_come_and_go(bare: BareSlurm, slurm: Slurm) -> None:
    """Made over REST from v0.0.44 on, deleted in every version."""
    with since(slurm, "v0.0.44"):
        slurm.create_nodes("NodeName=d[0-1] CPUs=4 State=CLOUD")
    if slurm.version() < "v0.0.44":
        bare.run("scontrol", "create", "NodeName=d[0-1] CPUs=4 State=CLOUD")
    assert {"d0", "d1"} <= {node.name for node in slurm.nodes()}
    for name in ("d0", "d1"):
        slurm.delete_node(name)
    assert {node.name for node in slurm.nodes()} == {"n0", "n1"}


def test_a_job_is_changed_held_and_released(bare: BareSlurm, slurm: Slurm) -> None:
    """By its user; what root holds its user can't release."""
    job = slurm.submit(HELD, SLEEP, user="alice").job_id
    slurm.update_job(job, {"comment": "new", "time_limit": number(7)}, user="alice")
    there = shown(bare, "job", str(job))
    assert (there["Comment"], there["TimeLimit"], there["JobState"]) == ("new", "00:07:00", "PENDING")
    slurm.hold(job)
    assert slurm.job(job).state_reason == "JobHeldAdmin"
    with pytest.raises(PermissionDenied):
        slurm.release(job, user="alice")
    slurm.release(job)
    assert not slurm.job(job).state_reason.startswith("JobHeld")
    with pytest.raises(NotFound):
        slurm.update_job(4_000_000, {"comment": "x"})


def test_jobs_are_told_apart_by_id_array_and_task(slurm: Slurm) -> None:
    """In states, one by one and as parts."""
    array = slurm.submit(HELD | {"array": "0-2"}, SLEEP, user="alice").job_id
    alone = slurm.submit(HELD, SLEEP, user="alice").job_id
    asked = slurm.job_states([array, alone, 4_000_000])
    assert [(one.job_id, one.task) for one in asked] == [(array, 0), (array, 1), (array, 2), (alone, None)]
    assert slurm.job(alone).raw["job_id"] == alone
    slurm.cancel(f"{array}_1", user="alice")
    assert {one.task: one.states.base for one in slurm.job_states([array])}[2] is JobBase.PENDING
    assert len(slurm.job_states([array])) == 2
    assert slurm.job_parts(array)[0].array_job_id == array
    with pytest.raises(NotFound):
        slurm.job(4_000_000)


def test_many_jobs_are_cancelled_at_once_by_id_or_by_filter(slurm: Slurm) -> None:
    """What became of each is told."""
    jobs = [slurm.submit(HELD | {"name": name}, SLEEP, user="alice").job_id for name in ("a", "b", "b")]
    told = slurm.cancel_jobs([jobs[0], 4_000_000])
    assert sorted((one.job_id or 0, one.number) for one in told) == [(0, 2017), (jobs[0], 0)]
    assert sorted(one.job_id or 0 for one in slurm.cancel_jobs(filters={"job_name": "b"})) == jobs[1:]
    assert all(one.states.finished for one in slurm.job_states(jobs))
    slurm.cancel(jobs[0])


def _free(node: Node) -> bool:
    """Idle, with nothing of an earlier job's left to clear away."""
    return node.states.base is NodeBase.IDLE and NodeFlag.COMPLETING not in node.states.flags


def test_nodes_are_allocated_and_what_is_held_on_them_is_read(slurm: Slurm) -> None:
    """Allocations from v0.0.41 on, their layout from v0.0.44 on."""
    _until(lambda: all(one.states.finished for one in slurm.job_states()))
    _until(lambda: all(_free(node) for node in slurm.nodes()))
    with since(slurm, "v0.0.41"):
        job = slurm.allocate(AT_ONCE, user="alice").job_id
        assert slurm.job(job).states.base is JobBase.RUNNING
        with since(slurm, "v0.0.44"):
            (share,) = slurm.resources(job)
            assert share.node in ("n0", "n1")
            assert (share.sockets * share.cores_per_socket, share.gres) == (32, ("gpu:h100:2(IDX:0-1)",))
        with pytest.raises(InvalidRequest, match="immediately"):
            slurm.allocate([AT_ONCE, AT_ONCE], user="alice")


def test_a_running_job_is_requeued_and_held(slurm: Slurm) -> None:
    """From v0.0.45 on; a waiting one can't be."""
    job = slurm.submit(JOB, SLEEP, user="alice").job_id
    _until(lambda: slurm.job(job).states.base is JobBase.RUNNING)
    with since(slurm, "v0.0.45"):
        slurm.requeue(job, hold=True, user="alice")
        _until(lambda: slurm.job(job).state_reason == "JobHeldUser")
        with pytest.raises(InvalidRequest, match="2024"):
            slurm.requeue([job])
        with pytest.raises(NotFound):
            slurm.requeue([4_000_000])


def test_a_partition_comes_changes_and_goes(bare: BareSlurm, slurm: Slurm) -> None:
    """From v0.0.45 on; read in every version."""
    assert (slurm.partition("main").nodes, slurm.partition("main").raw["name"]) == ("n[0-1]", "main")
    with pytest.raises(NotFound):
        slurm.partition("none")
    with since(slurm, "v0.0.45"):
        slurm.save_partitions([{"name": "second", "nodes": {"configured": "n0"}}])
        assert shown(bare, "partition", "second")["Nodes"] == "n0"
        slurm.save_partitions([{"name": "second", "partition": {"state": ["DOWN"]}}])
        assert slurm.partition("second").states == {"DOWN"}
    with since(slurm, "v0.0.45"):
        slurm.delete_partition("second")
    if slurm.version() >= "v0.0.45":
        with pytest.raises(NotFound):
            slurm.delete_partition("second")


def test_a_reservation_comes_changes_and_goes(bare: BareSlurm, slurm: Slurm) -> None:
    """Written from v0.0.43 on; 26.05 deletes it in its v0.0.42, too."""
    start = int(time.time()) + 3600
    wanted = {
        "name": "window",
        "start_time": number(start),
        "duration": number(60),
        "node_list": ["n0"],
        "users": ["alice"],
    }
    with since(slurm, "v0.0.43"):
        slurm.save_reservation(wanted)
    if slurm.version() < "v0.0.43":
        line = ["reservation=window", f"starttime=uts{start}", "duration=60", "nodes=n0", "users=alice"]
        bare.run("scontrol", "create", *line)
    found = slurm.reservation("window")
    assert (found.start_time, found.end_time) == (start, start + 3600)
    assert (found.nodes, found.users) == ("n0", ("alice",))
    assert [one.name for one in slurm.reservations()] == ["window"]
    try:
        slurm.delete_reservation("window")
    except Unsupported:
        assert bare.suite == "trixie"
        bare.run("scontrol", "delete", "reservation=window")
    with pytest.raises(NotFound):
        slurm.reservation("window")


def test_the_clusters_own_figures_are_read(slurm: Slurm) -> None:
    """Pings, counts, licences, shares (none without slurmdbd, which is told), configuration."""
    assert [(one.responding, one.primary) for one in slurm.ping()] == [(True, True)]
    assert slurm.diag().raw["jobs_submitted"] == slurm.diag().jobs_submitted
    assert slurm.licenses() == [License("matlab", 5, 0, 5, 0, remote=False)]
    with collect_warnings() as warnings:
        assert slurm.shares() == []
    assert "accounting storage is disabled" in warnings[0].text
    with since(slurm, "v0.0.45"):
        assert slurm.conf()["ClusterName"] == "bare"
    slurm.reconfigure()
    with pytest.raises(Unsupported):
        slurm.db.accounts()


def test_an_unknown_field_comes_back_as_a_warning(slurm: Slurm) -> None:
    """The job is made nevertheless."""
    submission = slurm.submit(HELD | {"no_such_field": 1}, SLEEP, user="alice")
    assert any("no_such_field" in text for text in submission.warnings)
    with collect_warnings() as warnings:
        slurm.update_job(submission.job_id, {"comment": "c", "no_such_field": 1})
    assert any("no_such_field" in one.text for one in warnings)


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, "not within 30 s"
        time.sleep(0.1)
