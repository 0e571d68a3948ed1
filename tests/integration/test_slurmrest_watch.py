"""A watch on a real Slurm: what Slurm's own commands do comes as changes, and its silence as a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from slurmrest import (
    AsyncSlurm,
    Change,
    JobBase,
    JobChange,
    NodeChange,
    NodeFlag,
    PollFailed,
    PollRecovered,
    SignedTokens,
    Slurm,
    Timeouts,
    What,
)
from tests.cluster.slurm import BareSlurm

pytestmark = pytest.mark.slurm

PERIOD = 0.2
IMPATIENT = Timeouts(retries=0)


async def until(stream: AsyncIterator[Change], wanted: Callable[[Change], bool], seconds: float = 30) -> list[Change]:
    """Everything that is told up to and with the wanted event."""
    found: list[Change] = []
    async with asyncio.timeout(seconds):
        async for event in stream:
            found.append(event)
            if wanted(event):
                return found
    raise AssertionError("the watch ended")


def is_job(job_id: int, what: What, base: JobBase | None = None) -> Callable[[Change], bool]:
    """This change of this job?"""
    return lambda event: (
        isinstance(event, JobChange)
        and (event.job_id, event.what) == (job_id, what)
        and (base is None or (event.new is not None and event.new.base is base))
    )


def submitted(slurm: BareSlurm, *options: str, script: str = "sleep 300") -> int:
    """By sbatch, as anybody would."""
    argv = ("sbatch", "--parsable", "--mem=10", "--output=/dev/null", *options, f"--wrap={script}")
    return int(slurm.run(*argv).stdout)


@pytest.fixture
async def stream(slurm: BareSlurm) -> AsyncIterator[AsyncIterator[Change]]:
    """A subscriber of a watch, which has been told what is there."""
    async with AsyncSlurm(slurm.url, SignedTokens(slurm.jwt_key), timeouts=IMPATIENT) as client:
        stream = aiter(client.watch(PERIOD))
        for _ in slurm.nodes:
            await until(stream, lambda event: isinstance(event, NodeChange) and event.what is What.APPEARED)
        yield stream


async def test_a_job_appears_runs_and_ends(slurm: BareSlurm, stream: AsyncIterator[Change]) -> None:
    """Submitted by sbatch, cancelled by scancel."""
    job_id = submitted(slurm)
    await until(stream, is_job(job_id, What.APPEARED))
    await until(stream, is_job(job_id, What.CHANGED, JobBase.RUNNING))
    slurm.run("scancel", str(job_id))
    await until(stream, is_job(job_id, What.CHANGED, JobBase.CANCELLED))


async def test_each_task_of_an_array_is_told_apart(slurm: BareSlurm, stream: AsyncIterator[Change]) -> None:
    """One that begins goes on under an id of its own, the others wait on under the array's."""
    job_id = submitted(slurm, "--array=0-2%1")
    events = await until(stream, is_job(job_id, What.GONE))
    tasks = {event.task: event.what for event in events if isinstance(event, JobChange) and event.job_id == job_id}
    assert tasks == {0: What.GONE, 1: What.APPEARED, 2: What.APPEARED}
    running = [event for event in events if isinstance(event, JobChange) and event.task == 0 and event.job_id != job_id]
    assert [event.new and event.new.base for event in running][-1] is JobBase.RUNNING
    slurm.run("scancel", str(job_id))


async def test_a_drained_node_is_a_change_and_so_is_its_return(slurm: BareSlurm, stream: AsyncIterator[Change]) -> None:
    """With what it was before, and why."""
    slurm.run("scontrol", "update", "nodename=n1", "state=drain", "reason=hot")
    events = await until(stream, lambda event: isinstance(event, NodeChange) and event.name == "n1")
    change = events[-1]
    assert isinstance(change, NodeChange)
    assert change.old
    assert change.new
    assert NodeFlag.DRAIN not in change.old.states.flags
    assert NodeFlag.DRAIN in change.new.states.flags
    assert change.new.reason == "hot"
    slurm.run("scontrol", "update", "nodename=n1", "state=resume")
    await until(stream, lambda event: _undrained(event, "n1"))


def _undrained(event: Change, name: str) -> bool:
    if not isinstance(event, NodeChange) or event.name != name or event.new is None:
        return False
    return NodeFlag.DRAIN not in event.new.states.flags


@pytest.mark.parametrize("daemon", ["slurmrestd", "slurmctld"])
async def test_a_daemon_that_is_away_is_told_and_no_job_is_gone(
    slurm: BareSlurm, stream: AsyncIterator[Change], daemon: str
) -> None:
    """What happened in between comes when it is back."""
    job_id = submitted(slurm)
    await until(stream, is_job(job_id, What.CHANGED, JobBase.RUNNING))
    slurm.stop(daemon)
    events = await until(stream, lambda event: isinstance(event, PollFailed), 60)
    slurm.start(daemon)
    events += await until(stream, lambda event: isinstance(event, PollRecovered), 60)
    slurm.run("scancel", str(job_id))
    events += await until(stream, is_job(job_id, What.CHANGED, JobBase.CANCELLED))
    assert not [event for event in events if isinstance(event, JobChange | NodeChange) and event.what is What.GONE]


def test_the_synchronous_client_tells_the_same(slurm: BareSlurm) -> None:
    """A plain loop, polled by a thread of its own."""
    with Slurm(slurm.url, SignedTokens(slurm.jwt_key)) as client, client.watch(PERIOD, nodes=False) as watch:
        job_id = submitted(slurm, script="true")
        completed = is_job(job_id, What.CHANGED, JobBase.COMPLETED)
        assert any(completed(event) or is_job(job_id, What.APPEARED, JobBase.COMPLETED)(event) for event in watch)
