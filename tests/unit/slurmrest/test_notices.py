"""Slurm's warnings reach who asks for them, and nobody else."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx

from slurmrest import Notice, Slurm, collect_warnings
from tests.unit.slurmrest.fake import EMPTY, FakeSlurmrestd, instead, reply


def warning(text: str) -> httpx.Response:
    """An empty list of nodes that comes with a warning."""
    return reply(200, {**EMPTY, "nodes": [], "warnings": [{"description": text, "source": "here"}]})


def test_the_warnings_of_each_call_are_kept_with_its_name() -> None:
    """Also those of calls that return something else."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "nodes/", instead(warning("one")), instead(warning("two")), instead(warning("three")))
    with slurmrestd.sync_client() as slurm:
        with collect_warnings() as outer:
            slurm.nodes()
            with collect_warnings() as inner:
                slurm.nodes()
        slurm.nodes()
    path = "/slurm/v0.0.42/nodes/"
    assert inner == [Notice("GET", path, "here: two")]
    assert outer == [Notice("GET", path, "here: one"), Notice("GET", path, "here: two")]


async def test_tasks_hear_their_own_calls_only() -> None:
    """Two that collect at the same time through one client."""
    slurmrestd = FakeSlurmrestd()

    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.005)
        return warning(request.headers["X-SLURM-USER-NAME"])

    async with slurmrestd.client(transport=httpx.MockTransport(answer), version="v0.0.42") as slurm:

        async def heard(user: str) -> list[str]:
            with collect_warnings() as warnings:
                await slurm.request("GET", "nodes/", user=user)
            return [one.text for one in warnings]

        assert list(await asyncio.gather(heard("alice"), heard("bob"))) == [["here: alice"], ["here: bob"]]


def test_threads_hear_their_own_calls_only() -> None:
    """As above, for the synchronous client."""

    def answer(request: httpx.Request) -> httpx.Response:
        return warning(request.headers["X-SLURM-USER-NAME"])

    def heard(slurm: Slurm, user: str) -> list[str]:
        with collect_warnings() as warnings:
            slurm.request("GET", "nodes/", user=user)
        return [one.text for one in warnings]

    client = FakeSlurmrestd().sync_client(transport=httpx.MockTransport(answer), version="v0.0.42")
    users = [f"user{number}" for number in range(20)]
    with client as slurm, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda user: heard(slurm, user), users)) == [[f"here: {user}"] for user in users]
