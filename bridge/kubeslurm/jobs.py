"""What to do about one PyTorchJob: `decide_job(snapshot) -> actions`, the heart of journey B's way back.

Pure and total; called by the operator's job loop whenever the object, its Slurm job or its mirror pods changed. What
always holds: the same snapshot after its actions gives no action; without an answer of Slurm's nothing is submitted,
cancelled, deleted or declared lost; a job is submitted again only under a new attempt's key; Slurm retries what its nodes
lose, this retries what the program did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from kubeslurm import mirror, names, training
from kubeslurm.conditions import rfc3339
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan, RestartPolicy
from slurmrest import Job, JobBase, JobFlag

Raw = dict[str, Any]


class Slurm(Enum):
    """What else than a job Slurm can say of one."""

    NOT_SUBMITTED = "not submitted"
    ABSENT = "slurmctld does not know it"
    UNREACHABLE = "slurmctld does not answer"


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """One PyTorchJob at one moment. `plan` or `refusal` is given; `pods` are its mirror pods by name.

    `hosts`: the Slurm nodes that it has, in the order of its tasks. `lost`: nodes that it had and that went down lately.
    """

    raw: Mapping[str, Any]
    plan: JobPlan | None
    refusal: InvalidObject | None
    slurm: Job | Slurm
    hosts: Sequence[str]
    lost: Sequence[str]
    pods: Mapping[str, Mapping[str, Any]]
    now: datetime


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Hold the object until its Slurm job is gone."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the object go."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the plan, once per key."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the Slurm job."""

    job_id: int


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """The object's whole status."""

    status: Raw


@dataclass(frozen=True, slots=True)
class Annotate:
    """Annotations to set, or to remove (None)."""

    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Mirror pods to make, by their places in the gang."""

    replicas: tuple[mirror.Replica, ...]


@dataclass(frozen=True, slots=True)
class PatchPods:
    """Statuses of mirror pods, by the pods' names."""

    statuses: Mapping[str, Raw]


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Mirror pods to remove at once."""

    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell the user."""

    type: str
    reason: str
    message: str


JobAction = (
    AddFinalizer
    | RemoveFinalizer
    | Submit
    | Cancel
    | PatchStatus
    | Annotate
    | CreatePods
    | PatchPods
    | DeletePods
    | Event
)


@dataclass(frozen=True, slots=True)
class JobDecision:
    """Actions in their order, and when to look again though nothing changed (seconds)."""

    actions: tuple[JobAction, ...] = ()
    retry_after: float | None = None


@dataclass
class _Draft:
    """A decision being made: the status as it becomes, and the actions so far."""

    status: Raw
    actions: list[JobAction] = field(default_factory=list)
    retry_after: float | None = None

    def condition(self, kind: str, reason: str, message: str, now: datetime) -> bool:
        """Set it; was it new?"""
        before = self.status.get("conditions") or []
        self.status["conditions"] = training.set_condition(before, kind, reason, message, now)
        return bool(self.status["conditions"] != before)


BACKOFF: Final = (10.0, 300.0)
"""Seconds before the first retry of a program that failed, and the most that doubling makes of it."""

_APPLICATION: Final = frozenset({JobBase.FAILED, JobBase.OUT_OF_MEMORY})
_INFRASTRUCTURE: Final = frozenset({JobBase.NODE_FAIL, JobBase.BOOT_FAIL, JobBase.PREEMPTED})
_REQUEUED: Final = frozenset({JobFlag.REQUEUED, JobFlag.REQUEUE_FED})


def attempt_of(raw: Mapping[str, Any]) -> int:
    """Which attempt the object is at, by its annotation; 1 where it says nothing or nonsense."""
    text = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_ATTEMPT, "1")
    return int(text) if text.isdigit() and 0 < int(text) < 10**6 else 1


def job_id_of(raw: Mapping[str, Any]) -> int | None:
    """The Slurm job of this attempt, by the annotation."""
    text = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_JOB_ID, "")
    return int(text) if text.isdigit() and len(text) < 12 else None


def decide_job(snapshot: JobSnapshot) -> JobDecision:
    """What to do now."""
    if snapshot.raw["metadata"].get("deletionTimestamp"):
        return _delete(snapshot)
    draft = _Draft(dict(snapshot.raw.get("status") or {}))
    if training.finished(draft.status):
        _mirror(snapshot, draft)
    elif snapshot.plan is None:
        _refuse(snapshot, draft)
    else:
        _drive(snapshot, snapshot.plan, draft)
    if draft.status != (snapshot.raw.get("status") or {}):
        draft.actions.insert(0, PatchStatus(draft.status))
    return JobDecision(tuple(draft.actions), draft.retry_after)


def _delete(snapshot: JobSnapshot) -> JobDecision:
    """Cancel, wait until Slurm holds nothing any more, then let the object go."""
    if names.FINALIZER not in (snapshot.raw["metadata"].get("finalizers") or ()):
        return JobDecision()
    if snapshot.slurm is Slurm.UNREACHABLE:
        return JobDecision(retry_after=2.0)
    if isinstance(snapshot.slurm, Job) and not snapshot.slurm.states.finished:
        return JobDecision((Cancel(snapshot.slurm.job_id),), retry_after=1.0)
    pods = tuple(sorted(snapshot.pods))
    return JobDecision(((DeletePods(pods),) if pods else ()) + (RemoveFinalizer(),))


def _refuse(snapshot: JobSnapshot, draft: _Draft) -> None:
    """Nothing was submitted: say which field it is, once."""
    if job_id_of(snapshot.raw) is not None:
        # an edit after submission can't change the Slurm job; it goes on as it was submitted
        draft.actions.append(Event("Warning", "SpecIgnored", f"the job was submitted before: {snapshot.refusal}"))
        return
    message = f"PyTorchJob {snapshot.raw['metadata']['name']} is refused: {snapshot.refusal}"
    if draft.condition(training.FAILED, "SlurmTranslationFailed", message, snapshot.now):
        draft.status["completionTime"] = rfc3339(snapshot.now)
        draft.actions.append(Event("Warning", "SlurmTranslationFailed", message))


def _drive(snapshot: JobSnapshot, plan: JobPlan, draft: _Draft) -> None:
    draft.condition(training.CREATED, "PyTorchJobCreated", f"PyTorchJob {plan.name} is created.", snapshot.now)
    draft.status.setdefault("startTime", rfc3339(snapshot.now))
    draft.status.setdefault("replicaStatuses", training.replica_statuses(_label(plan), _counts(plan), None))
    if names.FINALIZER not in (snapshot.raw["metadata"].get("finalizers") or ()):
        draft.actions.append(AddFinalizer())
    slurm = snapshot.slurm
    if slurm is Slurm.NOT_SUBMITTED:
        draft.actions.append(Submit())
    elif slurm is Slurm.ABSENT:
        text = f"Slurm does not know job {job_id_of(snapshot.raw)} any more; how it ended is not known"
        _fail(snapshot, plan, draft, "SlurmJobLost", text, rfc3339(snapshot.now))
    elif isinstance(slurm, Job):
        _follow(snapshot, plan, slurm, draft)
        _mirror(snapshot, draft)


def _follow(snapshot: JobSnapshot, plan: JobPlan, job: Job, draft: _Draft) -> None:
    """The status by the Slurm job's state; an unknown word changes nothing."""
    states = job.states
    if states.unknown or states.base is JobBase.UNKNOWN:
        draft.actions.append(
            Event("Warning", "UnknownSlurmState", f"Slurm job {job.job_id} is {states}; nothing is changed")
        )
    elif states.finished:
        _finish(snapshot, plan, job, draft)
    elif states.base is JobBase.RUNNING and not states.flags & {JobFlag.CONFIGURING, JobFlag.COMPLETING, *_REQUEUED}:
        draft.condition(training.RUNNING, "PyTorchJobRunning", f"PyTorchJob {plan.name} is running.", snapshot.now)
        _count(plan, draft, "active")
    elif _starts_again(job, draft):
        _restarting(snapshot, plan, job, draft)


def _starts_again(job: Job, draft: _Draft) -> bool:
    """Slurm put it back into the queue after it had run."""
    if _REQUEUED & job.states.flags:
        return True
    ran = training.holds(draft.status.get("conditions") or (), training.RUNNING)
    return job.states.base is JobBase.PENDING and job.restart_count > 0 and ran


def _restarting(snapshot: JobSnapshot, plan: JobPlan, job: Job, draft: _Draft) -> None:
    # a job that Slurm has put back does not tell which node it lost
    lost = job.failed_node or ", ".join(snapshot.lost[:8])
    why = f"node {lost} was lost" if lost else "Slurm requeued it"
    message = (
        f"PyTorchJob {plan.name} is restarting because {why} (Slurm job {job.job_id}, restart {job.restart_count})."
    )
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", message))
    _count(plan, draft, None)


def _finish(snapshot: JobSnapshot, plan: JobPlan, job: Job, draft: _Draft) -> None:
    ended = rfc3339(datetime.fromtimestamp(job.end_time, UTC) if job.end_time else snapshot.now)
    if job.states.base is JobBase.COMPLETED:
        message = f"PyTorchJob {plan.name} is successfully completed."
        draft.condition(training.SUCCEEDED, "PyTorchJobSucceeded", message, snapshot.now)
        draft.status["completionTime"] = ended
        _count(plan, draft, "succeeded")
        draft.actions.append(Event("Normal", "PyTorchJobSucceeded", message))
    elif _retries(plan, job):
        _retry(snapshot, plan, job, draft, ended)
    else:
        _fail(snapshot, plan, draft, "PyTorchJobFailed", _why(plan, job), ended)


def _retries(plan: JobPlan, job: Job) -> bool:
    """Is this an end that the restart policy covers?"""
    if plan.restart_policy is RestartPolicy.NEVER:
        return False
    if job.states.base in _INFRASTRUCTURE:
        return True
    if plan.restart_policy is RestartPolicy.EXIT_CODE and mirror.exit_code(job) < 128:
        return False
    return job.states.base in _APPLICATION


def _retry(snapshot: JobSnapshot, plan: JobPlan, job: Job, draft: _Draft, ended: str) -> None:
    """The next attempt, after a pause that doubles; backoffLimit is the number of retries (as batch/v1's)."""
    if plan.backoff_limit is not None and plan.attempt > plan.backoff_limit:
        message = f"Job {plan.name} has failed because it has reached the specified backoff limit"
        _fail(snapshot, plan, draft, "PyTorchJobFailed", f"{message} ({_why(plan, job)})", ended)
        return
    message = f"PyTorchJob {plan.name} is restarting because {_why(plan, job)}."
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", message))
    _count(plan, draft, "failed")
    wait = min(BACKOFF[0] * 2 ** min(plan.attempt - 1, 10), BACKOFF[1])
    since = datetime.fromtimestamp(job.end_time, UTC) if job.end_time else snapshot.now - timedelta(seconds=wait)
    left = wait - (snapshot.now - since).total_seconds()
    if left > 0:
        draft.retry_after = left
        return
    if snapshot.pods:
        draft.actions.append(DeletePods(tuple(sorted(snapshot.pods))))
    draft.actions.append(Annotate({names.ANNOTATION_ATTEMPT: str(plan.attempt + 1), names.ANNOTATION_JOB_ID: None}))


def _fail(snapshot: JobSnapshot, plan: JobPlan, draft: _Draft, reason: str, why: str, ended: str) -> None:
    message = f"PyTorchJob {plan.name} is failed because {why}."
    if draft.condition(training.FAILED, reason, message, snapshot.now):
        draft.status["completionTime"] = ended
        _count(plan, draft, "failed")
        draft.actions.append(Event("Warning", reason, message))


def _why(plan: JobPlan, job: Job) -> str:
    """One clause that tells what ended the Slurm job."""
    which = f"Slurm job {job.job_id}"
    base = job.states.base
    if base is JobBase.NODE_FAIL:
        return f"{which} lost node {job.failed_node or 'of its own'}"
    if base is JobBase.CANCELLED:
        return f"{which} was cancelled" + (f" ({job.state_description})" if job.state_description else "")
    if base in (JobBase.TIMEOUT, JobBase.DEADLINE):
        return f"{which} was active longer than specified deadline"
    if base is JobBase.OUT_OF_MEMORY:
        return f"{which} ran out of memory (exit code 137)"
    if base is JobBase.FAILED:
        return f"{which} ended with exit code {mirror.exit_code(job)}"
    return f"{which} ended as {job.states}" + (f" ({job.state_reason})" if job.state_reason else "")


def _mirror(snapshot: JobSnapshot, draft: _Draft) -> None:
    """Mirror pods as the Slurm job is; those of an ended job that were removed stay removed."""
    job, plan = snapshot.slurm, snapshot.plan
    if not isinstance(job, Job) or plan is None or any(isinstance(one, Annotate) for one in draft.actions):
        return
    members = tuple(mirror.replicas(plan))
    missing = tuple(one for one in members if one.pod not in snapshot.pods)
    if missing and not training.finished(snapshot.raw.get("status") or {}):
        draft.actions.append(CreatePods(missing))
    statuses = {one.pod: status for one in members if (status := _pod_status(snapshot, plan, one, job)) is not None}
    if statuses:
        draft.actions.append(PatchPods(statuses))


def _pod_status(snapshot: JobSnapshot, plan: JobPlan, replica: mirror.Replica, job: Job) -> Raw | None:
    """What the replica's pod should say, None when it does or when there is no such pod."""
    current = snapshot.pods.get(replica.pod)
    host = snapshot.hosts[replica.place] if replica.place < len(snapshot.hosts) else ""
    wanted = mirror.status(plan, replica, job, host)
    if current is None or wanted is None or mirror.same(wanted, current.get("status") or {}):
        return None
    return wanted


def _label(plan: JobPlan) -> str:
    return mirror.shorten(plan.name, mirror.MAX_LABEL)


def _counts(plan: JobPlan) -> dict[str, int]:
    return {role.name: role.replicas for role in plan.roles}


def _count(plan: JobPlan, draft: _Draft, counter: str | None) -> None:
    draft.status["replicaStatuses"] = training.replica_statuses(_label(plan), _counts(plan), counter)


def refused(raw: Mapping[str, Any], plan: JobPlan, why: str, now: datetime | None = None) -> Raw:
    """The status of a job that slurmctld would not take: Failed, with Slurm's words."""
    moment = now or datetime.now(UTC)
    draft = _Draft(dict(raw.get("status") or {}))
    message = f"PyTorchJob {plan.name} is failed because Slurm refused it: {why}"
    draft.condition(training.FAILED, "SlurmSubmitFailed", message, moment)
    draft.status["completionTime"] = rfc3339(moment)
    return draft.status
