"""A PyTorchJob at some moment, and what a decision makes of it: the tools of the tests of `jobs`.

Used by the tests next to it. What a decision asks for is carried out on the snapshot by `then`, as the job loop would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kubeslurm import jobs, names
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.readers.pytorch import read_pytorchjob
from slurmrest import Job, JobStates
from tests.unit import examples
from tests.unit.examples import Raw

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
ENDED = int((NOW - timedelta(seconds=1)).timestamp())
HOSTS = [f"gpu-node-{index}" for index in range(64)]


def slurm(state: str, **fields: Any) -> Job:
    """Slurm job 7 in a state."""
    given: Raw = {"comment": "kubeslurm:u/1", "start_time": ENDED - 60, "end_time": ENDED, **fields}
    return Job(job_id=7, states=JobStates.parse(state), **given)


def snapshot(
    says: Job | jobs.Slurm,
    *,
    policy: str = "OnFailure",
    attempt: int = 1,
    run: Raw | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: Any,
) -> jobs.JobSnapshot:
    """The example job, submitted unless Slurm says otherwise, with its finalizer. `run`: spec.runPolicy."""

    def change(raw: Raw) -> None:
        raw["metadata"] |= {"uid": "u", "finalizers": [names.FINALIZER]}
        noted = {} if says is jobs.Slurm.NOT_SUBMITTED else {names.ANNOTATION_JOB_ID: "7"}
        raw["metadata"]["annotations"] = {**noted, names.ANNOTATION_ATTEMPT: str(attempt), **(annotations or {})}
        for role in raw["spec"]["pytorchReplicaSpecs"].values():
            role["restartPolicy"] = policy
        raw["spec"]["runPolicy"] = run or {}

    raw = examples.raw("PyTorchJob", change)
    plan = read_pytorchjob(PyTorchJob.parse(raw), examples.cluster(), [examples.nodeset()], attempt=attempt)
    values: dict[str, Any] = {"refusal": None, "hosts": HOSTS, "lost": (), "pods": {}, "now": NOW} | fields
    return jobs.JobSnapshot(raw=raw, plan=plan, slurm=says, **values)


def then(one: jobs.JobSnapshot, says: Job | jobs.Slurm | None = None) -> jobs.JobSnapshot:
    """The snapshot after the decision's actions have been carried out."""
    raw: Raw = dict(one.raw)
    pods = dict(one.pods)
    for action in jobs.decide_job(one).actions:
        match action:
            case jobs.PatchStatus(status):
                raw["status"] = status
            case jobs.Annotate(annotations):
                merged = {**(raw["metadata"].get("annotations") or {}), **annotations}
                kept = {name: value for name, value in merged.items() if value is not None}
                raw["metadata"] = {**raw["metadata"], "annotations": kept}
            case jobs.AddFinalizer():
                raw["metadata"] = {**raw["metadata"], "finalizers": [names.FINALIZER]}
            case jobs.RemoveFinalizer():
                raw["metadata"] = {**raw["metadata"], "finalizers": []}
            case jobs.DeletePods(gone):
                pods = {name: pod for name, pod in pods.items() if name not in gone}
            case jobs.CreatePods(replicas):
                pods |= {replica.pod: {"status": {}} for replica in replicas}
            case jobs.PatchPods(statuses):
                pods |= {name: {"status": status} for name, status in statuses.items()}
            case _:
                pass
    return dataclasses.replace(one, raw=raw, pods=pods, slurm=one.slurm if says is None else says)


def conditions(one: jobs.JobSnapshot) -> list[str]:
    """`Created`, `Running(F)` ... of the status after the decision."""
    status = then(one).raw.get("status") or {}
    return [one["type"] + ("" if one["status"] == "True" else "(F)") for one in status.get("conditions") or ()]


def actions(one: jobs.JobSnapshot, kind: type) -> list[Any]:
    """The decision's actions of a kind."""
    return [action for action in jobs.decide_job(one).actions if isinstance(action, kind)]


def text(one: jobs.JobSnapshot) -> str:
    """The last condition's message after the decision."""
    return str(then(one).raw["status"]["conditions"][-1]["message"])
