"""Kubeflow's training operator beside us: the same job reads alike, whoever runs it, and neither touches the other's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.cluster import Cluster, versions
from tests.e2e.beside import PLAIN, training_operator
from tests.e2e.product import TENANT, Product, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

Raw = dict[str, Any]


@pytest.fixture(scope="module")
def both(product: Product, own_cluster: Cluster) -> Iterator[Product]:
    """Our operator, and theirs for the namespace `plain`."""
    with training_operator(own_cluster):
        yield product
        product.cluster.kubectl("delete", "-n", PLAIN, "pytorchjobs", "--all", "--timeout=60s", timeout=70)
    product.tidy()


def job(name: str, namespace: str, *, command: Sequence[str], policy: str, workers: int = 1) -> Raw:
    """A job that needs no GPU, so that plain pods of it run anywhere."""
    raw = training_job(name, workers=workers, policy=policy, namespace=namespace, command=command, gpus=0)
    for role in raw["spec"]["pytorchReplicaSpecs"].values():
        container = role["template"]["spec"]["containers"][0]
        container |= {"image": versions.SLURM_IMAGE, "workingDir": "/tmp"}
        container["resources"] = {"limits": {"cpu": "100m", "memory": "64Mi"}}
    return raw


def ended(product: Product, name: str, namespace: str) -> Raw:
    """The job, once it has."""

    def over() -> Raw | None:
        raw = product.get("pytorchjob", name, namespace) or {}
        return raw if newest(raw) in ("Succeeded", "Failed") else None

    return dict(product.wait(f"{namespace}/{name} ends", over, 120))


def told(raw: Raw) -> Raw:
    """What a reader of the status acts upon, without its times."""
    status = raw["status"]
    conditions = [(one["type"], one["status"], one["reason"], one["message"]) for one in status["conditions"]]
    spaceless = [(*rest, text.replace(f"{raw['metadata']['namespace']}/", "NS/")) for *rest, text in conditions]
    times = sorted(key for key in status if key.endswith("Time") and key != "lastReconcileTime")
    return {"conditions": spaceless, "replicas": status["replicaStatuses"], "times": times}


CASES = {
    "ends-well": {"command": ["sleep", "4"], "policy": "Never"},
    "fails": {"command": ["sh", "-c", "sleep 4; exit 3"], "policy": "Never", "workers": 0},
    "bad-code": {"command": ["sh", "-c", "sleep 4; exit 3"], "policy": "ExitCode", "workers": 0},
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_job_reads_alike_run_by_either(both: Product, case: str) -> None:
    """Conditions with their order, reasons and messages, counters with their selectors, which times are there."""
    settings: Any = CASES[case]
    both.cluster.apply([job(case, namespace, **settings) for namespace in (PLAIN, TENANT)])
    theirs, ours = told(ended(both, case, PLAIN)), told(ended(both, case, TENANT))
    for role, counters in theirs["replicas"].items():  # theirs has none for the workers of a master that ended well
        counters.setdefault("selector", ours["replicas"][role]["selector"])
    if case == "bad-code":  # theirs forgets it, and then can't delete the job after its TTL
        theirs["times"] = ["completionTime", *theirs["times"]]
    assert ours == theirs


def test_pods_have_the_same_names_and_labels(both: Product) -> None:
    """What people select by; ours have a few labels more."""
    both.cluster.apply(
        [job("alike", namespace, command=["sleep", "15"], policy="Never") for namespace in (PLAIN, TENANT)]
    )
    both.wait("two pods each", lambda: [len(pods(both, one)) for one in (PLAIN, TENANT)] == [2, 2], 60)
    theirs, ours = pods(both, PLAIN), pods(both, TENANT)
    assert ours.keys() == theirs.keys()
    for name, labels in theirs.items():
        assert labels.items() <= ours[name].items()
    for namespace in (PLAIN, TENANT):
        both.cluster.kubectl("delete", "-n", namespace, "pytorchjob", "alike", timeout=90)


def pods(product: Product, namespace: str) -> dict[str, Raw]:
    """Labels of the job's pods, by name."""
    label = "training.kubeflow.org/job-name=alike"
    items = product.cluster.kubectl_json("get", "-n", namespace, "pods", "-l", label)["items"]
    return {one["metadata"]["name"]: one["metadata"]["labels"] for one in items}


def test_neither_touches_the_others_jobs(both: Product) -> None:
    """Theirs never reaches Slurm and has no mark of ours; ours has no pod of theirs and no service."""
    both.cluster.apply([job("mine", TENANT, command=["sleep", "5"], policy="Never")])
    both.cluster.apply([job("theirs", PLAIN, command=["sleep", "5"], policy="Never")])
    mine, theirs = ended(both, "mine", TENANT), ended(both, "theirs", PLAIN)
    time.sleep(2)
    assert "finalizers" not in theirs["metadata"]
    assert not any(one["JobName"] == "theirs" for one in both.slurm_jobs())
    assert both.cluster.kubectl_json("get", "-n", TENANT, "services")["items"] == []
    assert both.slurm_job(mine)["JobState"] == "COMPLETED"
    assert {pod["spec"]["nodeName"].startswith("slurm-") for pod in both.mirror_pods("mine")} == {True}
