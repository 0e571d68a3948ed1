"""What to do about one PyTorchJob: `decide_job(snapshot) -> actions`, the heart of journey B's way back.

Pure and total; called by the operator's job loop whenever the object, its Slurm job or its mirror pods changed. What
always holds: the same snapshot after its actions gives no action; without an answer of Slurm's nothing is submitted,
cancelled, deleted or declared lost; a job is submitted again only under a new attempt's key; Slurm retries what its nodes
lose, this retries what the program did. Annotations are the user's to write: a Slurm job is followed or cancelled only if
its own comment names this object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from kubeslurm import mirror, names, run_policy, training
from kubeslurm.conditions import find, parse_time, rfc3339
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
    `missing`: the ConfigMaps and Secrets that it waits for. `bare`: those of its hosts that it has no materials on yet.
    """

    raw: Mapping[str, Any]
    plan: JobPlan | None
    refusal: InvalidObject | None
    slurm: Job | Slurm
    hosts: Sequence[str]
    lost: Sequence[str]
    pods: Mapping[str, Mapping[str, Any]]
    now: datetime
    missing: Sequence[str] = ()
    bare: Sequence[str] = ()


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
class Bring:
    """Bring what it gets of ConfigMaps and Secrets to these of its nodes, for this start of it."""

    job_id: int
    restart: int
    hosts: tuple[str, ...]


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
    | Bring
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


@dataclass(frozen=True, slots=True)
class _Gang:
    """What of an object it takes to follow its Slurm job; `counts` are replicas by role."""

    name: str
    counts: Mapping[str, int]
    attempt: int
    restart_policy: RestartPolicy
    backoff_limit: int | None


BACKOFF: Final = (10.0, 300.0)
"""Seconds before the first retry of a program that failed, and the most that doubling makes of it."""

TENANT_GRACE: Final = 5.0
"""Seconds that a new object may wait for its tenant: both may be applied in one go, and be seen in any order."""

MISSING_SECONDS: Final = 5.0
"""Between two looks for a ConfigMap or Secret that a job waits for."""

_TENANT_PATH: Final = "metadata.namespace"
_FORGOTTEN: Final[Mapping[str, None]] = {
    names.ANNOTATION_JOB_ID: None,
    names.ANNOTATION_CLUSTER: None,
    names.ANNOTATION_LAUNCHER_REASON: None,
}

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
    elif _noted_wrongly(snapshot):
        # copied from another object along with its YAML, or forged; the key finds what is really there
        draft.actions.append(Annotate({**_FORGOTTEN, names.ANNOTATION_ATTEMPT: None}))
    elif snapshot.plan is None and job_id_of(snapshot.raw) is None:
        _refuse(snapshot, draft)
    else:
        _drive(snapshot, _gang(snapshot), draft)
    if draft.status != (snapshot.raw.get("status") or {}):
        draft.actions.insert(0, PatchStatus(draft.status))
    return JobDecision(tuple(draft.actions), draft.retry_after)


def _belongs(raw: Mapping[str, Any], job: Job) -> bool:
    """Is it this object's? Its comment ends with the submission key, `<uid>/<attempt>`."""
    uid, _, attempt = job.comment.rpartition(":")[2].rpartition("/")
    return attempt.isdigit() and uid == raw["metadata"].get("uid")


def _noted_wrongly(snapshot: JobSnapshot) -> bool:
    """Does the annotation name a Slurm job that isn't this object's, or that it can't have had yet?"""
    if job_id_of(snapshot.raw) is None:
        return False
    if isinstance(snapshot.slurm, Job):
        return not _belongs(snapshot.raw, snapshot.slurm)
    conditions = (snapshot.raw.get("status") or {}).get("conditions") or ()
    return snapshot.slurm is Slurm.ABSENT and not training.holds(conditions, training.CREATED)


def _gang(snapshot: JobSnapshot) -> _Gang:
    """By the plan; a submitted job whose object can't be read any more is followed to its end, and not tried again."""
    plan, raw = snapshot.plan, snapshot.raw
    if plan is not None:
        counts = {role.name: role.replicas for role in plan.roles}
        return _Gang(plan.name, counts, plan.attempt, plan.restart_policy, plan.backoff_limit)
    before = (raw.get("status") or {}).get("replicaStatuses") or {}
    counts = {str(role): _replicas(raw, role, counters) for role, counters in before.items()}
    return _Gang(raw["metadata"]["name"], counts, attempt_of(raw), RestartPolicy.NEVER, None)


def _replicas(raw: Mapping[str, Any], role: str, counters: Mapping[str, Any]) -> int:
    """How many a role has, by the last counters, else by what the spec says now."""
    spec = (raw["spec"].get("pytorchReplicaSpecs") or {}).get(role) or {}
    said = [*counters.values(), spec.get("replicas")]
    return next((one for one in said if isinstance(one, int)), 1)


def _delete(snapshot: JobSnapshot) -> JobDecision:
    """Cancel, wait until Slurm holds nothing any more, then let the object go."""
    if names.FINALIZER not in (snapshot.raw["metadata"].get("finalizers") or ()):
        return JobDecision()
    slurm = snapshot.slurm
    if slurm is Slurm.UNREACHABLE:
        return JobDecision(retry_after=2.0)
    if isinstance(slurm, Job) and _belongs(snapshot.raw, slurm):
        if not slurm.states.finished:
            return JobDecision((Cancel(slurm.job_id),), retry_after=1.0)
    elif job_id_of(snapshot.raw) is not None:
        # no such job, or somebody else's: without the id, the next look goes by the key
        return JobDecision((Annotate(_FORGOTTEN),), retry_after=1.0)
    pods = tuple(sorted(snapshot.pods))
    return JobDecision(((DeletePods(pods),) if pods else ()) + (RemoveFinalizer(),))


def _refuse(snapshot: JobSnapshot, draft: _Draft) -> None:
    """Nothing was submitted: say which field it is, once."""
    meta = snapshot.raw["metadata"]
    if snapshot.refusal and snapshot.refusal.path == _TENANT_PATH and "creationTimestamp" in meta:
        left = TENANT_GRACE - (snapshot.now - parse_time(meta["creationTimestamp"])).total_seconds()
        if left > 0:
            draft.retry_after = left
            return
    message = f"PyTorchJob {meta['name']} is refused: {snapshot.refusal}"
    if draft.condition(training.FAILED, "SlurmTranslationFailed", message, snapshot.now):
        draft.status["completionTime"] = rfc3339(snapshot.now)
        draft.actions.append(Event("Warning", "SlurmTranslationFailed", message))


def _drive(snapshot: JobSnapshot, gang: _Gang, draft: _Draft) -> None:
    draft.condition(training.CREATED, "PyTorchJobCreated", f"PyTorchJob {gang.name} is created.", snapshot.now)
    draft.status.setdefault("startTime", rfc3339(snapshot.now))
    draft.status.setdefault("replicaStatuses", training.replica_statuses(_label(gang.name), gang.counts, None))
    if snapshot.refusal is not None:
        # an edit after submission can't change the Slurm job; it goes on as it was submitted
        draft.actions.append(Event("Warning", "SpecIgnored", f"the job was submitted before: {snapshot.refusal}"))
    if names.FINALIZER not in (snapshot.raw["metadata"].get("finalizers") or ()):
        draft.actions.append(AddFinalizer())
    slurm = snapshot.slurm
    if slurm is Slurm.NOT_SUBMITTED:
        _count(gang, draft, None)
        _submit(snapshot, draft)
    elif slurm is Slurm.ABSENT:
        _absent(snapshot, gang, draft)
    elif isinstance(slurm, Job):
        _follow(snapshot, gang, slurm, draft)
        _mirror(snapshot, draft)
        draft.actions.sort(key=lambda action: isinstance(action, Bring))  # last: a node may not answer


def _submit(snapshot: JobSnapshot, draft: _Draft) -> None:
    """Unless it would wait on its nodes for what is not there: then it waits here."""
    if run_policy.of(snapshot.raw).suspend:
        return
    if not snapshot.missing:
        draft.actions.append(Submit())
        return
    draft.actions.append(Event("Warning", "MaterialsMissing", f"waits for {', '.join(snapshot.missing)}"))
    draft.retry_after = MISSING_SECONDS


def _absent(snapshot: JobSnapshot, gang: _Gang, draft: _Draft) -> None:
    """Slurm forgets ended jobs (MinJobAge): lost, unless its end was seen and only the pause before a retry is left."""
    restarting = find(draft.status.get("conditions") or (), training.RESTARTING)
    failed = any("failed" in one for one in (draft.status.get("replicaStatuses") or {}).values())
    if restarting and failed:
        _again(snapshot, gang, draft, parse_time(restarting["lastTransitionTime"]))
        return
    text = f"Slurm does not know job {job_id_of(snapshot.raw)} any more; how it ended is not known"
    _fail(snapshot, gang, draft, "SlurmJobLost", text, rfc3339(snapshot.now))


def _follow(snapshot: JobSnapshot, gang: _Gang, job: Job, draft: _Draft) -> None:
    """The status by the Slurm job's state; an unknown word changes nothing."""
    states = job.states
    if states.unknown or states.base is JobBase.UNKNOWN:
        draft.actions.append(
            Event("Warning", "UnknownSlurmState", f"Slurm job {job.job_id} is {states}; nothing is changed")
        )
    elif states.finished:
        _finish(snapshot, gang, job, draft)
    elif states.base is JobBase.RUNNING and not states.flags & {JobFlag.CONFIGURING, JobFlag.COMPLETING, *_REQUEUED}:
        draft.condition(training.RUNNING, "PyTorchJobRunning", f"PyTorchJob {gang.name} is running.", snapshot.now)
        _count(gang, draft, "active")
        if snapshot.bare:
            draft.actions.append(Bring(job.job_id, job.restart_count, tuple(snapshot.bare)))
    elif _starts_again(job, draft):
        _restarting(snapshot, gang, job, draft)


def _starts_again(job: Job, draft: _Draft) -> bool:
    """Slurm put it back into the queue after it had run."""
    if _REQUEUED & job.states.flags:
        return True
    ran = training.holds(draft.status.get("conditions") or (), training.RUNNING)
    return job.states.base is JobBase.PENDING and job.restart_count > 0 and ran


def _restarting(snapshot: JobSnapshot, gang: _Gang, job: Job, draft: _Draft) -> None:
    # a job that Slurm has put back does not tell which node it lost
    lost = job.failed_node or ", ".join(snapshot.lost[:8])
    why = f"node {lost} was lost" if lost else "Slurm requeued it"
    message = (
        f"PyTorchJob {gang.name} is restarting because {why} (Slurm job {job.job_id}, restart {job.restart_count})."
    )
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", message))
    _count(gang, draft, None)


def _finish(snapshot: JobSnapshot, gang: _Gang, job: Job, draft: _Draft) -> None:
    ended = rfc3339(datetime.fromtimestamp(job.end_time, UTC) if job.end_time else snapshot.now)
    if job.states.base is JobBase.COMPLETED:
        message = f"PyTorchJob {gang.name} is successfully completed."
        draft.condition(training.SUCCEEDED, "PyTorchJobSucceeded", message, snapshot.now)
        draft.status["completionTime"] = ended
        _count(gang, draft, "succeeded")
        draft.actions.append(Event("Normal", "PyTorchJobSucceeded", message))
    elif _retries(gang, job):
        _retry(snapshot, gang, job, draft, ended)
    else:
        _fail(snapshot, gang, draft, "PyTorchJobFailed", _why(job), ended)


def _retries(gang: _Gang, job: Job) -> bool:
    """Is this an end that the restart policy covers?"""
    if gang.restart_policy is RestartPolicy.NEVER:
        return False
    if job.states.base in _INFRASTRUCTURE:
        return True
    if gang.restart_policy is RestartPolicy.EXIT_CODE and mirror.exit_code(job) < 128:
        return False
    return job.states.base in _APPLICATION


def _retry(snapshot: JobSnapshot, gang: _Gang, job: Job, draft: _Draft, ended: str) -> None:
    """The next attempt, after a pause that doubles; backoffLimit is the number of retries (as batch/v1's)."""
    if gang.backoff_limit is not None and gang.attempt > gang.backoff_limit:
        message = f"Job {gang.name} has failed because it has reached the specified backoff limit"
        _fail(snapshot, gang, draft, "PyTorchJobFailed", f"{message} ({_why(job)})", ended)
        return
    message = f"PyTorchJob {gang.name} is restarting because {_why(job)}."
    if draft.condition(training.RESTARTING, "PyTorchJobRestarting", message, snapshot.now):
        draft.actions.append(Event("Warning", "PyTorchJobRestarting", message))
    _count(gang, draft, "failed")
    _again(snapshot, gang, draft, datetime.fromtimestamp(job.end_time, UTC) if job.end_time else None)


def _again(snapshot: JobSnapshot, gang: _Gang, draft: _Draft, since: datetime | None) -> None:
    """The next attempt, once the pause since the last one's end is over."""
    wait = min(BACKOFF[0] * 2 ** min(gang.attempt - 1, 10), BACKOFF[1])
    left = wait - (snapshot.now - since).total_seconds() if since else 0.0
    if left > 0:
        draft.retry_after = left
        return
    if snapshot.pods:
        draft.actions.append(DeletePods(tuple(sorted(snapshot.pods))))
    draft.actions.append(Annotate({names.ANNOTATION_ATTEMPT: str(gang.attempt + 1), names.ANNOTATION_JOB_ID: None}))


def _fail(snapshot: JobSnapshot, gang: _Gang, draft: _Draft, reason: str, why: str, ended: str) -> None:
    message = f"PyTorchJob {gang.name} is failed because {why}."
    if draft.condition(training.FAILED, reason, message, snapshot.now):
        draft.status["completionTime"] = ended
        _count(gang, draft, "failed")
        draft.actions.append(Event("Warning", reason, message))


def _why(job: Job) -> str:
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


def _label(name: str) -> str:
    return mirror.shorten(name, mirror.MAX_LABEL)


def _count(gang: _Gang, draft: _Draft, counter: str | None) -> None:
    draft.status["replicaStatuses"] = training.replica_statuses(_label(gang.name), gang.counts, counter)


def refused(raw: Mapping[str, Any], plan: JobPlan, why: str, now: datetime | None = None) -> Raw:
    """The status of a job that slurmctld would not take: Failed, with Slurm's words."""
    moment = now or datetime.now(UTC)
    draft = _Draft(dict(raw.get("status") or {}))
    message = f"PyTorchJob {plan.name} is failed because Slurm refused it: {why}"
    draft.condition(training.FAILED, "SlurmSubmitFailed", message, moment)
    draft.status["completionTime"] = rfc3339(moment)
    return draft.status
