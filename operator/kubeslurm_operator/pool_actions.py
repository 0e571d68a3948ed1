"""Carries out what `kubeslurm.pool` decided: pods made and deleted, Slurm nodes drained, resumed, set down.

Called by the pool loop. What always holds: before a pod is deleted for being free, Slurm is asked once more about that
very node, and the delete names the pod's uid; an action that fails is logged and decided anew next turn, others go on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kubeslurm import manifests, names, pool
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm_operator import kube as api
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import POD, Kube, KubeError, Raw
from kubeslurm_operator.store import Key, Store
from slurmrest import NotFound, SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

AT_ONCE = 8


class PoolActions:
    """The hands of the pool loop."""

    def __init__(self, kube: Kube, store: Store, events: Events, runtime: Runtime) -> None:
        self._kube = kube
        self._store = store
        self._events = events
        self._runtime = runtime
        self.told_slurm_at = 0.0
        """When Slurm's nodes were last changed by us: no decision is made on an older look at them."""

    async def carry_out(
        self, cluster: SlurmCluster, raw: Raw, nodeset: NodeSet, actions: Sequence[pool.PoolAction]
    ) -> None:
        """All of them, a few at once."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(action: pool.PoolAction) -> None:
            async with gate:
                try:
                    await self._do(cluster, raw, nodeset, action)
                except (KubeError, SlurmError) as error:
                    LOG.warning("%s: %s", action, error)

        await asyncio.gather(*(one(action) for action in actions))
        if any(not isinstance(action, pool.CreatePod | pool.DeletePod) for action in actions):
            self.told_slurm_at = time.monotonic()
            self._runtime.poke()

    async def _do(self, cluster: SlurmCluster, raw: Raw, nodeset: NodeSet, action: pool.PoolAction) -> None:
        match action:
            case pool.CreatePod(node):
                await self._create(cluster, raw, nodeset, node)
            case pool.DeletePod(node, uid, free):
                await self._delete(raw, node, uid, free=free)
            case pool.Drain(node, reason):
                await self._update(node, "DRAIN", reason)
                await self._events.normal(raw, "NodeDraining", f"Slurm node {node} drains ({reason})")
            case pool.Undrain(node):
                await self._update(node, "UNDRAIN")
                await self._events.normal(raw, "NodeUndrained", f"Slurm node {node} takes jobs again")
            case pool.Resume(node):
                await self._update(node, "RESUME")
                await self._events.normal(
                    raw, "NodeResumed", f"the pod of Slurm node {node} is back; it takes jobs again"
                )
            case pool.SetDown(node, reason):
                await self._update(node, "DOWN", reason)
                await self._events.warning(
                    raw, "NodeLost", f"Slurm node {node} lost its pod under a job; set down in Slurm"
                )

    async def _create(self, cluster: SlurmCluster, raw: Raw, nodeset: NodeSet, node: str) -> None:
        ordinal = int(node.rsplit("-", 1)[1])
        body = manifests.slurmd_pod(cluster, nodeset, ordinal, owner=api.owner(raw))
        try:
            self._store.put(POD, await self._kube.create(body))
        except KubeError as error:
            if error.conflict:
                return
            await self._events.warning(raw, "FailedCreatePod", f"pod {node}: {error.message}")
            raise

    async def _delete(self, raw: Raw, node: str, uid: str, *, free: bool) -> None:
        if free and not await self._still_free(node):
            return
        if await self._kube.delete(POD, raw["metadata"]["namespace"], node, uid=uid):
            await self._events.normal(raw, "SuccessfulDeletePod", f"deleted pod {node}")

    async def _still_free(self, node: str) -> bool:
        slurm = self._runtime.slurm
        if slurm is None:
            return False
        try:
            return pool.is_drained(await slurm.node(node))
        except NotFound:
            return True

    async def _update(self, node: str, state: str, reason: str | None = None) -> None:
        slurm = self._runtime.slurm
        if slurm is not None:
            LOG.info("Slurm node %s: %s %s", node, state, reason or "")
            await slurm.update_node(node, state=[state], reason=reason)

    async def show_users(self, pods: Iterable[Raw], digest: str) -> None:
        """Pods that were made with other users: touch them, so that their kubelets bring the new list now."""
        for raw in pods:
            meta = raw["metadata"]
            if (meta.get("annotations") or {}).get(names.ANNOTATION_USERS_DIGEST) != digest:
                patch = {"metadata": {"annotations": {names.ANNOTATION_USERS_DIGEST: digest}}}
                key = Key.of(raw)
                try:
                    self._store.put(POD, await self._kube.patch(POD, key.namespace, key.name, patch))
                except KubeError as error:
                    if not error.gone:
                        raise
