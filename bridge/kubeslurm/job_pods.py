"""The mirror pods of a job, as its Slurm job is: which to make, to write anew, to take away.

Pure; used by `jobs` and `job_ends`. What always holds: pods of an ended job that somebody removed stay removed, and a pod
whose status says it all is not written.
"""

from __future__ import annotations

from typing import Any, Final

from kubeslurm import mirror, ranks, training
from kubeslurm.conditions import parse_time
from kubeslurm.job_model import Annotate, CreatePods, DeletePods, Draft, JobSnapshot, PatchPods
from kubeslurm.plans import JobPlan
from slurmrest import Job, JobBase

Raw = dict[str, Any]

PENDING_SECONDS: Final = 3.0
"""A pod that waits for no longer is not told why: that would be one more write for each pod of each job."""

RUNNING_SECONDS: Final = 3.0
"""A pod whose job runs for no longer goes from Pending to its end: one write less for each pod of many short jobs."""

_TELLS_RANKS: Final = frozenset({JobBase.FAILED, JobBase.OUT_OF_MEMORY})


def follow(snapshot: JobSnapshot, draft: Draft) -> None:
    """Make what is missing, write what is old."""
    job, plan = snapshot.slurm, snapshot.plan
    if not isinstance(job, Job) or plan is None or any(isinstance(one, Annotate) for one in draft.actions):
        return
    members = tuple(one for one in mirror.replicas(plan) if one.place < plan.replicas)
    missing = tuple(one for one in members if one.pod not in snapshot.pods)
    if missing and not training.finished(snapshot.raw.get("status") or {}):
        draft.actions.append(CreatePods(missing))
    if (left := _left(snapshot, job)) > 0:
        draft.again(left)
        return
    statuses = {one.pod: status for one in members if (status := _status(snapshot, plan, one, job)) is not None}
    if statuses:
        draft.actions.append(PatchPods(statuses))


def remove(snapshot: JobSnapshot, draft: Draft) -> None:
    """All of them."""
    if snapshot.pods:
        draft.actions.append(DeletePods(tuple(sorted(snapshot.pods))))


def _left(snapshot: JobSnapshot, job: Job) -> float:
    """How long until the pods have waited, or run, long enough to be told of it."""
    if job.states.base is JobBase.PENDING:
        return _left_to_wait(snapshot)
    if job.states.base is JobBase.RUNNING and job.start_time is not None:
        ran = snapshot.now.timestamp() - job.start_time
        return RUNNING_SECONDS - ran if ran >= 0 else 0.0  # a clock that differs delays nothing
    return 0.0


def _left_to_wait(snapshot: JobSnapshot) -> float:
    stamps = [pod["metadata"]["creationTimestamp"] for pod in snapshot.pods.values() if _stamped(pod)]
    if not stamps:
        return 0.0 if snapshot.pods else PENDING_SECONDS
    return PENDING_SECONDS - (snapshot.now - parse_time(min(stamps))).total_seconds()


def _stamped(pod: Any) -> bool:
    return bool((pod.get("metadata") or {}).get("creationTimestamp"))


def _status(snapshot: JobSnapshot, plan: JobPlan, replica: mirror.Replica, job: Job) -> Raw | None:
    """What the replica's pod should say, None when it does or when there is no such pod."""
    current = snapshot.pods.get(replica.pod)
    node = plan.node_of(replica.place)
    host = snapshot.hosts[node] if node < len(snapshot.hosts) else ""
    if plan.elastic is not None and snapshot.hosts and not host:
        wanted = mirror.left_out(plan, job, len(snapshot.hosts))
    else:
        wanted = mirror.status(plan, replica, job, host, end_of(snapshot, plan, replica, job))
    if current is None or wanted is None or mirror.same(wanted, current.get("status") or {}):
        return None
    return wanted


def end_of(snapshot: JobSnapshot, plan: JobPlan, replica: mirror.Replica, job: Job) -> ranks.RankEnd | None:
    """How the replica itself ended; code 0 where others failed and it did not. None where only the job's end is known."""
    if snapshot.ranks is None or not snapshot.ranks or job.states.base not in _TELLS_RANKS:
        return None
    return ranks.of_replica(snapshot.ranks, replica.place, plan.replicas, plan.tasks) or ranks.RankEnd(0)
