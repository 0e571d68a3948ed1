"""How an end is told, and what follows it: words, exit codes of replicas, deadlines, what is tidied up."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from kubeslurm import jobs
from kubeslurm.ranks import RankEnd
from slurmrest import ExitCode
from tests.unit.jobs.following import ENDED, NOW, actions, conditions, slurm, snapshot, text, then

FAILED = slurm("FAILED", exit_code=ExitCode("ERROR", 7))
RANKS = {24: RankEnd(7), 25: RankEnd(143, ended=True), 0: RankEnd(143, ended=True)}
"""Rank 24 is the first of the third worker: 8 ranks each, the master before them."""


def failed(**fields: Any) -> jobs.JobSnapshot:
    """The example job, whose third worker's first rank ended with 7, with its pods."""
    one = then(then(snapshot(slurm("RUNNING"), **fields)))
    return dataclasses.replace(one, slurm=FAILED, ranks=RANKS)


def terminated(one: jobs.JobSnapshot, pod: str) -> tuple[int, str]:
    """Code and reason of a mirror pod."""
    state = one.pods[pod]["status"]["containerStatuses"][0]["state"]["terminated"]
    return state["exitCode"], state["reason"]


def test_each_replica_has_its_own_code() -> None:
    """The culprit's, the signal of those that were ended for it, 0 of those that were done."""
    pods = then(failed(policy="Never"))
    assert terminated(pods, "ai-training-worker-2") == (7, "Error")
    assert terminated(pods, "ai-training-master-0") == (143, "SlurmStepTerminated")
    assert terminated(pods, "ai-training-worker-9") == (0, "Completed")
    assert pods.pods["ai-training-worker-9"]["status"]["phase"] == "Succeeded"


def test_without_codes_each_replica_has_the_jobs() -> None:
    """Its node may be gone."""
    one = then(dataclasses.replace(failed(policy="Never"), ranks=None))
    assert terminated(one, "ai-training-worker-9") == (7, "Error")


def test_the_role_that_failed_is_named_in_upstreams_words() -> None:
    """By its own ranks, not by those that were ended."""
    assert text(failed(policy="Never")) == "PyTorchJob ai-training is failed because 1 Worker replica(s) failed."
    assert text(failed(policy="ExitCode")) == 'job "ai-training" is failing because "Worker" replica(s) failed.'
    assert text(failed()) == "job ai-training is restarting because Worker replica(s) failed."


def test_the_culprits_code_is_an_event() -> None:
    """As upstream writes it."""
    messages = [event.message for event in actions(failed(policy="Never"), jobs.Event)]
    assert "Pod: research.ai-training-worker-2 exited with code 7" in messages


def test_the_exit_code_policy_goes_by_the_culprits_code() -> None:
    """Not by the highest of all, which is that of the ranks that were ended."""
    assert conditions(failed(policy="ExitCode"))[-1] == "Failed"
    killed = dataclasses.replace(failed(policy="ExitCode"), ranks={24: RankEnd(137)})
    assert conditions(killed)[-1] == "Restarting"


def test_memory_is_told_apart() -> None:
    """OOMKilled is the replica's that ran out of it."""
    one = dataclasses.replace(failed(policy="Never"), slurm=slurm("OUT_OF_MEMORY"), ranks={8: RankEnd(137, oom=True)})
    assert terminated(then(one), "ai-training-worker-0") == (137, "OOMKilled")


LATE = "Job ai-training has failed because it was active longer than specified deadline"


def started(seconds: int, **fields: Any) -> jobs.JobSnapshot:
    """A pending job that began to wait so long ago, with a deadline of 60 seconds."""
    one = then(snapshot(slurm("PENDING"), run={"activeDeadlineSeconds": 60}, **fields))
    return dataclasses.replace(one, now=NOW + timedelta(seconds=seconds))


def test_the_deadline_counts_the_time_in_the_queue() -> None:
    """Slurm's own limit would not: the job is cancelled, and not tried again."""
    one = started(60)
    assert (conditions(one)[-1], text(one)) == ("Failed", LATE)
    assert actions(one, jobs.Cancel) == [jobs.Cancel(7)]


def test_a_deadline_that_is_near_is_looked_at_again() -> None:
    """In time."""
    assert jobs.decide_job(started(50)).retry_after == pytest.approx(10)


def test_the_cancel_of_a_late_job_is_not_forgotten() -> None:
    """Whoever wrote Failed may have died before it could cancel."""
    one = then(started(60))
    assert actions(one, jobs.Cancel) == [jobs.Cancel(7)]
    assert not actions(dataclasses.replace(one, slurm=slurm("CANCELLED")), jobs.Cancel)
    assert not actions(dataclasses.replace(one, slurm=slurm("RUNNING+QUANTUM")), jobs.Cancel)


def test_no_deadline_is_called_while_slurm_is_away() -> None:
    """The job may have ended well in time."""
    assert conditions(dataclasses.replace(started(61), slurm=jobs.Slurm.UNREACHABLE)) == ["Created"]


def test_slurms_own_time_limit_reads_the_same() -> None:
    """It is the same deadline."""
    assert text(snapshot(slurm("TIMEOUT"))) == LATE


def ended(**run: Any) -> jobs.JobSnapshot:
    """A job that has ended well, with its pods."""
    one = then(then(snapshot(slurm("RUNNING"), run=run)), slurm("COMPLETED"))
    return then(one)


@pytest.mark.parametrize(("policy", "left"), [("None", 64), ("Running", 64), ("All", 0)])
def test_pods_go_by_the_policy(policy: str, left: int) -> None:
    """None of them runs on when Slurm's job has ended: Running has nothing to do."""
    assert len(then(ended(cleanPodPolicy=policy)).pods) == left


def test_the_object_goes_after_its_time() -> None:
    """Not before; counted from completionTime."""
    one = ended(ttlSecondsAfterFinished=60)
    assert jobs.decide_job(one).retry_after == pytest.approx(60 - (NOW.timestamp() - ENDED))
    later = dataclasses.replace(one, now=NOW + timedelta(seconds=60))
    assert actions(later, jobs.DeleteJob) == [jobs.DeleteJob()]
    assert not actions(dataclasses.replace(ended(), now=NOW + timedelta(days=999)), jobs.DeleteJob)


def test_a_waiting_pod_is_told_why_only_after_a_while() -> None:
    """One write less for each pod of each job that starts soon."""
    one = then(snapshot(slurm("PENDING", state_reason="Resources")))
    stamped = {name: {"metadata": {"creationTimestamp": "2026-12-01T12:00:00Z"}, "status": {}} for name in one.pods}
    one = dataclasses.replace(one, pods=stamped)
    assert not actions(one, jobs.PatchPods)
    assert jobs.decide_job(one).retry_after == pytest.approx(3)
    later = dataclasses.replace(one, now=NOW + timedelta(seconds=3))
    assert "Resources" in actions(later, jobs.PatchPods)[0].statuses["ai-training-master-0"]["message"]
