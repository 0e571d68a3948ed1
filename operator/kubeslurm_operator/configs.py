"""Brings a rendered config into slurmctld: ConfigMap, in the pod, reconfigure, confirmed over REST.

Owned by the pool loop, which calls `store` and `bring` each turn; every call goes as far as it can and returns what is
so. What always holds: a config counts as applied only when slurmctld lists the very nodes and partitions that were
rendered, and `reconfigure` is asked for only when the files in its pod are the ones rendered.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from kubeslurm import manifests, names
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.conditions import Verdict
from kubeslurm.layout import PoolLayout
from kubeslurm.rendering import RenderedConfig
from kubeslurm_operator.kube import CONFIG_MAP, POD, SLURM_CLUSTER, Kube, KubeError, Raw
from slurmrest import AsyncSlurm, SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

ANNOTATION_COUNTS = f"{names.GROUP}/node-counts"
PROPAGATION_TRIES = 20
PROPAGATION_SECONDS = 0.25


class ConfigApplier:
    """The config of one cluster: what is stored, what slurmctld has confirmed."""

    def __init__(self, kube: Kube, runtime: Runtime) -> None:
        self.applied = ""
        self._kube = kube
        self._runtime = runtime
        self._key = runtime.key
        self._stored = ""
        self._counts: dict[str, int] = {}
        self._names: frozenset[str] = frozenset()

    @property
    def stored_names(self) -> frozenset[str]:
        """The node names in the config that slurmctld will start on."""
        return self._names

    def count(self, nodeset: str) -> int:
        """How many nodes of the NodeSet the stored config has."""
        return self._counts.get(nodeset, 0)

    async def recall(self) -> None:
        """What an earlier process of ours stored and confirmed."""
        found = await self._kube.find(CONFIG_MAP, self._key.namespace, manifests.config_name(self._key.name))
        if found is None:
            return
        annotations = found["metadata"].get("annotations") or {}
        self._stored = annotations.get(names.ANNOTATION_CONFIG_DIGEST, "")
        self._counts = json.loads(annotations.get(ANNOTATION_COUNTS, "{}"))
        cluster = await self._kube.find(SLURM_CLUSTER, self._key.namespace, self._key.name)
        confirmed = ((cluster or {}).get("status") or {}).get("configDigest")
        self.applied = confirmed if confirmed == self._stored else ""

    async def store(self, cluster: SlurmCluster, layout: PoolLayout, rendered: RenderedConfig, owner: Raw) -> None:
        """The ConfigMap as rendered, before slurmctld's pod is made or told to read it."""
        self._names = frozenset(name for group in layout.groups for name in group.names())
        if self._stored == rendered.digest:
            return
        counts = {group.nodeset: group.count for group in layout.groups}
        body = manifests.config_map(cluster, rendered)
        body["metadata"]["ownerReferences"] = [owner]
        body["metadata"].setdefault("annotations", {})[ANNOTATION_COUNTS] = json.dumps(counts, sort_keys=True)
        await self._kube.apply(body)
        self._stored, self._counts = rendered.digest, counts
        LOG.info("config %s of %s stored", rendered.digest[:12], self._key)

    async def bring(self, layout: PoolLayout, rendered: RenderedConfig) -> Verdict:
        """One step towards slurmctld running on `rendered`; the condition ConfigApplied as it now is."""
        if self.applied == rendered.digest:
            return Verdict(names.CONFIG_APPLIED, True, "Confirmed", f"slurmctld runs on config {rendered.digest[:12]}")
        slurm = self._runtime.slurm
        if slurm is None or not self._runtime.snapshot.reachable:
            return _waiting("SlurmUnreachable", "the config is stored; slurmctld does not answer yet")
        try:
            return await self._confirm(slurm, layout, rendered.digest)
        except (KubeError, SlurmError) as error:
            return _waiting("ApplyFailed", str(error))

    async def _confirm(self, slurm: AsyncSlurm, layout: PoolLayout, digest: str) -> Verdict:
        if not await self._in_pod(digest):
            return _waiting("Propagating", "the kubelet has not brought the config into slurmctld's pod yet")
        await slurm.reconfigure()
        difference = await _difference(slurm, layout)
        if difference:
            return _waiting("NotConfirmed", difference)
        self.applied = digest
        self._runtime.poke()
        LOG.info("config %s of %s confirmed by slurmctld", digest[:12], self._key)
        return Verdict(names.CONFIG_APPLIED, True, "Confirmed", f"slurmctld runs on config {digest[:12]}")

    async def _in_pod(self, digest: str) -> bool:
        """Wait a moment for the files in the pod; touching the pod makes its kubelet look at the ConfigMap now."""
        pod = manifests.controller_pod_name(self._key.name)
        touch = {"metadata": {"annotations": {names.ANNOTATION_CONFIG_DIGEST: digest}}}
        await self._kube.patch(POD, self._key.namespace, pod, touch)
        command = ["cat", manifests.DIGEST_PATH]
        for _ in range(PROPAGATION_TRIES):
            code, text = await self._kube.execute(self._key.namespace, pod, manifests.CONTROLLER_CONTAINER, command)
            if code == 0 and text.strip() == digest:
                return True
            await asyncio.sleep(PROPAGATION_SECONDS)
        return False


def _waiting(reason: str, message: str) -> Verdict:
    return Verdict(names.CONFIG_APPLIED, False, reason, message)


async def _difference(slurm: AsyncSlurm, layout: PoolLayout) -> str:
    """What slurmctld holds against what was rendered: an empty text when they agree."""
    nodes = {name for group in layout.groups for name in group.names()}
    text = _compare("nodes", nodes, {node.name for node in await slurm.nodes()})
    if text:
        return text
    partitions = {partition.name for partition in layout.partitions}
    return _compare("partitions", partitions, {partition.name for partition in await slurm.partitions()})


def _compare(what: str, wanted: set[str], found: set[str]) -> str:
    if wanted == found:
        return ""
    missing, extra = sorted(wanted - found)[:3], sorted(found - wanted)[:3]
    return f"{what} in slurmctld differ from the config: missing {missing}, unexpected {extra}"
