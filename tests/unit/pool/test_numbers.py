"""Kubernetes quantities and Slurm times as numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeslurm import quantities, times


@pytest.mark.parametrize(
    ("text", "mib"),
    [("120Gi", 122880), ("128000Mi", 128000), ("1", 1), ("1048577", 2), ("1G", 954), ("1.5Gi", 1536), ("1e9", 954)],
)
def test_memory_in_mib(text: str, mib: int) -> None:
    """Rounded up: a job never gets less than it asked for."""
    assert quantities.to_mib(text) == mib


@pytest.mark.parametrize(("value", "cpus"), [("4", 4), (4, 4), ("1500m", 2), ("1001m", 2), (0.5, 1), ("2k", 2000)])
def test_cpus(value: str | int | float, cpus: int) -> None:
    """Whole CPUs, rounded up."""
    assert quantities.to_cpus(value) == cpus


@pytest.mark.parametrize(
    "text", ["", "x", "1x", "1 Gi", "1Gi\n", "-1", "1e999999999", "Infinity", "NaN", "\u0663Gi", "9" * 65]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """ValueError, whatever it is."""
    with pytest.raises(ValueError, match=r"no quantity|below zero|out of range"):
        quantities.parse_quantity(text)


@pytest.mark.parametrize("value", ["1.5", "500m"])
def test_devices_are_whole(value: str) -> None:
    """Half a GPU is refused, not rounded."""
    with pytest.raises(ValueError, match="whole"):
        quantities.to_count(value)


@given(st.integers(0, 10**9), st.sampled_from(["Ki", "Mi", "Gi", "Ti"]))
def test_mib_are_never_less_and_never_one_more(number: int, suffix: str) -> None:
    """Against exact fractions."""
    exact = Fraction(number) * 1024 ** ["Ki", "Mi", "Gi", "Ti"].index(suffix) / 1024
    assert 0 <= quantities.to_mib(f"{number}{suffix}") - exact < 1


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30", 30),
        ("30:01", 31),
        ("48:00:00", 2880),
        ("00:00:01", 1),
        ("2-0", 2880),
        ("2-12", 3600),
        ("1-0:30", 1470),
        ("1-0:30:30", 1471),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_times_in_minutes(text: str, minutes: int | None) -> None:
    """Every form of sbatch(1); seconds round up."""
    assert times.parse_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "-1", "1:2:3:4", "1h", "1-", "30\n", "\u0663", "99999999:0:0", "99999-0"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """Neither other words nor more than Slurm's 32 bits of seconds."""
    with pytest.raises(ValueError, match=r"no time limit|can count"):
        times.parse_minutes(text)


@given(st.integers(0, times.MAX_MINUTES))
def test_a_written_time_reads_the_same(minutes: int) -> None:
    """format, then parse."""
    assert times.parse_minutes(times.format_minutes(minutes)) == minutes
