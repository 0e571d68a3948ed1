"""The training operator's list of conditions and counters, rule by rule (its pkg/util/status.go)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubeslurm import training
from tests.unit.examples import Raw

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


def after(*kinds: str) -> list[Raw]:
    """The list after these conditions were set one after the other, a minute apart."""
    found: list[Raw] = []
    for minute, kind in enumerate(kinds):
        found = training.set_condition(found, kind, f"Because{kind}", f"{kind}.", NOW + timedelta(minutes=minute))
    return found


def words(conditions: list[Raw]) -> str:
    """`Created Running(F)`: what the list shows."""
    return " ".join(one["type"] + ("" if one["status"] == "True" else "(F)") for one in conditions)


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        (["Created"], "Created"),
        (["Created", "Running"], "Created Running"),
        (["Created", "Running", "Succeeded"], "Created Running(F) Succeeded"),
        (["Created", "Running", "Failed"], "Created Running(F) Failed"),
        (["Created", "Running", "Restarting"], "Created Restarting"),
        (["Created", "Running", "Restarting", "Running"], "Created Running"),
        (["Created", "Failed", "Running"], "Created Failed"),
        (["Created", "Failed", "Succeeded"], "Created Failed"),
        (["Running", "Created"], "Running Created"),
    ],
)
def test_the_list_is_what_upstream_shows(kinds: list[str], shown: str) -> None:
    """Newest last, Running and Restarting never together, nothing after Failed."""
    assert words(after(*kinds)) == shown


def test_the_same_condition_again_changes_nothing() -> None:
    """Not even its message or its times."""
    once = after("Created")
    again = training.set_condition(once, "Created", "BecauseCreated", "other words", NOW + timedelta(hours=1))
    assert again == once


def test_another_reason_keeps_the_time_of_the_transition() -> None:
    """The status did not change; the update's time did."""
    later = NOW + timedelta(hours=1)
    changed = training.set_condition(after("Running"), "Running", "Other", "again", later)[0]
    assert (changed["reason"], changed["lastTransitionTime"]) == ("Other", "2026-12-01T12:00:00Z")
    assert changed["lastUpdateTime"] == "2026-12-01T13:00:00Z"


def test_counters_of_zero_are_left_out() -> None:
    """One counter at most, and the selector that finds the role's pods."""
    labels = "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=pytorchjob-controller"
    selectors = {role: f"{labels},training.kubeflow.org/replica-type={role.lower()}" for role in ("Master", "Worker")}
    counts = {"Master": 1, "Worker": 3}
    assert training.replica_statuses("j", counts, "active") == {
        role: {"active": counts[role], "selector": selectors[role]} for role in counts
    }
    assert training.replica_statuses("j", {"Worker": 3}, None) == {"Worker": {"selector": selectors["Worker"]}}
