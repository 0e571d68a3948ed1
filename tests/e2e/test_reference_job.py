"""The reference job on the reference pool: 64 nodes x 8 GPUs, 512 ranks, as a user would see it end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.demo.steps import EXAMPLES
from tests.e2e.product import EIGHT, JOB_LOGS, TENANT, Product, newest

pytestmark = pytest.mark.cluster

NODES = 64
RANKS = 512
LINE = re.compile(r"rank (\d+) of 512 on (\S+) local (\d) gpus 0,1,2,3,4,5,6,7 sum 130816")


@pytest.fixture(scope="module")
def ended(product: Product) -> Iterator[dict[str, Any]]:
    """The job after its end, on a pool of 64."""
    product.scale(NODES)
    product.wait_registered(NODES, 180)
    product.remove("ai-training")
    product.cluster.apply((EXAMPLES / "pytorchjob.yaml").read_text())
    yield product.wait_condition("ai-training", "Succeeded", 120)
    product.remove("ai-training")
    product.scale(EIGHT)
    product.wait_registered(EIGHT, 180)


def test_slurm_ran_what_the_reference_asks_for(product: Product, ended: dict[str, Any]) -> None:
    """Nodes, tasks, GPUs, CPUs, memory, time and user, in Slurm's own words."""
    job = product.slurm_job(ended)
    assert job["JobState"] == "COMPLETED"
    assert job["UserId"] == "alice(1000)"
    assert (job["NumNodes"], job["NumTasks"], job["CPUs/Task"]) == ("64", "512", "4")
    assert (job["MinMemoryNode"], job["TimeLimit"]) == ("120G", "2-00:00:00")
    assert job["TresPerNode"] == "gres/gpu:8"


def test_each_rank_ran_once_and_met_the_others(product: Product, ended: dict[str, Any]) -> None:
    """Every rank's own file on its own node says which it was, what it saw and what the sum was."""
    job_id = product.slurm_job(ended)["JobId"]
    lines = []
    for node in product.node_states():
        lines += product.on_node(node, f"cat {JOB_LOGS}/{job_id}/[0-9]*.out").splitlines()
    # On a machine that is short of CPU, slurmstepd writes into the ranks' output that srun was slow to take its answer.
    lines = [line for line in lines if not line.startswith("slurmstepd-")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match][:3]
    ranks = sorted(int(match.group(1)) for match in found if match)
    assert ranks == list(range(RANKS))
    places = {(int(match.group(1)), match.group(2), int(match.group(3))) for match in found if match}
    assert all(rank % 8 == local and node == f"gpu-node-{rank // 8}" for rank, node, local in places)


def test_the_object_tells_the_same(ended: dict[str, Any]) -> None:
    """Conditions, counters and times as the training operator would have left them."""
    status = ended["status"]
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Succeeded", "True"),
    ]
    roles = status["replicaStatuses"]
    assert (roles["Master"]["succeeded"], roles["Worker"]["succeeded"]) == (1, 63)
    assert "active" not in roles["Worker"]
    assert status["startTime"] <= status["completionTime"]


def test_every_replica_has_its_mirror_pod(product: Product, ended: dict[str, Any]) -> None:
    """64 pods on the virtual node, with upstream's labels, Succeeded with exit code 0."""
    pods = product.mirror_pods("ai-training")
    assert newest(ended) == "Succeeded"
    assert {pod["metadata"]["name"] for pod in pods} == {
        "ai-training-master-0",
        *(f"ai-training-worker-{index}" for index in range(63)),
    }
    product.wait("all mirror pods Succeeded", lambda: _phases(product) == {"Succeeded"}, 30)
    worker = next(
        pod for pod in product.mirror_pods("ai-training") if pod["metadata"]["name"] == "ai-training-worker-7"
    )
    assert worker["spec"]["nodeName"] == f"slurm-slurm-{'ai-cluster'}"
    assert worker["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert "gpu-node-8" in worker["status"]["message"]
    assert worker["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "7"


def _phases(product: Product) -> set[str]:
    return {pod["status"]["phase"] for pod in product.mirror_pods("ai-training")}


def test_the_virtual_node_draws_no_daemons(product: Product, ended: dict[str, Any]) -> None:
    """A Node without kubernetes.io/os: DaemonSets pass it by, and it is Ready."""
    node = product.cluster.kubectl_json("get", "node", "slurm-slurm-ai-cluster")
    assert "kubernetes.io/os" not in node["metadata"]["labels"]
    assert {"type": "Ready", "status": "True"}.items() <= next(
        one for one in node["status"]["conditions"] if one["type"] == "Ready"
    ).items()
    pods = product.cluster.kubectl_json("get", "pods", "-A", "--field-selector", "spec.nodeName=slurm-slurm-ai-cluster")
    assert {pod["metadata"]["namespace"] for pod in pods["items"]} == {TENANT}
    assert newest(ended) == "Succeeded"
