"""What slurmdbd recorded of a job that slurmctld has forgotten."""

from __future__ import annotations

import pytest

from kubeslurm import records
from slurmrest import ExitCode, JobStates
from slurmrest.db_values import JobRecord


def record(state: str) -> JobRecord:
    """Of job 7."""
    return JobRecord(
        job_id=7,
        states=JobStates.parse(state),
        user="alice",
        nodes="n[1-2]",
        exit_code=ExitCode("ERROR", 3),
        end_time=100,
        comment="kubeslurm:u/1",
    )


def test_an_end_is_told_as_slurmctld_would() -> None:
    """State, code, time, nodes, and the key by which it is known to be ours."""
    job = records.ended(record("FAILED"))
    assert job is not None
    assert (job.job_id, str(job.states), job.exit_code.return_code, job.end_time) == (7, "FAILED", 3, 100)
    assert (job.comment, job.nodes, job.user_name) == ("kubeslurm:u/1", "n[1-2]", "alice")


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SOMETHING_NEW"])
def test_a_record_that_is_no_end_says_nothing(state: str) -> None:
    """slurmdbd may have missed the end."""
    assert records.ended(record(state)) is None
