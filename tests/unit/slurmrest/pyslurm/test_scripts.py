"""The scripts that a real Slurm runs in the integration tests are scripts for pyslurm, and each of them is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "integration/pyslurm"
SCRIPTS = sorted((FOLDER / "scripts").glob("*.py"))


def test_there_are_enough() -> None:
    """As promised."""
    assert len(SCRIPTS) >= 30


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_each_is_run_and_knows_nothing_but_pyslurm(script: Path) -> None:
    """One line names our package; the rest would run with pyslurm itself."""
    text = script.read_text()
    ours = [line for line in text.splitlines() if "slurmrest" in line or "SLURM_JWT" in line]
    assert ours == ["import slurmrest.pyslurm as pyslurm"]
    runs = "".join(path.read_text() for path in FOLDER.glob("test_scripts_*.py"))
    assert re.search(rf'scripts\.run\(\s*"{script.stem}"', runs), f"no test runs {script.name}"
