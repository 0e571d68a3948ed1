"""A Slurm with slurmdbd on a real MariaDB: tenants made in it, jobs counted under their account, strangers refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.demo.steps import SYSTEM, documents
from tests.e2e.product import Product, message, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]

Raw = dict[str, Any]
SPACE = "accounted"
LAB = "accounted-lab"
TENANT: Raw = {
    "namespaceSelector": {"matchLabels": {"team": "lab"}},
    "user": {"name": "alice", "uid": 1000, "gid": 1000},
    "partitions": ["gpu_partition"],
    "accounts": ["ml", "vision"],
    "qos": ["normal", "urgent"],
}
ACCOUNTING: Raw = {
    "database": {"host": "database", "passwordSecret": {"name": "database"}},
    "image": "localhost/slurm-accounting:24.11",
    "manage": True,
    "qos": [{"name": "urgent", "priority": 100}],
}


def namespace(name: str, **labels: str) -> Raw:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def objects(product: Product) -> Iterator[Raw]:
    """The example pool with one node and accounting, and the database that it wants."""
    yield namespace(SPACE)
    yield namespace(LAB, team="lab")
    found = [*documents(Path(__file__).parent / "files/mariadb.yaml"), product.program()]
    pool = [copy.deepcopy(one) for one in product.pool(1) if one["kind"] in ("SlurmCluster", "NodeSet")]
    pool[0]["spec"] |= {"tenants": [TENANT], "accounting": ACCOUNTING}
    pool[0]["spec"]["config"]["MinJobAge"] = 2
    for one in (*found, *pool):
        one["metadata"]["namespace"] = SPACE
        yield one


@pytest.fixture(scope="module")
def accounted(product: Product, own_cluster: Cluster) -> Iterator[Product]:
    """The pool with slurmdbd, ready."""
    own_cluster.load("accounting")
    own_cluster.apply([*objects(product)])
    try:
        product.wait("slurmdbd holds the tenants", lambda: conditions(product).get("AccountingReady") == "True", 180)
        product.wait("its node registered", lambda: registered(product), 120)
        yield product
    finally:
        own_cluster.kubectl("delete", "namespace", LAB, SPACE, "--timeout=120s", timeout=130)


def conditions(product: Product) -> dict[str, str]:
    """The SlurmCluster's conditions."""
    status = (product.get("slurmcluster", "ai-cluster", SPACE) or {}).get("status") or {}
    return {one["type"]: one["status"] for one in status.get("conditions") or ()}


def registered(product: Product) -> bool:
    """Has the one node come up?"""
    return ((product.get("nodeset", "gpu-node", SPACE) or {}).get("status") or {}).get("readyReplicas") == 1


def said(product: Product, *command: str) -> list[str]:
    """What a command in slurmctld's pod prints."""
    place = ("exec", "-n", SPACE, "ai-cluster-controller-0", "-c", "slurmctld", "--")
    return product.cluster.kubectl(*place, *command).stdout.split()


def run(product: Product, name: str, **annotations: str) -> Raw:
    """Run a job in the tenant's namespace to its end."""
    raw = training_job(name, namespace=LAB, command=["true"])
    raw["metadata"]["annotations"] = {f"slurm.bridge/{key}": text for key, text in annotations.items()}
    product.cluster.apply([raw])

    def ended() -> Raw | None:
        found = product.get("pytorchjob", name, LAB) or {}
        return found if newest(found) in ("Succeeded", "Failed") else None

    return dict(product.wait(f"{name} ended", ended, 90))


def test_a_job_is_counted_under_its_account(accounted: Product) -> None:
    """In sacct with its QOS, GPUs and what they cost, and in the account's fair share; its namespace counts by a label."""
    done = run(accounted, "counted", account="vision", qos="urgent")
    assert newest(done) == "Succeeded", message(done)
    assert conditions(accounted)["IdentityResolved"] == "True"
    job_id = done["metadata"]["annotations"]["slurm.bridge/job-id"]
    sacct = ("sacct", "-nXP", "-j", job_id, "-o", "account,qos,user,alloctres")

    def recorded() -> list[str]:
        return [line for line in said(accounted, *sacct) if "billing=32" in line and "gres/gpu=8" in line]

    (line,) = accounted.wait("it is in slurmdbd", recorded, 30)
    assert line.startswith("vision|urgent|alice|")
    assert "vision|alice|1" in said(accounted, "sshare", "-nPa", "-A", "vision", "-o", "account,user,rawshares")


def test_another_account_than_the_tenants_is_refused(accounted: Product) -> None:
    """Before Slurm is asked, by the annotation's path."""
    done = run(accounted, "greedy", account="physics")
    assert newest(done) == "Failed"
    assert "metadata.annotations[slurm.bridge/account]: 'physics' is no account of this tenant's" in message(done)


def test_a_user_without_association_is_refused_in_slurms_words(accounted: Product) -> None:
    """Where the operator does not manage them, and the admin took it away."""
    patch = '{"spec": {"accounting": {"manage": false}}}'
    accounted.cluster.kubectl("patch", "-n", SPACE, "slurmcluster", "ai-cluster", "--type=merge", "-p", patch)
    said(accounted, "sacctmgr", "-iQ", "delete", "user", "where", "name=alice", "account=vision")
    done = run(accounted, "stranger", account="vision")
    assert newest(done) == "Failed"
    assert "Invalid account" in message(done)


def test_a_slurmdbd_that_is_away_holds_up_no_job(accounted: Product) -> None:
    """Not even after the operator starts anew; the condition says so until it is back."""
    scale = ("scale", "-n", SPACE, "deployment/ai-cluster-dbd")
    accounted.cluster.kubectl(*scale, "--replicas=0")
    accounted.kill_operator()
    accounted.wait("it is missed", lambda: conditions(accounted).get("AccountingReady") == "False", 120)
    done = run(accounted, "meanwhile")
    assert newest(done) == "Succeeded", message(done)
    accounted.cluster.kubectl(*scale, "--replicas=1")
    accounted.wait("it is back", lambda: conditions(accounted).get("AccountingReady") == "True", 120)
    job_id = done["metadata"]["annotations"]["slurm.bridge/job-id"]
    sacct = ("sacct", "-nXP", "-j", job_id, "-o", "account,state")
    accounted.wait("the job is told of late", lambda: said(accounted, *sacct) == ["ml|COMPLETED"], 60)


def test_a_job_that_slurmctld_has_forgotten_is_asked_of_slurmdbd(accounted: Product) -> None:
    """It ended while no operator ran, and MinJobAge was over when the next one came: it has ended well, nothing is lost."""
    scale = ("scale", "-n", SYSTEM, "deployment/kubeslurm")
    raw = training_job("forgotten", namespace=LAB, command=["sleep", "4"])
    accounted.cluster.apply([raw])
    accounted.wait("it runs", lambda: newest(accounted.get("pytorchjob", "forgotten", LAB) or {}) == "Running", 60)
    try:
        accounted.cluster.kubectl(*scale, "--replicas=0")
        job_id = (accounted.get("pytorchjob", "forgotten", LAB) or {})["metadata"]["annotations"]["slurm.bridge/job-id"]
        known = ("scontrol", "-o", "show", "job")
        accounted.wait("it is forgotten", lambda: f"JobId={job_id}" not in said(accounted, *known), 150, every=2)
    finally:
        accounted.cluster.kubectl(*scale, "--replicas=1")

    def over() -> Raw | None:
        found = accounted.get("pytorchjob", "forgotten", LAB) or {}
        return found if newest(found) in ("Succeeded", "Failed") else None

    done = accounted.wait("it is told of", over, 60)
    assert newest(done) == "Succeeded", message(done)


def test_accounting_switched_off_takes_slurmdbd_away(accounted: Product) -> None:
    """slurmctld goes on without it, and jobs run."""
    patch = '{"spec": {"accounting": null}}'
    accounted.cluster.kubectl("patch", "-n", SPACE, "slurmcluster", "ai-cluster", "--type=merge", "-p", patch)
    accounted.wait("slurmdbd is gone", lambda: not accounted.get("deployment", "ai-cluster-dbd", SPACE), 60)
    accounted.wait("no condition of it", lambda: "AccountingReady" not in conditions(accounted), 60)
    accounted.wait("Slurm serves", lambda: conditions(accounted).get("Ready") == "True", 120)
    done = run(accounted, "uncounted")
    assert newest(done) == "Succeeded", message(done)
