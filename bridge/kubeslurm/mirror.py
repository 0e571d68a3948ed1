"""Mirror pods: one Pod object for each replica of a job that runs in Slurm, on the cluster's virtual node.

Pure builders; the operator makes the pods and writes their status. What always holds: a mirror pod asks for what its
replica asks for (quotas count it), carries the training operator's labels, and no kubelet ever starts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kubeslurm import log_places, mirror_names, names
from kubeslurm.conditions import rfc3339
from kubeslurm.plans import JobPlan
from kubeslurm.ranks import RankEnd
from kubeslurm.readers.pytorch import CONTAINER
from slurmrest import Job, JobBase, JobFlag

Raw = dict[str, Any]

_DROPPED: Final = ("nodeSelector", "affinity", "topologySpreadConstraints", "initContainers")
_WAITS: Final = frozenset({JobBase.PENDING})
_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True)
class Replica:
    """One member of the gang. `place` counts from 0 over all roles, in the order of Slurm's nodes."""

    role: str
    index: int
    place: int
    pod: str


def replicas(plan: JobPlan) -> Iterator[Replica]:
    """All members, Master first."""
    place = 0
    for role in plan.roles:
        prefix = mirror_names.pod_prefix(plan.name, role.name, role.replicas)
        for index in range(role.replicas):
            yield Replica(role.name, index, place, f"{prefix}{index}")
            place += 1


def pod(plan: JobPlan, replica: Replica, *, owner: Raw, virtual_node: str, job_id: int) -> Raw:
    """The replica's Pod object, bound to the virtual node."""
    template = next(role.template for role in plan.roles if role.name == replica.role)
    spec = deepcopy(dict(template["spec"]))
    for field in _DROPPED:
        spec.pop(field, None)
    spec |= {
        "nodeName": virtual_node,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
    }
    meta = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": replica.pod,
            "namespace": plan.namespace,
            "labels": {**(meta.get("labels") or {}), **_labels(plan, replica, job_id)},
            "annotations": {**(meta.get("annotations") or {}), names.ANNOTATION_ATTEMPT: str(plan.attempt)},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _labels(plan: JobPlan, replica: Replica, job_id: int) -> dict[str, str]:
    labels = {
        names.LABEL_MANAGED_BY: names.MANAGER,
        names.LABEL_VIRTUAL: "true",
        names.LABEL_JOB_ID: str(job_id),
        names.LABEL_OPERATOR_NAME: names.PYTORCHJOB_CONTROLLER,
        names.LABEL_JOB_NAME: mirror_names.label(plan.name),
        names.LABEL_REPLICA_TYPE: replica.role.lower(),
        names.LABEL_REPLICA_INDEX: str(replica.index),
    }
    leads = replica.place == 0
    return labels | ({names.LABEL_JOB_ROLE: "master"} if leads else {})


def exit_code(job: Job) -> int:
    """The job's exit code as Kubernetes counts: never 0 for a job that did not complete."""
    if job.states.base is JobBase.COMPLETED:
        return 0
    if job.states.base is JobBase.OUT_OF_MEMORY:
        return 137
    if job.exit_code.signal:
        return _SIGNALLED + job.exit_code.signal
    if job.exit_code.return_code:
        return job.exit_code.return_code
    return {JobBase.FAILED: 1, JobBase.TIMEOUT: 124, JobBase.DEADLINE: 124}.get(job.states.base, 143)


_REASONS: Final[Mapping[JobBase, str]] = {
    JobBase.COMPLETED: "Completed",
    JobBase.FAILED: "Error",
    JobBase.OUT_OF_MEMORY: "OOMKilled",
    JobBase.TIMEOUT: "DeadlineExceeded",
    JobBase.DEADLINE: "DeadlineExceeded",
    JobBase.NODE_FAIL: "NodeLost",
    JobBase.BOOT_FAIL: "NodeBootFailed",
    JobBase.PREEMPTED: "Preempted",
    JobBase.CANCELLED: "Cancelled",
}


def status(plan: JobPlan, replica: Replica, job: Job, host: str, end: RankEnd | None = None) -> Raw | None:
    """The pod's status by the Slurm job's state; None where that says nothing new (unknown words).

    `end`: how the replica itself ended, where that is known of a job that failed.
    """
    image = plan.roles[0].template["spec"]["containers"][0].get("image", "")
    if job.states.unknown or job.states.base is JobBase.UNKNOWN:
        return None
    where = f"Slurm job {job.job_id}" + (f" on {host}" if host else "")
    place = output_of(plan, job.job_id, replica.place, host)
    if job.states.finished:
        return _with_place(_ended(job, image, where, end), place)
    if job.states.base in _WAITS or JobFlag.CONFIGURING in job.states.flags:
        return _pending(job, image, where)
    return _with_place(_running(job, image, where), place)


def output_of(plan: JobPlan, job_id: int, place: int, host: str) -> log_places.Place | None:
    """Where the output of the replica at this place is; a component's tasks write into its own directory."""
    each = plan.shapes[0].tasks_per_replica
    return log_places.of(job_id + plan.component_of(place), host, place, each)


def _with_place(status: Raw, place: log_places.Place | None) -> Raw:
    """The container's id says where its output is; see `log_places`."""
    if place is not None:
        (container,) = status["containerStatuses"]
        container["containerID"] = str(place)
        if ended := container["state"].get("terminated"):
            ended["containerID"] = str(place)
    return status


def left_out(plan: JobPlan, job: Job, nodes: int) -> Raw | None:
    """Of a replica that an elastic job runs without; once the job has ended, it has ended with it."""
    if job.states.unknown or job.states.base is JobBase.UNKNOWN or job.states.base in _WAITS:
        return None
    image = plan.roles[0].template["spec"]["containers"][0].get("image", "")
    where = f"Slurm job {job.job_id}: runs on {nodes} nodes without this replica"
    if job.states.finished:
        return _ended(job, image, where, None)
    waiting = {"waiting": {"reason": "SlurmElastic", "message": where}}
    return _status("Pending", job, image, waiting, ready=False, message=where)


def _pending(job: Job, image: str, where: str) -> Raw:
    reason = job.state_reason if job.state_reason not in ("", "None") else "Queued"
    waiting = {"waiting": {"reason": "SlurmPending", "message": f"{where}: {reason}"}}
    return _status("Pending", job, image, waiting, ready=False, message=f"{where}: {reason}")


def _running(job: Job, image: str, where: str) -> Raw:
    ready = JobFlag.COMPLETING not in job.states.flags and job.states.base is JobBase.RUNNING
    return _status("Running", job, image, {"running": {"startedAt": _time(job.start_time)}}, ready=ready, message=where)


def _ended(job: Job, image: str, where: str, end: RankEnd | None) -> Raw:
    code = exit_code(job) if end is None else end.code
    phase = "Failed" if code else "Succeeded"
    reason = _REASONS.get(job.states.base, "Error") if end is None else _reason(end)
    ended = {
        "exitCode": code,
        "reason": reason,
        "message": where,
        "startedAt": _time(job.start_time),
        "finishedAt": _time(job.end_time),
    }
    return _status(phase, job, image, {"terminated": ended}, ready=False, message=where) | {"reason": reason}


def _reason(end: RankEnd) -> str:
    """Of one replica: what it did, or that it was ended because others failed."""
    if not end.code:
        return "Completed"
    if end.oom:
        return "OOMKilled"
    return "SlurmStepTerminated" if end.ended else "Error"


def _status(phase: str, job: Job, image: str, state: Raw, *, ready: bool, message: str) -> Raw:
    container = {
        "name": CONTAINER,
        "image": image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": job.restart_count,
        "state": state,
    }
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": _time(job.end_time or job.start_time)}
    body: Raw = {"phase": phase, "message": message, "conditions": [condition], "containerStatuses": [container]}
    if job.start_time and phase != "Pending":
        body["startTime"] = _time(job.start_time)
    return body


def _time(epoch: int | None) -> str | None:
    return None if epoch is None else rfc3339(datetime.fromtimestamp(epoch, UTC))


def same(wanted: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Does the pod's status say this already? Compared by what readers act upon."""
    return _essence(wanted) == _essence(current)


def _essence(status: Mapping[str, Any]) -> tuple[Any, ...]:
    containers = status.get("containerStatuses") or ()
    state = containers[0].get("state") or {} if containers else {}
    terminated = state.get("terminated") or {}
    return (
        status.get("phase"),
        status.get("message"),
        tuple(state),
        terminated.get("exitCode"),
        terminated.get("reason"),
        log_places.unsealed(containers[0].get("containerID") or "") if containers else "",
    )
