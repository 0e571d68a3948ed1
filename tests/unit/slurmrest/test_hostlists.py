"""Host lists: Slurm's form both ways, and nothing of ClusterShell's own language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.hostlists import expand, fold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("(null)", []),
        ("n1", ["n1"]),
        ("n[1-3,5]", ["n1", "n2", "n3", "n5"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("a1,b[1-2]", ["a1", "b1", "b2"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_slurms_forms_expand(text: str, names: list[str]) -> None:
    """As `scontrol show hostnames` does."""
    assert expand(text) == names


def test_names_fold_into_slurms_form() -> None:
    """Brackets even for the numbers of one range, in order, each name once."""
    assert fold([f"gpu-node-{i}" for i in reversed(range(64))] + ["gpu-node-3"]) == "gpu-node-[0-63]"


OPERATORS = ["@all", "*", "n1!n2", "n1&n2", "n1^n2", "n[1-4/2]", "n[1-4:2]", "$(id)", "a b", "a\nb"]
BROKEN = ["n[1", "n1]", "n[[1]]", "n[]", "n[3-1]", "a,,b"]


@pytest.mark.parametrize("text", OPERATORS + BROKEN)
def test_anything_but_names_and_ranges_is_refused(text: str) -> None:
    """Groups would read the machine's own files, operators and steps mean something else to Slurm."""
    with pytest.raises(ValueError, match=r"not a|match|backwards"):
        expand(text)


@pytest.mark.parametrize("text", ["n[0-999999999]", "n[0-999]m[0-999]"])
def test_a_short_text_cant_take_all_memory(text: str) -> None:
    """Refused by its size, before it is expanded."""
    with pytest.raises(ValueError, match="more than"):
        expand(text)


@pytest.mark.parametrize("name", ["@all", "n[1-2]", "a,b", "", "-n", "n\n"])
def test_only_names_fold(name: str) -> None:
    """A name that is a list would smuggle others in."""
    with pytest.raises(ValueError, match="not a host name"):
        fold([name])


@given(st.sets(st.from_regex(r"[a-c][0-9]{0,3}(-[0-9]{1,2})?", fullmatch=True), max_size=30))
def test_folded_names_expand_to_themselves(names: set[str]) -> None:
    """With and without numbers, padded or not."""
    assert set(expand(fold(names))) == names
