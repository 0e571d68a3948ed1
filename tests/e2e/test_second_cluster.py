"""A second Slurm beside the first, and its end."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.e2e.product import Product

pytestmark = pytest.mark.cluster

SPACE = "slurm-two"


def objects(product: Product) -> list[dict[str, Any]]:
    """The example pool in another namespace, with one node and no tenant."""
    found = [copy.deepcopy(one) for one in product.pool(1) if one["kind"] in ("SlurmCluster", "NodeSet")]
    for one in found:
        one["metadata"]["namespace"] = SPACE
    found[0]["spec"]["tenants"] = []
    program = product.program()
    program["metadata"]["namespace"] = SPACE
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, program, *found]


def test_a_second_slurm_has_its_own_nodes_and_leaves_nothing(product: Product) -> None:
    """Same names in another namespace; deleting that namespace ends all of it, the virtual node too."""
    product.cluster.apply(objects(product))

    def registered() -> bool:
        status = (product.get("nodeset", "gpu-node", SPACE) or {}).get("status") or {}
        return status.get("readyReplicas") == 1

    product.wait("its node registered", registered, 120)
    assert product.get("node", f"slurm-{SPACE}-ai-cluster", "default")
    product.cluster.kubectl("delete", "namespace", SPACE, "--timeout=120s", timeout=130)
    product.wait(
        "its virtual node is gone", lambda: not product.get("node", f"slurm-{SPACE}-ai-cluster", "default"), 30
    )
    assert len(product.node_states()) == 8
