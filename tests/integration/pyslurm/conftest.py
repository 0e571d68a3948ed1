"""Fixtures of the tests of pyslurm's face on a real Slurm, with and without accounting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system
from tests.integration.pyslurm.reached import NEW, OLD, acting, begun
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


@pytest.fixture(scope="module", params=[OLD, NEW])
def both(request: pytest.FixtureRequest) -> Iterator[BareSlurm]:
    """24.11 and 26.05 in turn."""
    with begun(request.param) as running:
        yield running


@pytest.fixture
def slurm(both: BareSlurm) -> Iterator[BareSlurm]:
    """The same, connected."""
    with acting(both):
        yield both


@pytest.fixture(scope="module")
def new() -> Iterator[BareSlurm]:
    """26.05 alone, for what 24.11's API can't tell or change."""
    with begun(NEW) as running:
        yield running


@pytest.fixture
def newest(new: BareSlurm) -> Iterator[BareSlurm]:
    """The same, connected."""
    with acting(new):
        yield new
