"""A submission whose connection breaks at any byte, 200 times over, on the way to a real slurmrestd: one job each."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from slurmrest import Ambiguous, AsyncSlurm, SignedTokens, Timeouts, Unavailable
from tests.cluster.slurm import BareSlurm

pytestmark = pytest.mark.slurm

LOSSES = 200
AT_ONCE = 20
HELD: dict[str, Any] = {
    "name": "held",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/usr/bin:/bin"],
    "hold": True,
}
PATIENT = Timeouts(settle=3.0, looks=(0.2, 0.8), retries=2)


class Cutting:
    """A TCP proxy before slurmrestd that breaks the connection of each of the first `LOSSES` submissions.

    At a byte of the request (0: nothing gets through; its last: slurmrestd has all of it) or of the answer.
    """

    def __init__(self, bare: BareSlurm, chance: random.Random) -> None:
        self._socket = bare.url.removeprefix("unix://")
        self._chance = chance
        self.cuts: Counter[str] = Counter()
        self.open: set[asyncio.Task[Any]] = set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the client's, request by request."""
        if task := asyncio.current_task():
            self.open.add(task)
        upstream, request_to = await asyncio.open_unix_connection(self._socket)
        try:
            while await self._exchange(reader, writer, upstream, request_to):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # one side has closed
        finally:
            writer.transport.abort()
            request_to.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: asyncio.StreamReader,
        request_to: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; False when the connection is to be broken."""
        request = await _message(reader)
        cut = b"/job/submit " in request.partition(b"\r\n")[0] and self.cuts.total() < LOSSES
        where = self._chance.choice(("request", "answer")) if cut else ""
        if cut:
            self.cuts[where] += 1
        kept = self._chance.randint(0, len(request)) if where == "request" else len(request)
        request_to.write(request[:kept])
        await request_to.drain()
        if where == "request":
            await asyncio.sleep(0.01)  # what was written is to reach slurmrestd
            return False
        answer = await _message(upstream)
        writer.write(answer[: self._chance.randrange(len(answer))] if where else answer)
        await writer.drain()
        await asyncio.sleep(0.01 if where else 0)
        return not where


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A whole HTTP message with a Content-Length (or without a body)."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.strip().split(b"\r\n")[1:])
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


@asynccontextmanager
async def listening(proxy: Cutting) -> AsyncIterator[str]:
    """The proxy's URL, while it listens."""
    server = await asyncio.start_server(proxy.pass_on, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if proxy.open:
            await asyncio.wait(proxy.open, timeout=10)


@pytest.fixture(scope="module")
def bare() -> Iterator[BareSlurm]:
    """A Slurm without a node: nothing is to run."""
    with BareSlurm(nodes=1, start=[]) as slurm:
        yield slurm


async def submitted(slurm: AsyncSlurm, key: str) -> int:
    """What a careful caller does: the same call again for as long as it isn't known what became of it."""
    for _ in range(20):
        try:
            return (await slurm.submit(HELD, "#!/bin/sh\n", key=key, user="alice")).job_id
        except (Ambiguous, Unavailable):
            await asyncio.sleep(1.0)
    raise AssertionError(f"{key} was never submitted")


async def test_a_submission_cut_at_any_byte_makes_exactly_one_job(bare: BareSlurm) -> None:
    """200 cuts at random points of requests and answers; as many keys, as many jobs, and each caller knows its own."""
    seed = random.randrange(2**32)  # noqa: S311 - not a secret
    print(f"seed {seed}")
    proxy = Cutting(bare, random.Random(seed))  # noqa: S311
    keys = [f"lost-{number}" for number in range(LOSSES)]
    turns = asyncio.Semaphore(AT_ONCE)
    async with (
        listening(proxy) as url,
        AsyncSlurm(url, SignedTokens(bare.jwt_key), version="v0.0.42", timeouts=PATIENT) as slurm,
    ):

        async def one(key: str) -> int:
            async with turns:
                return await submitted(slurm, key)

        told = dict(zip(keys, await asyncio.gather(*map(one, keys)), strict=True))
        made = {f"{job.job_id} {job.comment}" for job in await slurm.jobs()}
    assert proxy.cuts.total() == LOSSES, proxy.cuts
    assert min(proxy.cuts.values()) > LOSSES / 4, proxy.cuts
    assert made == {f"{job_id} kubeslurm:{key}" for key, job_id in told.items()}, f"seed {seed}"
