"""The pool: scaling, healing, what may never be lost, and what is refused."""

from __future__ import annotations

import json
import re
import time

import pytest

from kubeslurm import names
from tests.e2e.product import CLUSTER, CONTROLLER, EIGHT, NODESET, POOL, Product, Raw, message, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]


def test_pods_have_few_rights(product: Product) -> None:
    """No pod of ours is privileged; slurmctld and slurmrestd are not root and have no capability."""
    pods = product.cluster.kubectl_json("get", "-n", POOL, "pods")["items"]
    for pod in pods:
        security = pod["spec"]["containers"][0]["securityContext"]
        assert not security.get("privileged")
        assert security["capabilities"]["drop"] == ["ALL"]
        if pod["metadata"]["labels"][names.LABEL_COMPONENT] == "slurmd":
            assert "SYS_ADMIN" not in security["capabilities"]["add"]
        else:
            assert "add" not in security["capabilities"]
            assert pod["spec"]["securityContext"]["runAsNonRoot"] is True


def test_pods_are_spread_over_the_nodes(product: Product) -> None:
    """Half on each worker, give or take one; pods that other tests have driven from a broken worker aside."""
    product.scale(0)
    product.wait("no pods", lambda: _pods(product) == 0, 60)
    product.scale(EIGHT)
    product.wait_registered(EIGHT)
    label = f"{names.LABEL_NODESET}={NODESET}"
    pods = product.cluster.kubectl_json("get", "-n", POOL, "pods", "-l", label)["items"]
    hosts = [pod["spec"]["nodeName"] for pod in pods]
    assert abs(hosts.count(hosts[0]) - len(hosts) / 2) <= 1


def test_a_running_job_is_not_disturbed_by_scaling(product: Product) -> None:
    """8 to 4 and back, while a job runs on node 2: the job ends well, and node 2's pod is the same."""
    raw = training_job("steady", hold=25)
    product.in_controller("scontrol", "update", "nodename=gpu-node-[0-1]", "state=drain", "reason=test")
    try:
        product.submit(raw)
        job = product.wait_condition("steady", "Running")
        assert product.slurm_job(job)["NodeList"] == "gpu-node-2"
        uid = (product.get("pod", "gpu-node-2", POOL) or {})["metadata"]["uid"]
        product.scale(4)
        product.wait("4 pods", lambda: _pods(product) == 4, 60)
        four = {f"gpu-node-{index}" for index in range(4)}
        product.wait("Slurm has four nodes", lambda: set(product.node_states()) == four, 30)
        product.scale(EIGHT)
        product.wait("8 pods", lambda: _pods(product) == EIGHT, 60)
        product.wait_condition("steady", "Succeeded", 60)
        assert (product.get("pod", "gpu-node-2", POOL) or {})["metadata"]["uid"] == uid
        states = product.node_states()
        assert {states["gpu-node-0"], states["gpu-node-1"]} == {"drained"}, "a foreign drain was lifted"
    finally:
        product.in_controller("scontrol", "update", "nodename=gpu-node-[0-1]", "state=resume")
        product.remove("steady")
        product.scale(EIGHT)
    product.wait_registered(EIGHT)


def _pods(product: Product) -> int:
    label = f"{names.LABEL_NODESET}={NODESET}"
    return len(product.cluster.kubectl_json("get", "-n", POOL, "pods", "-l", label)["items"])


def test_a_busy_node_above_the_count_stays_until_its_job_has_ended(product: Product) -> None:
    """Scale in drains first; the pod goes when Slurm says that it is free."""
    product.in_controller("scontrol", "update", "nodename=gpu-node-[0-6]", "state=drain", "reason=test")
    try:
        product.submit(training_job("late", hold=15))
        product.wait_condition("late", "Running")
        product.scale(7)
        product.wait("node 7 drains", lambda: product.node_states().get("gpu-node-7") == "draining", 30)
        assert _pods(product) == EIGHT
        product.wait_condition("late", "Succeeded", 60)
        product.wait("the pod goes", lambda: _pods(product) == 7, 30)
    finally:
        product.in_controller("scontrol", "update", "nodename=gpu-node-[0-6]", "state=resume")
        product.remove("late")
        product.scale(EIGHT)
    product.wait_registered(EIGHT)


def test_a_pod_deleted_by_hand_comes_back_with_another_address_and_works(product: Product) -> None:
    """Nothing but the operator brings it back, and Slurm finds it at its new address."""
    before = (product.get("pod", "gpu-node-0", POOL) or {})["status"]["podIP"]
    product.cluster.kubectl("delete", "-n", POOL, "pod", "gpu-node-0")
    product.wait("a new pod", lambda: _address(product) not in (None, before), 60)
    product.wait("idle", lambda: product.node_states().get("gpu-node-0") == "idle", 60)
    after = _address(product)
    assert f"NodeAddr={after} " in product.in_controller("scontrol", "-o", "show", "node", "gpu-node-0")
    product.submit(training_job("again", workers=EIGHT - 1))
    product.wait_condition("again", "Succeeded")
    product.remove("again")


def _address(product: Product) -> str | None:
    status = (product.get("pod", "gpu-node-0", POOL) or {}).get("status") or {}
    address = status.get("podIP")
    return str(address) if address else None


def test_a_pod_lost_under_a_job_ends_the_attempt_as_a_node_failure(product: Product) -> None:
    """Within seconds, and the message names the node."""
    product.submit(training_job("victim", workers=3, hold=120))
    job = product.wait_condition("victim", "Running")
    node = product.last_host(job)
    product.cluster.kubectl("delete", "-n", POOL, "pod", node, "--wait=false")
    begun = time.monotonic()
    failed = product.wait_condition("victim", "Failed", 20)
    took = time.monotonic() - begun
    assert node in message(failed)
    assert product.slurm_job(failed)["JobState"] == "NODE_FAIL"
    print(f"node loss to Failed: {took:.1f} s")
    product.remove("victim")
    product.wait("the node is back", lambda: product.node_states().get(node) == "idle", 60)


def test_a_job_that_may_restart_is_put_back_by_slurm(product: Product) -> None:
    """restartPolicy OnFailure: Restarting, with the lost node's name; one Slurm job, not two."""
    product.submit(training_job("phoenix", workers=3, hold=60, policy="OnFailure"))
    product.wait_condition("phoenix", "Running")
    node = product.last_host(product.job("phoenix"))
    product.cluster.kubectl("delete", "-n", POOL, "pod", node, "--wait=false")
    raw = product.wait_condition("phoenix", "Restarting", 20)
    assert node in message(raw)
    assert product.slurm_job(raw)["Restarts"] == "1"
    product.remove("phoenix")
    product.wait("the node is back", lambda: product.node_states().get(node) == "idle", 60)


def test_slurmctld_can_go_away_under_a_job(product: Product) -> None:
    """Its pod is deleted mid-job: the job ends well."""
    product.submit(training_job("survivor", workers=1, hold=15))
    product.wait_condition("survivor", "Running")
    product.cluster.kubectl("delete", "-n", POOL, "pod", CONTROLLER)
    raw = product.wait_condition("survivor", "Succeeded", 90)
    assert product.slurm_job(raw)["JobState"] == "COMPLETED"
    product.remove("survivor")


def test_nothing_is_done_while_slurmrestd_is_away(product: Product) -> None:
    """A condition says so, no pod goes, no job is sent twice, and all goes on by itself afterwards."""
    restd = f"deployment/{CLUSTER}-restd"
    product.submit(training_job("patient", workers=1, hold=15))
    product.wait_condition("patient", "Running")
    product.cluster.kubectl("scale", "-n", POOL, restd, "--replicas=0")
    try:
        product.wait("SlurmReachable=False", lambda: _reachable(product) == "False", 60)
        pods = _pods(product)
        product.scale(EIGHT - 2)
        product.cluster.apply([training_job("waiting")])
        time.sleep(10)
        assert _pods(product) == pods
        assert newest(product.job("patient")) == "Running"
        assert newest(product.job("waiting")) == "Created"
    finally:
        product.scale(EIGHT)
        product.cluster.kubectl("scale", "-n", POOL, restd, "--replicas=1")
    product.wait("SlurmReachable=True", lambda: _reachable(product) == "True", 60)
    for name in ("patient", "waiting"):
        product.slurm_job(product.wait_condition(name, "Succeeded", 60))
        product.remove(name)
    product.wait_registered(EIGHT)


def _reachable(product: Product) -> str:
    status = (product.get("slurmcluster", CLUSTER, POOL) or {}).get("status") or {}
    return next((one["status"] for one in status.get("conditions") or () if one["type"] == "SlurmReachable"), "")


def test_a_tenant_added_later_works_at_once(product: Product) -> None:
    """A user that no image knows: its job runs as it, seconds after the SlurmCluster names it."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "biology"}}
    carol = {
        "namespaces": ["biology"],
        "user": {"name": "carol", "uid": 2001, "gid": 2001},
        "partitions": ["gpu_partition"],
    }
    before = (product.get("slurmcluster", CLUSTER, POOL) or {})["spec"]["tenants"]
    product.cluster.apply([namespace])
    _patch(product, {"tenants": [*before, carol]})
    try:
        raw = training_job("cells", namespace="biology", workers=EIGHT - 1)
        product.cluster.apply([raw])
        product.wait(
            "cells Succeeded", lambda: newest(product.get("pytorchjob", "cells", "biology") or {}) == "Succeeded", 60
        )
        found = product.get("pytorchjob", "cells", "biology") or {}
        assert product.slurm_job(found)["UserId"] == "carol(2001)"
    finally:
        product.cluster.kubectl("delete", "namespace", "biology", "--timeout=60s", timeout=70)
        _patch(product, {"tenants": before})


def test_a_killed_operator_finishes_what_it_began(product: Product) -> None:
    """Killed in the middle of scaling out: all nodes come, none twice."""
    product.scale(EIGHT + 4)
    product.kill_operator()
    product.wait_registered(EIGHT + 4, 90)
    product.scale(EIGHT)
    product.kill_operator()
    product.wait_registered(EIGHT, 90)


def test_a_bad_nodeset_is_refused_and_hurts_nothing(product: Product) -> None:
    """Its Ready condition and an event name the field; the pool goes on, and so does its config."""
    bad = next(one for one in product.pool(2) if one["kind"] == "NodeSet")
    bad["metadata"]["name"] = "bad"
    bad["spec"]["gpu"]["count"] = 4
    product.cluster.apply([bad])
    try:
        found = product.wait("Ready=False", lambda: _ready(product.get("nodeset", "bad", POOL) or {}), 30)
        assert found["reason"] == "Invalid"
        assert "spec.gpu.count" in found["message"]
        assert any("spec.gpu.count" in event for event in product.events("NodeSet", "bad", POOL))
        assert sorted(product.node_states()) == [f"gpu-node-{index}" for index in range(EIGHT)]
    finally:
        product.cluster.kubectl("delete", "-n", POOL, "nodeset", "bad", "--timeout=30s")


def _ready(raw: Raw) -> Raw | None:
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "Ready" and one["status"] == "False"), None)


@pytest.mark.parametrize("value", ["x\nNodeName=evil", "x;y"])
def test_a_bad_config_never_replaces_a_good_one(product: Product, value: str) -> None:
    """ConfigApplied says which key; slurmctld keeps what it has, and jobs run."""
    digest = _digest(product)
    _patch(product, {"config": {"PreemptType": value}})
    try:
        found = product.wait("Ready=False", lambda: _ready(product.get("slurmcluster", CLUSTER, POOL) or {}), 30)
        assert "spec.config.PreemptType" in found["message"]
        assert _digest(product) == digest
        product.submit(training_job("meanwhile"))
    finally:
        _patch(product, {"config": {"PreemptType": None}})
    product.wait_condition("meanwhile", "Succeeded")


def test_a_changed_config_reaches_slurmctld_without_a_restart(product: Product) -> None:
    """The key is in slurmctld's own answer, and its pod is the same."""
    uid = (product.get("pod", CONTROLLER, POOL) or {})["metadata"]["uid"]
    _patch(product, {"config": {"KillWait": 17}})
    try:
        product.wait("the new key", lambda: re.search(r"KillWait +=\s17 sec", _config(product)), 60)
    finally:
        _patch(product, {"config": {"KillWait": None}})
    assert (product.get("pod", CONTROLLER, POOL) or {})["metadata"]["uid"] == uid


def _config(product: Product) -> str:
    return product.in_controller("scontrol", "show", "config")


def _digest(product: Product) -> str:
    return str((product.get("configmap", f"{CLUSTER}-config", POOL) or {})["data"]["digest"])


def _patch(product: Product, spec: Raw) -> None:
    patch = json.dumps({"spec": spec})
    product.cluster.kubectl("patch", "-n", POOL, "slurmcluster", CLUSTER, "--type=merge", "-p", patch)
