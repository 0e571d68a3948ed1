"""The job loop: one turn for each PyTorchJob whose object, Slurm job or mirror pods changed.

One for all clusters, made by the engine. A turn reads what is so, asks `kubeslurm.jobs` what to do, and does it. What
always holds: two turns of one job never run at once; a turn that fails is taken again later and hurts no other; Slurm is
asked for a job's details only when its state changed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubeslurm import jobs, names, ownership, ranks, records, run_policy, tenants, training
from kubeslurm.api.nodeset import CONTAINER
from kubeslurm.directives import LOG_DIR
from kubeslurm.plans import JobPlan
from kubeslurm_operator.events import Events
from kubeslurm_operator.job_actions import JobActions
from kubeslurm_operator.kube import (
    DEPLOYMENT,
    NAMESPACE,
    NODE_SET,
    POD,
    PYTORCH_JOB,
    SLURM_CLUSTER,
    Kind,
    Kube,
    KubeError,
    Raw,
)
from kubeslurm_operator.materials import Bringer
from kubeslurm_operator.pod_exec import execute
from kubeslurm_operator.readings import Readings
from kubeslurm_operator.slurm import Snapshot, nodes_of
from kubeslurm_operator.store import Key, Store
from slurmrest import Job, JobBase, JobStates, NotFound, SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

NEW_AT_ONCE = 24
OTHERS_AT_ONCE = 8
"""Turns of jobs that are in Slurm already, or over: they leave the most to those that wait to be submitted."""
RETRY_SECONDS = 2.0
RIVAL_LABELS = "control-plane=kubeflow-training-operator"
RIVAL_SECONDS = 60.0
RIVAL_FRESH = 2.0
MOST_SAID = 2**20


@dataclass
class Track:
    """A submitted job: where it is, and the last details that Slurm gave of it."""

    cluster: Key
    job_id: int
    job: Job | None = None
    states: JobStates | None = None
    nodes: tuple[str, ...] = ()
    """The nodes that it has, in the order of its tasks; of all components, if it is heterogeneous."""
    hosts: tuple[str, ...] = ()
    """The nodes that it has or, once it is back in the queue, had last."""
    ranks: tuple[int, Mapping[int, ranks.RankEnd] | None] | None = None
    """How its ranks ended, at which restart; asked for once."""

    @property
    def running(self) -> bool:
        """May it still change?"""
        return self.job is None or not self.job.states.finished


class JobLoop:
    """See the module."""

    def __init__(self, kube: Kube, store: Store, events: Events, runtimes: Mapping[Key, Runtime]) -> None:
        self._kube = kube
        self._store = store
        self._events = events
        self._runtimes = runtimes
        self._materials = Bringer(kube, events)
        self._actions = JobActions(kube, store, events, self._materials)
        self._dirty: set[Key] = set()
        self._busy: set[Key] = set()
        self._tracks: dict[Key, Track] = {}
        self._wake = asyncio.Event()
        self._new, self._others = asyncio.Semaphore(NEW_AT_ONCE), asyncio.Semaphore(OTHERS_AT_ONCE)
        self._turns: set[asyncio.Task[None]] = set()
        self._rival = ownership.Rival()
        self._rival_at = -math.inf
        self._rival_gate = asyncio.Lock()
        self._readings = Readings(store)

    def mark(self, key: Key) -> None:
        """This job needs a turn."""
        self._dirty.add(key)
        self._wake.set()

    def changed(self, kind: Kind, raw: Raw) -> None:
        """An object in the store changed."""
        if kind is PYTORCH_JOB:
            self.mark(Key.of(raw))
        elif kind is POD and names.LABEL_VIRTUAL in (raw["metadata"].get("labels") or {}):
            for owner in raw["metadata"].get("ownerReferences") or ():
                self.mark(Key(raw["metadata"]["namespace"], owner["name"]))
        elif kind is NAMESPACE:
            for job in self._store.all(PYTORCH_JOB):
                if job["metadata"]["namespace"] == raw["metadata"]["name"] and jobs.job_id_of(job) is None:
                    self.mark(Key.of(job))
        elif kind in (SLURM_CLUSTER, NODE_SET):
            for job in self._store.all(PYTORCH_JOB):
                if jobs.job_id_of(job) is None:
                    self.mark(Key.of(job))

    def observed(self, cluster: Key, before: Snapshot, now: Snapshot) -> None:
        """Slurm answered, or stopped answering: which of our jobs does that concern?"""
        known = now.jobs or {}
        for key, track in self._tracks.items():
            if track.cluster == cluster and (
                now.reachable != before.reachable or known.get(track.job_id) != track.states
            ):
                self.mark(key)
        if now.reachable and not before.reachable:
            for raw in self._store.all(PYTORCH_JOB):
                self.mark(Key.of(raw))

    def active(self, cluster: Key) -> bool:
        """Is a job of ours under way there?"""
        return any(track.cluster == cluster and track.running for track in self._tracks.values())

    async def run(self) -> None:
        """Until cancelled."""
        watcher = asyncio.create_task(self._watch_rival(), name="rival")
        self._dirty |= {Key.of(raw) for raw in self._store.all(PYTORCH_JOB)}
        try:
            while True:
                self._wake.clear()
                for key in sorted(self._dirty - self._busy):
                    self._begin(key)
                await self._wake.wait()
        finally:
            for task in (watcher, *self._turns):
                task.cancel()

    def _begin(self, key: Key) -> None:
        self._dirty.discard(key)
        self._busy.add(key)
        turn = asyncio.create_task(self._turn(key), name=f"job {key}")
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)

    async def _turn(self, key: Key) -> None:
        again: float | None = None
        try:
            async with self._gate(key):
                again = await self._reconcile(key)
        except (KubeError, SlurmError) as error:
            if isinstance(error, KubeError) and error.gone:
                LOG.debug("job %s went away meanwhile: %s", key, error)
            else:
                LOG.warning("job %s: %s", key, error)
            again = RETRY_SECONDS
        except Exception:
            LOG.exception("job %s: its turn failed; again later", key)
            again = 15 * RETRY_SECONDS
        finally:
            self._busy.discard(key)
            if key in self._dirty:
                self._wake.set()
        if again is not None:
            asyncio.get_running_loop().call_later(again, self.mark, key)

    def _gate(self, key: Key) -> asyncio.Semaphore:
        raw = self._store.get(PYTORCH_JOB, key)
        new = raw is not None and jobs.job_id_of(raw) is None and not training.finished(raw.get("status") or {})
        return self._new if new else self._others

    async def _reconcile(self, key: Key) -> float | None:
        raw = self._store.get(PYTORCH_JOB, key)
        if raw is None:
            self._readings.forget(key)
            track = self._tracks.pop(key, None)
            if track is not None:
                self._materials.forget(track.job_id)
            return None
        runtime = self._runtime_of(raw)
        rival = await self._rival_for(raw)
        if not ownership.is_ours(raw, in_tenant=runtime is not None, rival=rival) and not _leaving(raw):
            return None
        if runtime is None and any(self._readings.cluster(one) is None for one in self._runtimes):
            return RETRY_SECONDS  # a SlurmCluster that can't be read may be the one with the job's tenant
        plan, refusal = self._readings.plan(raw, runtime.key if runtime else None)
        slurm = await self._slurm(key, raw, runtime, plan)
        track = self._tracks.get(key)
        hosts = track.nodes if track is not None and isinstance(slurm, Job) and slurm is track.job else ()
        snapshot = jobs.JobSnapshot(
            raw=raw,
            plan=plan,
            refusal=refusal,
            slurm=slurm,
            hosts=hosts,
            lost=self._lost(key, runtime),
            pods=self._pods(raw),
            now=datetime.now(UTC),
            missing=await self._materials.missing(raw, plan) if slurm is jobs.Slurm.NOT_SUBMITTED else (),
            bare=self._materials.bare(plan, slurm, hosts) if isinstance(slurm, Job) else (),
            ranks=await self._ranks(track, plan, slurm, runtime),
        )
        decision = jobs.decide_job(snapshot)
        for action in decision.actions:
            job_id = await self._actions.carry_out(action, raw, plan, slurm, runtime)
            if job_id is not None and runtime is not None:
                self._tracks[key] = Track(runtime.key, job_id)
                self.mark(key)
        return decision.retry_after

    def _runtime_of(self, raw: Mapping[str, Any]) -> Runtime | None:
        """The cluster that the job went to, or that its namespace is a tenant of."""
        noted = (raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_CLUSTER, "")
        if "/" in noted and jobs.job_id_of(raw) is not None:
            return self._runtimes.get(Key(*noted.split("/", 1)))
        for key in sorted(self._runtimes):
            cluster = self._readings.cluster(key)
            namespace = raw["metadata"]["namespace"]
            if cluster and tenants.claims(cluster, namespace, self._readings.labels(namespace)):
                return self._runtimes[key]
        return None

    async def _slurm(self, key: Key, raw: Raw, runtime: Runtime | None, plan: JobPlan | None) -> Job | jobs.Slurm:
        """What Slurm says of the job; asked for details only when the state changed."""
        job_id = jobs.job_id_of(raw)
        leaving = bool(raw["metadata"].get("deletionTimestamp")) or (run_policy.of(raw).suspend and jobs.held(raw))
        if runtime is None:
            return jobs.Slurm.ABSENT if job_id is not None else jobs.Slurm.NOT_SUBMITTED
        slurm, snapshot = runtime.slurm, runtime.snapshot
        if job_id is None:
            if not leaving:
                return jobs.Slurm.NOT_SUBMITTED if snapshot.reachable else jobs.Slurm.UNREACHABLE
            # submitted, perhaps, by a process of ours that died before it could note the id
            if slurm is None or not snapshot.reachable:
                return jobs.Slurm.UNREACHABLE
            found = await slurm.find(f"{raw['metadata']['uid']}/{jobs.attempt_of(raw)}")
            return found or jobs.Slurm.NOT_SUBMITTED
        track = self._tracks.get(key)
        if track is None or track.job_id != job_id:
            track = self._tracks[key] = Track(runtime.key, job_id)
        if slurm is None or snapshot.jobs is None:
            return jobs.Slurm.UNREACHABLE
        return await self._details(raw, track, runtime, snapshot)

    async def _details(self, raw: Raw, track: Track, runtime: Runtime, snapshot: Snapshot) -> Job | jobs.Slurm:
        states = (snapshot.jobs or {}).get(track.job_id)
        if track.job is not None and states == track.states:
            return track.job
        if runtime.slurm is None:
            return jobs.Slurm.UNREACHABLE
        try:
            track.job = await runtime.slurm.job(track.job_id)
        except NotFound:
            track.states = states
            if track.job is None or not track.job.states.finished:
                track.job = await self._recorded(raw, track.job_id, runtime)
            return track.job or jobs.Slurm.ABSENT
        track.nodes = await nodes_of(track.job, runtime.slurm)
        track.states = states
        track.hosts = track.nodes or track.hosts
        return track.job

    async def _recorded(self, raw: Raw, job_id: int, runtime: Runtime) -> Job | None:
        """The end of a job that slurmctld has forgotten (MinJobAge), by slurmdbd; None where that knows none either."""
        cluster = self._readings.cluster(runtime.key)
        if cluster is None or cluster.spec.accounting is None or runtime.slurm is None:
            return None
        try:
            record = await runtime.slurm.db.job(job_id)
        except NotFound:
            return None
        job = records.ended(record)
        return job if job is not None and jobs.belongs(raw, job) else None

    async def _ranks(
        self, track: Track | None, plan: JobPlan | None, job: Job | jobs.Slurm, runtime: Runtime | None
    ) -> Mapping[int, ranks.RankEnd] | None:
        """What srun said of the ranks of a job that failed, on its first node; None where nobody can say."""
        if track is None or plan is None or runtime is None or not isinstance(job, Job) or not track.hosts:
            return None
        if not job.states.finished or job.states.base not in (JobBase.FAILED, JobBase.OUT_OF_MEMORY):
            return None
        if track.ranks is None or track.ranks[0] != job.restart_count:
            said = await self._messages(runtime.key.namespace, track.hosts[0], job.job_id)
            first = plan.first_ranks(track.hosts)
            track.ranks = (job.restart_count, None if said is None else ranks.read(said, plan.tasks, first))
        return track.ranks[1]

    async def _messages(self, namespace: str, host: str, job_id: int) -> str | None:
        """srun's messages of a job, from the disk of its first node."""
        path = f"{LOG_DIR.replace('%j', str(job_id))}/srun.err"
        try:
            said = await execute(self._kube, namespace, host, CONTAINER, ["head", "-c", str(MOST_SAID), path])
        except KubeError as error:
            LOG.warning("how the ranks of Slurm job %d ended is not known: %s", job_id, error)
            return None
        return said.stdout.decode(errors="replace") if said.code == 0 else None

    def _lost(self, key: Key, runtime: Runtime | None) -> tuple[str, ...]:
        """Which of the job's nodes went down lately."""
        track = self._tracks.get(key)
        if track is None or runtime is None:
            return ()
        gone = runtime.lost_nodes()
        return tuple(host for host in track.hosts if host in gone)

    def _pods(self, raw: Raw) -> dict[str, Raw]:
        owned = self._store.owned(POD, str(raw["metadata"].get("uid")))
        return {pod["metadata"]["name"]: pod for pod in owned}

    async def _watch_rival(self) -> None:
        """One may be taken away, or come: jobs that name no manager change hands."""
        while True:
            try:
                async with self._rival_gate:
                    await self._look_for_rival()
            except KubeError as error:
                LOG.warning("looking for a training operator: %s", error)
            await asyncio.sleep(RIVAL_SECONDS)

    async def _rival_for(self, raw: Raw) -> ownership.Rival:
        """The training operators beside us; asked for anew before a job that we have not begun is taken: never race one."""
        async with self._rival_gate:
            if time.monotonic() - self._rival_at > (RIVAL_SECONDS if jobs.held(raw) else RIVAL_FRESH):
                await self._look_for_rival()
            return self._rival

    async def _look_for_rival(self) -> None:
        found = ownership.rival(await self._kube.list(DEPLOYMENT, labels=RIVAL_LABELS))
        self._rival_at = time.monotonic()
        if found == self._rival:
            return
        LOG.info("training operators take jobs that name no manager: %s", found)
        self._rival = found
        for raw in self._store.all(PYTORCH_JOB):
            self.mark(Key.of(raw))


def _leaving(raw: Mapping[str, Any]) -> bool:
    """Do we still have something to clean up behind it?"""
    return bool(raw["metadata"].get("deletionTimestamp")) and jobs.held(raw)
