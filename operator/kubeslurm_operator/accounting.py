"""Brings the tenants into slurmdbd, and says in AccountingReady whether slurmctld and slurmdbd know each other.

Owned by the cluster's runtime. What always holds: it only adds, as `kubeslurm.accounting` says; a slurmdbd that does not
answer holds up no job, unless the tenants have changed since it last did.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kubeslurm import accounting, names
from kubeslurm.accounting import AddQos, Found, MakeAccounts, MakeMember, MakeQos, Step, Wanted
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.conditions import Verdict
from kubeslurm.errors import InvalidObject
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import SLURM_CLUSTER
from kubeslurm_operator.store import Key, Store
from slurmrest import AsyncSlurm, SlurmError, Unavailable

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

SETTLING_SECONDS = 2.0
QUIET_SECONDS = 60.0
LOOK_SECONDS = 0.5
ROUNDS = 20
"""A QOS comes after those that it preempts: so long a chain is made in one go."""


class AccountingLoop:
    """One cluster's. `verdict` is the condition, None where the spec has no accounting."""

    def __init__(self, store: Store, events: Events, key: Key, runtime: Runtime) -> None:
        self.verdict: Verdict | None = None
        self._store = store
        self._events = events
        self._key = key
        self._runtime = runtime
        self._settled = ""
        self._wanted = (-1, "")

    @property
    def digest(self) -> str:
        """Of the tenants that slurmdbd was told of."""
        return self._settled

    def unsettled(self) -> str:
        """Why no job can be submitted yet; empty when one can."""
        generation = self._generation()
        if self._wanted[0] != generation:
            cluster = self._cluster()
            if cluster is None:
                return ""
            managed = cluster.spec.accounting is not None and cluster.spec.accounting.manage
            self._wanted = (generation, digest(cluster) if managed else "")
        wanted = self._wanted[1]
        return "slurmdbd was not told of the tenants yet" if wanted and wanted != self._settled else ""

    async def run(self) -> None:
        """Until cancelled."""
        raw = self._store.get(SLURM_CLUSTER, self._key) or {}
        self._settled = (raw.get("status") or {}).get("accountingDigest") or ""
        while True:
            before, self.verdict = self.verdict, await self._look()
            if self.verdict != before:
                self._runtime.pool.wake()
            await self._pause()

    async def _pause(self) -> None:
        """Until it is time, or the spec changes."""
        settled = self.verdict is None or self.verdict.holds is True
        generation = self._generation()
        for _ in range(int((QUIET_SECONDS if settled else SETTLING_SECONDS) / LOOK_SECONDS)):
            if self._generation() != generation:
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _generation(self) -> int:
        raw = self._store.get(SLURM_CLUSTER, self._key)
        return int(raw["metadata"].get("generation") or 0) if raw else 0

    def _cluster(self) -> SlurmCluster | None:
        raw = self._store.get(SLURM_CLUSTER, self._key)
        try:
            return SlurmCluster.parse(raw) if raw else None
        except InvalidObject:
            return None  # the pool loop says so

    async def _look(self) -> Verdict | None:
        cluster, slurm = self._cluster(), self._runtime.slurm
        if cluster is None:
            return self.verdict
        if cluster.spec.accounting is None:
            return None
        if slurm is None:
            return _not_ready("SlurmUnreachable", "slurmrestd is not there yet")
        taken: list[Step] = []
        try:
            verdict = await bring(slurm, cluster, taken.append)
        except SlurmError as error:
            away = isinstance(error, Unavailable)
            verdict = _not_ready("SlurmdbdUnreachable" if away else "SlurmdbdRefused", str(error))
        await self._tell(taken)
        if verdict.holds:
            self._settled = digest(cluster)
        return verdict

    async def _tell(self, taken: list[Step]) -> None:
        raw = self._store.get(SLURM_CLUSTER, self._key)
        for step in taken:
            LOG.info("accounting of %s: %s", self._key, accounting.explain(step))
        if raw is not None and taken:
            text = "; ".join(accounting.explain(step) for step in taken)
            await self._events.normal(raw, "AccountingChanged", text)


def digest(cluster: SlurmCluster) -> str:
    """Changes when slurmdbd must hold something else."""
    return hashlib.sha256(repr(accounting.wanted(cluster)).encode()).hexdigest()[:16]


async def bring(slurm: AsyncSlurm, cluster: SlurmCluster, told: Callable[[Step], None]) -> Verdict:
    """All that is missing, each step told when it is done. Raises SlurmError where slurmdbd refuses or does not answer."""
    name = cluster.metadata.name
    if not any(one.name == name and one.host for one in await slurm.db.clusters()):
        return _not_ready("NotRegistered", f"slurmctld has not registered cluster {name} with slurmdbd yet")
    if cluster.spec.accounting is None or not cluster.spec.accounting.manage:
        return _ready("slurmctld and slurmdbd know each other")
    want = accounting.wanted(cluster)
    for _ in range(ROUNDS):
        found = await _found(slurm, name)
        todo = accounting.steps(want, found)
        if not todo:
            return _judge(want, found)
        for step in todo:
            await _take(slurm, name, step)
            told(step)
    return _not_ready("NotSettled", "slurmdbd does not keep what it is told")


def _judge(want: Wanted, found: Found) -> Verdict:
    missing = accounting.unmakeable(want, found)
    if missing:
        return _not_ready("QosInACircle", f"QOS {', '.join(missing)} preempt each other or one that is not there")
    return _ready("slurmdbd holds the tenants' accounts, users and QOS")


async def _found(slurm: AsyncSlurm, cluster: str) -> Found:
    qos = frozenset(one.name for one in await slurm.db.qos())
    return Found(qos, tuple(await slurm.db.associations(cluster=cluster, raw=True)))


async def _take(slurm: AsyncSlurm, cluster: str, step: Step) -> None:
    match step:
        case MakeQos(entries):
            await slurm.db.save_qos(entries)
        case MakeAccounts(accounts):
            await slurm.db.add_accounts(accounts, clusters=[cluster], description="kubeslurm", organization="kubeslurm")
        case MakeMember(one, default):
            chosen = one.account if default else None
            if one.qos:
                await slurm.db.add_users(
                    [one.user], [one.account], clusters=[cluster], default_account=chosen, fairshare=one.shares,
                    qoslevel=list(one.qos), defaultqos=one.qos[0],
                )  # fmt: skip
            else:
                await slurm.db.add_users(
                    [one.user], [one.account], clusters=[cluster], default_account=chosen, fairshare=one.shares
                )
        case AddQos(entry=entry):
            await slurm.db.update_associations([entry])


def _ready(message: str) -> Verdict:
    return Verdict(names.ACCOUNTING_READY, True, "Registered", message)


def _not_ready(reason: str, message: str) -> Verdict:
    return Verdict(names.ACCOUNTING_READY, False, reason, message)
