"""The life of a PyTorchJob on a real Slurm: suspended and resumed, too late, tidied up, each rank's own end."""

from __future__ import annotations

import pytest

from tests.e2e.product import TENANT, Product, Raw, message, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]


def with_policy(name: str, policy: Raw, *, hold: float = 0, workers: int = 0, restart: str = "Never") -> Raw:
    """A job with this runPolicy."""
    raw = training_job(name, workers=workers, hold=hold, policy=restart)
    raw["spec"]["runPolicy"] = policy
    return raw


def patch(product: Product, name: str, policy: str) -> None:
    """Edit its runPolicy, as a queue does."""
    text = f'{{"spec": {{"runPolicy": {policy}}}}}'
    product.cluster.kubectl("patch", "-n", TENANT, "pytorchjob", name, "--type=merge", "-p", text)


def states(product: Product, name: str) -> list[str]:
    """Of all its Slurm jobs."""
    return sorted(one["JobState"] for one in product.slurm_jobs() if one["JobName"] == name)


def kinds(raw: Raw) -> list[str]:
    """Its conditions."""
    found = raw["status"]["conditions"]
    return [one["type"] + ("" if one["status"] == "True" else "(F)") for one in found]


def test_suspended_from_birth_then_resumed_then_suspended_and_resumed(product: Product) -> None:
    """No Slurm job, one, none, another; the template is read anew each time; never Failed."""
    product.submit(with_policy("paused", {"suspend": True}, hold=15))
    raw = product.wait_condition("paused", "Suspended", 20)
    assert (kinds(raw), states(product, "paused")) == (["Created", "Suspended"], [])
    assert "startTime" not in raw["status"]
    patch(product, "paused", '{"suspend": false}')
    raw = product.wait_condition("paused", "Running", 30)
    assert kinds(raw) == ["Created", "Suspended(F)", "Running"]
    patch(product, "paused", '{"suspend": true}')
    product.wait("its Slurm job is gone", lambda: states(product, "paused") == ["CANCELLED"], 30)
    product.wait("no pods", lambda: not product.mirror_pods("paused"), 15)
    assert kinds(product.job("paused")) == ["Created", "Running(F)", "Suspended"]
    patch(product, "paused", '{"suspend": false}')
    raw = product.wait_condition("paused", "Succeeded", 60)
    assert states(product, "paused") == ["CANCELLED", "COMPLETED"]
    assert kinds(raw) == ["Created", "Suspended(F)", "Running(F)", "Succeeded"]
    product.remove("paused")


def test_resumed_before_its_slurm_job_is_gone(product: Product) -> None:
    """Off and on within a moment: the first Slurm job ends, a second one runs."""
    product.submit(with_policy("blink", {}, hold=8))
    product.wait_condition("blink", "Running", 30)
    patch(product, "blink", '{"suspend": true}')
    patch(product, "blink", '{"suspend": false}')
    product.wait("it has ended", lambda: newest(product.job("blink")) in ("Succeeded", "Failed"), 60)
    assert newest(product.job("blink")) == "Succeeded", message(product.job("blink"))
    assert states(product, "blink") in (["CANCELLED", "COMPLETED"], ["COMPLETED"])
    product.remove("blink")


def test_the_deadline_counts_from_the_start_and_cancels(product: Product) -> None:
    """In seconds, though Slurm counts minutes; in upstream's words."""
    product.submit(with_policy("late", {"activeDeadlineSeconds": 6}, hold=120, restart="OnFailure"))
    raw = product.wait_condition("late", "Failed", 30)
    assert message(raw) == "Job late has failed because it was active longer than specified deadline"
    product.wait("its Slurm job is gone", lambda: states(product, "late") == ["CANCELLED"], 30)
    product.remove("late")


def test_a_job_goes_after_its_time_to_live(product: Product) -> None:
    """Two seconds after its end, pods and all; its pods went before, by cleanPodPolicy."""
    product.submit(with_policy("brief", {"ttlSecondsAfterFinished": 4, "cleanPodPolicy": "All"}, hold=1))
    product.wait_condition("brief", "Succeeded", 40)
    product.wait("its pods are gone", lambda: not product.mirror_pods("brief"), 10)
    product.wait("it is gone", lambda: not product.job("brief"), 20)


def test_each_replica_tells_its_own_end(product: Product) -> None:
    """The third rank exits with 7, the others are ended for it; one event names it."""
    command = ("sh", "-c", '[ "$RANK" != 2 ] || exit 7; sleep 60')
    product.submit(training_job("culprit", workers=3, command=command))
    raw = product.wait_condition("culprit", "Failed", 60)
    assert message(raw) == "PyTorchJob culprit is failed because 1 Worker replica(s) failed."
    told = "ExitedWithCode: Pod: research.culprit-worker-1 exited with code 7"
    product.wait("the event", lambda: told in product.events("PyTorchJob", "culprit"), 10)
    ends = product.wait("all pods tell", lambda: _ends(product, "culprit"), 20)
    assert ends.pop("culprit-worker-1") == (7, "Error")
    assert set(ends.values()) <= {(143, "SlurmStepTerminated"), (137, "SlurmStepTerminated")}
    product.remove("culprit")


def _ends(product: Product, name: str) -> dict[str, tuple[int, str]] | None:
    """Exit code and reason of each pod, once all have one."""
    found = {}
    for pod in product.mirror_pods(name):
        for one in pod["status"].get("containerStatuses") or ():
            if ended := one["state"].get("terminated"):
                found[pod["metadata"]["name"]] = (ended["exitCode"], ended["reason"])
    return found if len(found) == 4 else None
