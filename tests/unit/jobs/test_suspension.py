"""Suspend and resume, as Kueue does it: no Slurm job meanwhile, and nothing that was cancelled for it is a failure."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from kubeslurm import jobs, names
from slurmrest import Job
from tests.unit.jobs.following import NOW, actions, conditions, slurm, snapshot, then


def suspended(says: Job | jobs.Slurm, **fields: Any) -> jobs.JobSnapshot:
    """The example job with suspend: true."""
    return snapshot(says, run={"suspend": True}, **fields)


def switched(one: jobs.JobSnapshot, *, suspend: bool) -> jobs.JobSnapshot:
    """The same object, edited by its queue."""
    spec = {**one.raw["spec"], "runPolicy": {"suspend": suspend}}
    return dataclasses.replace(one, raw={**one.raw, "spec": spec})


def fresh(says: Job | jobs.Slurm) -> jobs.JobSnapshot:
    """Suspended from its birth on: no finalizer of ours."""
    one = suspended(says)
    one.raw["metadata"]["finalizers"].clear()
    return one


def test_a_job_created_suspended_is_not_submitted() -> None:
    """Created and Suspended, no start, no finalizer to wait for."""
    one = fresh(jobs.Slurm.NOT_SUBMITTED)
    assert conditions(one) == ["Created", "Suspended"]
    assert "startTime" not in then(one).raw["status"]
    assert {type(action) for action in jobs.decide_job(one).actions} == {jobs.PatchStatus, jobs.Event}
    assert jobs.decide_job(then(one)).actions == ()


def test_a_spec_that_can_not_be_read_is_refused_only_on_resume() -> None:
    """The queue may put into the template what it lacks."""
    one = dataclasses.replace(fresh(jobs.Slurm.NOT_SUBMITTED), plan=None)
    assert conditions(one) == ["Created", "Suspended"]


def test_resume_submits_and_starts_the_clock() -> None:
    """The Suspended condition stays in the list, False."""
    later = NOW + timedelta(minutes=5)
    one = dataclasses.replace(switched(then(fresh(jobs.Slurm.NOT_SUBMITTED)), suspend=False), now=later)
    assert conditions(one) == ["Created", "Suspended(F)"]
    assert actions(one, jobs.Submit) == [jobs.Submit()]
    status = then(one).raw["status"]
    assert status["startTime"] == "2026-12-01T12:05:00Z"
    assert [status["conditions"][-1][field] for field in ("reason", "message")] == [
        "PyTorchJobResumed",
        "PyTorchJob ai-training is resumed.",
    ]


def running_then_suspended() -> jobs.JobSnapshot:
    """A running job with its pods whose queue takes its place away."""
    return switched(then(then(snapshot(slurm("RUNNING")))), suspend=True)


def test_suspending_cancels_the_slurm_job() -> None:
    """Running(F), Suspended; still active until Slurm has given the GPUs back."""
    one = running_then_suspended()
    assert conditions(one) == ["Created", "Running(F)", "Suspended"]
    assert actions(one, jobs.Cancel) == [jobs.Cancel(7)]
    assert actions(one, jobs.Annotate) == [jobs.Annotate({names.ANNOTATION_ENDING: "7"})]
    assert then(one).raw["status"]["replicaStatuses"]["Worker"]["active"] == 63
    assert not actions(one, jobs.DeletePods)


def test_the_cancelled_job_is_no_failure_and_its_pods_go() -> None:
    """Active 0, the next attempt has a new key, then nothing of it is left in Slurm."""
    one = then(running_then_suspended(), slurm("CANCELLED"))
    assert conditions(one) == ["Created", "Running(F)", "Suspended"]
    assert len(actions(one, jobs.DeletePods)[0].pods) == 64
    gone = then(one, jobs.Slurm.NOT_SUBMITTED)
    assert "active" not in gone.raw["status"]["replicaStatuses"]["Worker"]
    annotations = gone.raw["metadata"]["annotations"]
    assert annotations == {names.ANNOTATION_ATTEMPT: "2", names.ANNOTATION_RETRIES: "0"}
    assert jobs.decide_job(gone).actions == (jobs.RemoveFinalizer(),)


def test_a_job_resumed_before_its_slurm_job_is_gone_waits_for_that() -> None:
    """Then it runs anew; the cancelled one is not taken for a failure."""
    one = switched(then(running_then_suspended(), slurm("RUNNING+COMPLETING")), suspend=False)
    assert not actions(one, jobs.Submit)
    assert actions(one, jobs.Cancel)
    ended = then(one, slurm("CANCELLED"))
    assert "Failed" not in conditions(ended)
    again = then(ended, jobs.Slurm.NOT_SUBMITTED)
    assert actions(again, jobs.Submit) == [jobs.Submit()]


def test_a_job_that_ended_well_before_it_was_cancelled_has_ended_well() -> None:
    """The queue came too late."""
    assert conditions(then(running_then_suspended(), slurm("COMPLETED")))[-1] == "Succeeded"


@pytest.mark.parametrize("says", [jobs.Slurm.UNREACHABLE, slurm("RUNNING")])
def test_the_finalizer_stays_while_slurm_may_hold_the_job(says: Job | jobs.Slurm) -> None:
    """No answer is no news."""
    one = dataclasses.replace(running_then_suspended(), slurm=says)
    assert not actions(one, jobs.RemoveFinalizer)
    assert jobs.decide_job(one).retry_after


def test_a_suspended_job_that_slurm_forgot_is_not_lost() -> None:
    """It was to end; how does not matter."""
    one = dataclasses.replace(running_then_suspended(), slurm=jobs.Slurm.ABSENT)
    assert "Failed" not in conditions(one)
    assert actions(one, jobs.Annotate)[0].annotations[names.ANNOTATION_JOB_ID] is None


def test_an_ended_job_is_not_suspended() -> None:
    """What has ended has ended."""
    one = switched(then(snapshot(slurm("COMPLETED"))), suspend=True)
    assert conditions(one)[-1] == "Succeeded"
