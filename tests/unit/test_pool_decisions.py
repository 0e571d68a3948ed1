"""decide_pool: which pods are made and deleted, which Slurm nodes are drained, resumed and set down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeslurm import pool
from slurmrest import Node, NodeStates

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)


def node(state: str, *, reason: str = "", started: datetime = NOW, name: str = "n-0") -> Node:
    """A Slurm node in a state such as IDLE+DRAIN; its reason was given at second 5."""
    began = int(started.timestamp())
    return Node(name=name, states=NodeStates.parse(state), reason=reason, reason_changed_at=5, slurmd_start_time=began)


def pod(
    *, running: bool = True, created: datetime = EARLIER, ended: bool = False, deleting: bool = False
) -> pool.PodView:
    """The pod of n-0."""
    return pool.PodView("n-0", "uid", created, running=running, ended=ended, deleting=deleting)


def decide(
    one: Node | None,
    of: pool.PodView | None,
    *,
    wanted: bool = True,
    known: bool = True,
    answers: bool = True,
    stale: pool.Reason | None = None,
) -> tuple[pool.PoolAction, ...]:
    """The actions for a NodeSet of the one node n-0."""
    return pool.decide_pool(
        pool.NodeSetSnapshot(
            wanted=("n-0",) if wanted else (),
            surplus=() if wanted else ("n-0",),
            pods={"n-0": of} if of else {},
            configured={"n-0"} if known else set(),
            slurm=({"n-0": one} if one else {}) if answers else None,
            now=NOW,
            stale={"n-0": stale} if stale else {},
        )
    )


def test_makes_the_pod_of_a_node_that_slurm_knows() -> None:
    """A wanted node without a pod gets one."""
    assert decide(None, None) == (pool.CreatePod("n-0"),)


def test_makes_no_pod_that_slurm_would_turn_away() -> None:
    """slurmd can't register a node that slurm.conf lacks."""
    assert decide(None, None, known=False) == ()


def test_leaves_a_healthy_node_alone() -> None:
    """Nothing to do is no action."""
    assert decide(node("IDLE+CLOUD"), pod()) == ()


def test_replaces_a_pod_that_has_ended() -> None:
    """Its containers are gone for good, so no job can be in it."""
    assert decide(node("IDLE"), pod(running=False, ended=True)) == (pool.DeletePod("n-0", "uid", free=False),)


@pytest.mark.parametrize("state", ["IDLE", "ALLOCATED", "MIXED", "MIXED+COMPLETING"])
def test_drains_before_it_takes_a_node_away(state: str) -> None:
    """Scale in begins with a drain, whatever the node does."""
    assert decide(node(state), pod(), wanted=False) == (pool.Drain("n-0", pool.SCALE_IN),)


@pytest.mark.parametrize(
    "state", ["ALLOCATED+DRAIN", "MIXED+DRAIN", "IDLE+DRAIN+COMPLETING", "DOWN+COMPLETING", "UNKNOWN+DRAIN"]
)
def test_waits_while_a_job_is_or_may_be_there(state: str) -> None:
    """A drained flag alone does not free a node."""
    assert decide(node(state), pod(), wanted=False) == ()


def test_waits_on_a_word_it_does_not_know() -> None:
    """A state word of a newer Slurm may mean that the node is in use."""
    assert decide(node("IDLE+DRAIN+QUANTUM"), pod(), wanted=False) == ()


def test_deletes_the_pod_of_a_drained_and_free_node() -> None:
    """The one state in which a running pod may go."""
    assert decide(node("IDLE+DRAIN"), pod(), wanted=False) == (pool.DeletePod("n-0", "uid", free=True),)


def test_does_nothing_to_a_surplus_node_while_slurm_is_away() -> None:
    """No answer, no deletion."""
    assert decide(None, pod(), wanted=False, answers=False) == ()


def test_lifts_its_own_drain_when_the_node_is_wanted_again() -> None:
    """Scale out during a scale in."""
    assert decide(node("MIXED+DRAIN", reason=pool.SCALE_IN), pod()) == (pool.Undrain("n-0"),)


def test_a_node_that_went_down_under_our_own_drain_is_resumed_once_its_pod_is_back() -> None:
    """Scaled in and out again while its line was still there; Slurm has added its own words to ours."""
    reason = f"{pool.SCALE_IN} : Not responding"
    assert decide(node("DOWN+DRAIN+CLOUD", reason=reason), pod()) == (pool.Resume("n-0"),)
    late = pod(created=NOW)
    assert decide(node("DOWN+DRAIN+CLOUD", reason=reason, started=EARLIER), late) == ()


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "DOWN", "MIXED+DRAIN", "DOWN+DRAIN"])
def test_never_lifts_what_somebody_else_did(state: str) -> None:
    """An admin's drain or down is the admin's."""
    assert decide(node(state, reason="bad fan [alice]"), pod()) == ()


@pytest.mark.parametrize("reason", [pool.REBOOTED, pool.POD_LOST])
def test_resumes_a_node_whose_pod_is_back(reason: str) -> None:
    """Slurm keeps such a node down until somebody says that it is well."""
    assert decide(node("DOWN+CLOUD", reason=reason), pod()) == (pool.Resume("n-0"),)


def test_an_old_reason_does_not_make_a_reboot_somebody_elses() -> None:
    """Slurm keeps the reason of a drain that was lifted long ago, also when it sets the node down by itself."""
    assert decide(node("DOWN", reason="bad fan"), pod(), stale=("bad fan", 5)) == (pool.Resume("n-0"),)
    assert decide(node("DOWN", reason="bad fan"), pod(), stale=("bad fan", 4)) == ()


def test_an_old_reason_of_ours_does_not_make_a_drain_ours() -> None:
    """A drain over REST may come without a reason of its own."""
    assert decide(node("IDLE+DRAIN", reason=pool.SCALE_IN), pod(), stale=(pool.SCALE_IN, 5)) == ()


def test_does_not_resume_before_the_new_pod_has_registered() -> None:
    """slurmd of the pod before is not a sign of life."""
    late = pod(created=NOW)
    assert decide(node("DOWN", reason=pool.REBOOTED, started=EARLIER), late) == ()


def test_sets_a_node_down_that_lost_its_pod_under_a_job() -> None:
    """Else Slurm waits for SlurmdTimeout, and blames the program."""
    lost = pod(running=False, created=NOW - timedelta(seconds=10))
    assert decide(node("ALLOCATED"), lost) == (pool.SetDown("n-0", pool.POD_LOST),)


def test_gives_a_replacement_pod_time_to_start() -> None:
    """Within seconds Slurm itself sees the successor register."""
    assert decide(node("ALLOCATED"), pod(running=False, created=NOW)) == ()


STATES = st.sets(
    st.sampled_from(
        ["IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "DRAIN", "COMPLETING", "NOT_RESPONDING", "CLOUD", "X"]
    )
).map("+".join)
REASONS = st.sampled_from(["", "bad fan", pool.SCALE_IN, pool.POD_LOST, pool.REBOOTED])
PODS = st.none() | st.builds(pod, running=st.booleans(), ended=st.booleans(), deleting=st.booleans())


@given(STATES, REASONS, PODS, st.booleans(), st.booleans(), st.booleans())
def test_no_running_pod_is_deleted_unless_slurm_says_it_is_free(
    state: str, reason: str, of: pool.PodView | None, wanted: bool, known: bool, answers: bool
) -> None:
    """Whatever the states, in whatever combination."""
    one = node(state, reason=reason)
    for action in decide(one, of, wanted=wanted, known=known, answers=answers):
        if isinstance(action, pool.DeletePod) and of and not of.ended:
            assert answers
            assert pool.is_drained(one)
        if not answers:
            assert isinstance(action, pool.CreatePod | pool.DeletePod)
        if isinstance(action, pool.Undrain | pool.Resume):
            assert reason not in ("", "bad fan")
