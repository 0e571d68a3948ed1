"""Objects of the store, read: SlurmClusters, NodeSets and the plans of jobs, each read anew only when it changed.

One for the job loop. What always holds: a cluster that can't be read any more counts as it was when it could, so that an
admin's slip in one field fails nobody's job; what is given is as new as the store.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kubeslurm import jobs
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, SLURM_CLUSTER, Raw
from kubeslurm_operator.store import Key, Store

LOG = logging.getLogger(__name__)

Plan = tuple[JobPlan | None, InvalidObject | None]
Stamp = tuple[str, ...]


class Readings:
    """See the module."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clusters: dict[Key, tuple[Stamp, SlurmCluster | None]] = {}
        self._nodesets: dict[Key, tuple[Stamp, NodeSet | None]] = {}
        self._plans: dict[Key, tuple[Stamp, Plan]] = {}

    def cluster(self, key: Key) -> SlurmCluster | None:
        """As it is, or as it was last when it could be read."""
        raw = self._store.get(SLURM_CLUSTER, key)
        if raw is None:
            self._clusters.pop(key, None)
            return None
        before = self._clusters.get(key)
        if before is not None and before[0] == _stamp(raw):
            return before[1]
        try:
            read: SlurmCluster | None = SlurmCluster.parse(raw)
        except InvalidObject as error:
            LOG.debug("SlurmCluster %s can't be read: %s", key, error)  # the pool loop says so on the cluster itself
            read = before[1] if before else None
        self._clusters[key] = (_stamp(raw), read)
        return read

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """The namespace's; None while it has not been seen, so that no selector matches it."""
        raw = self._store.get(NAMESPACE, Key("", namespace))
        return None if raw is None else raw["metadata"].get("labels") or {}

    def plan(self, raw: Raw, cluster: Key | None) -> Plan:
        """What a job's spec says on that cluster, or why it can't be read."""
        key, namespace = Key.of(raw), raw["metadata"]["namespace"]
        pool = [] if cluster is None else self._pool(cluster)
        labels = self.labels(namespace)
        stamp = (*_stamp(raw), str(cluster), *(part for one in pool for part in _stamp(one)), repr(labels))
        known = self._plans.get(key)
        if known is None or known[0] != stamp:
            known = self._plans[key] = (stamp, self._read(raw, cluster, pool, labels))
        return known[1]

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self._plans.pop(key, None)

    def _read(self, raw: Raw, cluster: Key | None, pool: list[Raw], labels: Mapping[str, str] | None) -> Plan:
        try:
            job = PyTorchJob.parse(raw)
            if cluster is None:
                text = f"no SlurmCluster has a tenant that names namespace {raw['metadata']['namespace']!r}"
                raise InvalidObject("metadata.namespace", text)
            read = self.cluster(cluster)
            if read is None:
                return None, InvalidObject("metadata.namespace", f"SlurmCluster {cluster} is not valid")
            nodesets = [one for raw in pool[1:] if (one := self._nodeset(raw)) is not None]
            return read_pytorchjob(job, read, nodesets, attempt=jobs.attempt_of(raw), labels=labels), None
        except InvalidObject as error:
            return None, error

    def _pool(self, cluster: Key) -> list[Raw]:
        """The SlurmCluster and its NodeSets."""
        own = self._store.get(SLURM_CLUSTER, cluster)
        found = [] if own is None else [own]
        for raw in self._store.all(NODE_SET):
            here = raw["metadata"]["namespace"] == cluster.namespace
            if here and (raw.get("spec") or {}).get("clusterRef", {}).get("name") == cluster.name:
                found.append(raw)
        return found

    def _nodeset(self, raw: Raw) -> NodeSet | None:
        key = Key.of(raw)
        known = self._nodesets.get(key)
        if known is None or known[0] != _stamp(raw):
            try:
                read: NodeSet | None = NodeSet.parse(raw)
            except InvalidObject:
                read = None  # the pool loop says so on the NodeSet itself
            known = self._nodesets[key] = (_stamp(raw), read)
        return known[1]


def _stamp(raw: Raw) -> Stamp:
    """Changes with everything but the status: Kubernetes counts changes of the spec alone, not of the metadata."""
    meta = raw["metadata"]
    return (str(meta.get("uid")), str(meta.get("generation")), repr(meta.get("annotations")), repr(meta.get("labels")))
