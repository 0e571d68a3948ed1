"""What NodeSets and SlurmClusters say of themselves: counts, conditions and the one sentence that people read first.

Pure; called by the operator's pool loop with what it saw this tick. What always holds: a number that can't be known now
(slurmctld does not answer) keeps its last value, and a condition says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubeslurm import conditions, names
from kubeslurm.conditions import Verdict
from kubeslurm.pool import PodView, is_busy
from slurmrest import JobBase, JobStates, Node, NodeBase, NodeFlag

Raw = dict[str, Any]

_BAD = frozenset({NodeFlag.NOT_RESPONDING, NodeFlag.INVALID_REG})
_NOT_UP = frozenset(
    {NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN, NodeFlag.POWERING_UP, NodeFlag.POWER_UP, NodeFlag.POWER_DOWN}
)
"""How Slurm shows a CLOUD node that has not registered yet. (The start time of slurmd says less: a reconfigure moves it.)"""

_OUT = frozenset({NodeFlag.DRAIN, NodeFlag.FAIL})


@dataclass(frozen=True, slots=True)
class Counts:
    """Slurm nodes by what they are worth to a job."""

    registered: int = 0
    idle: int = 0
    allocated: int = 0
    drained: int = 0
    down: int = 0

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Counts:
        """Count them; each node in one place, the worst that is true of it."""
        places = [_place(node) for node in nodes]
        return cls(
            registered=sum(place is not None for place in places) - places.count("down"),
            idle=places.count("idle"),
            allocated=places.count("allocated"),
            drained=places.count("drained"),
            down=places.count("down"),
        )


def _place(node: Node) -> str | None:
    """None for a node that has not registered yet."""
    if node.states.base in (NodeBase.DOWN, NodeBase.UNKNOWN) or _BAD & node.states.flags:
        return "down"
    if _OUT & node.states.flags:
        return "drained"
    if _NOT_UP & node.states.flags:
        return None
    return "allocated" if is_busy(node) else "idle"


def gpus_allocated(nodes: Iterable[Node]) -> int:
    """GPUs that jobs hold, out of `gres_used` (`gpu:h100:8(IDX:0-7)`)."""
    return sum(_gpu_count(node.gres_used) for node in nodes)


def _gpu_count(text: str) -> int:
    total = 0
    for part in text.split(","):
        words = part.split("(", 1)[0].split(":")
        if words[0] == "gpu" and words[-1].isdigit():
            total += int(words[-1])
    return total


def nodeset_status(
    previous: Mapping[str, Any],
    *,
    generation: int,
    replicas: int,
    gpus_per_node: int,
    selector: str,
    pods: Sequence[PodView],
    nodes: Sequence[Node] | None,
    surplus: int,
    problem: Verdict | None,
    now: datetime,
) -> Raw:
    """The status of a NodeSet. `nodes` None: slurmctld did not answer. `problem`: why nothing can be done, if so."""
    status: Raw = {"replicas": len(pods), "selector": selector, "observedGeneration": generation}
    if nodes is None:
        kept = ("readyReplicas", "idle", "allocated", "drained", "down", "gpus")
        status |= {field: previous[field] for field in kept if field in previous}
    else:
        count = Counts.of(nodes)
        status |= {
            "readyReplicas": count.registered,
            "idle": count.idle,
            "allocated": count.allocated,
            "drained": count.drained,
            "down": count.down,
            "gpus": {"total": gpus_per_node * len(nodes), "allocated": gpus_allocated(nodes)},
        }
    verdict = problem or _nodeset_ready(status, replicas, surplus, reachable=nodes is not None)
    status["conditions"] = conditions.merge(previous.get("conditions") or (), [verdict], generation=generation, now=now)
    return status


def _nodeset_ready(status: Mapping[str, Any], replicas: int, surplus: int, *, reachable: bool) -> Verdict:
    if not reachable:
        return Verdict(
            names.READY, None, "SlurmUnreachable", "slurmctld does not answer; nothing is changed until it does"
        )
    ready = int(status.get("readyReplicas", 0))
    if surplus:
        text = f"{surplus} of the nodes above {replicas} are still draining; a pod goes when Slurm says that it is free"
        return Verdict(names.READY, False, "ScalingIn", text)
    if ready < replicas:
        return Verdict(
            names.READY, False, "NodesNotRegistered", f"{ready} of {replicas} nodes have registered with Slurm"
        )
    if status.get("down"):
        return Verdict(names.READY, False, "NodesDown", f"{status['down']} of {replicas} nodes are down in Slurm")
    return Verdict(names.READY, True, "AllRegistered", f"{ready} of {replicas} nodes have registered with Slurm")


def job_totals(jobs: Mapping[int, JobStates]) -> Raw:
    """How many jobs run and wait."""
    bases = [states.base for states in jobs.values()]
    return {"running": bases.count(JobBase.RUNNING), "pending": bases.count(JobBase.PENDING)}


def without(status: Mapping[str, Any], kind: str) -> Raw:
    """The status without a condition that speaks of nothing any more."""
    return {**status, "conditions": [one for one in status.get("conditions") or () if one.get("type") != kind]}


def cluster_status(
    previous: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    *,
    generation: int,
    facts: Mapping[str, Any],
    now: datetime,
) -> Raw:
    """The status of a SlurmCluster: the verdicts, `Ready` drawn from them, and the facts over those of before."""
    kept = {field: value for field, value in previous.items() if field not in ("conditions", "observedGeneration")}
    bad = next((one for one in verdicts if one.holds is not True), None)
    ready = (
        Verdict(names.READY, True, "Serving", "slurmctld answers and holds the config")
        if bad is None
        else Verdict(names.READY, False, bad.reason, bad.message)
    )
    merged = conditions.merge(previous.get("conditions") or (), [ready, *verdicts], generation=generation, now=now)
    return {**kept, **facts, "observedGeneration": generation, "conditions": merged}
