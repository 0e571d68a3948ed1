"""The adapters on what real slurmrestds answered, the choice among versions, and the speed of reading."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from slurmrest import (
    INFINITE,
    ExitCode,
    JobBase,
    JobStates,
    NodeBase,
    NodeFlag,
    ProtocolError,
    Unsupported,
)
from slurmrest.versions import ADAPTERS, Adapter, choose, forced
from tests.unit.slurmrest.fake import FakeSlurmrestd

RECORDS = sorted((Path(__file__).parent / "records").glob("*.json"))


@pytest.fixture(params=RECORDS, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> tuple[Adapter, dict[str, Any]]:
    """One version's adapter and answers."""
    path: Path = request.param
    return ADAPTERS[path.name.split("-")[0]], json.loads(path.read_text())


def test_there_are_records_of_each_version_of_the_oldest_slurm_served() -> None:
    """24.11 has three; without them the tests below would pass on nothing."""
    assert {path.name.split("-")[0] for path in RECORDS} >= {"v0.0.40", "v0.0.41", "v0.0.42"}


def test_a_node_reads_the_same_from_every_version(recorded: tuple[Adapter, dict[str, Any]]) -> None:
    """Drained, with two comments and its GPUs."""
    adapter, answers = recorded
    node = {node.name: node for node in adapter.nodes(answers["nodes/"])}["n0"]
    assert node.states.base is NodeBase.IDLE
    assert NodeFlag.DRAIN in node.states.flags
    assert not node.states.unknown
    assert (node.reason, node.comment, node.gres) == ("disk", "seen", "gpu:h100:8")
    assert node.gres_used.startswith("gpu:h100:0")
    assert node.partitions == ("main",)
    assert node.cpus > 0 == node.alloc_cpus
    assert node.real_memory > 0
    assert None not in (node.reason_changed_at, node.slurmd_start_time, node.boot_time)
    assert node.address


def test_a_job_reads_the_same_from_every_version(recorded: tuple[Adapter, dict[str, Any]]) -> None:
    """It failed with 3 on one node."""
    adapter, answers = recorded
    job = adapter.jobs(answers["jobs/"])[0]
    assert adapter.jobs(answers["job/{job_id}"]) == [job]
    assert job.states == JobStates(JobBase.FAILED)
    assert job.states.finished
    assert job.exit_code == ExitCode("ERROR", 3, None)
    assert (job.job_id, job.name, job.user_name, job.user_id) == (1, "failing", "alice", 1000)
    assert (job.comment, job.partition, job.state_reason) == ("kubeslurm:recorded", "main", "NonZeroExitCode")
    assert (job.node_count, job.tasks, job.cpus_per_task) == (1, 1, 1)
    assert (job.tres_per_node, job.memory_per_node, job.time_limit) == ("gres/gpu:2", 1000, 5)
    assert (job.nodes, job.batch_host) == ("n0", "n0")
    assert job.standard_output == "/tmp/1.out"
    assert job.current_working_directory == "/tmp"
    assert job.submit_time is not None
    assert (job.start_time or 0) >= job.submit_time


def test_the_rest_reads_the_same_from_every_version(recorded: tuple[Adapter, dict[str, Any]]) -> None:
    """Partitions, states, pings and figures."""
    adapter, answers = recorded
    (partition,) = adapter.partitions(answers["partitions/"])
    assert (partition.name, partition.nodes, partition.node_count) == ("main", "n[0-1]", 2)
    assert partition.states == {"UP"}
    assert (partition.max_time, partition.default_time) == (INFINITE, None)
    states = [one.states.base for one in adapter.job_states(answers["jobs/state/"])]
    assert states == [one.states.base for one in adapter.jobs(answers["jobs/"])]
    assert sorted(states) == [*[JobBase.FAILED] * 5, JobBase.RUNNING]
    assert [(ping.responding, ping.primary) for ping in adapter.pings(answers["ping/"])] == [(True, True)]
    assert adapter.diag(answers["diag/"]).jobs_submitted == len(states)


@pytest.mark.parametrize(("text", "job_id"), [(7, 7), ("7", 7), ("7_3", 7), ("7_[0-9]", 7), ("7+1", 7)])
def test_tasks_of_arrays_and_parts_of_jobs_belong_to_their_job(text: Any, job_id: int) -> None:
    """`jobs/state/` writes ids as text."""
    answer = {"jobs": [{"job_id": text, "state": ["RUNNING"]}]}
    assert ADAPTERS["v0.0.42"].job_states(answer)[0].job_id == job_id


def test_a_job_id_that_is_none_is_no_job() -> None:
    """Never a job 0 out of rubbish."""
    with pytest.raises(ProtocolError):
        ADAPTERS["v0.0.42"].job_states({"jobs": [{"job_id": "x", "state": []}]})


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("v0.0.40", "v0.0.41", "v0.0.42"), "v0.0.42"),
        (("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"), "v0.0.45"),
        (("v0.0.42", "v0.0.99"), "v0.0.42"),
    ],
)
async def test_the_newest_version_that_both_know_is_taken(offered: tuple[str, ...], chosen: str) -> None:
    """One newer than ours is left alone."""
    async with FakeSlurmrestd(*offered).client() as slurm:
        assert await slurm.version() == chosen


@pytest.mark.parametrize("paths", [{"/slurm/v0.0.38/ping": {}}, {"/slurmdb/v0.0.42/jobs/": {}}, {}])
def test_without_a_common_version_the_error_names_both_sides(paths: dict[str, Any]) -> None:
    """So that one sees which of the two to upgrade."""
    with pytest.raises(Unsupported, match=r"offers .*; known are v0\.0\.40, .*v0\.0\.45"):
        choose(paths)


@pytest.mark.parametrize("version", ["v0.0.38", "0.0.42", "../v0.0.42"])
def test_a_forced_version_must_be_known(version: str) -> None:
    """It becomes part of every path."""
    with pytest.raises(Unsupported):
        forced(version)


async def test_a_forced_version_asks_for_no_specification() -> None:
    """0.6 MB that aren't needed."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client(version="v0.0.41") as slurm:
        await slurm.job_states()
    assert [one.url.path for one in slurmrestd.requests] == ["/slurm/v0.0.41/jobs/state/"]


async def test_another_release_under_our_feet_is_found_out() -> None:
    """The version is negotiated anew after a call that slurmrestd no longer has."""
    slurmrestd = FakeSlurmrestd("v0.0.40")
    async with slurmrestd.client() as slurm:
        assert await slurm.version() == "v0.0.40"
        slurmrestd.versions = ("v0.0.42",)
        with pytest.raises(Unsupported):
            await slurm.diag()
        assert await slurm.version() == "v0.0.42"


def test_five_thousand_nodes_read_in_less_than_a_second() -> None:
    """A validator per field would take several (about 0.1 s here; the bound leaves room for a busy machine)."""
    answers = json.loads(RECORDS[0].read_text())
    payload = {"nodes": [answers["nodes/"]["nodes"][0] | {"name": f"n{i}"} for i in range(5000)]}
    started = time.perf_counter()
    assert len(ADAPTERS["v0.0.42"].nodes(payload)) == 5000
    assert time.perf_counter() - started < 1.0
