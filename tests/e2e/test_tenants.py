"""Tenants that come by label while everything runs: a first job at once, and a namespace that two of them claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.product import CLUSTER, POOL, Product, message, newest, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

Raw = dict[str, Any]
LATE = "late-comers"
BOTH = "claimed-twice"


def tenant(name: str, uid: int, **labels: str) -> Raw:
    """A tenant of the example partition, by labels."""
    user = {"name": name, "uid": uid, "gid": uid}
    return {"namespaceSelector": {"matchLabels": labels}, "user": user, "partitions": ["gpu_partition"]}


def set_tenants(product: Product, tenants: list[Raw]) -> None:
    """All of them."""
    patch = json.dumps({"spec": {"tenants": tenants}})
    product.cluster.kubectl("patch", "-n", POOL, "slurmcluster", CLUSTER, "--type=merge", "-p", patch)


@pytest.fixture
def tenants(product: Product) -> Iterator[list[Raw]]:
    """Those of the example pool; so it is again afterwards, and our namespaces are gone."""
    before: list[Raw] = (product.get("slurmcluster", CLUSTER, POOL) or {})["spec"]["tenants"]
    yield before
    for name in (LATE, BOTH):
        product.cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=90s", timeout=100)
    set_tenants(product, before)
    product.wait("the tenants are as they were", lambda: identity(product)["status"] == "True", 90)


def identity(product: Product) -> Raw:
    """The condition IdentityResolved, as far as it speaks of the newest spec."""
    raw = product.get("slurmcluster", CLUSTER, POOL) or {}
    found = [one for one in raw["status"]["conditions"] if one["type"] == "IdentityResolved"]
    current = [one for one in found if one["observedGeneration"] == raw["metadata"]["generation"]]
    return dict(current[0]) if current else {"status": "", "reason": "", "message": ""}


def make(product: Product, name: str, **labels: str) -> None:
    """A namespace with a job in it, at once."""
    product.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])
    product.cluster.apply([training_job("first", namespace=name, command=["true"])])


def ended(product: Product, name: str) -> Raw:
    """The namespace's job at its end."""

    def look() -> Raw | None:
        found = product.get("pytorchjob", "first", name) or {}
        return found if newest(found) in ("Succeeded", "Failed") else None

    return dict(product.wait(f"the job in {name} ended", look, 120))


def test_a_tenants_first_job_may_come_with_the_tenant(product: Product, tenants: list[Raw]) -> None:
    """It waits until slurmctld knows the user, and runs as that user."""
    set_tenants(product, [*tenants, tenant("latecomer", 1777, team="late")])
    make(product, LATE, team="late")
    done = ended(product, LATE)
    assert newest(done) == "Succeeded", message(done)
    assert product.slurm_job(done)["UserId"] == "latecomer(1777)"


def test_a_namespace_that_two_tenants_claim_submits_nothing(product: Product, tenants: list[Raw]) -> None:
    """Both the job and the SlurmCluster say so, and it is over when the labels are clear."""
    set_tenants(product, [*tenants, tenant("left", 1778, side="left"), tenant("right", 1779, hand="right")])
    make(product, BOTH, side="left", hand="right")
    done = ended(product, BOTH)
    assert newest(done) == "Failed"
    assert f"tenants[1] and tenants[2] of SlurmCluster {POOL}/{CLUSTER} claim namespace '{BOTH}'" in message(done)
    assert not [one for one in product.slurm_jobs() if done["metadata"]["uid"] in one.get("Comment", "")]
    product.wait("the SlurmCluster says so", lambda: identity(product)["reason"] == "NamespaceClaimedTwice", 60)
    product.cluster.kubectl("label", "namespace", BOTH, "hand-")
    product.wait("it is over", lambda: identity(product)["status"] == "True", 60)
