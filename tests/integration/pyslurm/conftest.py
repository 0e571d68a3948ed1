"""Fixtures of the tests of pyslurm's face on a real Slurm with accounting."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.running import Scripts

ACCOUNTED = ["JobAcctGatherType=jobacct_gather/linux", "JobAcctGatherFrequency=1", "AccountingStoreFlags=job_script"]
"""So that slurmdbd has figures and scripts to tell."""


@pytest.fixture(scope="session")
def accounted() -> Iterator[BareSlurm]:
    """A real Slurm with slurmdbd: 4 nodes of 8 GPUs, alice of physics, bob of chemistry. Shared by all tests here."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    with BareSlurm(nodes=4, gpus=8, config_lines=ACCOUNTED, accounting=True) as running:
        yield running


@pytest.fixture
def scripts(accounted: BareSlurm) -> Iterator[Scripts]:
    """The scripts, against a Slurm without jobs."""
    made = Scripts(accounted)
    yield made
    made.clear()
