"""Fixtures of the tests that talk to a real Slurm on this machine, without Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.slurm import BareSlurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[BareSlurm]:
    """A real Slurm: 4 nodes (n0 to n3) of 8 GPUs, users alice and bob. Shared by the tests of a module."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    with BareSlurm(nodes=4, gpus=8) as running:
        yield running
