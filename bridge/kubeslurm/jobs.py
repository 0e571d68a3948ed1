"""What to do about one PyTorchJob: `decide_job(snapshot) -> actions`, the heart of journey B's way back.

Pure and total; called by the operator's job loop whenever the object, its Slurm job or its mirror pods changed. What
always holds: the same snapshot after its actions gives no action; without an answer of Slurm's nothing is submitted,
cancelled, deleted or declared lost; a job is submitted again only under a new attempt's key; Slurm retries what its nodes
lose, this retries what the program did. Annotations are the user's to write: a Slurm job is followed or cancelled only if
its own comment names this object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubeslurm import job_ends, job_pods, names, run_policy, training
from kubeslurm.conditions import find, parse_time, rfc3339
from kubeslurm.job_model import (
    AddFinalizer,
    Annotate,
    Bring,
    Cancel,
    CreatePods,
    DeleteJob,
    DeletePods,
    Draft,
    Event,
    Gang,
    JobAction,
    JobDecision,
    JobSnapshot,
    PatchPods,
    PatchStatus,
    RemoveFinalizer,
    Slurm,
    Submit,
    attempt_of,
    belongs,
    ending_of,
    held,
    job_id_of,
    retries_of,
    submitted_as,
)
from kubeslurm.plans import JobPlan, RestartPolicy
from slurmrest import Job, JobBase, JobFlag

__all__ = [
    "AddFinalizer",
    "Annotate",
    "Bring",
    "Cancel",
    "CreatePods",
    "DeleteJob",
    "DeletePods",
    "Event",
    "JobAction",
    "JobDecision",
    "JobSnapshot",
    "PatchPods",
    "PatchStatus",
    "RemoveFinalizer",
    "Slurm",
    "Submit",
    "attempt_of",
    "belongs",
    "decide_job",
    "held",
    "job_id_of",
    "refused",
]

Raw = dict[str, Any]

TENANT_GRACE: Final = 5.0
"""Seconds that a new object may wait for its tenant: both may be applied in one go, and be seen in any order."""

CREATED_SECONDS: Final = 2.0
"""A job that starts sooner after its creation is told of Created and Running in one write; another of Created, then."""

MISSING_SECONDS: Final = 5.0
"""Between two looks for a ConfigMap or Secret that a job waits for."""

AWAY_SECONDS: Final = 2.0
"""Until Slurm is asked again."""

_TENANT_PATH: Final = "metadata.namespace"
_FORGOTTEN: Final[Mapping[str, None]] = {
    names.ANNOTATION_JOB_ID: None,
    names.ANNOTATION_SUBMISSION: None,
    names.ANNOTATION_CLUSTER: None,
    names.ANNOTATION_LAUNCHER_REASON: None,
}
_NEW: Final[Mapping[str, None]] = {
    **_FORGOTTEN,
    names.ANNOTATION_ATTEMPT: None,
    names.ANNOTATION_RETRIES: None,
    names.ANNOTATION_ENDING: None,
}
_REQUEUED: Final = frozenset({JobFlag.REQUEUED, JobFlag.REQUEUE_FED})


def decide_job(snapshot: JobSnapshot) -> JobDecision:
    """What to do now."""
    if snapshot.raw["metadata"].get("deletionTimestamp"):
        return _delete(snapshot)
    draft = Draft(dict(snapshot.raw.get("status") or {}))
    policy = run_policy.of(snapshot.raw)
    if training.finished(draft.status):
        job_ends.tidy(snapshot, policy, draft)
    elif _noted_wrongly(snapshot):
        # copied from another object along with its YAML, or forged; the key finds what is really there
        draft.actions.append(Annotate(_NEW))
    elif policy.suspend:
        _suspend(snapshot, _gang(snapshot), draft)
    elif snapshot.plan is None and job_id_of(snapshot.raw) is None:
        _refuse(snapshot, draft)
    else:
        _drive(snapshot, _gang(snapshot), policy, draft)
    if draft.status != (snapshot.raw.get("status") or {}) and not _kept_back(snapshot, draft):
        draft.actions.insert(0, PatchStatus(draft.status))
    return JobDecision(tuple(draft.actions), draft.retry_after)


def _kept_back(snapshot: JobSnapshot, draft: Draft) -> bool:
    """Is Created all there is to tell, of a job so young that it may run in a moment? Then both are told at once."""
    if snapshot.raw.get("status") or [one["type"] for one in draft.conditions] != [training.CREATED]:
        return False
    may_start = isinstance(snapshot.slurm, Job) or any(isinstance(one, Submit) for one in draft.actions)
    left = _young(snapshot, CREATED_SECONDS)
    if not may_start or not 0 < left <= CREATED_SECONDS:
        return False
    draft.again(left)
    return True


def _young(snapshot: JobSnapshot, seconds: float) -> float:
    """How long until the object is so old; 0 when it is, or when it doesn't tell."""
    stamp = snapshot.raw["metadata"].get("creationTimestamp")
    return max(seconds - (snapshot.now - parse_time(stamp)).total_seconds(), 0.0) if stamp else 0.0


def _noted_wrongly(snapshot: JobSnapshot) -> bool:
    """Does the annotation name a Slurm job that isn't this object's, or that it can't have had yet?"""
    if job_id_of(snapshot.raw) is None:
        return False
    if isinstance(snapshot.slurm, Job):
        return not belongs(snapshot.raw, snapshot.slurm)
    conditions = (snapshot.raw.get("status") or {}).get("conditions") or ()
    submitted = submitted_as(snapshot.raw) == snapshot.raw["metadata"].get("uid")
    return snapshot.slurm is Slurm.ABSENT and not submitted and not training.holds(conditions, training.CREATED)


def _gang(snapshot: JobSnapshot) -> Gang:
    """By the plan; a submitted job whose object can't be read any more is followed to its end, and not tried again."""
    plan, raw = snapshot.plan, snapshot.raw
    name, namespace, retries = raw["metadata"]["name"], raw["metadata"].get("namespace", ""), retries_of(raw)
    if plan is not None:
        counts = _counts(plan, len(snapshot.hosts))
        return Gang(name, namespace, counts, plan.attempt, retries, plan.restart_policy, plan.backoff_limit)
    before = (raw.get("status") or {}).get("replicaStatuses") or {role: {} for role in _roles(raw)}
    counts = {str(role): _replicas(raw, role, counters) for role, counters in before.items()}
    return Gang(name, namespace, counts, attempt_of(raw), retries, RestartPolicy.NEVER, None)


def _counts(plan: JobPlan, nodes: int) -> dict[str, int]:
    """Replicas by role; of an elastic job that has nodes, those that there is a node for."""
    counts = {role.name: role.replicas for role in plan.roles}
    if plan.elastic is not None:
        most = min(plan.replicas, nodes or plan.replicas)
        last = plan.roles[-1].name
        counts[last] = max(0, most - sum(count for name, count in counts.items() if name != last))
    return counts


def _replicas(raw: Mapping[str, Any], role: str, counters: Mapping[str, Any]) -> int:
    """How many a role has, by the last counters, else by what the spec says now."""
    spec = _roles(raw).get(role) or {}
    said = [*counters.values(), spec.get("replicas")]
    return next((one for one in said if isinstance(one, int)), 1)


def _roles(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return raw["spec"].get("pytorchReplicaSpecs") or {}


def _delete(snapshot: JobSnapshot) -> JobDecision:
    """Cancel, wait until Slurm holds nothing any more, then let the object go."""
    if not held(snapshot.raw):
        return JobDecision()
    slurm = snapshot.slurm
    if slurm is Slurm.UNREACHABLE:
        return JobDecision(retry_after=AWAY_SECONDS)
    if isinstance(slurm, Job) and belongs(snapshot.raw, slurm):
        if not slurm.states.finished:
            return JobDecision((Cancel(slurm.job_id),), retry_after=1.0)
    elif job_id_of(snapshot.raw) is not None:
        # no such job, or somebody else's: without the id, the next look goes by the key
        return JobDecision((Annotate(_FORGOTTEN),), retry_after=1.0)
    pods = tuple(sorted(snapshot.pods))
    return JobDecision(((DeletePods(pods),) if pods else ()) + (RemoveFinalizer(),))


def _refuse(snapshot: JobSnapshot, draft: Draft) -> None:
    """Nothing was submitted: say which field it is, once."""
    meta = snapshot.raw["metadata"]
    left = _young(snapshot, TENANT_GRACE)
    if left > 0 and snapshot.refusal and snapshot.refusal.path == _TENANT_PATH:
        draft.again(left)
        return
    message = f"PyTorchJob {meta['name']} is refused: {snapshot.refusal}"
    if draft.condition(training.FAILED, "SlurmTranslationFailed", message, snapshot.now):
        draft.status["completionTime"] = rfc3339(snapshot.now)
        draft.actions.append(Event("Warning", "SlurmTranslationFailed", message))


def _created(name: str, draft: Draft, now: datetime) -> None:
    draft.condition(training.CREATED, "PyTorchJobCreated", f"PyTorchJob {name} is created.", now)


def _suspend(snapshot: JobSnapshot, gang: Gang, draft: Draft) -> None:
    """No Slurm job while it is suspended; the one that runs is ended, and that is no failure. Its spec is read on resume."""
    _created(gang.name, draft, snapshot.now)
    message = f"PyTorchJob {gang.name} is suspended."
    if training.holds(draft.conditions, training.RUNNING):
        draft.condition(training.RUNNING, "PyTorchJobSuspended", message, snapshot.now, holds=False)
    if draft.condition(training.SUSPENDED, "PyTorchJobSuspended", message, snapshot.now):
        draft.actions.append(Event("Normal", "PyTorchJobSuspended", message))
    if held(snapshot.raw) and _ended(snapshot, gang, draft):
        draft.actions.append(RemoveFinalizer())


def _ended(snapshot: JobSnapshot, gang: Gang, draft: Draft) -> bool:
    """Does Slurm hold nothing of it any more? Else see to it; a job that has ended well meanwhile has ended well."""
    job, noted = snapshot.slurm, job_id_of(snapshot.raw)
    if job is Slurm.UNREACHABLE:
        draft.again(AWAY_SECONDS)
    elif isinstance(job, Job) and not job.states.finished:
        if ending_of(snapshot.raw) != job.job_id:
            draft.actions.append(Annotate({names.ANNOTATION_ENDING: str(job.job_id)}))
        draft.actions.append(Cancel(job.job_id))
        draft.again(1.0)
    elif isinstance(job, Job) and job.states.base is JobBase.COMPLETED:
        job_ends.finish(snapshot, gang, job, draft)
    elif isinstance(job, Job) or noted is not None:
        if draft.status.get("replicaStatuses"):
            gang.count(draft, None)
        job_pods.remove(snapshot, draft)
        draft.actions.append(job_ends.next_attempt(gang, retries=gang.retries))
    else:
        return True
    return False


def _resume(snapshot: JobSnapshot, gang: Gang, draft: Draft) -> None:
    if training.holds(draft.conditions, training.SUSPENDED):
        message = f"PyTorchJob {gang.name} is resumed."
        draft.condition(training.SUSPENDED, "PyTorchJobResumed", message, snapshot.now, holds=False)
        draft.status["startTime"] = rfc3339(snapshot.now)
        draft.actions.append(Event("Normal", "PyTorchJobResumed", message))


def _drive(snapshot: JobSnapshot, gang: Gang, policy: run_policy.RunPolicy, draft: Draft) -> None:
    _created(gang.name, draft, snapshot.now)
    _resume(snapshot, gang, draft)
    draft.status.setdefault("startTime", rfc3339(snapshot.now))
    draft.status.setdefault("replicaStatuses", training.replica_statuses(gang.label, gang.counts, None))
    if snapshot.refusal is not None:
        # an edit after submission can't change the Slurm job; it goes on as it was submitted
        draft.actions.append(Event("Warning", "SpecIgnored", f"the job was submitted before: {snapshot.refusal}"))
    if not held(snapshot.raw):
        draft.actions.append(AddFinalizer())
    if ending_of(snapshot.raw) is not None and ending_of(snapshot.raw) == job_id_of(snapshot.raw):
        _ended(snapshot, gang, draft)  # suspended and resumed before its Slurm job was gone
    elif not _too_late(snapshot, gang, policy, draft):
        _look(snapshot, gang, draft)


def _too_late(snapshot: JobSnapshot, gang: Gang, policy: run_policy.RunPolicy, draft: Draft) -> bool:
    """activeDeadlineSeconds counts from startTime, time in the queue included. What runs is then cancelled by `tidy`."""
    if policy.deadline is None or snapshot.slurm is Slurm.UNREACHABLE:
        return False
    left = policy.deadline - (snapshot.now - parse_time(draft.status["startTime"])).total_seconds()
    if left > 0 or (isinstance(snapshot.slurm, Job) and snapshot.slurm.states.finished):
        draft.again(max(left, 1.0))
        return False
    job_ends.fail(snapshot, gang, draft, "PyTorchJobFailed", job_ends.late(gang), rfc3339(snapshot.now))
    job_ends.tidy(snapshot, policy, draft)
    return True


def _look(snapshot: JobSnapshot, gang: Gang, draft: Draft) -> None:
    slurm = snapshot.slurm
    if slurm is Slurm.NOT_SUBMITTED:
        gang.count(draft, None)
        _submit(snapshot, draft)
    elif slurm is Slurm.ABSENT:
        _absent(snapshot, gang, draft)
    elif isinstance(slurm, Job):
        _follow(snapshot, gang, slurm, draft)
        job_pods.follow(snapshot, draft)
        draft.actions.sort(key=lambda action: isinstance(action, Bring))  # last: a node may not answer


def _submit(snapshot: JobSnapshot, draft: Draft) -> None:
    """Unless it would wait on its nodes for what is not there: then it waits here."""
    if not snapshot.missing:
        draft.actions.append(Submit())
        return
    draft.actions.append(Event("Warning", "MaterialsMissing", f"waits for {', '.join(snapshot.missing)}"))
    draft.again(MISSING_SECONDS)


def _absent(snapshot: JobSnapshot, gang: Gang, draft: Draft) -> None:
    """Slurm forgets ended jobs (MinJobAge): lost, unless its end was seen and only the pause before a retry is left."""
    restarting = find(draft.conditions, training.RESTARTING)
    failed = any("failed" in one for one in (draft.status.get("replicaStatuses") or {}).values())
    if restarting and failed:
        job_ends.again(snapshot, gang, draft, parse_time(restarting["lastTransitionTime"]))
        return
    text = f"Slurm does not know job {job_id_of(snapshot.raw)} any more; how it ended is not known"
    message = f"PyTorchJob {gang.name} is failed because {text}."
    job_ends.fail(snapshot, gang, draft, "SlurmJobLost", message, rfc3339(snapshot.now))


def _follow(snapshot: JobSnapshot, gang: Gang, job: Job, draft: Draft) -> None:
    """The status by the Slurm job's state; an unknown word changes nothing."""
    states = job.states
    if states.unknown or states.base is JobBase.UNKNOWN:
        draft.actions.append(
            Event("Warning", "UnknownSlurmState", f"Slurm job {job.job_id} is {states}; nothing is changed")
        )
    elif states.finished:
        job_ends.finish(snapshot, gang, job, draft)
    elif states.base is JobBase.RUNNING and not states.flags & {JobFlag.CONFIGURING, JobFlag.COMPLETING, *_REQUEUED}:
        _running(snapshot, gang, job, draft)
    elif _starts_again(job, draft):
        _restarting(snapshot, gang, job, draft)


def _running(snapshot: JobSnapshot, gang: Gang, job: Job, draft: Draft) -> None:
    subject = gang.name if "Master" in gang.counts else f"{gang.namespace}/{gang.name}"
    draft.condition(training.RUNNING, "PyTorchJobRunning", f"PyTorchJob {subject} is running.", snapshot.now)
    gang.count(draft, "active")
    if snapshot.bare:
        draft.actions.append(Bring(job.job_id, job.restart_count, tuple(snapshot.bare)))


def _starts_again(job: Job, draft: Draft) -> bool:
    """Slurm put it back into the queue after it had run."""
    if _REQUEUED & job.states.flags:
        return True
    ran = training.holds(draft.conditions, training.RUNNING)
    return job.states.base is JobBase.PENDING and job.restart_count > 0 and ran


def _restarting(snapshot: JobSnapshot, gang: Gang, job: Job, draft: Draft) -> None:
    # a job that Slurm has put back does not tell which node it lost
    lost = job.failed_node or ", ".join(snapshot.lost[:8])
    why = f"node {lost} was lost" if lost else "Slurm requeued it"
    message = (
        f"PyTorchJob {gang.name} is restarting because {why} (Slurm job {job.job_id}, restart {job.restart_count})."
    )
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", message))
    gang.count(draft, None)


def refused(raw: Mapping[str, Any], plan: JobPlan, why: str, now: datetime | None = None) -> Raw:
    """The status of a job that slurmctld would not take: Failed, with Slurm's words."""
    moment = now or datetime.now(UTC)
    draft = Draft(dict(raw.get("status") or {}))
    _created(plan.name, draft, moment)
    message = f"PyTorchJob {plan.name} is failed because Slurm refused it: {why}"
    draft.condition(training.FAILED, "SlurmSubmitFailed", message, moment)
    draft.status["completionTime"] = rfc3339(moment)
    return draft.status
