"""Distributions of tasks: text, numbers and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.pyslurm import TaskDistribution

METHODS = st.sampled_from(["block", "cyclic", "fcyclic"])
PACKS = st.sampled_from([None, True, False])
LEVELS = st.builds(
    TaskDistribution, nodes=st.sampled_from(["block", "cyclic"]), sockets=METHODS, cores=METHODS, pack=PACKS
)
PLANES = st.builds(TaskDistribution, nodes=st.just("plane"), plane=st.integers(1, 65535), pack=PACKS)
ARBITRARY = st.builds(TaskDistribution, nodes=st.just("arbitrary"), pack=PACKS)


@given(LEVELS | PLANES | ARBITRARY)
def test_a_distribution_reads_back_from_its_text(wanted: TaskDistribution) -> None:
    """Every one of them."""
    assert TaskDistribution.from_str(wanted.to_str()) == wanted


@given(LEVELS | ARBITRARY)
def test_a_distribution_reads_back_from_its_number(wanted: TaskDistribution) -> None:
    """A plane's size is not in the number."""
    assert TaskDistribution.from_int(wanted.as_int()) == wanted


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("block", "block:cyclic:cyclic"),
        ("cyclic:block", "cyclic:block:block"),
        ("*:*:fcyclic,NoPack", "block:cyclic:fcyclic,NoPack"),
        ("BLOCK:FCyclic,pack", "block:fcyclic:fcyclic,Pack"),
        ("plane=4", "plane=4"),
        ("arbitrary", "arbitrary"),
    ],
)
def test_every_form_of_sbatch_is_read(text: str, written: str) -> None:
    """The inner levels follow the outer ones; "*" is a default."""
    assert TaskDistribution.from_str(text).to_str() == written


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "block:block:block:block",
        "plane",
        "plane=0",
        "plane=x",
        "block,Pack,NoPack",
        "block,x",
        "block=2",
        "",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """With the text in the message, or what is missing."""
    with pytest.raises(ValueError, match=r"distribution|none of|levels|plane"):
        TaskDistribution.from_str(text)


@pytest.mark.parametrize(
    ("number", "text"), [(0x221, "block:cyclic:cyclic"), (0x800112, "cyclic:block:block,Pack"), (4, "plane=1")]
)
def test_slurms_numbers_are_read(number: int, text: str) -> None:
    """As in slurm.h; 8192 is for an unknown one."""
    assert str(TaskDistribution.from_int(number)) == text
    assert TaskDistribution.from_int(8192) is None


def test_a_distribution_has_values_by_name() -> None:
    """And compares by them."""
    one = TaskDistribution("cyclic", "block", pack=False)
    expected: dict[str, Any] = {"nodes": "cyclic", "sockets": "block", "cores": "block", "plane": None, "pack": False}
    assert one.to_dict() == expected
    assert (one == TaskDistribution.from_str("cyclic:block,NoPack"), one == 3) == (True, False)
    assert len({one, TaskDistribution.from_str("cyclic:block,NoPack")}) == 1
