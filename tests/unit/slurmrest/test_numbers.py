"""Slurm's numbers in all their forms."""

from __future__ import annotations

from typing import Any

import pytest

from slurmrest import INFINITE, Number, number
from slurmrest.numbers import read_int, read_number


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"set": True, "infinite": False, "number": 5}, 5),
        ({"set": True, "infinite": False, "number": 0}, 0),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": False, "infinite": True, "number": 0}, INFINITE),
        ({"set": True, "number": 2.0}, 2),
        (7, 7),
        (None, None),
        (0xFFFFFFFE, None),
        (0xFFFFFFFF, INFINITE),
    ],
)
def test_each_form_of_a_number_reads(raw: Any, value: Number) -> None:
    """Objects, plain integers and Slurm's own NO_VAL and INFINITE."""
    assert read_number(raw) == value


@pytest.mark.parametrize("raw", ["5", [5], 1.5])
def test_what_is_no_number_is_refused(raw: Any) -> None:
    """Text is never taken for a number in silence."""
    with pytest.raises(TypeError):
        read_number(raw)


def test_what_cant_be_infinite_reads_as_not_set() -> None:
    """Such as an exit code."""
    assert read_int({"infinite": True}) is None


@pytest.mark.parametrize("value", [0, 48 * 60, None, INFINITE])
def test_a_written_number_reads_back(value: Number) -> None:
    """`number` is the inverse of reading."""
    assert read_number(number(value)) == value
