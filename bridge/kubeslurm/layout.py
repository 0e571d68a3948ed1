"""Which Slurm nodes exist: `plan_pool(cluster, nodesets) -> PoolLayout`, the one model that all config is rendered from.

Pure; called by the operator's pool loop and by `kubeslurm render`. What always holds: a node name belongs to one NodeSet,
the order of the NodeSets does not matter, and GresTypes, Gres= and gres.conf come from one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import Partition, SlurmCluster
from kubeslurm.errors import Conflict


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPUs of a node. `devices` is the File= of gres.conf."""

    resource: str
    type: str | None
    count: int
    devices: str

    @property
    def gres(self) -> str:
        """As in slurm.conf's Gres=."""
        return f"gpu:{self.type}:{self.count}" if self.type else f"gpu:{self.count}"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A run of equal nodes, `<nodeset>-<start>` and on."""

    nodeset: str
    start: int
    count: int
    width: int
    cpus: int
    memory_mib: int
    gpu: Gpu | None
    features: tuple[str, ...]
    weight: int

    def node_name(self, ordinal: int) -> str:
        """The node of that number; its pod has the same name."""
        return f"{self.nodeset}-{ordinal:0{self.width}d}"

    def names(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(self.node_name(self.start + index) for index in range(self.count))

    def hostlist(self) -> str:
        """Slurm's short form, `gpu-node-[0-63]`."""
        first, last = self.node_name(self.start), self.node_name(self.start + self.count - 1)
        if self.count == 1:
            return first
        cut = len(self.nodeset) + 1
        return f"{self.nodeset}-[{first[cut:]}-{last[cut:]}]"


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """A partition and the hostlists of its nodes."""

    name: str
    hostlists: tuple[str, ...]
    default: bool
    max_time: str
    default_time: str | None
    priority_tier: int | None
    state: str
    allow_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    """Either empty: all may."""
    gpu_weight: float | None = None
    """How many CPUs a GPU is worth where usage is counted; None where nothing is, or there are no GPUs."""


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """All that slurm.conf and gres.conf say of the pool. `groups` in order of their names, none of them empty."""

    cluster: str
    groups: tuple[NodeGroup, ...]
    partitions: tuple[PartitionLayout, ...]
    config: tuple[tuple[str, str | tuple[str, ...]], ...]
    enforced: tuple[str, ...] | None = None
    """What slurmctld checks with slurmdbd's word; None where there is no slurmdbd."""


def node_shape(nodeset: NodeSet, count: int | None = None) -> NodeGroup:
    """The NodeSet's nodes, as many as it asks for or `count`."""
    spec = nodeset.spec
    gpus = spec.gpu_count()
    gpu = None
    if spec.gpu is not None:
        devices = spec.gpu.devices or (f"/dev/nvidia[0-{gpus - 1}]" if gpus > 1 else "/dev/nvidia0")
        gpu = Gpu(spec.gpu.resource, spec.gpu.type, gpus, devices)
    return NodeGroup(
        nodeset=nodeset.metadata.name,
        start=spec.ordinals.start,
        count=spec.replicas if count is None else count,
        width=spec.ordinals.width,
        cpus=spec.cpu_count(),
        memory_mib=spec.memory_mib(),
        gpu=gpu,
        features=tuple(spec.features),
        weight=spec.weight,
    )


def plan_pool(
    cluster: SlurmCluster, nodesets: Sequence[NodeSet], counts: Mapping[str, int] | None = None
) -> PoolLayout:
    """The layout. `counts` says how many nodes a NodeSet has in Slurm where that is not what its spec asks for: a pool
    that shrinks keeps the lines of nodes that are not free yet. Raises Conflict when a NodeSet is given twice."""
    shapes = [node_shape(one, (counts or {}).get(one.metadata.name)) for one in nodesets]
    groups = tuple(sorted((group for group in shapes if group.count), key=lambda group: group.nodeset))
    _refuse_repeats(groups)
    lists = {group.nodeset: group.hostlist() for group in groups}
    counted = {group.nodeset: group for group in shapes} if cluster.spec.accounting else {}
    return PoolLayout(
        cluster=cluster.metadata.name,
        groups=groups,
        partitions=tuple(_partition(one, lists, counted) for one in cluster.spec.partitions),
        config=tuple(
            sorted(
                (key, tuple(value) if isinstance(value, list) else value) for key, value in cluster.spec.config.items()
            )
        ),
        enforced=tuple(cluster.spec.accounting.enforce) if cluster.spec.accounting else None,
    )


def _gpu_weight(groups: Sequence[NodeGroup]) -> float | None:
    """A node's GPUs are worth its CPUs; of unlike nodes the dearest counts, so that scaling changes no price."""
    weights = [group.cpus / group.gpu.count for group in groups if group.gpu and group.gpu.count]
    return round(max(weights), 3) if weights else None


def _partition(partition: Partition, lists: Mapping[str, str], counted: Mapping[str, NodeGroup]) -> PartitionLayout:
    return PartitionLayout(
        name=partition.name,
        hostlists=tuple(lists[name] for name in sorted(set(partition.node_sets)) if name in lists),
        default=partition.default,
        max_time=partition.max_time,
        default_time=partition.default_time,
        priority_tier=partition.priority_tier,
        state=partition.state,
        allow_accounts=tuple(sorted(set(partition.allow_accounts))),
        allow_qos=tuple(sorted(set(partition.allow_qos))),
        gpu_weight=_gpu_weight([counted[name] for name in partition.node_sets if name in counted]),
    )


def _refuse_repeats(groups: Sequence[NodeGroup]) -> None:
    """Node names are `<nodeset>-<number>`: they can't meet unless one NodeSet is given twice."""
    for before, after in pairwise(groups):
        if before.nodeset == after.nodeset:
            raise Conflict(f"NodeSet {after.nodeset} is given twice")
