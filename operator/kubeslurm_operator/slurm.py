"""One Slurm cluster as the operator sees it: a connection, and the newest snapshot of its nodes and job states.

One `Poller` per SlurmCluster, owned by its runtime; the pool and job loops read `snapshot`. What always holds: one poll
per cluster and period whatever the number of objects, and a failed poll leaves `nodes` and `jobs` at None, so that no
decision is made on old news.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slurmrest import AsyncSlurm, Job, JobStates, Node, SlurmError
from slurmrest.hostlists import expand

LOG = logging.getLogger(__name__)

ACTIVE_SECONDS = 0.5
QUIET_SECONDS = 3.0
LEAST_SECONDS = 0.25
"""Between two looks: a thousand submissions ask for one each."""
NODES_ACTIVE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What slurmctld said at one moment. `nodes` and `jobs` are None while it can't be asked; `error` tells why."""

    nodes: Mapping[str, Node] | None = None
    jobs: Mapping[int, JobStates] | None = None
    error: str = "not asked yet"
    nodes_at: float = 0.0
    """When (monotonic) the nodes were asked for: what was changed later does not show in them."""

    @property
    def reachable(self) -> bool:
        """Was this an answer?"""
        return self.nodes is not None


Observer = Callable[[Snapshot, Snapshot], None]


@dataclass
class Poller:
    """Asks slurmctld again and again. `active()` says whether something is under way, so that it asks more often."""

    slurm: AsyncSlurm
    active: Callable[[], bool]
    observe: Observer
    snapshot: Snapshot = field(default_factory=Snapshot)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _nodes_at: float = 0.0
    _nodes_due: bool = True

    def wake(self, *, nodes: bool = False) -> None:
        """Ask now; with `nodes`, the nodes too."""
        self._nodes_due = self._nodes_due or nodes
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._wake.clear()
            began = time.monotonic()
            await self.poll()
            await asyncio.sleep(max(began + LEAST_SECONDS - time.monotonic(), 0.0))
            period = ACTIVE_SECONDS if self.active() else QUIET_SECONDS
            try:
                async with asyncio.timeout(period):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def poll(self) -> None:
        """One look."""
        before = self.snapshot
        try:
            self.snapshot = await self._look(before)
        except SlurmError as error:
            self.snapshot = Snapshot(error=str(error))
            self._nodes_due = True
        if self.snapshot.reachable != before.reachable:
            LOG.info("slurmctld answers" if self.snapshot.reachable else "slurmctld unreachable: %s", *self._why())
        self.observe(before, self.snapshot)

    async def _look(self, before: Snapshot) -> Snapshot:
        jobs = {one.job_id: one.states for one in await self.slurm.job_states()}
        nodes = before.nodes
        if nodes is None or self._nodes_due or jobs != before.jobs or self._nodes_old():
            self._nodes_due = False
            self._nodes_at = time.monotonic()
            nodes = {node.name: node for node in await self.slurm.nodes()}
        return Snapshot(nodes, jobs, "", self._nodes_at)

    def _nodes_old(self) -> bool:
        period = NODES_ACTIVE_SECONDS if self.active() else QUIET_SECONDS
        return time.monotonic() - self._nodes_at >= period

    def _why(self) -> tuple[str, ...]:
        return () if self.snapshot.reachable else (self.snapshot.error,)


async def nodes_of(job: Job, slurm: AsyncSlurm) -> tuple[str, ...]:
    """The job's nodes, in the order of its tasks; a heterogeneous one's leader knows its own only."""
    if job.het_job_id is None:
        return tuple(expand(job.nodes))
    parts = sorted(await slurm.job_parts(job.job_id), key=lambda part: part.het_job_offset or 0)
    return tuple(host for part in parts for host in expand(part.nodes))
