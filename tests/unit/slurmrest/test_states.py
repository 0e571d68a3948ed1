"""How the words of a state become a base, flags and the unknown rest."""

from __future__ import annotations

import pytest

from slurmrest import JobBase, JobFlag, JobStates, NodeBase, NodeFlag, NodeStates


@pytest.mark.parametrize("words", [["IDLE", "DRAIN"], ["DRAIN", "IDLE"], "IDLE+DRAIN", "drain+idle"])
def test_the_order_and_form_of_the_words_have_no_meaning(words: list[str] | str) -> None:
    """A list in any order and the printed text read alike."""
    assert NodeStates.parse(words) == NodeStates(NodeBase.IDLE, frozenset({NodeFlag.DRAIN}))


def test_a_word_of_a_newer_slurm_is_kept_beside_the_base() -> None:
    """It neither raises nor hides what is known."""
    states = JobStates.parse(["RUNNING", "TELEPORTING", "COMPLETING"])
    assert states == JobStates(JobBase.RUNNING, frozenset({JobFlag.COMPLETING}), frozenset({"TELEPORTING"}))


@pytest.mark.parametrize("words", [[], "", ["TELEPORTING"]])
def test_without_a_known_base_word_the_base_is_unknown(words: list[str] | str) -> None:
    """Neither an empty answer nor new words make a state up."""
    assert NodeStates.parse(words).base is NodeBase.UNKNOWN


def test_two_base_words_contradict_each_other() -> None:
    """Then the base is unknown, and both words are kept."""
    assert JobStates.parse("RUNNING+FAILED") == JobStates(
        JobBase.UNKNOWN, frozenset(), frozenset({"RUNNING", "FAILED"})
    )


def test_slurms_own_unknown_is_a_state_and_not_an_unknown_word() -> None:
    """slurmctld says UNKNOWN of a node that it has not heard of yet."""
    assert NodeStates.parse(["UNKNOWN"]) == NodeStates(NodeBase.UNKNOWN)


def test_states_are_hashable_and_print_as_slurm_does() -> None:
    """They serve as keys, in sets and in messages."""
    states = NodeStates.parse("MIXED+DRAIN+NEW")
    assert hash(states) == hash(NodeStates.parse("DRAIN+NEW+MIXED"))
    assert str(states) == "MIXED+DRAIN+NEW"


@pytest.mark.parametrize(
    ("words", "finished"),
    [
        ("COMPLETED", True),
        ("NODE_FAIL", True),
        ("RUNNING", False),
        ("PENDING", False),
        ("COMPLETED+COMPLETING", False),
        ("FAILED+REQUEUED", False),
        ("FAILED+SOMETHING_NEW", False),
        ("", False),
    ],
)
def test_a_job_is_finished_only_when_it_cant_go_on(words: str, finished: bool) -> None:
    """A clean-up, a way back into the queue and an unknown word all leave it open."""
    assert JobStates.parse(words).finished is finished
