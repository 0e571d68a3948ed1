"""docs/slurmrest.md says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import slurmrest
from slurmrest import SlurmError
from tests import endpoint_table

PAGE = Path(__file__).parents[3] / "docs/slurmrest.md"


def test_the_table_of_calls_is_that_of_the_client() -> None:
    """A changed endpoint without `make docs` would leave an old table."""
    assert endpoint_table.written(PAGE.read_text()) == PAGE.read_text()


def test_the_table_of_errors_names_each_and_no_other() -> None:
    """A new error has a line on what it means and whether to ask again."""
    errors = {name for name in slurmrest.__all__ if _is_error(getattr(slurmrest, name))}
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", PAGE.read_text().split("## Errors")[1].split("## ")[0])) == errors


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, SlurmError) and value is not SlurmError
