"""Kubeflow's own SDK, as its users install it, creates, waits for, lists, reads and deletes a job through us."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cluster import cache
from tests.cluster.shell import run
from tests.e2e.product import TENANT, Product

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy"), pytest.mark.timeout(600)]

SDK = "kubeflow-training==1.9.4"
SCRIPT = Path(__file__).parent / "files" / "sdk_user.py"


@pytest.fixture(scope="session")
def python() -> Path:
    """A Python that has the SDK and nothing of ours."""

    def build(path: Path) -> None:
        run([sys.executable, "-m", "venv", path], timeout=120)
        run([path / "bin/pip", "install", "-q", "--disable-pip-version-check", SDK], timeout=300)

    return cache.artefact("kubeflow-sdk", cache.key_of(SDK, sys.version), build) / "bin/python"


def test_the_sdk_works_unmodified(product: Product, python: Path) -> None:
    """What it reads is what it reads of the training operator's jobs."""
    arguments = [str(python), str(SCRIPT), str(product.cluster.kubeconfig), TENANT]
    said = run(product.cluster.command(arguments), timeout=180).stdout
    told = json.loads(said.splitlines()[-1])
    assert told["created"] is True
    assert told["conditions"] == ["Created", "Running", "Succeeded"]
    assert told["succeeded"] is True
    assert told["listed"] == ["by-sdk"]
    assert told["pods"] == ["by-sdk-master-0", "by-sdk-worker-0"]
    assert told["masters"] == ["by-sdk-master-0"]
    assert told["left"] == []
