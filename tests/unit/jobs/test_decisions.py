"""decide_job: what happens to a PyTorchJob, given what Slurm says of it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeslurm import jobs, mirror_names, names
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import RestartPolicy
from slurmrest import ExitCode, Job, JobBase, JobFlag
from tests.unit.jobs.following import NOW, actions, conditions, slurm, snapshot, text, then


def test_a_new_job_is_submitted_once() -> None:
    """Created, and one submission."""
    one = snapshot(jobs.Slurm.NOT_SUBMITTED)
    assert conditions(one) == ["Created"]
    assert actions(one, jobs.Submit) == [jobs.Submit()]


def test_a_job_waits_for_the_configmaps_and_secrets_that_it_names() -> None:
    """Created, told once, looked for again; Slurm does not hear of it."""
    one = dataclasses.replace(snapshot(jobs.Slurm.NOT_SUBMITTED), missing=("Secret database",))
    assert conditions(one) == ["Created"]
    assert not actions(one, jobs.Submit)
    assert "Secret database" in actions(one, jobs.Event)[0].message
    assert jobs.decide_job(one).retry_after


def test_materials_are_brought_to_a_running_job_alone() -> None:
    """For this start of it, to the nodes that have none."""
    running = dataclasses.replace(snapshot(slurm("RUNNING")), bare=("n1", "n2"))
    assert jobs.decide_job(running).actions[-1] == jobs.Bring(7, 0, ("n1", "n2"))
    assert not actions(dataclasses.replace(snapshot(slurm("PENDING")), bare=("n1",)), jobs.Bring)
    assert not actions(snapshot(slurm("RUNNING")), jobs.Bring)


def test_the_finalizer_is_there_before_the_submission() -> None:
    """Else a deletion in between would leave a Slurm job behind."""
    one = snapshot(jobs.Slurm.NOT_SUBMITTED)
    one.raw["metadata"]["finalizers"].clear()
    kinds = [type(action) for action in jobs.decide_job(one).actions]
    assert kinds.index(jobs.AddFinalizer) < kinds.index(jobs.Submit)


def test_nothing_is_submitted_while_slurm_is_away() -> None:
    """No answer is no news."""
    assert not actions(snapshot(jobs.Slurm.UNREACHABLE), jobs.Submit)


def test_the_normal_way() -> None:
    """Pending, configuring, running, completing, completed: the list that kubectl shows at each step."""
    one = snapshot(jobs.Slurm.NOT_SUBMITTED)
    seen = []
    for state in ("PENDING", "RUNNING+CONFIGURING", "RUNNING", "COMPLETED+COMPLETING", "COMPLETED"):
        one = then(one, slurm(state))
        seen.append(conditions(one))
        one = then(one)
    running = ["Created", "Running"]
    assert seen == [["Created"], ["Created"], running, running, ["Created", "Running(F)", "Succeeded"]]
    assert one.raw["status"]["replicaStatuses"]["Worker"]["succeeded"] == 63


@pytest.mark.parametrize(
    "state", ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "RUNNING+QUANTUM"]
)
def test_the_same_again_is_no_action(state: str) -> None:
    """What was done is not done again (events apart, which are posted once)."""
    one = then(then(snapshot(slurm(state), policy="Never")))
    left = [action for action in jobs.decide_job(one).actions if not isinstance(action, jobs.Event)]
    assert left == []


def test_an_unknown_word_changes_nothing() -> None:
    """It may mean anything."""
    one = then(snapshot(slurm("RUNNING")))
    assert conditions(dataclasses.replace(one, slurm=slurm("RUNNING+QUANTUM"))) == ["Created", "Running"]


def test_an_application_failure_with_never_fails() -> None:
    """In upstream's words; the program's code in an event."""
    one = snapshot(slurm("FAILED", exit_code=ExitCode("ERROR", 3)), policy="Never")
    assert conditions(one)[-1] == "Failed"
    assert text(one) == "PyTorchJob ai-training is failed because 1 Master replica(s) failed."
    assert any("exit code 3" in event.message for event in actions(one, jobs.Event))


def test_an_application_failure_is_tried_again_after_a_pause() -> None:
    """Ten seconds at first; then the next attempt's number, and no job id."""
    one = snapshot(slurm("FAILED", exit_code=ExitCode("ERROR", 3)))
    assert conditions(one)[-1] == "Restarting"
    assert jobs.decide_job(one).retry_after == pytest.approx(9)
    later = dataclasses.replace(then(one), now=NOW + timedelta(seconds=10))
    assert actions(later, jobs.Annotate) == [next_attempt("2", retries="1")]


def next_attempt(number: str, *, retries: str) -> jobs.Annotate:
    """A new key is used from now on."""
    gone = {names.ANNOTATION_JOB_ID: None, names.ANNOTATION_ENDING: None}
    return jobs.Annotate({names.ANNOTATION_ATTEMPT: number, names.ANNOTATION_RETRIES: retries, **gone})


def test_the_backoff_limit_is_the_number_of_retries() -> None:
    """The third failure of a limit of 2 is the last; attempts after a suspension don't count."""
    two = {"backoffLimit": 2}
    last = snapshot(slurm("FAILED"), run=two, attempt=3)
    assert conditions(last)[-1] == "Failed"
    assert text(last) == "Job ai-training has failed because it has reached the specified backoff limit"
    assert conditions(snapshot(slurm("FAILED"), run=two, attempt=2))[-1] == "Restarting"
    suspended_once = {names.ANNOTATION_RETRIES: "1"}
    assert conditions(snapshot(slurm("FAILED"), run=two, attempt=3, annotations=suspended_once))[-1] == "Restarting"


@pytest.mark.parametrize(("code", "last"), [(1, "Failed"), (137, "Restarting")])
def test_exit_code_policy_retries_from_128_on(code: int, last: str) -> None:
    """Signals and what the program calls retryable."""
    assert conditions(snapshot(slurm("FAILED", exit_code=ExitCode("ERROR", code)), policy="ExitCode"))[-1] == last


@pytest.mark.parametrize("state", ["CANCELLED", "TIMEOUT", "DEADLINE"])
def test_a_cancelled_or_late_job_is_never_tried_again(state: str) -> None:
    """Whatever the policy."""
    assert conditions(snapshot(slurm(state), policy="Always"))[-1] == "Failed"


def test_node_loss_names_the_node() -> None:
    """Failed with Never; the reader need not ask Slurm."""
    one = snapshot(slurm("NODE_FAIL", failed_node="gpu-node-3"), policy="Never")
    assert "gpu-node-3" in text(one)


def test_a_requeued_job_is_restarting_not_failed() -> None:
    """Slurm starts it again itself; nothing is submitted."""
    one = dataclasses.replace(
        then(snapshot(slurm("RUNNING"))), slurm=slurm("PENDING", restart_count=1), lost=("gpu-node-9",)
    )
    assert conditions(one) == ["Created", "Restarting"]
    assert "gpu-node-9" in text(one)
    assert not actions(one, jobs.Submit)


def test_a_job_that_slurm_forgot_is_lost_and_not_sent_again() -> None:
    """How it ended can't be known."""
    one = dataclasses.replace(then(snapshot(slurm("RUNNING"))), slurm=jobs.Slurm.ABSENT)
    assert then(one).raw["status"]["conditions"][-1]["reason"] == "SlurmJobLost"
    assert not actions(one, jobs.Submit)


def test_a_refusal_is_said_once_and_nothing_is_sent() -> None:
    """Failed, an event, and no Slurm job."""
    refused = dataclasses.replace(
        snapshot(jobs.Slurm.NOT_SUBMITTED), plan=None, refusal=InvalidObject("spec.elasticPolicy", "not supported yet")
    )
    assert "spec.elasticPolicy" in text(refused)
    assert not actions(refused, jobs.Submit)
    assert jobs.decide_job(then(refused)).actions == ()


FORGET = {
    names.ANNOTATION_JOB_ID: None,
    names.ANNOTATION_SUBMISSION: None,
    names.ANNOTATION_CLUSTER: None,
    names.ANNOTATION_LAUNCHER_REASON: None,
}

ANEW = {
    **FORGET,
    names.ANNOTATION_ATTEMPT: None,
    names.ANNOTATION_RETRIES: None,
    names.ANNOTATION_ENDING: None,
}


@pytest.mark.parametrize("says", [slurm("RUNNING", comment="kubeslurm:v/1"), slurm("COMPLETED", comment="u/1 v/1")])
def test_an_id_of_another_objects_job_is_dropped(says: Job) -> None:
    """It came along with a copied YAML, or is forged: that job is neither followed nor cancelled."""
    one = snapshot(says)
    forget = jobs.Annotate(ANEW)
    assert jobs.decide_job(one).actions == (forget,)
    one.raw["metadata"]["deletionTimestamp"] = "2026-12-01T11:59:00Z"
    assert jobs.decide_job(one).actions == (jobs.Annotate(FORGET),)


def test_an_id_that_slurm_does_not_know_on_a_new_object_is_dropped() -> None:
    """It can't be this object's: nothing was submitted for it yet."""
    one = snapshot(jobs.Slurm.ABSENT)
    assert jobs.decide_job(one).actions == (jobs.Annotate(ANEW),)


@pytest.mark.parametrize(("noted", "after"), [("u/1", ["Created", "Failed"]), ("v/1", [])])
def test_a_job_that_slurm_forgets_before_its_first_status_is_lost_and_not_sent_again(
    noted: str, after: list[str]
) -> None:
    """Its annotations name this very object; with those of another's, copied along, it is a new one."""
    one = snapshot(jobs.Slurm.ABSENT, annotations={names.ANNOTATION_SUBMISSION: noted})
    assert conditions(one) == after


def test_a_failed_job_that_slurm_forgets_during_the_pause_is_tried_again() -> None:
    """Its end was seen; only the pause was left."""
    one = dataclasses.replace(then(snapshot(slurm("FAILED"), attempt=6)), slurm=jobs.Slurm.ABSENT)
    assert jobs.decide_job(one).retry_after == pytest.approx(300)
    later = dataclasses.replace(one, now=NOW + timedelta(seconds=300))
    assert actions(later, jobs.Annotate)[0].annotations[names.ANNOTATION_ATTEMPT] == "7"


def test_a_second_attempt_that_slurm_forgets_in_the_queue_is_lost() -> None:
    """The first one's failure says nothing about how the second ended."""
    one = dataclasses.replace(then(snapshot(slurm("FAILED"))), slurm=jobs.Slurm.NOT_SUBMITTED)
    queued = then(then(one, slurm("PENDING")), jobs.Slurm.ABSENT)
    assert conditions(queued)[-1] == "Failed"


def unreadable(one: jobs.JobSnapshot) -> jobs.JobSnapshot:
    """The snapshot once its object was edited into something that is refused."""
    return dataclasses.replace(one, plan=None, refusal=InvalidObject("spec.elasticPolicy", "not supported yet"))


def test_a_submitted_job_is_followed_whatever_becomes_of_its_object() -> None:
    """An edit can't change the Slurm job; its end still arrives, with all counters."""
    ended = then(unreadable(then(snapshot(slurm("RUNNING")), slurm("COMPLETED"))))
    assert conditions(ended)[-1] == "Succeeded"
    assert ended.raw["status"]["replicaStatuses"]["Worker"]["succeeded"] == 63
    queued = then(unreadable(then(snapshot(slurm("PENDING")), slurm("FAILED"))))
    assert conditions(queued)[-1] == "Failed"
    assert queued.raw["status"]["replicaStatuses"]["Worker"]["failed"] == 63


def test_a_new_object_waits_a_moment_for_its_tenant() -> None:
    """Pool and job may be applied in one go; after five seconds it is refused."""
    one = unreadable(snapshot(jobs.Slurm.NOT_SUBMITTED))
    one.raw["metadata"]["creationTimestamp"] = "2026-12-01T11:59:58Z"
    one = dataclasses.replace(one, refusal=InvalidObject("metadata.namespace", "no tenant"))
    assert jobs.decide_job(one) == jobs.JobDecision((), retry_after=3.0)
    assert conditions(dataclasses.replace(one, now=NOW + timedelta(seconds=3))) == ["Failed"]


def deleting(says: Job | jobs.Slurm) -> jobs.JobSnapshot:
    """The job with a deletion timestamp."""
    one = snapshot(says)
    one.raw["metadata"]["deletionTimestamp"] = "2026-12-01T11:59:00Z"
    return one


def test_deletion_cancels_and_waits_for_slurm() -> None:
    """The object stays until Slurm holds nothing of it."""
    assert jobs.decide_job(deleting(slurm("RUNNING"))).actions == (jobs.Cancel(7),)
    assert jobs.decide_job(deleting(slurm("CANCELLED+COMPLETING"))).actions == (jobs.Cancel(7),)
    assert jobs.decide_job(deleting(slurm("CANCELLED"))).actions == (jobs.RemoveFinalizer(),)
    assert jobs.decide_job(deleting(jobs.Slurm.NOT_SUBMITTED)).actions == (jobs.RemoveFinalizer(),)


def test_deletion_looks_by_the_key_before_it_lets_go_of_an_unknown_job() -> None:
    """The noted id may be wrong while the job under the key still runs."""
    assert jobs.decide_job(deleting(jobs.Slurm.ABSENT)).actions == (jobs.Annotate(FORGET),)


def test_deletion_waits_while_slurm_is_away() -> None:
    """Letting go now could leave 512 GPUs busy for nobody."""
    decision = jobs.decide_job(deleting(jobs.Slurm.UNREACHABLE))
    assert (decision.actions, decision.retry_after) == ((), 2.0)


def test_mirror_pods_follow_the_job() -> None:
    """One for each replica, Running with its host, then Succeeded."""
    one = then(snapshot(slurm("RUNNING")))
    assert len(one.pods) == 64
    one = then(one)
    worker = one.pods["ai-training-worker-0"]["status"]
    assert (worker["phase"], "gpu-node-1" in worker["message"]) == ("Running", True)
    ended = then(dataclasses.replace(one, slurm=slurm("COMPLETED")))
    assert {pod["status"]["phase"] for pod in ended.pods.values()} == {"Succeeded"}


def test_an_ended_jobs_pods_stay_deleted() -> None:
    """Who removed them does not want them back."""
    one = then(then(snapshot(slurm("COMPLETED"))))
    assert not actions(dataclasses.replace(one, pods={}), jobs.CreatePods)


def test_names_that_are_too_long_are_shortened_and_stay_apart() -> None:
    """Labels hold 63 characters."""
    short = {mirror_names.shorten("x" * 200 + str(index), 63) for index in range(9)}
    assert len(short) == 9
    assert max(map(len, short)) <= 63


LOOKS = st.one_of(
    st.sampled_from(jobs.Slurm),
    st.builds(
        lambda base, flags, restarts: slurm("+".join([base, *sorted(flags)]), restart_count=restarts),
        st.sampled_from(JobBase),
        st.sets(st.sampled_from([*JobFlag, "QUANTUM"]), max_size=2),
        st.integers(0, 3),
    ),
)


@settings(max_examples=20)
@given(looks=st.lists(LOOKS, min_size=1, max_size=5), policy=st.sampled_from(RestartPolicy), readable=st.booleans())
def test_whatever_slurm_says_the_decision_is_made_and_holds(
    looks: list[Job | jobs.Slurm], policy: RestartPolicy, *, readable: bool
) -> None:
    """No sequence of answers raises; an answer repeated asks for nothing more than it did; the living are not cancelled."""
    one = snapshot(slurm("PENDING"), policy=policy)
    for look in looks:
        one = then(then(one, look))
        one = one if readable else unreadable(one)
        if isinstance(look, Job) and not jobs.decide_job(one).retry_after:
            left = {type(action) for action in jobs.decide_job(then(one)).actions}
            assert left <= {jobs.Event, jobs.Annotate, jobs.DeletePods, jobs.Cancel}
        assert not actions(one, jobs.Cancel) or "Failed" in conditions(one)
        if look is not jobs.Slurm.NOT_SUBMITTED:
            assert not actions(one, jobs.Submit)
