"""What srun's messages say of the ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeslurm import ranks
from kubeslurm.ranks import RankEnd

SAID = """\
srun: error: gpu-node-2: task 2: Exited with exit code 7
srun: Terminating StepId=13.0
srun: error: gpu-node-3: task 3: Terminated
srun: error: gpu-node-0: tasks 0-1,4: Killed
"""
"""By a real one (24.11)."""


def test_the_first_failure_and_those_that_were_ended_for_it() -> None:
    """Order and signals."""
    killed = RankEnd(137, ended=True)
    expected = {2: RankEnd(7), 3: RankEnd(143, ended=True), 0: killed, 1: killed, 4: killed}
    assert ranks.read(SAID, 8) == expected


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("Exited with exit code 1", RankEnd(1)),
        ("Segmentation fault", RankEnd(139)),
        ("Segmentation fault (core dumped)", RankEnd(139)),
        ("Aborted (core dumped)", RankEnd(134)),
        ("Out Of Memory", RankEnd(137, oom=True)),
        ("Bus error", RankEnd(135)),
    ],
)
def test_each_kind_of_end(words: str, end: RankEnd) -> None:
    """As Kubernetes counts."""
    assert ranks.read(f"srun: error: n1: task 0: {words}\n", 1) == {0: end}


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: n1: task 0: went fishing",
        "srun: error: n1: task 9999999999: Killed",
        "srun: error: n1: task 5: Killed",
        "srun: error: n1: tasks 3-: Killed",
        "task 0: Killed",
        " srun: error: n1: task 0: Killed",
    ],
)
def test_what_is_not_understood_is_left_out(line: str) -> None:
    """Ranks that the job has not, words that srun has not."""
    assert ranks.read(line, 2) == {}


@given(st.text(alphabet="srun: eotaskd0-9,\n19xeCKil", max_size=200), st.integers(0, 10**9))
def test_no_text_raises(text: str, tasks: int) -> None:
    """It comes from a disk that a job writes to."""
    assert all(0 <= rank < max(1, tasks) for rank in ranks.read(text, tasks))


def test_a_replica_ends_as_the_first_of_its_ranks_that_failed_by_itself() -> None:
    """Eight ranks each."""
    ends = {9: RankEnd(143, ended=True), 10: RankEnd(3), 0: RankEnd(143, ended=True)}
    assert [ranks.of_replica(ends, place, 4, 32) for place in range(3)] == [ends[0], ends[10], None]
