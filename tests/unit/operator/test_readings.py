"""Objects are read anew when they change, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from kubeslurm_operator import readings
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, PYTORCH_JOB, SLURM_CLUSTER
from kubeslurm_operator.readings import Readings
from kubeslurm_operator.store import Key, Store
from tests.unit import examples

CLUSTER = Key("slurm", "ai-cluster")


@pytest.fixture
def store() -> Store:
    """The example's objects, as of one moment."""
    made = Store((SLURM_CLUSTER, NODE_SET, PYTORCH_JOB, NAMESPACE))
    for kind, name in ((SLURM_CLUSTER, "SlurmCluster"), (NODE_SET, "NodeSet"), (PYTORCH_JOB, "PyTorchJob")):
        made.put(kind, versioned(examples.raw(name), 1))
    return made


def versioned(raw: dict[str, Any], version: int, **metadata: Any) -> dict[str, Any]:
    """The object at a version."""
    meta = {**raw["metadata"], "uid": raw["kind"], "resourceVersion": str(version), "generation": version, **metadata}
    return {**raw, "metadata": meta}


def plan(store: Store, reading: Readings) -> readings.Plan:
    """Of the one job."""
    (raw,) = store.all(PYTORCH_JOB)
    return reading.plan(raw, CLUSTER)


def test_a_plan_is_made_once(store: Store) -> None:
    """A change of the status alone changes nothing."""
    reading = Readings(store)
    first = plan(store, reading)
    raw = {**examples.raw("PyTorchJob"), "status": {"startTime": "2026-12-01T12:00:00Z"}}
    store.put(PYTORCH_JOB, versioned(raw, 2, generation=1))
    assert plan(store, reading) is first
    assert first[0] is not None


@pytest.mark.parametrize(
    ("kind", "name", "metadata"),
    [
        (PYTORCH_JOB, "PyTorchJob", {}),
        (PYTORCH_JOB, "PyTorchJob", {"generation": 1, "annotations": {"slurm.bridge/attempt": "2"}}),
        (NODE_SET, "NodeSet", {}),
        (SLURM_CLUSTER, "SlurmCluster", {}),
    ],
)
def test_a_plan_is_made_anew(store: Store, kind: Any, name: str, metadata: dict[str, Any]) -> None:
    """With each change of what it is made of."""
    reading = Readings(store)
    first = plan(store, reading)
    store.put(kind, versioned(examples.raw(name), 2, **metadata))
    assert plan(store, reading) is not first


def test_a_cluster_that_can_not_be_read_any_more_counts_as_before(store: Store) -> None:
    """An admin's slip fails nobody's job."""
    reading = Readings(store)
    before = reading.cluster(CLUSTER)
    broken = versioned(examples.raw("SlurmCluster"), 2)
    broken["spec"] = {**broken["spec"], "partitions": "none"}
    store.put(SLURM_CLUSTER, broken)
    assert (reading.cluster(CLUSTER), plan(store, reading)[1]) == (before, None)


def test_pods_are_found_by_their_owner() -> None:
    """Also after they changed hands, and not after they went."""
    store = Store((NODE_SET,))
    one = {"metadata": {"name": "a", "namespace": "x", "uid": "1", "ownerReferences": [{"uid": "u"}]}}
    store.put(NODE_SET, one)
    assert store.owned(NODE_SET, "u") == [one]
    moved = {"metadata": {**one["metadata"], "resourceVersion": "2", "ownerReferences": [{"uid": "v"}]}}
    store.put(NODE_SET, moved)
    assert (store.owned(NODE_SET, "u"), store.owned(NODE_SET, "v")) == ([], [moved])
    store.drop(NODE_SET, moved)
    assert store.owned(NODE_SET, "v") == []
