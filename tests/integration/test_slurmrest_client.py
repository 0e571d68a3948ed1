"""The client against a real slurmrestd and slurmctld: what only Slurm itself can prove."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from slurmrest import (
    Ambiguous,
    AsyncSlurm,
    Authentication,
    InvalidRequest,
    Job,
    JobBase,
    NodeBase,
    NodeFlag,
    NotFound,
    PermissionDenied,
    SignedTokens,
    Slurm,
    Timeouts,
    Unavailable,
    number,
)
from tests.cluster.slurm import BareSlurm

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nexec sleep 300\n"
DESCRIPTION: dict[str, Any] = {
    "name": "train",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/usr/bin:/bin"],
    "standard_output": "/dev/null",
    "minimum_nodes": 2,
    "maximum_nodes": 2,
    "tres_per_node": "gres/gpu:8",
    "memory_per_node": number(1000),
    "time_limit": number(48 * 60),
}


@pytest.fixture(scope="module")
def bare() -> Iterator[BareSlurm]:
    """One Slurm with four nodes for all tests of this module."""
    with BareSlurm(nodes=4, gpus=8) as slurm:
        yield slurm


@pytest.fixture
async def slurm(bare: BareSlurm) -> AsyncIterator[AsyncSlurm]:
    """A client of it; what a test left running is cancelled."""
    async with AsyncSlurm(bare.url, SignedTokens(bare.jwt_key)) as client:
        yield client
        for job in await client.jobs():
            if not job.states.finished:
                await client.cancel(job.job_id)


async def until(look: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Wait for a condition, in Slurm's own time."""
    deadline = time.monotonic() + seconds
    while not await look():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.1)


async def job_in(slurm: AsyncSlurm, job_id: int, base: JobBase) -> Job:
    """The job, once it is in this state and nothing is cleaned up any more."""

    async def look() -> bool:
        states = (await slurm.job(job_id)).states
        return states.base is base and not states.flags

    await until(look)
    return await slurm.job(job_id)


async def jobs_of(slurm: AsyncSlurm, key: str) -> int:
    """How many jobs Slurm has under a key."""
    return sum(job.comment == f"kubeslurm:{key}" for job in await slurm.jobs())


class LosesAnswers(httpx.AsyncBaseTransport):
    """Passes each request on and then loses the answers to the first few submissions."""

    def __init__(self, bare: BareSlurm, losses: int) -> None:
        self.inner = httpx.AsyncHTTPTransport(uds=bare.url.removeprefix("unix://"))
        self.losses = losses

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx wants it."""
        response = await self.inner.handle_async_request(request)
        if request.method == "POST" and self.losses:
            self.losses -= 1
            await response.aread()
            raise httpx.ReadError("connection reset", request=request)
        return response

    async def aclose(self) -> None:
        """Close the real one."""
        await self.inner.aclose()


async def test_it_speaks_the_newest_common_version_and_knows_the_release(slurm: AsyncSlurm) -> None:
    """24.11 ends with v0.0.42."""
    assert await slurm.version() == "v0.0.42"
    assert (await slurm.slurm_version()).startswith("24.11.")
    assert [(ping.responding, ping.primary) for ping in await slurm.ping()] == [(True, True)]


async def test_a_job_runs_as_its_user_and_is_found_and_cancelled(slurm: AsyncSlurm) -> None:
    """The whole life of a job, by its key."""
    made = await slurm.submit(DESCRIPTION, SLEEP, key="life", user="alice")
    job = await job_in(slurm, made.job_id, JobBase.RUNNING)
    assert (job.user_name, job.node_count, job.tres_per_node, job.time_limit) == ("alice", 2, "gres/gpu:8", 2880)
    assert job.memory_per_node == 1000
    assert await slurm.find("life") == job
    assert {one.job_id: one.states.base for one in await slurm.job_states()}[made.job_id] is JobBase.RUNNING
    await slurm.cancel(made.job_id, user="alice")
    ended = await job_in(slurm, made.job_id, JobBase.CANCELLED)
    assert ended.exit_code.signal == 15
    again = await slurm.submit(DESCRIPTION, SLEEP, key="life", user="alice")
    assert (again.job_id, again.existing) == (made.job_id, True)


async def test_a_job_whose_answer_is_lost_exists_exactly_once(bare: BareSlurm, slurm: AsyncSlurm) -> None:
    """The same call finds it; a client that starts afterwards finds it too."""
    transport = LosesAnswers(bare, losses=1)
    async with AsyncSlurm(bare.url, SignedTokens(bare.jwt_key), transport=transport) as lossy:
        made = await lossy.submit(DESCRIPTION, SLEEP, key="lost", user="alice")
    assert made.existing
    assert transport.losses == 0
    again = await slurm.submit(DESCRIPTION, SLEEP, key="lost", user="alice")
    assert again.job_id == made.job_id
    assert await jobs_of(slurm, "lost") == 1


async def test_many_submitters_at_once_make_one_job_per_key(slurm: AsyncSlurm) -> None:
    """Ten keys, five times each."""
    keys = [f"many-{i}" for i in range(10)] * 5
    made = await asyncio.gather(*(slurm.submit(DESCRIPTION, SLEEP, key=key, user="alice") for key in keys))
    assert len({one.job_id for one in made}) == 10
    assert sum(not one.existing for one in made) == 10


async def test_a_job_id_nobody_has_is_not_found(slurm: AsyncSlurm) -> None:
    """For reading and for cancelling, though Slurm answers 404 and 200."""
    with pytest.raises(NotFound):
        await slurm.job(99999)
    with pytest.raises(NotFound):
        await slurm.cancel(99999)


@pytest.mark.parametrize(
    ("change", "number_"),
    [({"partition": "nope"}, 2000), ({"tres_per_node": "gres/gpu:9"}, 2014), ({"tasks": "abc"}, 0)],
)
async def test_a_job_that_slurm_cant_take_is_refused(slurm: AsyncSlurm, change: dict[str, Any], number_: int) -> None:
    """With Slurm's number; a value of a wrong type has none, Slurm answers 200 and makes no job."""
    with pytest.raises(InvalidRequest) as caught:
        await slurm.submit(DESCRIPTION | change, SLEEP, key="refused", user="alice")
    assert caught.value.number == number_
    assert await slurm.find("refused") is None


async def test_a_node_is_drained_and_resumed(slurm: AsyncSlurm) -> None:
    """Seen in its states and reason; resuming it twice is refused by Slurm."""
    await slurm.update_node("n3", state=["DRAIN"], reason="kubeslurm: test")
    node = await slurm.node("n3")
    assert NodeFlag.DRAIN in node.states.flags
    assert node.reason == "kubeslurm: test"
    assert node.reason_changed_at is not None
    await slurm.update_node("n3", state=["RESUME"])
    node = await slurm.node("n3")
    assert NodeFlag.DRAIN not in node.states.flags
    assert node.states.base is NodeBase.IDLE
    with pytest.raises(InvalidRequest):
        await slurm.update_node("n3", state=["RESUME"])


async def test_nodes_and_partitions_are_those_of_the_configuration(slurm: AsyncSlurm) -> None:
    """Names, GPUs and memory."""
    nodes = await slurm.nodes()
    assert sorted(node.name for node in nodes) == ["n0", "n1", "n2", "n3"]
    assert {node.gres for node in nodes} == {"gpu:h100:8"}
    assert [(one.name, one.nodes, one.node_count) for one in await slurm.partitions()] == [("main", "n[0-3]", 4)]
    with pytest.raises(NotFound):
        await slurm.node("nope")


async def test_a_tenant_may_not_touch_nodes_or_others_jobs(bare: BareSlurm, slurm: AsyncSlurm) -> None:
    """And slurmctld goes on answering: it would hang for good if it had to refuse the cancel itself."""
    made = await slurm.submit(DESCRIPTION, SLEEP, key="strangers", user="alice")
    async with AsyncSlurm(bare.url, SignedTokens(bare.jwt_key), user="bob") as bob:
        with pytest.raises(PermissionDenied):
            await bob.update_node("n0", state=["DRAIN"], reason="mine")
        with pytest.raises(PermissionDenied):
            await bob.cancel(made.job_id)
    assert not (await slurm.job(made.job_id)).states.finished


async def test_a_wrong_key_is_an_authentication_error(bare: BareSlurm) -> None:
    """Not "unavailable": asking again won't help."""
    async with AsyncSlurm(bare.url, SignedTokens(b"x" * 32)) as stranger:
        with pytest.raises(Authentication):
            await stranger.nodes()


async def test_reconfiguring_keeps_jobs_and_nodes(slurm: AsyncSlurm) -> None:
    """As after each change of the pool."""
    made = await slurm.submit(DESCRIPTION, SLEEP, key="reconfigured", user="alice")
    await job_in(slurm, made.job_id, JobBase.RUNNING)
    await slurm.reconfigure()
    assert len(await slurm.nodes()) == 4
    assert (await slurm.job(made.job_id)).states.base is JobBase.RUNNING


@pytest.mark.parametrize("version", ["v0.0.40", "v0.0.41", "v0.0.42"])
def test_each_version_submits_finds_and_cancels(bare: BareSlurm, version: str) -> None:
    """By the synchronous client, too."""
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as slurm:
        made = slurm.submit(DESCRIPTION, SLEEP, key=f"version-{version}", user="alice")
        found = slurm.find(f"version-{version}", user="alice")
        assert found is not None
        assert found.job_id == made.job_id
        slurm.cancel(made.job_id)
        assert slurm.job(made.job_id).states.base is JobBase.CANCELLED
        slurm.update_node("n0", comment=version)
        assert slurm.node("n0").comment == version


async def test_a_slurmrestd_that_is_down_is_unavailable_and_comes_back(bare: BareSlurm, slurm: AsyncSlurm) -> None:
    """The same client goes on when it is up again, and nothing was submitted meanwhile."""
    assert await slurm.nodes()
    bare.kill("slurmrestd")
    with pytest.raises(Unavailable):
        await slurm.nodes()
    with pytest.raises(Unavailable):
        await slurm.submit(DESCRIPTION, SLEEP, key="down", user="alice")
    bare.start("slurmrestd")

    async def answers() -> bool:
        try:
            return bool(await slurm.nodes())
        except Unavailable:
            return False

    await until(answers)
    assert await slurm.find("down") is None


async def test_without_slurmctld_nothing_is_known_and_nothing_sent(bare: BareSlurm, slurm: AsyncSlurm) -> None:
    """slurmrestd alone can't tell: neither "no such job" nor an empty list."""
    made = await slurm.submit(DESCRIPTION, SLEEP, key="survivor", user="alice")
    bare.stop("slurmctld")
    try:
        quick = Timeouts(read=2.0, looks=())
        async with AsyncSlurm(bare.url, SignedTokens(bare.jwt_key), version="v0.0.42", timeouts=quick) as client:
            reads = (client.job_states(), client.job(made.job_id), client.nodes(), client.node("nope"))
            again = client.submit(DESCRIPTION, SLEEP, key="survivor", user="alice")
            outcomes = await asyncio.gather(*reads, again, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {Unavailable}
            with pytest.raises((Unavailable, Ambiguous)):
                await client.update_node("n0", comment="lost")
    finally:
        bare.start("slurmctld")

    async def answers() -> bool:
        return (await slurm.ping())[0].responding

    await until(answers)
    found = await slurm.submit(DESCRIPTION, SLEEP, key="survivor", user="alice")
    assert (found.job_id, found.existing) == (made.job_id, True)
