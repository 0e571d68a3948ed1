"""Fixtures of the tests of pyslurm's face on a real Slurm with accounting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system
from tests.integration.pyslurm.running import Scripts

ACCOUNTED = [
    "JobAcctGatherType=jobacct_gather/linux",
    "JobAcctGatherFrequency=1",
    "AccountingStoreFlags=job_script,job_comment",
]
"""So that slurmdbd has figures and scripts to tell."""


@contextmanager
def accounting(suite: str) -> Iterator[BareSlurm]:
    """A real Slurm with slurmdbd: 4 nodes of 8 GPUs, alice of physics, bob of chemistry."""
    need_root_file_system(suite, accounting=True)
    with BareSlurm(nodes=4, gpus=8, config_lines=ACCOUNTED, accounting=True, suite=suite) as running:
        yield running


@pytest.fixture(scope="session")
def accounted() -> Iterator[BareSlurm]:
    """Slurm 24.11 with slurmdbd, shared by all tests here."""
    with accounting("trixie") as running:
        yield running


@pytest.fixture(scope="session")
def accounted_newer() -> Iterator[BareSlurm]:
    """Slurm 26.05 with slurmdbd, shared by all tests here."""
    with accounting("sid") as running:
        yield running


@pytest.fixture
def scripts(accounted: BareSlurm) -> Iterator[Scripts]:
    """The scripts, against a Slurm without jobs."""
    made = Scripts(accounted)
    yield made
    made.clear()
