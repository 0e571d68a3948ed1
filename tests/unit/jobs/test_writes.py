"""How often a PyTorchJob, its mirror pods and its events are written in all its life: each costs the API server some."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from kubeslurm import jobs, names
from kubeslurm.errors import InvalidObject
from slurmrest import Job
from tests.unit.jobs.following import NOW, actions, conditions, slurm, snapshot, then

BORN = {"creationTimestamp": "2026-12-01T12:00:00Z"}
NOTED = {
    names.ANNOTATION_JOB_ID: "7",
    names.ANNOTATION_SUBMISSION: "u/1",
    names.ANNOTATION_CLUSTER: "slurm/ai-cluster",
}


def new(says: Job | jobs.Slurm = jobs.Slurm.NOT_SUBMITTED, age: float = 0) -> jobs.JobSnapshot:
    """A job of one replica that was created so many seconds ago, without a status."""
    one = snapshot(says)
    assert one.plan is not None
    raw = {**one.raw, "metadata": {**one.raw["metadata"], **BORN}}
    del raw["spec"]["pytorchReplicaSpecs"]["Worker"]
    plan = dataclasses.replace(one.plan, roles=one.plan.roles[:1])
    return dataclasses.replace(one, raw=raw, plan=plan, now=NOW + timedelta(seconds=age))


def written(one: jobs.JobSnapshot) -> int:
    """The API writes of this decision; a submission notes the job's id and is told of."""
    costs: dict[type, int] = {jobs.Submit: 2, jobs.Cancel: 0, jobs.Bring: 0}
    return sum(_size(action, costs) for action in jobs.decide_job(one).actions)


def _size(action: Any, costs: dict[type, int]) -> int:
    match action:
        case jobs.CreatePods(several) | jobs.DeletePods(several) | jobs.PatchPods(several):
            return len(several)
        case _:
            return costs.get(type(action), 1)


def life(*looks: tuple[float, str]) -> int:
    """The writes of a job from its creation on, by what Slurm says at which age."""
    one = new()
    one.raw["metadata"]["finalizers"].clear()
    total = written(one)
    one = then(one)
    one.raw["metadata"]["annotations"] |= NOTED
    for age, state in looks:
        job = slurm(state, start_time=None if state == "PENDING" else int(NOW.timestamp()) + 1)
        one = dataclasses.replace(one, slurm=job, now=NOW + timedelta(seconds=age))
        total += written(one)
        one = _stamped(then(one))
        total += written(one)  # on what the first turn has made
        one = _stamped(then(one))
        assert written(one) == 0, jobs.decide_job(one).actions
    return total


def _stamped(one: jobs.JobSnapshot) -> jobs.JobSnapshot:
    """With the times that the API server writes."""
    return dataclasses.replace(one, pods={name: {**pod, "metadata": BORN} for name, pod in one.pods.items()})


def test_a_short_job_that_starts_at_once_is_written_eight_times() -> None:
    """Finalizer, id, two events, two statuses of its own, its pod and that pod's end."""
    assert life((0.5, "PENDING"), (1, "RUNNING"), (2, "RUNNING"), (3, "COMPLETED")) <= 8


def test_a_job_that_waits_and_runs_for_long_is_told_of_at_each_step() -> None:
    """Created while it waits, and its pod why; then that both run."""
    assert life((1, "PENDING"), (2, "PENDING"), (4, "PENDING"), (9, "RUNNING"), (99, "COMPLETED")) == 11


def test_a_job_that_waits_is_created_within_two_seconds() -> None:
    """No longer is it kept back; nor where it waits for something else than its start."""
    young = new(slurm("PENDING"), age=1.5)
    assert conditions(young) == []
    assert jobs.decide_job(young).retry_after == pytest.approx(0.5)
    assert conditions(new(slurm("PENDING"), age=2)) == ["Created"]
    assert conditions(new(jobs.Slurm.UNREACHABLE)) == ["Created"]
    assert conditions(dataclasses.replace(new(), missing=("Secret database",))) == ["Created"]


def test_a_job_that_is_not_submitted_in_time_is_created_first() -> None:
    """Its submission may fail again and again."""
    kinds = [type(action) for action in jobs.decide_job(new(age=2)).actions]
    assert kinds == [jobs.PatchStatus, jobs.Submit]


def test_a_clock_behind_the_api_servers_keeps_nothing_back() -> None:
    """Nobody can say how old the job is."""
    assert conditions(new(slurm("PENDING"), age=-60)) == ["Created"]


def test_a_job_that_starts_at_once_is_created_and_running_in_one_write() -> None:
    """In the order in which they happened."""
    assert conditions(new(slurm("RUNNING"), age=1)) == ["Created", "Running"]


def test_a_pod_runs_once_its_job_has_run_for_a_moment() -> None:
    """Three seconds."""
    one = then(new(slurm("RUNNING", start_time=int(NOW.timestamp())), age=1))
    assert not actions(one, jobs.PatchPods)
    assert jobs.decide_job(one).retry_after == pytest.approx(2)
    later = dataclasses.replace(one, now=NOW + timedelta(seconds=3))
    assert [status["phase"] for status in actions(later, jobs.PatchPods)[0].statuses.values()] == ["Running"]


def test_a_submitted_job_without_a_status_is_followed_though_its_object_can_not_be_read() -> None:
    """Its counters go by what the spec says now."""
    one = dataclasses.replace(
        new(slurm("RUNNING"), age=1), plan=None, refusal=InvalidObject("spec.elasticPolicy", "no")
    )
    assert then(one).raw["status"]["replicaStatuses"]["Master"]["active"] == 1
