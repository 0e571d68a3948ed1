"""PyTorchJobs of every shape, from the object to its mirror pods: differing roles, small replicas, elastic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurmrest.hostlists import expand
from tests.e2e.product import Product, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]

TELL = 'echo "$RANK of $WORLD_SIZE at $MASTER_ADDR"; sleep 5; [ "$RANK" != "$FAILS" ] || exit 7'


def job(name: str, workers: int, master: dict[str, Any], worker: dict[str, Any], fails: int = -1) -> dict[str, Any]:
    """A job of torchrun's shape whose roles ask for these resources, and in which this rank fails."""
    raw: dict[str, Any] = json.loads(json.dumps(training_job(name, workers=workers, command=("sh", "-c", TELL))))
    for role, limits in (("Master", master), ("Worker", worker)):
        container = raw["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["containers"][0]
        container["resources"]["limits"] = limits
        container["env"] = [{"name": "FAILS", "value": str(fails)}]
    return raw


def places(product: Product, name: str) -> dict[str, str]:
    """The Slurm node that each mirror pod tells of, by the pod's name."""
    pods = product.mirror_pods(name)
    return {pod["metadata"]["name"]: pod["status"].get("message", "").rpartition(" on ")[2] for pod in pods}


def test_differing_roles_run_as_one_heterogeneous_job(product: Product) -> None:
    """Scenario 8: the Master's pod is on the leader's node, the Workers' on the other component's; all succeed."""
    product.submit(job("hetero", 2, {"cpu": 2, "memory": "256Mi"}, {"nvidia.com/gpu": 8, "cpu": 4, "memory": "256Mi"}))
    raw = product.wait_condition("hetero", "Running", 120)
    parts = [one for one in product.slurm_jobs() if one.get("JobName") == "hetero"]
    parts.sort(key=lambda one: int(one["HetJobOffset"]))
    nodes = [host for part in parts for host in expand(part["NodeList"])]
    names = ["hetero-master-0", "hetero-worker-0", "hetero-worker-1"]
    product.wait("pods on their nodes", lambda: places(product, "hetero") == dict(zip(names, nodes, strict=True)), 20)
    assert len(product.mirror_pods("hetero")) == 3
    raw = product.wait_condition("hetero", "Succeeded", 60)
    assert {role: one["succeeded"] for role, one in raw["status"]["replicaStatuses"].items()} == {
        "Master": 1,
        "Worker": 2,
    }
    product.remove("hetero")


def test_the_worker_of_a_heterogeneous_job_that_failed_tells_so(product: Product) -> None:
    """srun counts the ranks of each component from 0: the code is the right pod's all the same."""
    limits = {"nvidia.com/gpu": 8, "cpu": 4, "memory": "256Mi"}
    product.submit(job("hetfail", 2, {"cpu": 2, "memory": "256Mi"}, limits, fails=2))
    product.wait_condition("hetfail", "Failed", 120)
    told = "ExitedWithCode: Pod: research.hetfail-worker-1 exited with code 7"
    product.wait("the event", lambda: told in product.events("PyTorchJob", "hetfail"), 15)
    product.remove("hetfail")


def test_small_replicas_share_a_node(product: Product) -> None:
    """Scenario 9: four replicas of two GPUs on one node of eight."""
    limits = {"nvidia.com/gpu": 2, "cpu": 2, "memory": "256Mi"}
    product.submit(job("packed", 3, limits, limits))
    raw = product.wait_condition("packed", "Running")
    assert product.slurm_job(raw)["NumNodes"] == "1"
    node = product.slurm_job(raw)["NodeList"]
    product.wait("pods on that node", lambda: set(places(product, "packed").values()) == {node}, 20)
    product.wait_condition("packed", "Succeeded")
    product.remove("packed")


def test_an_elastic_job_counts_the_replicas_that_it_got(product: Product) -> None:
    """Scenario 4: ten replicas are asked for and two are enough; the pool has eight nodes."""
    limits = {"nvidia.com/gpu": 8, "cpu": 2, "memory": "256Mi"}
    raw = job("elastic", 10, limits, limits)
    del raw["spec"]["pytorchReplicaSpecs"]["Master"]
    raw["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 10}
    product.submit(raw)
    running = product.wait_condition("elastic", "Running")
    nodes = int(product.slurm_job(running)["NumNodes"])
    assert 2 <= nodes <= 8
    assert running["status"]["replicaStatuses"]["Worker"]["active"] == nodes

    def phases() -> list[str]:
        return sorted(pod["status"]["phase"] for pod in product.mirror_pods("elastic"))

    product.wait("phases", lambda: phases() == ["Pending"] * (10 - nodes) + ["Running"] * nodes, 20)
    product.wait_condition("elastic", "Succeeded")
    product.remove("elastic")
