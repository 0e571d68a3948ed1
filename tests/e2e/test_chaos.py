"""Jobs of mixed policies while the operator, slurmrestd and slurmctld are killed and a tenth of the answers is wrong."""

from __future__ import annotations

import os
import time

import pytest

from tests.e2e.chaos import Chaos
from tests.e2e.product import Product

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy"), pytest.mark.timeout(900)]

JOBS = int(os.environ.get("KUBESLURM_CHAOS_JOBS", "24"))
"""The short form; `make soak` takes 100."""


def test_every_job_ends_as_its_policy_says(product: Product, capsys: pytest.CaptureFixture[str]) -> None:
    """None lost, none doubled, none left in the queue behind its object; the table is printed."""
    seed = int(os.environ.get("KUBESLURM_CHAOS_SEED", time.time_ns() % 10**6))
    chaos = Chaos(product, seed)
    chaos.run(JOBS, seconds=60 + JOBS)
    with capsys.disabled():
        print(f"\n{JOBS} jobs, seed {seed}; {chaos.table()}")
    assert [one.name for one in chaos.outcomes.values() if not one.right] == []
    assert chaos.orphans() == []
