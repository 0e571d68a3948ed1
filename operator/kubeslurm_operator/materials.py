"""Brings what a job gets of ConfigMaps and Secrets to its nodes, and looks whether they are there before it is submitted.

Called by the job loop and its actions. What always holds: objects are read in the job's own namespace alone; a value goes
from the API server to a node by standard input only, into a folder that Slurm's Prolog made for the job, written as the
job's own user; no value is logged, kept, or put into an event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubeslurm import materials, training
from kubeslurm.api.nodeset import CONTAINER
from kubeslurm.materials import Source
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import runtime_names
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import CONFIG_MAP, SECRET, Kube, KubeError
from kubeslurm_operator.pod_exec import execute
from slurmrest import Job

LOG = logging.getLogger(__name__)

AT_ONCE: Final = 8
SECONDS: Final = 20.0
_KINDS: Final = {"ConfigMap": CONFIG_MAP, "Secret": SECRET}

Raw = Mapping[str, Any]


class Bringer:
    """Brings, and remembers where it has brought; after a restart it brings again, which changes nothing on a node."""

    def __init__(self, kube: Kube, events: Events) -> None:
        self._kube = kube
        self._events = events
        self._brought: dict[int, set[tuple[int, str]]] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def missing(self, raw: Raw, plan: JobPlan | None) -> tuple[str, ...]:
        """What the job wants and its namespace does not have; nothing is asked for a job that is not to be submitted."""
        over = raw["metadata"].get("deletionTimestamp") or training.finished(raw.get("status") or {})
        if plan is None or not plan.materials.sources or over:
            return ()
        return materials.missing(plan.materials, await self._read(raw, plan))

    def bare(self, plan: JobPlan | None, job: Job, hosts: Sequence[str]) -> tuple[str, ...]:
        """The hosts of this start of the job where its materials are still to be brought."""
        if plan is None or not plan.materials.brought:
            return ()
        done = self._brought.get(job.job_id, set())
        return tuple(host for host in hosts if (job.restart_count, host) not in done)

    def forget(self, job_id: int) -> None:
        """The job's object is gone."""
        self._brought.pop(job_id, None)

    async def bring(
        self, raw: Raw, plan: JobPlan, job_id: int, restart: int, hosts: Sequence[str], namespace: str
    ) -> None:
        """Bring them. `namespace`: the pool's. KubeError when a node could not be reached: the next turn tries it again."""
        if plan.user is None:
            return
        found = await self._read(raw, plan)
        if words := materials.missing(plan.materials, found):
            await self._events.warning(raw, "MaterialsMissing", f"waits for {', '.join(words)}")
            raise KubeError(0, "MaterialsMissing", ", ".join(words))
        try:
            bundle = materials.bundle(plan.materials, found, {*runtime_names(plan.launcher), "PYTHONUNBUFFERED"})
        except ValueError as error:
            await self._events.warning(raw, "MaterialsRefused", str(error))
            raise KubeError(0, "MaterialsRefused", str(error)) from None
        if bundle.skipped:
            text = f"no variables for a Slurm job: {', '.join(bundle.skipped)}"
            await self._events.warning(raw, "InvalidVariableNames", text)
        command = materials.unpack_command(plan.user.uid, plan.user.gid, job_id, restart, len(bundle.tar))
        work = (self._to(namespace, host, command, bundle.tar, (job_id, restart)) for host in hosts)
        results = await asyncio.gather(*work, return_exceptions=True)
        for failure in (one for one in results if isinstance(one, BaseException)):
            raise failure
        LOG.info("materials of job %s/%s brought to %d nodes", plan.namespace, plan.name, len(hosts))

    async def _to(self, namespace: str, host: str, command: list[str], tar: bytes, start: tuple[int, int]) -> None:
        async with self._gate:
            result = await execute(self._kube, namespace, host, CONTAINER, command, stdin=tar, timeout=SECONDS)
        if result.code != 0:
            # what a program says of its input could hold some of it
            raise KubeError(0, "NotBrought", f"materials of Slurm job {start[0]}: exit code {result.code} on {host}")
        self._brought.setdefault(start[0], set()).add((start[1], host))

    async def _read(self, raw: Raw, plan: JobPlan) -> dict[Source, dict[str, bytes] | None]:
        sources = plan.materials.sources
        found = await asyncio.gather(*(self._data(raw["metadata"]["namespace"], source) for source in sources))
        return dict(zip(sources, found, strict=True))

    async def _data(self, namespace: str, source: Source) -> dict[str, bytes] | None:
        async with self._gate:
            found = await self._kube.find(_KINDS[source.kind], namespace, source.name)
        return None if found is None else materials.contents({**found, "kind": source.kind})
