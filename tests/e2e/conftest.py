"""Fixtures of the end-to-end tests: a Kubernetes cluster at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.e2e.product import Product


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster of $KUBE, or kind's `$KUBESLURM_CLUSTER` (default kubeslurm): brought up if it is down, and then
    taken down at the end; one that was up stays up."""
    running = Cluster.at_hand(os.environ.get("KUBESLURM_CLUSTER", "kubeslurm"))
    if not running.foreign and os.geteuid() != 0:
        pytest.skip("a test cluster needs root, or KUBE=<kubeconfig>")
    was_up = running.exists()
    running.up(load=() if running.foreign else ("slurm",))
    yield running
    if not was_up and not running.foreign:
        running.down()


@pytest.fixture(scope="session")
def own_cluster(cluster: Cluster) -> Cluster:
    """The cluster, if its nodes are ours to break and to load."""
    if cluster.foreign:
        pytest.skip(f"the nodes of {cluster.kubeconfig} are not ours to break")
    return cluster


@pytest.fixture(scope="session")
def product(cluster: Cluster) -> Product:
    """The operator of this tree and the example pool, with eight nodes."""
    made = Product(cluster)
    if not cluster.foreign:
        cluster.load("operator")
    made.install()
    return made


@pytest.fixture
def tidy(product: Product) -> Iterator[None]:
    """Put right what a failed test leaves."""
    yield
    product.tidy()
