"""What to do with the pods and Slurm nodes of one NodeSet: `decide_pool(snapshot) -> actions`.

Pure and total; called once per tick and NodeSet by the operator, which carries the actions out. What always holds:

* a pod is deleted only when Slurm says that its node is drained and free, when Slurm does not know the node, or when
  its containers have ended for good;
* without an answer of Slurm's (`slurm=None`) nothing is deleted, drained, resumed or set down;
* a drain or a down state that we did not make is never lifted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kubeslurm import names
from slurmrest import Node, NodeBase, NodeFlag

SCALE_IN: Final = f"{names.REASON_PREFIX}scale in"
POD_LOST: Final = f"{names.REASON_PREFIX}pod lost"
REBOOTED: Final = "Node unexpectedly rebooted"
"""Slurm's own words (slurmctld) for a node whose slurmd came back under a job, with ReturnToService=1."""

LOST_AFTER: Final = timedelta(seconds=3)
"""A node that holds a job and whose pod has not run for so long is set down; Slurm alone would wait SlurmdTimeout."""

_BUSY: Final = frozenset({NodeBase.ALLOCATED, NodeBase.MIXED})


Reason = tuple[str, int | None]
"""A node's reason and when it was given."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A slurmd pod, as far as decisions go. `running`: the slurmd container runs. `ended`: phase Failed or Succeeded."""

    name: str
    uid: str
    created: datetime
    running: bool = False
    ended: bool = False
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class NodeSetSnapshot:
    """One NodeSet at one moment. `wanted` and `surplus` are Slurm node names in order of their ordinals.

    `configured`: the node names that slurmctld's config holds. `slurm`: what slurmctld says of its nodes, None when it
    did not answer. `stale`: the reason that a node had while it was last seen up and undrained; Slurm keeps such a one
    for ever, so it explains nothing that came later.
    """

    wanted: tuple[str, ...]
    surplus: tuple[str, ...]
    pods: Mapping[str, PodView]
    configured: Collection[str]
    slurm: Mapping[str, Node] | None
    now: datetime
    stale: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of this node."""

    node: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete this pod, and only it. `free`: only while Slurm still says that the node is drained and free."""

    node: str
    uid: str
    free: bool


@dataclass(frozen=True, slots=True)
class Drain:
    """Take no new job on the node."""

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undrain:
    """Lift a drain of ours."""

    node: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Bring a node back that was down for a reason that has ended."""

    node: str


@dataclass(frozen=True, slots=True)
class SetDown:
    """Tell Slurm that the node is lost, so that its jobs end as a node failure now."""

    node: str
    reason: str


PoolAction = CreatePod | DeletePod | Drain | Undrain | Resume | SetDown


def is_busy(node: Node) -> bool:
    """A job holds it, or is being cleaned up on it."""
    return node.states.base in _BUSY or NodeFlag.COMPLETING in node.states.flags or node.alloc_cpus > 0


def is_drained(node: Node) -> bool:
    """Nothing runs on it and nothing new will: the one state in which its pod may go."""
    held = NodeFlag.DRAIN in node.states.flags or node.states.base is NodeBase.DOWN
    return held and not is_busy(node) and node.states.base is not NodeBase.UNKNOWN and not node.states.unknown


def is_stale(node: Node, stale: Mapping[str, Reason]) -> bool:
    """Is the node's reason one that it had before, while it was well?"""
    return stale.get(node.name) == (node.reason, node.reason_changed_at)


def is_lost(node: Node, stale: Mapping[str, Reason]) -> bool:
    """It went down because its pod went away."""
    told = node.reason.startswith((REBOOTED, POD_LOST)) or is_stale(node, stale)
    return node.states.base is NodeBase.DOWN and told


def decide_pool(snapshot: NodeSetSnapshot) -> tuple[PoolAction, ...]:
    """The actions of this tick, in the order of the nodes."""
    actions: list[PoolAction] = []
    for name in snapshot.wanted:
        actions.extend(_keep(name, snapshot))
    for name in snapshot.surplus:
        actions.extend(_remove(name, snapshot))
    return tuple(actions)


def _keep(name: str, snapshot: NodeSetSnapshot) -> Iterator[PoolAction]:
    pod = snapshot.pods.get(name)
    if pod is None:
        if name in snapshot.configured:
            yield CreatePod(name)
    elif pod.ended and not pod.deleting:
        yield DeletePod(name, pod.uid, free=False)
    node = (snapshot.slurm or {}).get(name)
    if node is not None:
        yield from _restore(node, pod, snapshot)


def _restore(node: Node, pod: PodView | None, snapshot: NodeSetSnapshot) -> Iterator[PoolAction]:
    """A wanted node: lift what we did to it, and tell Slurm when its pod is lost under a job."""
    stale = is_stale(node, snapshot.stale)
    ours = node.reason.startswith(names.REASON_PREFIX) and not stale
    down = node.states.base is NodeBase.DOWN
    if NodeFlag.DRAIN in node.states.flags:
        if ours and not down:
            yield Undrain(node.name)
        elif ours and _registered(node, pod):
            # drained by us, and down before its line left slurm.conf: Slurm appends its words to our reason
            yield Resume(node.name)
    elif down:
        # somebody who sets a node down gives a reason; with an old one, or its own words, it was Slurm
        if (ours or stale or node.reason == REBOOTED) and _registered(node, pod):
            yield Resume(node.name)
    elif is_busy(node) and _lost(pod, snapshot.now):
        yield SetDown(node.name, POD_LOST)


def _registered(node: Node, pod: PodView | None) -> bool:
    """The pod of now runs, and its slurmd has spoken to slurmctld since the pod was made."""
    if pod is None or not pod.running or pod.deleting or NodeFlag.NOT_RESPONDING in node.states.flags:
        return False
    return node.slurmd_start_time is not None and node.slurmd_start_time >= int(pod.created.timestamp())


def _lost(pod: PodView | None, now: datetime) -> bool:
    """No slurmd runs there, for longer than a pod takes to be replaced."""
    return pod is not None and not pod.running and not pod.deleting and now - pod.created > LOST_AFTER


def _remove(name: str, snapshot: NodeSetSnapshot) -> Iterator[PoolAction]:
    pod = snapshot.pods.get(name)
    if snapshot.slurm is None:
        return
    node = snapshot.slurm.get(name)
    if node is None:
        if pod is not None and not pod.deleting and name not in snapshot.configured:
            yield DeletePod(name, pod.uid, free=False)
    elif is_drained(node):
        if pod is not None and not pod.deleting:
            yield DeletePod(name, pod.uid, free=True)
    elif NodeFlag.DRAIN not in node.states.flags and node.states.base is not NodeBase.DOWN:
        yield Drain(name, SCALE_IN)


def removable(name: str, pods: Mapping[str, PodView], slurm: Mapping[str, Node] | None) -> bool:
    """May its line leave slurm.conf? Only when the pod is gone and Slurm says that no job can be hurt."""
    if slurm is None or name in pods:
        return False
    node = slurm.get(name)
    return node is None or is_drained(node)
