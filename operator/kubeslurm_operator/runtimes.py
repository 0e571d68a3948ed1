"""The life of one SlurmCluster in this process: connect to its slurmrestd, poll it, keep its pool and its virtual node.

Started and ended by the engine. What always holds: the connection speaks with a key that only this process reads out of
the cluster's Secret, and ending a runtime undoes nothing in the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import time
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from kubeslurm import manifests, names, pool
from kubeslurm_operator.accounting import AccountingLoop
from kubeslurm_operator.events import Events
from kubeslurm_operator.identities import Identities
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, POD, SECRET, SLURM_CLUSTER, Kind, Kube, KubeError, Raw
from kubeslurm_operator.pool_loop import PoolLoop
from kubeslurm_operator.slurm import Poller, Snapshot
from kubeslurm_operator.store import Key, Store
from kubeslurm_operator.virtual_nodes import VirtualNode
from slurmrest import AsyncSlurm, Node, NodeBase, NodeFlag, SignedTokens

if TYPE_CHECKING:
    from kubeslurm_operator.job_loop import JobLoop

LOG = logging.getLogger(__name__)

TOKEN_LIFE = timedelta(minutes=5)
RESTART_SECONDS = 2.0
LOST_SECONDS = 120.0


class Runtime:
    """One SlurmCluster being served."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        events: Events,
        key: Key,
        jobs: JobLoop,
        endpoint: tuple[str, int] | None = None,
    ) -> None:
        self.key = key
        self.slurm: AsyncSlurm | None = None
        self.poller: Poller | None = None
        self.virtual = VirtualNode(kube, key, names.MANAGER, endpoint)
        self.accounting = AccountingLoop(store, events, key, self)
        self.identities = Identities(kube, store, key, self.accounting)
        self.pool = PoolLoop(kube, store, events, self)
        self._kube = kube
        self._store = store
        self._jobs = jobs
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: dict[str, float] = {}
        self.seal = b""
        """Seals what only we may say of a job's output (see `log_places`); empty until the cluster's keys are there."""
        self.stale: dict[str, pool.Reason] = {}
        """The reason of each node while it was last well; see `pool.NodeSetSnapshot`."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest of Slurm's answers."""
        return self.poller.snapshot if self.poller else Snapshot()

    def concerned(self, kind: Kind, raw: Raw) -> bool:
        """Is this a change that the pool of this cluster must look at?"""
        if kind is NAMESPACE:
            return True  # a tenant may claim it
        if raw["metadata"].get("namespace") != self.key.namespace:
            return False
        if kind is SLURM_CLUSTER:
            return bool(raw["metadata"]["name"] == self.key.name)
        if kind is NODE_SET:
            return bool((raw.get("spec") or {}).get("clusterRef", {}).get("name") == self.key.name)
        labels = raw["metadata"].get("labels") or {}
        return kind is POD and labels.get(names.LABEL_CLUSTER) == self.key.name

    def mark(self) -> None:
        """Something changed: look at the pool again."""
        self.pool.wake()

    def lost_nodes(self) -> frozenset[str]:
        """Nodes whose pods were lost under a job, within the last minutes."""
        now = time.monotonic()
        self._lost = {node: at for node, at in self._lost.items() if now - at < LOST_SECONDS}
        return frozenset(self._lost)

    def poke(self) -> None:
        """Something was changed in Slurm: ask it again now, nodes and all."""
        if self.poller:
            self.poller.wake(nodes=True)

    def start(self) -> None:
        """Run the loops."""
        self._tasks = [
            asyncio.create_task(self._guard("pool", self.pool.run), name=f"pool {self.key}"),
            asyncio.create_task(self._guard("poll", self._poll), name=f"poll {self.key}"),
            asyncio.create_task(self._guard("accounting", self.accounting.run), name=f"accounting {self.key}"),
            asyncio.create_task(self._guard("virtual node", self.virtual.run), name=f"virtual {self.key}"),
        ]

    async def stop(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guard(self, what: str, run: Any) -> None:
        """A loop that fails for a reason nobody thought of is logged with its trace and begun again."""
        while True:
            try:
                work: Coroutine[Any, Any, None] = run()
                await work
                return
            except Exception:
                LOG.exception("%s loop of %s failed; starts again", what, self.key)
                await asyncio.sleep(RESTART_SECONDS)

    async def _poll(self) -> None:
        key = await self._jwt_key()
        self.seal = hmac.digest(key, b"kubeslurm seal", "sha256")
        url = f"http://{manifests.restd_name(self.key.name)}.{self.key.namespace}.svc:{manifests.RESTD_PORT}"
        async with AsyncSlurm(url, SignedTokens(key, lifespan=TOKEN_LIFE)) as slurm:
            self.slurm = slurm
            self.poller = Poller(slurm, self._active, self._observed)
            await self.poller.run()

    async def _jwt_key(self) -> bytes:
        """The signing key, as soon as the pool loop has made the Secret."""
        while True:
            try:
                secret = await self._kube.find(SECRET, self.key.namespace, manifests.keys_name(self.key.name))
            except KubeError as error:
                LOG.warning("keys of %s: %s", self.key, error)
                secret = None
            if secret is not None:
                return base64.b64decode(secret["data"][manifests.JWT_KEY])
            await asyncio.sleep(0.2)

    def _active(self) -> bool:
        return self.pool.settling or self._jobs.active(self.key)

    def _observed(self, before: Snapshot, now: Snapshot) -> None:
        if now.nodes is not before.nodes:
            self._remember(now.nodes or {})
        if now.nodes is not before.nodes or now.reachable != before.reachable:
            self.pool.wake()
        self._jobs.observed(self.key, before, now)

    def _remember(self, nodes: Mapping[str, Node]) -> None:
        lost = [node.name for node in nodes.values() if pool.is_lost(node, self.stale)]
        self._lost |= dict.fromkeys(lost, time.monotonic())
        for node in nodes.values():
            if node.states.base is not NodeBase.DOWN and NodeFlag.DRAIN not in node.states.flags:
                self.stale[node.name] = (node.reason, node.reason_changed_at)
