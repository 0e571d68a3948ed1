"""A job in its own image, by charliecloud in a slurmd pod: a second Slurm whose pods have it and one image."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import versions
from tests.e2e.product import Product, newest, training_job

pytestmark = pytest.mark.cluster

SPACE = "contained"
PROGRAM = """
import os, shutil
assert shutil.which("slurmd") is None and os.getuid() == 1000 and os.getcwd() == "/usr"
assert open("/etc/hub/token").read() == os.environ["TOKEN"]
print(os.environ["RANK"], os.environ["WORLD_SIZE"])
"""


def objects(product: Product) -> list[dict[str, Any]]:
    """The example pool in a namespace of its own, with one node, charliecloud, and that namespace as the tenant."""
    found = [copy.deepcopy(one) for one in product.pool(1) if one["kind"] in ("SlurmCluster", "NodeSet")]
    for one in found:
        one["metadata"]["namespace"] = SPACE
    cluster, nodeset = (one["spec"] for one in found)
    cluster["jobs"] |= {"containerRuntime": "charliecloud", "imageRoot": "/images"}
    cluster["tenants"][0]["namespaces"] = [SPACE]
    pod = nodeset["template"]["spec"]
    del pod["volumes"], pod["containers"][0]["volumeMounts"]
    pod["containers"][0]["image"] = versions.CONTAINED_IMAGE
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub", "namespace": SPACE}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    return [space, {**secret, "stringData": {"token": "t0k3n"}}, *found]


@pytest.fixture
def pool(product: Product) -> Iterator[Product]:
    """That Slurm, with its node registered."""
    if product.cluster.foreign:
        pytest.skip("the image with charliecloud is the test cluster's")
    product.cluster.load("contained")
    product.cluster.apply(objects(product))
    product.wait("its node registered", lambda: _registered(product), 120)
    yield product
    product.cluster.kubectl("delete", "namespace", SPACE, "--timeout=120s", timeout=130)


def _registered(product: Product) -> bool:
    status = (product.get("nodeset", "gpu-node", SPACE) or {}).get("status") or {}
    return bool(status.get("readyReplicas") == 1)


def test_a_job_runs_in_its_own_image_in_a_pod(pool: Product) -> None:
    """With the capabilities and seccomp profile that slurmd has; a Secret's variable and file are in it."""
    raw = training_job("own-image", namespace=SPACE, command=("python3", "-c", PROGRAM))
    pod = raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    pod["volumes"] = [{"name": "hub", "secret": {"secretName": "hub"}}]
    pod["containers"][0] |= {
        "workingDir": "/usr",
        "image": "registry.example/train:1",
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
        "volumeMounts": [{"name": "hub", "mountPath": "/etc/hub"}],
    }
    pool.cluster.apply([raw])
    pool.wait("its end", lambda: _state(pool) in ("Succeeded", "Failed"), 90)
    output = pool.cluster.kubectl(
        *("exec", "-n", SPACE, "gpu-node-0", "-c", "slurmd", "--", "sh", "-c", "cat /var/log/jobs/*/[0-9]*.out")
    ).stdout
    assert (_state(pool), output) == ("Succeeded", "0 1\n")
    pool.cluster.kubectl("delete", "-n", SPACE, "pytorchjob", "own-image", "--timeout=60s", timeout=70)


def _state(product: Product) -> str:
    return newest(product.get("pytorchjob", "own-image", SPACE) or {})
