"""What `make docs` writes is what the models say now."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubeslurm import crds
from tests import crd_reference

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", list(crds.FILES))
def test_the_chart_holds_the_crds_of_the_models(name: str) -> None:
    """A changed model without `make docs` would leave an old CRD in the chart."""
    assert (ROOT / "helm/kubeslurm" / name).read_text() == crds.text(name)


def test_the_reference_page_is_that_of_the_models() -> None:
    """A changed model without `make docs` would leave an old page."""
    assert (ROOT / "docs/reference/crds.md").read_text() == crd_reference.page()


def test_the_reference_page_tells_every_field() -> None:
    """Each field of our own kinds has a sentence of its own."""
    rows = [
        line.split(" | ") for line in crd_reference.page().split("## PyTorchJob")[0].splitlines() if "`" in line[:8]
    ]
    assert len(rows) > 40
    assert not [row[0] for row in rows if len(row[-1].strip(" |")) < 5]
