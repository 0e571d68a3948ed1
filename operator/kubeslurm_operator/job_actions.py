"""Carries out what `kubeslurm.jobs` decided about one PyTorchJob.

Called by the job loop, action by action. What always holds: a submission goes out as the tenant's user and only through
`slurmrest`'s submit, which looks the key up first; each action can be taken again without harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubeslurm import jobs, log_places, mirror, names
from kubeslurm.descriptions import components
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.scripts import write_script
from kubeslurm_operator import kube as api
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import POD, PYTORCH_JOB, Kube, KubeError, Raw
from kubeslurm_operator.materials import Bringer
from kubeslurm_operator.store import Key, Store
from slurmrest import InvalidRequest, Job, PermissionDenied, SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

AT_ONCE = 6


class JobActions:
    """The hands of the job loop."""

    def __init__(self, kube: Kube, store: Store, events: Events, materials: Bringer) -> None:
        self._kube = kube
        self._store = store
        self._events = events
        self._materials = materials

    async def carry_out(
        self, action: jobs.JobAction, raw: Raw, plan: JobPlan | None, slurm: Job | jobs.Slurm, runtime: Runtime | None
    ) -> int | None:
        """One action. Returns the Slurm job's id where it submitted one."""
        key = Key.of(raw)
        match action:
            case jobs.AddFinalizer():
                await self._finalizer(raw, present=True)
            case jobs.RemoveFinalizer():
                await self._finalizer(raw, present=False)
            case jobs.Submit() if plan and runtime:
                return await self._submit(raw, plan, runtime)
            case jobs.Bring(job_id, restart, hosts) if plan and runtime:
                await self._materials.bring(raw, plan, job_id, restart, hosts, runtime.key.namespace)
            case jobs.Cancel(job_id) if runtime and runtime.slurm:
                await runtime.slurm.cancel(job_id)
                runtime.poke()
            case jobs.PatchStatus(status):
                await self._patch_status(raw, status)
            case jobs.Annotate(annotations):
                await self._annotate(key, dict(annotations))
            case jobs.CreatePods(replicas) if plan and runtime and isinstance(slurm, Job):
                await self._create_pods(raw, plan, replicas, slurm, runtime)
            case jobs.PatchPods(statuses) if runtime:
                sealed = _sealed(raw, slurm, statuses, runtime.seal)
                await _all(self._patch_pod(Key(key.namespace, pod), status) for pod, status in sealed.items())
            case jobs.DeletePods(pods):
                await _all(self._kube.delete(POD, key.namespace, pod, grace=0) for pod in pods)
            case jobs.DeleteJob():
                await self._kube.delete(PYTORCH_JOB, *key, uid=raw["metadata"]["uid"])
            case jobs.Event(kind, reason, message):
                await self._events.post(raw, kind, reason, message)
        return None

    async def _finalizer(self, raw: Raw, *, present: bool) -> None:
        change = api.add_finalizer if present else api.remove_finalizer
        await change(self._kube, PYTORCH_JOB, self._store.get(PYTORCH_JOB, Key.of(raw)) or raw)

    async def _submit(self, raw: Raw, plan: JobPlan, runtime: Runtime) -> int | None:
        if runtime.slurm is None or plan.user is None:
            return None
        if why := runtime.identities.unresolved(plan.user):
            await self._events.warning(raw, "IdentityUnresolved", why)
            raise KubeError(0, "IdentityUnresolved", why)
        try:
            submission = await runtime.slurm.submit(
                components(plan), write_script(plan), key=plan.key, user=plan.user.name
            )
        except (InvalidRequest, PermissionDenied, InvalidObject) as error:
            await self._refused(raw, plan, error)
            return None
        noted = {
            names.ANNOTATION_JOB_ID: str(submission.job_id),
            names.ANNOTATION_SUBMISSION: plan.key,
            names.ANNOTATION_ATTEMPT: str(plan.attempt),
            names.ANNOTATION_CLUSTER: str(runtime.key),
            names.ANNOTATION_LAUNCHER_REASON: plan.launcher_reason,
        }
        await self._annotate(Key.of(raw), noted)
        runtime.poke()
        verb = "found" if submission.existing else "submitted"
        LOG.info("job %s %s as Slurm job %d of %s", Key.of(raw), verb, submission.job_id, plan.user.name)
        text = f"Slurm job {submission.job_id} of {plan.user.name}, attempt {plan.attempt} ({plan.launcher_reason})"
        await self._events.normal(raw, "SlurmJobSubmitted", text)
        if plan.ignored:
            await self._events.normal(raw, "FieldsIgnored", f"without meaning in Slurm: {', '.join(plan.ignored)}")
        for note in plan.notes:
            await self._events.normal(raw, "Translated", note)
        for warning in submission.warnings:
            await self._events.warning(raw, "SlurmWarning", warning)
        return int(submission.job_id)

    async def _refused(self, raw: Raw, plan: JobPlan, error: SlurmError | InvalidObject) -> None:
        """Slurm will not have the job: that is final, as it would be for sbatch."""
        current = self._store.get(PYTORCH_JOB, Key.of(raw)) or raw
        status = jobs.refused(current, plan, str(error))
        await self._patch_status(current, status)
        await self._events.warning(raw, "SlurmSubmitFailed", str(error))

    async def _patch_status(self, raw: Raw, status: Raw) -> None:
        patch = {"status": api.merge_patch(raw.get("status") or {}, status)}
        self._store.put(PYTORCH_JOB, await self._kube.patch(PYTORCH_JOB, *Key.of(raw), patch, status=True))

    async def _annotate(self, key: Key, annotations: dict[str, str | None] | dict[str, str]) -> None:
        patched = await self._kube.patch(PYTORCH_JOB, *key, {"metadata": {"annotations": annotations}})
        self._store.put(PYTORCH_JOB, patched)

    async def _create_pods(
        self, raw: Raw, plan: JobPlan, replicas: Iterable[mirror.Replica], job: Job, runtime: Runtime
    ) -> None:
        """Once the virtual node is there: a pod bound to a node that is not is swept away."""
        if not runtime.virtual.exists:
            raise KubeError(0, "NoVirtualNode", f"{runtime.virtual.name} is not there yet")
        owner = api.owner(raw)
        node, job_id = runtime.virtual.name, job.job_id
        await _all(
            self._create_pod(mirror.pod(plan, one, owner=owner, virtual_node=node, job_id=job_id)) for one in replicas
        )

    async def _create_pod(self, body: Raw) -> None:
        try:
            self._store.put(POD, await self._kube.create(body))
        except KubeError as error:
            if not error.conflict:
                raise

    async def _patch_pod(self, key: Key, status: Raw) -> None:
        current = (self._store.get(POD, key) or {}).get("status") or {}
        patch = {"status": api.merge_patch(current, {**current, **status})}
        try:
            self._store.put(POD, await self._kube.patch(POD, *key, patch, status=True))
        except KubeError as error:
            if not error.gone:
                raise


def _sealed(raw: Raw, slurm: Job | jobs.Slurm, statuses: Mapping[str, Raw], key: bytes) -> Mapping[str, Raw]:
    """Only where Slurm has said that the job is this object's, by the seal logs are believed to be its own."""
    if not key or not isinstance(slurm, Job) or not jobs.belongs(raw, slurm):
        return statuses
    uid = str(raw["metadata"]["uid"])
    return {pod: log_places.with_seal(status, key, uid, pod) for pod, status in statuses.items()}


async def _all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """All of them, a few at once; the first error is raised when all have been tried."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(coroutine: Coroutine[Any, Any, Any]) -> None:
        async with gate:
            await coroutine

    results = await asyncio.gather(*(one(coroutine) for coroutine in work), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
