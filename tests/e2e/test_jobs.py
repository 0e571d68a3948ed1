"""Jobs: what is submitted once, what is cancelled, what is refused."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.product import TENANT, Product, message, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.5, 1.5, 4.0])
def test_a_killed_operator_submits_no_job_twice(product: Product, delay: float) -> None:
    """Killed at some moment of the job's life and started again: the same end, one Slurm job."""
    name = f"once-{int(delay * 10)}"
    product.cluster.apply([training_job(name, workers=1, hold=3)])
    time.sleep(delay)
    product.kill_operator()
    raw = product.wait_condition(name, "Succeeded", 90)
    assert product.slurm_job(raw)["JobState"] == "COMPLETED"
    product.remove(name)


def test_deleting_a_job_cancels_it_and_waits(product: Product) -> None:
    """When kubectl delete returns, Slurm holds nothing of it any more."""
    raw = training_job("gone", workers=1, hold=300)
    product.submit(raw)
    job = product.wait_condition("gone", "Running")
    product.remove("gone")
    assert product.slurm_job(job)["JobState"] == "CANCELLED"
    assert product.mirror_pods("gone") == []


def test_a_failing_program_fails_the_job_with_its_exit_code(product: Product) -> None:
    """restartPolicy Never; in upstream's words, and the code in an event and on the mirror pod."""
    product.submit(training_job("broken", command=("sh", "-c", "exit 7")))
    raw = product.wait_condition("broken", "Failed")
    assert message(raw) == "PyTorchJob broken is failed because 1 Master replica(s) failed."
    told = "ExitedWithCode: Pod: research.broken-master-0 exited with code 7"
    product.wait("the event", lambda: told in product.events("PyTorchJob", "broken"), 10)
    product.wait("exit code on the mirror pod", lambda: _code(product, "broken") == 7, 20)
    product.remove("broken")


def _code(product: Product, job: str) -> int | None:
    pods = product.mirror_pods(job)
    states = [one["state"] for pod in pods for one in (pod["status"].get("containerStatuses") or ())]
    return next((int(state["terminated"]["exitCode"]) for state in states if "terminated" in state), None)


def test_a_name_of_253_characters_works(product: Product) -> None:
    """The longest name that Kubernetes takes."""
    name = "long-" + "x" * 248
    product.submit(training_job(name))
    raw = product.wait_condition(name, "Succeeded")
    assert product.slurm_job(raw)["JobName"] == name
    product.remove(name)


def test_a_job_in_a_namespace_without_a_tenant_is_refused(product: Product) -> None:
    """One clear message, on the job and as an event; Slurm never hears of it."""
    product.cluster.apply([training_job("stranger", namespace="default")])
    product.wait("Failed", lambda: newest(product.get("pytorchjob", "stranger", "default") or {}) == "Failed", 30)
    raw = product.get("pytorchjob", "stranger", "default") or {}
    assert "metadata.namespace" in message(raw)
    assert any("metadata.namespace" in event for event in product.events("PyTorchJob", "stranger", "default"))
    assert not [job for job in product.slurm_jobs() if job["JobName"] == "stranger"]
    product.cluster.kubectl("delete", "-n", "default", "pytorchjob", "stranger")


def _container(raw: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    return found


def _two_containers(raw: dict[str, Any]) -> None:
    raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
        {"name": "side", "image": "x"}
    )


Change = Callable[[dict[str, Any]], object]
REFUSED: dict[str, tuple[Change, str]] = {
    "too-many-gpus": (
        lambda raw: _container(raw)["resources"]["limits"].update({"nvidia.com/gpu": 16}),
        "nvidia.com/gpu",
    ),
    "two-containers": (_two_containers, "containers[1]"),
    "no-command": (lambda raw: _container(raw).pop("command"), "containers[0].command"),
    "volume": (lambda raw: _container(raw).update(volumeMounts=[{"name": "x", "mountPath": "/x"}]), "volumeMounts"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_translated_is_refused_by_its_path(product: Product, case: str) -> None:
    """Failed once, with the field; nothing was submitted and no pod made."""
    change, field = REFUSED[case]
    raw = copy.deepcopy(training_job(case))
    change(raw)
    product.submit(raw)
    found = product.wait_condition(case, "Failed", 30)
    assert "spec.pytorchReplicaSpecs.Master" in message(found)
    assert field in message(found)
    assert any(field in event for event in product.events("PyTorchJob", case))
    assert not [job for job in product.slurm_jobs() if job["JobName"] == case]
    assert product.mirror_pods(case) == []
    product.remove(case)


def test_a_job_of_the_training_operators_is_left_alone(product: Product) -> None:
    """managedBy names its owner; we write nothing on it."""
    raw = training_job("theirs")
    raw["spec"]["runPolicy"] = {"managedBy": "kubeflow.org/training-operator"}
    product.cluster.apply([raw])
    time.sleep(3)
    found = product.job("theirs")
    assert "status" not in found
    assert "finalizers" not in found["metadata"]
    product.cluster.kubectl("delete", "-n", TENANT, "pytorchjob", "theirs")
