"""What is asked of slurmdbd: values in every form, and nothing that would ask for something else."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from slurmrest.pyslurm.db import AssociationFilter, JobFilter, QualityOfServiceFilter
from slurmrest.pyslurm.db.filters import selects_nothing


def test_lists_are_taken_as_lists_texts_and_single_values() -> None:
    """All become the same query."""
    queries = [JobFilter(users=users, ids=[1]).params() for users in (["alice", "bob"], "alice,bob", ("alice", "bob"))]
    assert [query["users"] for query in queries] == [["alice", "bob"]] * 3
    assert JobFilter(ids=7).params()["step"] == ["7"]
    assert JobFilter(ids="7, 8").params()["step"] == ["7", "8"]


def test_every_field_reaches_slurmdbd_under_its_name_there() -> None:
    """Or is looked at in the answer."""
    asked = JobFilter(
        ids=[1, "2"],
        start_time=2_000_000,
        end_time=datetime.fromtimestamp(3_000_000, UTC),
        accounts=["a"],
        association_ids=[3],
        clusters="c",
        constraints="x",
        qos=["q"],
        names=["n"],
        partitions=["p"],
        groups=[1000, "root"],
        users=["u"],
        wckeys=["w"],
        nodelist=["n1", "n0"],
        with_script=True,
        truncate_time=True,
    )
    assert asked.params(qos_ids=[7]) == {
        "step": ["1", "2"],
        "start_time": "uts2000000",
        "end_time": "uts3000000",
        "account": ["a"],
        "association": ["3"],
        "cluster": ["c"],
        "constraints": ["x"],
        "qos": ["7"],
        "job_name": ["n"],
        "partition": ["p"],
        "groups": ["1000", "0"],
        "users": ["u"],
        "wckey": ["w"],
        "node": "n[0-1]",
        "show_batch_script": "true",
    }


def test_jobs_of_today_are_meant_unless_it_is_said_which() -> None:
    """As with sacct: since midnight, or of any time for ids; times aren't cut to the window."""
    since = int(str(JobFilter().params()["start_time"]).removeprefix("uts"))
    assert 0 <= time.time() - since < 2 * 86400
    assert time.localtime(since)[3:6] == (0, 0, 0)
    assert JobFilter().params()["disable_truncate_usage_time"] == "true"
    assert JobFilter(ids=[5]).params()["start_time"] == "uts1000000"


def test_a_group_that_only_slurm_knows_is_looked_for_in_the_answer() -> None:
    """A group's name would end slurmrestd 24.11."""
    asked = JobFilter(groups=["no-such-group", "root"])
    assert "groups" not in asked.params()
    assert [group for group in ("root", "no-such-group", "other", None) if asked.takes(1, 1, 1, group)] == [
        "root",
        "no-such-group",
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", ["a,b"]),
        ("users", ["a\nb"]),
        ("names", ["a\0"]),
        ("accounts", [None]),
        ("ids", [True]),
        ("wckeys", [["x"]]),
        ("partitions", "a\rb"),
    ],
)
def test_a_value_that_would_be_read_as_something_else_is_refused(field: str, value: Any) -> None:
    """Before anything is sent, with the field's name."""
    with pytest.raises(ValueError, match=field):
        JobFilter(**{field: value}).params()


def test_an_unknown_field_is_refused() -> None:
    """A mistyped filter would find all jobs."""
    with pytest.raises(TypeError):
        JobFilter(user=["alice"])  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("asked", "takes"),
    [
        (JobFilter(), [1, 4, 8]),
        (JobFilter(cpus=4), [4]),
        (JobFilter(cpus=4, max_cpus=8), [4, 8]),
        (JobFilter(max_cpus=4), [1, 4]),
        (JobFilter(nodes=4), [4]),
        (JobFilter(timelimit="4"), [4]),
        (JobFilter(timelimit=2, max_timelimit="UNLIMITED"), [4, 8]),
    ],
)
def test_counts_are_exact_or_ranges(asked: JobFilter, takes: list[int]) -> None:
    """A least is one only next to a most."""
    assert [one for one in (1, 4, 8) if asked.takes(one, one, one, None)] == takes


def test_a_limit_that_is_none_is_more_than_any_number() -> None:
    """And a job without a figure is in no range."""
    assert JobFilter(timelimit="UNLIMITED").takes(1, 1, "UNLIMITED", None)
    assert not JobFilter(max_timelimit=60).takes(1, 1, "UNLIMITED", None)
    assert not JobFilter(max_timelimit=60).takes(1, 1, None, None)


def test_an_empty_list_is_no_filter_but_selects_nothing_to_change() -> None:
    """A change must not fall on all because a list came out empty."""
    assert "users" not in JobFilter(users=[]).params()
    assert selects_nothing(JobFilter(users=[]))
    assert selects_nothing(AssociationFilter(users=""))
    assert not selects_nothing(JobFilter(users=["alice"]))
    assert not selects_nothing(AssociationFilter())


def test_associations_and_qos_have_filters_of_their_own() -> None:
    """slurmrestd drops those of QOS: they are looked at in the answer."""
    assert AssociationFilter(users=["alice"], ids=[1, 2]).params() == {"user": ["alice"], "id": ["1", "2"]}
    asked = QualityOfServiceFilter(names="normal,urgent", preempt_modes=["CANCEL"])
    assert asked.takes("normal", 1, "all", ["CANCEL"])
    assert not asked.takes("normal", 1, "all", ["DISABLED"])
    assert not asked.takes("other", 1, "all", ["CANCEL"])
    assert QualityOfServiceFilter(ids=[2], descriptions=["all"]).takes("x", 2, "all", [])
