"""The pool loop of one SlurmCluster: objects and config that slurmctld runs on, then the pods of each NodeSet.

Owned by the cluster's runtime; runs when something changed, and every few seconds while something is under way. Each
turn reads the newest objects, asks `kubeslurm.pool` what to do and does it. What always holds: the order render,
validate, ConfigMap, in the pod, reconfigure, confirmed over REST; pods that Slurm does not know of are not made; and
one bad NodeSet stops neither the others nor what runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubeslurm import accounting_manifests, manifests, names, pool, pool_status
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.conditions import Verdict, parse_time
from kubeslurm.errors import BridgeError, InvalidObject
from kubeslurm.layout import PoolLayout, node_shape, plan_pool
from kubeslurm.rendering import RenderedConfig, render
from kubeslurm_operator import kube as api
from kubeslurm_operator.configs import ConfigApplier
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import NODE_SET, POD, SECRET, SLURM_CLUSTER, Kube, KubeError, Raw
from kubeslurm_operator.pool_actions import PoolActions
from kubeslurm_operator.store import Key, Store
from slurmrest import SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

SETTLING_SECONDS = 1.0
QUIET_SECONDS = 30.0
SLURM_KEY_BYTES = 1024
JWT_KEY_BYTES = 32


@dataclass
class Member:
    """A NodeSet of this cluster: as it was written, as it was understood, or why it could not be."""

    raw: Raw
    nodeset: NodeSet | None
    problem: InvalidObject | None
    pods: dict[str, pool.PodView] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """The nodes that it has or should have, in order; the first `replicas` of them are wanted."""

    @property
    def replicas(self) -> int:
        """How many nodes are wanted: none of a NodeSet that is being deleted."""
        if self.nodeset is None:
            return 0
        return 0 if self.raw["metadata"].get("deletionTimestamp") else self.nodeset.spec.replicas


class PoolLoop:
    """See the module."""

    def __init__(self, kube: Kube, store: Store, events: Events, runtime: Runtime) -> None:
        self.settling = True
        self._kube = kube
        self._store = store
        self._events = events
        self._runtime = runtime
        self._key = runtime.key
        self._wake = asyncio.Event()
        self._config = ConfigApplier(kube, runtime)
        self._actions = PoolActions(kube, store, events, runtime)
        self._applied: dict[str, str] = {}

    def wake(self) -> None:
        """Take a turn now."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        await self._config.recall()
        while True:
            self._wake.clear()
            try:
                await self._turn()
            except (KubeError, SlurmError) as error:
                LOG.warning("pool of %s: %s", self._key, error)
                self.settling = True
            try:
                async with asyncio.timeout(SETTLING_SECONDS if self.settling else QUIET_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _turn(self) -> None:
        raw = self._store.get(SLURM_CLUSTER, self._key)
        if raw is None:
            return
        members = self._members()
        if raw["metadata"].get("deletionTimestamp"):
            if not members:
                await self._release(raw)
                return
        elif names.FINALIZER not in api.finalizers(raw):
            await api.add_finalizer(self._kube, SLURM_CLUSTER, raw)
        try:
            cluster = SlurmCluster.parse(raw)
            layout = self._layout(cluster, members)
            rendered = render(layout)
        except BridgeError as error:
            await self._refuse(raw, error)
            return
        await self._serve(raw, cluster, layout, rendered, members)

    async def _serve(
        self, raw: Raw, cluster: SlurmCluster, layout: PoolLayout, rendered: RenderedConfig, members: Sequence[Member]
    ) -> None:
        applied = await self._apply(raw, cluster, layout, rendered)
        acted = False
        for member in members:
            acted |= await self._tend(cluster, member)
        identity = await self._runtime.identities.look(cluster)
        pending = applied.holds is not True or identity.reason == "UsersPropagating"
        self.settling = acted or pending or any(self._unsettled(one) for one in members)
        self._runtime.virtual.set_resources(_resources(layout))
        accounting = self._runtime.accounting.verdict if cluster.spec.accounting else None
        await self._report(raw, cluster, [applied, identity, *([accounting] if accounting else [])], layout)

    async def _apply(self, raw: Raw, cluster: SlurmCluster, layout: PoolLayout, rendered: RenderedConfig) -> Verdict:
        """Objects and config. A refusal (a namespace that is going away, a quota) must not keep NodeSets from going."""
        owner = api.owner(raw)
        try:
            await self._ensure_keys(cluster, owner)
            await self._config.store(cluster, layout, rendered, owner)
            await self._ensure_objects(cluster, owner)
        except KubeError as error:
            return Verdict(names.CONFIG_APPLIED, False, "ApplyFailed", str(error))
        return await self._config.bring(layout, rendered)

    def _members(self) -> list[Member]:
        found = []
        for raw in self._store.all(NODE_SET):
            in_here = raw["metadata"].get("namespace") == self._key.namespace
            if in_here and (raw.get("spec") or {}).get("clusterRef", {}).get("name") == self._key.name:
                found.append(self._member(raw))
        return found

    def _member(self, raw: Raw) -> Member:
        pods = self._pods(raw["metadata"]["name"])
        try:
            nodeset = NodeSet.parse(raw)
            shape = node_shape(nodeset)
        except InvalidObject as error:
            return Member(raw, None, error, pods)
        member = Member(raw, nodeset, None, pods)
        count = member.replicas
        known = max(self._config.count(nodeset.metadata.name), count, *_ordinals(nodeset, pods), 0)
        while known > count and pool.removable(shape.node_name(known - 1 + shape.start), pods, self._slurm_nodes()):
            known -= 1
        member.names = tuple(shape.node_name(shape.start + index) for index in range(known))
        return member

    def _controller_pods(self) -> list[Raw]:
        labels = {names.LABEL_CLUSTER: self._key.name, names.LABEL_COMPONENT: manifests.CONTROLLER}
        return [raw for raw in self._store.labelled(POD, labels) if Key.of(raw).namespace == self._key.namespace]

    def _raw_pods(self, nodeset: str) -> list[Raw]:
        labels = {names.LABEL_CLUSTER: self._key.name, names.LABEL_NODESET: nodeset}
        return [raw for raw in self._store.labelled(POD, labels) if Key.of(raw).namespace == self._key.namespace]

    def _pods(self, nodeset: str) -> dict[str, pool.PodView]:
        return {raw["metadata"]["name"]: pod_view(raw) for raw in self._raw_pods(nodeset)}

    def _slurm_nodes(self) -> Mapping[str, Any] | None:
        return self._runtime.snapshot.nodes

    def _layout(self, cluster: SlurmCluster, members: Sequence[Member]) -> PoolLayout:
        """The nodes that slurmctld must know. A NodeSet that can't be read any more, but has pods, holds everything."""
        for member in members:
            if member.problem is not None and (member.pods or self._config.count(member.raw["metadata"]["name"])):
                raise member.problem.below(f"NodeSet {member.raw['metadata']['name']}: ")
        good = [member for member in members if member.nodeset is not None]
        counts = {member.raw["metadata"]["name"]: len(member.names) for member in good}
        return plan_pool(cluster, [member.nodeset for member in good if member.nodeset], counts)

    async def _ensure_objects(self, cluster: SlurmCluster, owner: Raw) -> None:
        """The objects around slurmctld; each is applied when what it should be has changed since we last did."""
        parts = (*accounting_manifests.objects(cluster), *manifests.controller_objects(cluster))
        if cluster.spec.accounting:
            self._applied["accounting"] = "some"
        for body in (manifests.users_map(cluster), *parts):
            body["metadata"]["ownerReferences"] = [owner]
            await self._apply_once(body)
        if cluster.spec.accounting is None:
            await self._drop_accounting(owner["uid"])
        await self._actions.show_users(self._controller_pods(), manifests.users_digest(cluster))

    async def _drop_accounting(self, uid: str) -> None:
        """The spec has no accounting (any more): take away what we made for it, and nothing of the same name."""
        if self._applied.get("accounting") == "none":
            return
        for version, kind, name in accounting_manifests.names_of(self._key.name):
            place = api.kind_of({"apiVersion": version, "kind": kind})
            found = await self._kube.find(place, self._key.namespace, name)
            if found and uid in {one["uid"] for one in found["metadata"].get("ownerReferences") or ()}:
                await self._kube.delete(place, self._key.namespace, name, uid=found["metadata"]["uid"])
                LOG.info("%s %s of %s taken away", kind, name, self._key)
            self._applied.pop(f"{kind}/{name}", None)
        self._applied["accounting"] = "none"

    async def _ensure_keys(self, cluster: SlurmCluster, owner: Raw) -> None:
        name = manifests.keys_name(self._key.name)
        if "keys" in self._applied:
            return
        if await self._kube.find(SECRET, self._key.namespace, name) is None:
            keys = secrets.token_bytes(SLURM_KEY_BYTES), secrets.token_bytes(JWT_KEY_BYTES)
            body = manifests.keys_secret(cluster, *keys)
            body["metadata"]["ownerReferences"] = [owner]
            await self._kube.create(body)
            LOG.info("keys of %s made", self._key)
        self._applied["keys"] = name

    async def _apply_once(self, body: Raw) -> None:
        what, text = f"{body['kind']}/{body['metadata']['name']}", json.dumps(body, sort_keys=True)
        if self._applied.get(what) != text:
            await self._kube.apply(body)
            self._applied[what] = text

    async def _tend(self, cluster: SlurmCluster, member: Member) -> bool:
        """One NodeSet: decide, act, say so. Was there anything to do?"""
        raw = member.raw
        if raw["metadata"].get("deletionTimestamp") and not member.pods:
            await api.remove_finalizer(self._kube, NODE_SET, raw)
            return True
        if member.nodeset is None:
            await self._report_member(member, surplus=0)
            return False
        if names.FINALIZER not in api.finalizers(raw) and not raw["metadata"].get("deletionTimestamp"):
            await api.add_finalizer(self._kube, NODE_SET, raw)
        snapshot = pool.NodeSetSnapshot(
            wanted=member.names[: member.replicas],
            surplus=member.names[member.replicas :],
            pods=member.pods,
            configured=self._configured(),
            slurm=self._fresh_nodes(),
            now=datetime.now(UTC),
            stale=self._runtime.stale,
        )
        actions = pool.decide_pool(snapshot)
        await self._actions.carry_out(cluster, raw, member.nodeset, actions)
        await self._actions.show_users(self._raw_pods(raw["metadata"]["name"]), manifests.users_digest(cluster))
        await self._report_member(member, surplus=len(snapshot.surplus))
        return bool(actions)

    def _fresh_nodes(self) -> Mapping[str, Any] | None:
        """What slurmctld says of its nodes since we last changed one; None where it has not said it yet."""
        snapshot = self._runtime.snapshot
        return snapshot.nodes if snapshot.nodes_at > self._actions.told_slurm_at else None

    def _configured(self) -> frozenset[str]:
        """The nodes that slurmctld knows; while it does not answer, those of the stored config (it starts on that)."""
        nodes = self._runtime.snapshot.nodes
        return frozenset(nodes) if nodes is not None else self._config.stored_names

    def _unsettled(self, member: Member) -> bool:
        running = sum(pod.running for pod in member.pods.values())
        nodes = self._runtime.snapshot.nodes or {}
        known = [nodes[name] for name in member.names if name in nodes]
        counts = pool_status.Counts.of(known)
        return running != member.replicas or len(member.names) != member.replicas or counts.registered < member.replicas

    async def _report_member(self, member: Member, *, surplus: int) -> None:
        nodes = self._runtime.snapshot.nodes
        problem = member.problem and Verdict(names.READY, False, "Invalid", str(member.problem))
        meta = member.raw["metadata"]
        if problem is not None:
            await self._events.warning(member.raw, "Invalid", problem.message)
        gpu = node_shape(member.nodeset).gpu if member.nodeset else None
        status = pool_status.nodeset_status(
            member.raw.get("status") or {},
            generation=meta.get("generation", 0),
            replicas=member.replicas,
            gpus_per_node=gpu.count if gpu else 0,
            selector=f"{names.LABEL_CLUSTER}={self._key.name},{names.LABEL_NODESET}={meta['name']}",
            pods=list(member.pods.values()),
            nodes=None if nodes is None else [nodes[name] for name in member.names if name in nodes],
            surplus=surplus,
            problem=problem or None,
            now=datetime.now(UTC),
        )
        await self._patch_status(NODE_SET, member.raw, status)

    async def _report(self, raw: Raw, cluster: SlurmCluster, verdicts: Sequence[Verdict], layout: PoolLayout) -> None:
        snapshot = self._runtime.snapshot
        previous = raw.get("status") or {}
        if cluster.spec.accounting is None:
            previous = pool_status.without(previous, names.ACCOUNTING_READY)
        reachable = (
            Verdict(names.SLURM_REACHABLE, True, "Answering", "slurmrestd and slurmctld answer")
            if snapshot.reachable
            else Verdict(names.SLURM_REACHABLE, False, "SlurmUnreachable", snapshot.error)
        )
        status = pool_status.cluster_status(
            previous,
            [reachable, *verdicts],
            generation=raw["metadata"].get("generation", 0),
            facts=await self._facts(layout),
            now=datetime.now(UTC),
        )
        await self._patch_status(SLURM_CLUSTER, raw, status)

    async def _facts(self, layout: PoolLayout) -> Raw:
        """What Slurm says of itself; nothing while it does not answer, so that the last known stays."""
        snapshot, slurm = self._runtime.snapshot, self._runtime.slurm
        facts: Raw = {"configDigest": self._config.applied} if self._config.applied else {}
        if snapshot.nodes is None or snapshot.jobs is None or slurm is None:
            return facts
        gpus = sum(group.count * group.gpu.count for group in layout.groups if group.gpu)
        told = self._runtime.accounting.digest
        return facts | {
            **({"accountingDigest": told} if told else {}),
            "slurmVersion": await slurm.slurm_version(),
            "apiVersion": await slurm.version(),
            "nodes": len(snapshot.nodes),
            "gpus": {"total": gpus, "allocated": pool_status.gpus_allocated(snapshot.nodes.values())},
            "jobs": pool_status.job_totals(snapshot.jobs),
        }

    async def _refuse(self, raw: Raw, error: BridgeError) -> None:
        """A spec that can't be served: what runs goes on as it is."""
        verdict = Verdict(names.CONFIG_APPLIED, False, "Invalid", str(error))
        await self._events.warning(raw, "Invalid", str(error))
        status = pool_status.cluster_status(
            raw.get("status") or {},
            [verdict],
            generation=raw["metadata"].get("generation", 0),
            facts={},
            now=datetime.now(UTC),
        )
        await self._patch_status(SLURM_CLUSTER, raw, status)
        self.settling = False

    async def _release(self, raw: Raw) -> None:
        await self._runtime.virtual.remove()
        await api.remove_finalizer(self._kube, SLURM_CLUSTER, raw)

    async def _patch_status(self, kind: api.Kind, raw: Raw, status: Raw) -> None:
        if status != (raw.get("status") or {}):
            answer = await self._kube.patch(
                kind, *Key.of(raw), {"status": api.merge_patch(raw.get("status") or {}, status)}, status=True
            )
            self._store.put(kind, answer)


def pod_view(raw: Mapping[str, Any]) -> pool.PodView:
    """A slurmd pod as decisions see it."""
    status = raw.get("status") or {}
    meta = raw["metadata"]
    states = [one.get("state") or {} for one in status.get("containerStatuses") or () if one.get("name") == "slurmd"]
    return pool.PodView(
        name=meta["name"],
        uid=meta["uid"],
        created=parse_time(meta["creationTimestamp"]),
        running=status.get("phase") == "Running" and any("running" in state for state in states),
        ended=status.get("phase") in ("Failed", "Succeeded"),
        deleting=bool(meta.get("deletionTimestamp")),
    )


def _ordinals(nodeset: NodeSet, pods: Mapping[str, pool.PodView]) -> list[int]:
    """For each pod of the NodeSet, how many nodes there must be for it to have a line."""
    start = node_shape(nodeset).start
    return [int(name.rsplit("-", 1)[1]) - start + 1 for name in pods]


def _resources(layout: PoolLayout) -> dict[str, int]:
    total = {"cpu": 0}
    for group in layout.groups:
        total["cpu"] += group.count * group.cpus
        if group.gpu:
            total[group.gpu.resource] = total.get(group.gpu.resource, 0) + group.count * group.gpu.count
    return total
