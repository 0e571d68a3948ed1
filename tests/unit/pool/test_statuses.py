"""What a NodeSet says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubeslurm import conditions, pool_status
from kubeslurm.conditions import Verdict
from slurmrest import Node, NodeStates

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def nodes(*states: str) -> list[Node]:
    """Slurm nodes in these states, with eight GPUs held where they are allocated."""
    held = "gpu:h100:8(IDX:0-7)"
    return [
        Node(
            name=f"n-{index}", states=NodeStates.parse(state), gres_used=held if "ALLOCATED" in state else "gpu:h100:0"
        )
        for index, state in enumerate(states)
    ]


def status(found: list[Node] | None, **fields: Any) -> dict[str, Any]:
    """The status of a NodeSet of two."""
    values: dict[str, Any] = {
        "generation": 3,
        "replicas": 2,
        "gpus_per_node": 8,
        "selector": "a=b",
        "pods": [],
        "surplus": 0,
        "problem": None,
        "now": NOW,
    }
    return pool_status.nodeset_status(fields.pop("previous", {}), nodes=found, **(values | fields))


def ready(one: dict[str, Any]) -> tuple[str, str]:
    """Ready's status and reason."""
    found = conditions.find(one["conditions"], "Ready")
    assert found is not None
    return found["status"], found["reason"]


@pytest.mark.parametrize(
    ("states", "counts"),
    [
        (["IDLE", "ALLOCATED"], (2, 1, 1, 0, 0)),
        (["IDLE+DRAIN", "MIXED+DRAIN"], (2, 0, 0, 2, 0)),
        (["DOWN", "IDLE+NOT_RESPONDING"], (0, 0, 0, 0, 2)),
        (["IDLE+CLOUD+POWERED_DOWN", "IDLE+INVALID_REG"], (0, 0, 0, 0, 1)),
        (["UNKNOWN", "IDLE+COMPLETING"], (1, 0, 1, 0, 1)),
    ],
)
def test_each_node_counts_in_one_place(states: list[str], counts: tuple[int, ...]) -> None:
    """Registered, idle, allocated, drained, down."""
    found = pool_status.Counts.of(nodes(*states))
    assert (found.registered, found.idle, found.allocated, found.drained, found.down) == counts


def test_all_registered_is_ready() -> None:
    """With GPUs counted."""
    one = status(nodes("IDLE", "ALLOCATED"))
    assert ready(one) == ("True", "AllRegistered")
    assert one["gpus"] == {"total": 16, "allocated": 8}


def test_without_an_answer_the_numbers_stay_and_ready_is_unknown() -> None:
    """Old numbers are better than zeros, and the condition says that they are old."""
    before = status(nodes("IDLE", "IDLE"))
    one = status(None, previous=before)
    assert one["idle"] == 2
    assert ready(one) == ("Unknown", "SlurmUnreachable")


def test_a_problem_is_the_reason() -> None:
    """A spec that can't be used says which field it is."""
    assert ready(status([], problem=Verdict("Ready", False, "Invalid", "spec.gpu.count: ..."))) == ("False", "Invalid")


def test_the_time_moves_only_when_the_status_does() -> None:
    """metav1.Condition's rule."""
    before = status(nodes("IDLE", "IDLE"))
    same = status(nodes("IDLE", "IDLE"), previous=before, now=NOW + timedelta(hours=1))
    other = status(nodes("IDLE", "DOWN"), previous=before, now=NOW + timedelta(hours=1))
    assert same == before
    assert other["conditions"][0]["lastTransitionTime"] == "2026-12-01T01:00:00Z"


def test_a_condition_that_speaks_of_nothing_any_more_goes() -> None:
    """And no other, and not what else the status has."""
    before = {"nodes": 3, "conditions": [{"type": "Ready"}, {"type": "AccountingReady"}]}
    assert pool_status.without(before, "AccountingReady") == {"nodes": 3, "conditions": [{"type": "Ready"}]}
