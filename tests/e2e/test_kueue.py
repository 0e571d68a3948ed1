"""Kueue beside us: it says when a job may start, by the job's `suspend`; Slurm runs what it admits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.e2e.beside import kueue, kueue_is_built
from tests.e2e.product import TENANT, Product, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

Raw = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
QUEUE = "one-node"


def queue_objects() -> list[Raw]:
    """A queue of the tenant's for as much as one job takes."""
    resources = ["nvidia.com/gpu"]
    flavors = [{"name": "slurm", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]
    group = {"coveredResources": resources, "flavors": flavors}
    return [
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "slurm"}},
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": QUEUE},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": QUEUE, "namespace": TENANT},
            "spec": {"clusterQueue": QUEUE},
        },
    ]


@pytest.fixture(scope="module")
def queued(product: Product, own_cluster: Cluster) -> Iterator[Product]:
    """The product, with Kueue and one queue."""
    if not kueue_is_built() and os.environ.get("KUBESLURM_SOAK") != "1":
        pytest.skip("Kueue is not built yet: `make soak`, or KUBESLURM_SOAK=1, builds it")
    with kueue(own_cluster):
        product.wait("Kueue's webhooks answer", lambda: applied(product, queue_objects()), 60, every=1)
        yield product
        product.tidy()
        for raw in reversed(queue_objects()):
            place = ("-n", TENANT) if "namespace" in raw["metadata"] else ()
            product.cluster.kubectl("delete", *place, raw["kind"].lower(), raw["metadata"]["name"], timeout=60)


def applied(product: Product, objects: list[Raw]) -> bool:
    """Did the API server take them?"""
    try:
        product.cluster.apply(objects)
    except Exception as error:
        if "webhook" in str(error) or "refused" in str(error):
            return False
        raise
    return True


def job(name: str, hold: float) -> Raw:
    """A job of one node, for the queue."""
    raw = training_job(name, hold=hold)
    raw["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
    return raw


def slurm_states(product: Product, name: str) -> list[str]:
    """The states of all Slurm jobs of that name."""
    return [one["JobState"] for one in product.slurm_jobs() if one["JobName"] == name]


def test_jobs_are_admitted_in_turn(queued: Product) -> None:
    """Two jobs, room for one: the second is in no Slurm queue until the first has ended."""
    queued.cluster.apply([job("first", 12)])
    queued.wait_condition("first", "Running")
    queued.cluster.apply([job("second", 2)])
    waiting = queued.wait_condition("second", "Suspended")
    assert "startTime" not in waiting["status"]
    assert slurm_states(queued, "second") == []
    queued.wait_condition("first", "Succeeded", 60)
    queued.wait("second runs", lambda: newest(queued.job("second")) in ("Running", "Succeeded"), 60)
    queued.wait_condition("second", "Succeeded", 60)
    assert (slurm_states(queued, "first"), slurm_states(queued, "second")) == (["COMPLETED"], ["COMPLETED"])
    for name in ("first", "second"):
        queued.remove(name)


def test_an_evicted_job_leaves_slurm_and_comes_back(queued: Product) -> None:
    """Kueue suspends it: the Slurm job is cancelled and the job has not failed; readmitted, it runs anew to its end."""
    queued.cluster.apply([job("moved", 15)])
    queued.wait_condition("moved", "Running")
    stop(queued, "HoldAndDrain")
    queued.wait_condition("moved", "Suspended", 60)
    queued.wait("the Slurm job is gone", lambda: slurm_states(queued, "moved") == ["CANCELLED"], 30)
    queued.wait("nothing is active", lambda: "active" not in counters(queued, "moved"), 10)
    assert queued.mirror_pods("moved") == []
    stop(queued, "None")
    ended = queued.wait_condition("moved", "Succeeded", 90)
    assert sorted(slurm_states(queued, "moved")) == ["CANCELLED", "COMPLETED"]
    kinds = [(one["type"], one["status"]) for one in ended["status"]["conditions"]]
    assert kinds == [("Created", "True"), ("Suspended", "False"), ("Running", "False"), ("Succeeded", "True")]
    queued.remove("moved")


def counters(product: Product, name: str) -> Raw:
    """The master's."""
    return dict(product.job(name)["status"]["replicaStatuses"]["Master"])


def stop(product: Product, policy: str) -> None:
    """The queue's stopPolicy: HoldAndDrain evicts all that it had admitted."""
    patch = f'{{"spec": {{"stopPolicy": "{policy}"}}}}'
    product.cluster.kubectl("patch", "clusterqueue", QUEUE, "--type=merge", "-p", patch)
