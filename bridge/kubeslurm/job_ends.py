"""How a job's end is told and what follows it: success, failure, another attempt, what is tidied up behind it.

Pure; used by `jobs`. What always holds: the words are the training operator's where it has words for what happened, and what
it has none for (a node that was lost, a Slurm job that is not known any more) names Slurm's job; a job is tried again only
under a new attempt's key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from kubeslurm import job_pods, mirror, names, training
from kubeslurm.conditions import parse_time, rfc3339
from kubeslurm.job_model import Annotate, Cancel, DeleteJob, Draft, Event, Gang, JobSnapshot, belongs, held
from kubeslurm.plans import RestartPolicy
from kubeslurm.ranks import RankEnd
from kubeslurm.run_policy import CleanPodPolicy, RunPolicy
from slurmrest import Job, JobBase

BACKOFF: Final = (10.0, 300.0)
"""Seconds before the first retry of a program that failed, and the most that doubling makes of it."""

MOST_TOLD: Final = 8
"""Replicas whose exit codes are told as events."""

_APPLICATION: Final = frozenset({JobBase.FAILED, JobBase.OUT_OF_MEMORY})
_INFRASTRUCTURE: Final = frozenset({JobBase.NODE_FAIL, JobBase.BOOT_FAIL, JobBase.PREEMPTED})
_LATE: Final = frozenset({JobBase.TIMEOUT, JobBase.DEADLINE})


def finish(snapshot: JobSnapshot, gang: Gang, job: Job, draft: Draft) -> None:
    """The Slurm job has ended."""
    ended = rfc3339(datetime.fromtimestamp(job.end_time, UTC) if job.end_time else snapshot.now)
    if job.states.base is JobBase.COMPLETED:
        _succeed(snapshot, gang, draft, ended)
        return
    failed = _failed(snapshot, gang, job)
    if _retries(gang, job, failed):
        _retry(snapshot, gang, job, draft, ended, failed)
    else:
        _give_up(snapshot, gang, job, draft, ended, failed)


def _succeed(snapshot: JobSnapshot, gang: Gang, draft: Draft, ended: str) -> None:
    message = f"PyTorchJob {gang.name} is successfully completed."
    if "Master" not in gang.counts:
        message = f"PyTorchJob {gang.namespace}/{gang.name} successfully completed."
    draft.condition(training.SUCCEEDED, "PyTorchJobSucceeded", message, snapshot.now)
    draft.status["completionTime"] = ended
    gang.count(draft, "succeeded")
    draft.actions.append(Event("Normal", "PyTorchJobSucceeded", message))


def _failed(snapshot: JobSnapshot, gang: Gang, job: Job) -> dict[mirror.Replica, RankEnd]:
    """The replicas that failed by themselves, Master first; by the job's own code where no more is known."""
    plan = snapshot.plan
    if plan is None:
        return {}
    ends = {one: job_pods.end_of(snapshot, plan, one, job) for one in mirror.replicas(plan)}
    return {one: end for one, end in ends.items() if end is not None and end.code and not end.ended}


def _retries(gang: Gang, job: Job, failed: Mapping[mirror.Replica, RankEnd]) -> bool:
    """Is this an end that the restart policy covers?"""
    if gang.restart_policy is RestartPolicy.NEVER:
        return False
    if job.states.base in _INFRASTRUCTURE:
        return True
    codes = [end.code for end in failed.values()] or [mirror.exit_code(job)]
    if gang.restart_policy is RestartPolicy.EXIT_CODE and min(codes) < 128:
        return False
    return job.states.base in _APPLICATION


def _retry(
    snapshot: JobSnapshot,
    gang: Gang,
    job: Job,
    draft: Draft,
    ended: str,
    failed: Mapping[mirror.Replica, RankEnd],
) -> None:
    """The next attempt, after a pause that doubles; backoffLimit is the number of retries (as batch/v1's)."""
    if gang.backoff_limit is not None and gang.retries >= gang.backoff_limit:
        message = f"Job {gang.name} has failed because it has reached the specified backoff limit"
        fail(snapshot, gang, draft, "PyTorchJobFailed", message, ended)
        _tell(draft, gang, job, failed)
        return
    role, _ = _culprit(gang, failed)
    message = f"job {gang.name} is restarting because {role} replica(s) failed."
    if job.states.base not in _APPLICATION:
        message = f"PyTorchJob {gang.name} is restarting because {why(job)}."
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", f"{message} ({why(job)})"))
        _tell(draft, gang, job, failed, said=True)
    gang.count(draft, "failed")
    again(snapshot, gang, draft, datetime.fromtimestamp(job.end_time, UTC) if job.end_time else None)


def again(snapshot: JobSnapshot, gang: Gang, draft: Draft, since: datetime | None) -> None:
    """The next attempt, once the pause since the last one's end is over."""
    wait = min(BACKOFF[0] * 2 ** min(gang.retries, 10), BACKOFF[1])
    left = wait - (snapshot.now - since).total_seconds() if since else 0.0
    if left > 0:
        draft.again(left)
        return
    job_pods.remove(snapshot, draft)
    draft.actions.append(next_attempt(gang, retries=gang.retries + 1))


def next_attempt(gang: Gang, *, retries: int) -> Annotate:
    """A new key; the Slurm job of the old one is not followed any more."""
    return Annotate(
        {
            names.ANNOTATION_ATTEMPT: str(gang.attempt + 1),
            names.ANNOTATION_RETRIES: str(retries),
            names.ANNOTATION_JOB_ID: None,
            names.ANNOTATION_ENDING: None,
        }
    )


def _give_up(
    snapshot: JobSnapshot,
    gang: Gang,
    job: Job,
    draft: Draft,
    ended: str,
    failed: Mapping[mirror.Replica, RankEnd],
) -> None:
    base = job.states.base
    role, count = _culprit(gang, failed)
    if base in _LATE:
        message = late(gang)
    elif base not in _APPLICATION:
        message = f"PyTorchJob {gang.name} is failed because {why(job)}."
    elif gang.restart_policy is RestartPolicy.EXIT_CODE:
        message = f'job "{gang.name}" is failing because "{role}" replica(s) failed.'
    else:
        message = f"PyTorchJob {gang.name} is failed because {count} {role} replica(s) failed."
    fail(snapshot, gang, draft, "PyTorchJobFailed", message, ended)
    _tell(draft, gang, job, failed)


def _culprit(gang: Gang, failed: Mapping[mirror.Replica, RankEnd]) -> tuple[str, int]:
    """The role that failed, Master before Worker, and how many of it; one of the first where nobody can say."""
    counts = Counter(one.role for one in failed)
    return next(((role, counts[role]) for role in gang.counts if counts[role]), (next(iter(gang.counts), "Master"), 1))


def _tell(draft: Draft, gang: Gang, job: Job, failed: Mapping[mirror.Replica, RankEnd], *, said: bool = False) -> None:
    """Which replicas failed by themselves, and with what; at least what became of the Slurm job."""
    for one, end in list(failed.items())[:MOST_TOLD]:
        text = f"Pod: {gang.namespace}.{one.pod} exited with code {end.code}"
        draft.actions.append(Event("Normal", "ExitedWithCode", text))
    if not said:
        draft.actions.append(Event("Warning", "SlurmJobFailed", why(job)))


def late(gang: Gang) -> str:
    """Upstream's words for activeDeadlineSeconds."""
    return f"Job {gang.name} has failed because it was active longer than specified deadline"


def fail(snapshot: JobSnapshot, gang: Gang, draft: Draft, reason: str, message: str, ended: str) -> None:
    """Failed, once."""
    if draft.condition(training.FAILED, reason, message, snapshot.now):
        draft.status["completionTime"] = ended
        gang.count(draft, "failed")
        draft.actions.append(Event("Warning", reason, message))


def why(job: Job) -> str:
    """One clause that tells what ended the Slurm job."""
    which = f"Slurm job {job.job_id}"
    base = job.states.base
    if base is JobBase.NODE_FAIL:
        return f"{which} lost node {job.failed_node or 'of its own'}"
    if base is JobBase.CANCELLED:
        return f"{which} was cancelled" + (f" ({job.state_description})" if job.state_description else "")
    if base in _LATE:
        return f"{which} was active longer than specified deadline"
    if base is JobBase.OUT_OF_MEMORY:
        return f"{which} ran out of memory (exit code 137)"
    if base is JobBase.FAILED:
        return f"{which} ended with exit code {mirror.exit_code(job)}"
    return f"{which} ended as {job.states}" + (f" ({job.state_reason})" if job.state_reason else "")


def tidy(snapshot: JobSnapshot, policy: RunPolicy, draft: Draft) -> None:
    """After the end: nothing of a failed job runs on, pods by cleanPodPolicy, the object itself after its time to live."""
    job = snapshot.slurm
    if isinstance(job, Job) and _runs_on(job) and held(snapshot.raw) and belongs(snapshot.raw, job):
        if training.holds(draft.conditions, training.FAILED):
            draft.actions.append(Cancel(job.job_id))
            draft.again(1.0)
    elif policy.clean_pods is CleanPodPolicy.ALL:
        job_pods.remove(snapshot, draft)
    else:
        job_pods.follow(snapshot, draft)
    _expire(snapshot, policy, draft)


def _runs_on(job: Job) -> bool:
    """Surely: a word that we do not know may mean anything."""
    return not (job.states.finished or job.states.unknown or job.states.base is JobBase.UNKNOWN)


def _expire(snapshot: JobSnapshot, policy: RunPolicy, draft: Draft) -> None:
    ended = draft.status.get("completionTime")
    if policy.ttl is None or not ended:
        return
    left = policy.ttl - (snapshot.now - parse_time(ended)).total_seconds()
    if left > 0:
        draft.again(left)
    else:
        draft.actions.append(DeleteJob())
