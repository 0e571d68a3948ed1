"""Lays the replicas out on Slurm nodes: how many nodes, how many replicas on each, what each node is asked for.

Pure; called by `readers.pytorch`. What always holds: no replica gets less than its spec says; roles that ask for the same
share one shape; what no node of the partition could ever give is refused here, where it can still be named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubeslurm import names, quantities, requests
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import JobDefaults, Jobs, SlurmCluster
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.plans import Elastic, Launcher, Role, Shape
from kubeslurm.readers import resources, selectors
from kubeslurm.readers.resources import Replica
from kubeslurm.requests import Request

MOST_SHAPES: Final = 128


@dataclass(frozen=True, slots=True)
class Need:
    """A role and what each of its replicas needs, where it stands in the spec."""

    role: Role
    path: str
    replica: Replica
    features: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def same(self) -> object:
        """Roles whose needs are equal by this run on equal nodes."""
        return self.replica.gres, self.replica.cpus, self.replica.memory_mib, self.features


@dataclass(frozen=True, slots=True)
class Pool:
    """What is known of the nodes that the job may run on."""

    cluster: SlurmCluster | None
    partition: str | None
    nodesets: Sequence[NodeSet]
    defaults: JobDefaults

    @property
    def jobs(self) -> Jobs:
        """The admin's tables."""
        return self.cluster.spec.jobs if self.cluster else Jobs()

    def nodes(self) -> tuple[NodeSet, ...]:
        """The NodeSets of the partitions; none where that is not known."""
        if self.cluster is None or not self.partition:
            return ()
        wanted = self.partition.split(",")
        members = {name for one in self.cluster.spec.partitions if one.name in wanted for name in one.node_sets}
        return tuple(one for one in self.nodesets if one.metadata.name in members)


def need(role: Role, pool: Pool) -> Need:
    """What a replica of the role needs."""
    path = f"spec.pytorchReplicaSpecs.{role.name}.template.spec"
    pod = role.template["spec"]
    selection = selectors.read(path, pod, pool.jobs)
    where = f"{path}.containers[0]"
    replica = resources.read(where, pod["containers"][0], pool.jobs, pool.nodesets, selection.gpu_type)
    _check_fits(where, replica, pool)
    return Need(role, where, replica, selection.features, (*selection.ignored, *replica.ignored))


def shapes(
    needs: Sequence[Need], launcher: Launcher, request: Request, pool: Pool, elastic: Elastic | None = None
) -> tuple[Shape, ...]:
    """One, or one for each role where they differ."""
    if len({one.same for one in needs}) == 1:
        return (_shape(needs, launcher, request, pool, elastic),)
    if launcher is Launcher.RANK:
        raise Untranslated("spec.pytorchReplicaSpecs", "the launcher rank needs Master and Worker to ask for the same")
    if elastic is not None:
        raise Untranslated("spec.elasticPolicy", "needs Master and Worker to ask for the same")
    if request.nodes is not None:
        raise Untranslated(
            requests.path(names.ANNOTATION_NODES), "Master and Worker differ: their nodes can't be chosen"
        )
    return tuple(_shape([one], launcher, request, pool, None) for one in needs)


def notes(needs: Sequence[Need], shapes_: Sequence[Shape]) -> tuple[str, ...]:
    """Where more is asked for than the spec says."""
    found = []
    for shape in shapes_:
        one = next(one for one in needs if one.role.name in shape.roles)
        given = (shape.cpus_per_task or 0) * shape.tasks_per_replica
        if shape.cpus_per_task is None:
            found.append(f"no CPUs at {one.path}.resources: the nodes are taken whole")
        elif one.replica.cpus is not None and given > one.replica.cpus:
            found.append(f"CPUs rounded up ({one.replica.cpus} -> {given}) at {one.path}.resources")
    return tuple(found)


def _shape(needs: Sequence[Need], launcher: Launcher, request: Request, pool: Pool, elastic: Elastic | None) -> Shape:
    """Of an elastic job, a replica on each node: nobody knows how many come."""
    first = needs[0]
    replica, count = first.replica, sum(one.role.replicas for one in needs)
    tasks = max(1, replica.gpus) if launcher is Launcher.RANK else 1
    cpus = _cpus_per_task(first.path, replica, pool, tasks)
    taken = replace(replica, cpus=None if cpus is None else cpus * tasks)
    each = 1 if elastic else _each(replace(first, replica=taken), count, request, pool)
    return Shape(
        roles=tuple(one.role.name for one in needs),
        replicas=elastic.most if elastic else count,
        replicas_per_node=each,
        tasks_per_replica=tasks,
        cpus_per_task=cpus,
        memory_mib=_memory(replica, each, pool.defaults, whole=cpus is None),
        gres=replica.gres,
        features=first.features,
        exclusive=cpus is None or request.exclusive,
        least=elastic.least if elastic else None,
    )


def _each(one: Need, count: int, request: Request, pool: Pool) -> int:
    """Replicas on each node, spread evenly: as many as have room where they need a part of a node's GPUs, else one."""
    room = _room(one.replica, pool)
    if request.nodes is not None:
        return _chosen(one, count, request.nodes, room)
    if not one.replica.gpus or one.replica.cpus is None or request.exclusive or room is None:
        return 1
    return -(-count // -(-count // room))


def _chosen(one: Need, count: int, nodes: int, room: int | None) -> int:
    path = requests.path(names.ANNOTATION_NODES)
    each = -(-count // nodes)
    if -(-count // each) != nodes:
        raise InvalidObject(path, f"{count} replicas can't be spread over {nodes} nodes")
    if room is not None and each > room:
        raise InvalidObject(path, f"{each} replicas on a node, but it has room for {room}")
    return each


def _room(replica: Replica, pool: Pool) -> int | None:
    """How many replicas a node has room for, on those of the partition's nodes where it is least; None: not known."""
    found = [_room_on(one, replica) for one in pool.nodes() if one.spec.gpu_count() >= replica.gpus]
    return max(1, min(found)) if found else None


def _room_on(nodeset: NodeSet, replica: Replica) -> int:
    spec = nodeset.spec
    limits = [
        (spec.gpu_count(), replica.gpus),
        (spec.cpu_count(), replica.cpus or 0),
        (spec.memory_mib(), replica.memory_mib or 0),
    ]
    return min((has // wants for has, wants in limits if wants), default=1)


def _check_fits(path: str, replica: Replica, pool: Pool) -> None:
    """Of several partitions the largest node counts: Slurm picks the one where the job fits."""
    sizes = [one.spec.gpu_count() for one in pool.nodes()]
    if sizes and replica.gpus > max(sizes):
        where = f"{path}.resources.limits[{replica.gpu_resource}]"
        raise InvalidObject(where, f"{replica.gpus} GPUs, but a node of partition {pool.partition} has {max(sizes)}")


def _cpus_per_task(path: str, replica: Replica, pool: Pool, tasks: int) -> int | None:
    """None: the node's own, all of them. Without a cluster nobody has said what else to do."""
    cpus, defaults = replica.cpus, pool.defaults
    if cpus is None and defaults.cpus_per_gpu and replica.gpus:
        cpus = defaults.cpus_per_gpu * replica.gpus
    if cpus is not None:
        return max(1, -(-cpus // tasks))
    if pool.cluster is not None and not defaults.exclusive:
        raise Untranslated(
            f"{path}.resources.requests.cpu",
            "missing, and the SlurmCluster's jobs.defaults give no CPUs: Slurm gives one",
        )
    return None


def _memory(replica: Replica, each: int, defaults: JobDefaults, *, whole: bool) -> int | None:
    if replica.memory_mib is not None:
        return replica.memory_mib * each
    if defaults.memory_per_node:
        return quantities.to_mib(defaults.memory_per_node)
    return 0 if whole else None
