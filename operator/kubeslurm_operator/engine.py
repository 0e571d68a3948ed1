"""The engine: one runtime per SlurmCluster, one job loop for all, fed by the store.

Made by `watches` inside kopf's event loop. What always holds: a handler's only effect is a mark (dirty), the loops are
level-triggered and come again by themselves, and an exception in one object's turn never ends a loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import chain, repeat

from kubeslurm import names
from kubeslurm_operator.events import Events
from kubeslurm_operator.job_loop import JobLoop
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, POD, PYTORCH_JOB, SLURM_CLUSTER, Kind, Kube, KubeError, Raw
from kubeslurm_operator.kubelet import Kubelet
from kubeslurm_operator.runtimes import Runtime
from kubeslurm_operator.store import Key, Store

LOG = logging.getLogger(__name__)

RESYNC_SECONDS = 300.0
RESYNC_EARLY = (3.0, 15.0)
"""After the start: what went away between our first listing and the watches' own is told of by none of them."""
STALL_SECONDS = 60.0
FIRST_SYNC_TRIES = 240


class Engine:
    """All that runs in this process."""

    def __init__(self, kube: Kube, endpoint: tuple[str, int] | None = None) -> None:
        """`endpoint`: address and port on which the virtual nodes' kubelet endpoint is served; None for none."""
        self.kube = kube
        self.store = Store((SLURM_CLUSTER, NODE_SET, PYTORCH_JOB, POD, NAMESPACE))
        self.events = Events(kube)
        self.runtimes: dict[Key, Runtime] = {}
        self.jobs = JobLoop(kube, self.store, self.events, self.runtimes)
        self._endpoint = endpoint
        self._kubelet = Kubelet(kube, self.store, self.runtimes, endpoint) if endpoint else None
        self._tasks: list[asyncio.Task[None]] = []
        self._dirty = asyncio.Event()
        self._beat = time.monotonic()

    async def start(self) -> None:
        """Fill the store, then run the loops."""
        await self._first_sync()
        if self._kubelet:
            await self._kubelet.start()
        self.store.subscribe(self._changed)
        self._tasks = [
            asyncio.create_task(self._supervise(), name="supervisor"),
            asyncio.create_task(self._resync_forever(), name="resync"),
            asyncio.create_task(self.jobs.run(), name="jobs"),
        ]
        if self._kubelet:
            self._tasks.append(asyncio.create_task(self._kubelet.run(), name="kubelet"))
        LOG.info("serving %d SlurmClusters", len(self.store.all(SLURM_CLUSTER)))

    async def stop(self) -> None:
        """End the loops; nothing in Slurm or Kubernetes is undone by that."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._kubelet:
            await self._kubelet.stop()
        for runtime in list(self.runtimes.values()):
            await runtime.stop()
        await self.kube.close()

    def health(self) -> str:
        """For the liveness probe: raises when the supervisor stands still or a loop has ended."""
        ended = [task.get_name() for task in self._tasks if task.done()]
        if ended or time.monotonic() - self._beat > STALL_SECONDS:
            raise RuntimeError(f"loops not running: {ended or 'supervisor'}")
        return "ok"

    def _changed(self, kind: Kind, raw: Raw) -> None:
        if kind is SLURM_CLUSTER:
            self._dirty.set()
        self.jobs.changed(kind, raw)
        for runtime in self.runtimes.values():
            if runtime.concerned(kind, raw):
                runtime.mark()

    async def _supervise(self) -> None:
        """Start a runtime for each SlurmCluster, and end it when its cluster is gone."""
        while True:
            self._beat = time.monotonic()
            self._dirty.clear()
            present = {Key.of(raw) for raw in self.store.all(SLURM_CLUSTER)}
            for key in present - self.runtimes.keys():
                self.runtimes[key] = Runtime(self.kube, self.store, self.events, key, self.jobs, self._endpoint)
                self.runtimes[key].start()
            for key in self.runtimes.keys() - present:
                await self.runtimes.pop(key).stop()
            try:
                async with asyncio.timeout(10):
                    await self._dirty.wait()
            except TimeoutError:
                continue

    async def _first_sync(self) -> None:
        """Right after our CRDs were made the API server answers 404 or 429 for a moment: ask until it lists them."""
        for left in reversed(range(FIRST_SYNC_TRIES)):
            try:
                await self._resync()
            except KubeError as error:
                if not left:
                    raise
                LOG.info("the API server does not list our objects yet: %s", error)
                await asyncio.sleep(0.5)
            else:
                return

    async def _resync_forever(self) -> None:
        for seconds in chain(RESYNC_EARLY, repeat(RESYNC_SECONDS)):
            await asyncio.sleep(seconds)
            try:
                await self._resync()
            except KubeError as error:
                LOG.warning("resync: %s", error)

    async def _resync(self) -> None:
        for kind in self.store.kinds:
            before = self.store.uids(kind)
            labels = f"{names.LABEL_MANAGED_BY}={names.MANAGER}" if kind is POD else ""
            self.store.replace(kind, await self.kube.list(kind, labels=labels), before)
