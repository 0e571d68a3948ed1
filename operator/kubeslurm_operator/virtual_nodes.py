"""Keeps the virtual node of a cluster alive: the Node object, its status on change, its lease every ten seconds.

One per SlurmCluster, owned by its runtime. What always holds: the node stays Ready while this operator runs, also while
slurmctld is away: a NotReady node would let Kubernetes evict mirror pods whose jobs go on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from kubeslurm import virtual
from kubeslurm_operator.kube import LEASE, NODE, Kube, KubeError, Raw
from kubeslurm_operator.store import Key

LOG = logging.getLogger(__name__)

RENEW_SECONDS = 10.0
HEARTBEAT_SECONDS = 240.0


class VirtualNode:
    """The Node object of one cluster."""

    def __init__(self, kube: Kube, key: Key, version: str, endpoint: tuple[str, int] | None = None) -> None:
        self.name = virtual.node_name(key.namespace, key.name)
        self._kube = kube
        self._key = key
        self._version = version
        self._endpoint = endpoint
        self._uid = ""
        self._resources: dict[str, int] = {}
        self._written: tuple[dict[str, int], float] | None = None

    @property
    def exists(self) -> bool:
        """Has the Node object been made?"""
        return bool(self._uid)

    def set_resources(self, resources: Mapping[str, int]) -> None:
        """What the cluster has in all, by resource name; written with the next beat if it changed."""
        self._resources = dict(resources)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.beat()
            except KubeError as error:
                LOG.warning("virtual node %s: %s", self.name, error)
                self._uid = ""
            await asyncio.sleep(RENEW_SECONDS if self._uid else 1.0)

    async def beat(self) -> None:
        """One heartbeat."""
        if not self._uid:
            await self._make()
        now = datetime.now(UTC)
        lease = virtual.lease(self.name, self._uid, now)
        await self._kube.apply(lease)
        written = self._written
        if written is None or written[0] != self._resources or time.monotonic() - written[1] > HEARTBEAT_SECONDS:
            await self._write_status(now)

    async def _make(self) -> None:
        found = await self._kube.apply(virtual.node(self._key.namespace, self._key.name))
        self._uid = str(found["metadata"]["uid"])
        self._written = None

    async def _write_status(self, now: datetime) -> None:
        status: Raw = virtual.status(
            ready=True,
            message=f"SlurmCluster {self._key} is served by the operator",
            resources=self._resources,
            version=self._version,
            now=now,
            endpoint=self._endpoint,
        )
        await self._kube.patch(NODE, None, self.name, {"status": status}, status=True)
        self._written = (dict(self._resources), time.monotonic())

    async def remove(self) -> None:
        """Take the Node and its lease away (the cluster is deleted)."""
        await self._kube.delete(NODE, None, self.name)
        await self._kube.delete(LEASE, virtual.LEASE_NAMESPACE, self.name)
