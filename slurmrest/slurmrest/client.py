"""The two faces of the client: `AsyncSlurm` and `Slurm`, same calls over the same core.

Made by users of the package. What always holds: each method may raise any `SlurmError`, and nothing else but
cancellation; two submissions of one key wait for each other, all other calls run side by side.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from slurmrest.core import Core
from slurmrest.messages import Outcome, Pause, Steps, T
from slurmrest.submission import Submitter
from slurmrest.timeouts import Timeouts
from slurmrest.tokens import TokenSource
from slurmrest.values import Diag, Job, JobState, Node, Partition, Ping, Submission

if TYPE_CHECKING:
    from slurmrest.transport import AsyncBase, SyncBase


class AsyncSlurm:
    """A slurmrestd at `url` (`http://host:6820`, `https://...` or `unix:///path`), for one event loop.

    `tokens` gives a token per user; `user` is whom calls are made as unless they name another; `version` forces an API
    version ("v0.0.42"), None negotiates; `transport` replaces httpx's own, for tests. Use as `async with`.
    """

    def __init__(
        self,
        url: str,
        tokens: TokenSource,
        *,
        user: str = "root",
        version: str | None = None,
        timeouts: Timeouts | None = None,
        transport: AsyncBase | None = None,
    ) -> None:
        from slurmrest.transport import AsyncTransport

        timeouts = timeouts or Timeouts()
        self._core = Core(tokens, user, version, timeouts)
        self._submitter = Submitter(self._core)
        self._transport = AsyncTransport(url, timeouts, transport)
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def ping(self) -> list[Ping]:
        """Each slurmctld of the cluster, and whether it responds to slurmrestd."""
        return await self._run(self._core.ping())

    async def version(self) -> str:
        """The API version in use, such as "v0.0.42"."""
        return await self._run(self._core.version())

    async def slurm_version(self) -> str:
        """slurmrestd's release, such as "24.11.5"."""
        return await self._run(self._core.slurm_version())

    async def nodes(self) -> list[Node]:
        """All nodes; 2.4 KB and 0.17 ms each on the wire."""
        return await self._run(self._core.nodes())

    async def node(self, name: str) -> Node:
        """One node, or NotFound."""
        return await self._run(self._core.node(name))

    async def update_node(
        self, name: str, *, state: Iterable[str] = (), reason: str | None = None, comment: str | None = None
    ) -> None:
        """Change a node: `state` such as ["DRAIN"], ["RESUME"], ["DOWN"], ["UNDRAIN"]; what isn't given stays."""
        await self._run(self._core.update_node(name, state, reason, comment))

    async def partitions(self) -> list[Partition]:
        """All partitions."""
        return await self._run(self._core.partitions())

    async def job_states(self) -> list[JobState]:
        """Id and state of each job that slurmctld remembers; 80 bytes each. An array's tasks share their job's id."""
        return await self._run(self._core.job_states())

    async def job(self, job_id: int) -> Job:
        """One job, or NotFound if slurmctld never had it or has purged it."""
        return await self._run(self._core.job(job_id))

    async def jobs(self) -> list[Job]:
        """All jobs in full. Slow and large at scale (8 KB each): prefer `job_states` and `job`."""
        return await self._run(self._core.jobs())

    async def submit(self, job: Mapping[str, Any], script: str, *, key: str, user: str) -> Submission:
        """Submit `script` with the job description `job` (the API's fields, no comment) as `user`, once per key.

        Raises InvalidRequest when Slurm refuses it, Ambiguous when it isn't known whether a job was made: submit again
        with the same key later on.
        """
        async with self._lock(key):
            return await self._run(self._submitter.submit(job, script, key, user))

    async def find(self, key: str, *, user: str | None = None) -> Job | None:
        """The job submitted under this key (by this user, if given), in whatever state, or None."""
        return await self._run(self._submitter.find(key, user))

    async def cancel(self, job_id: int, *, signal: str | int | None = None, user: str | None = None) -> None:
        """Cancel a job, or send its processes a signal ("USR1", 10). An ended job is no error, an unknown one is."""
        await self._run(self._core.cancel(job_id, signal, user))

    async def reconfigure(self) -> None:
        """Have Slurm read its configuration files again. It has not yet done so on all nodes when this returns."""
        await self._run(self._core.reconfigure())

    async def diag(self) -> Diag:
        """slurmctld's own figures."""
        return await self._run(self._core.diag())

    async def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                outcome = None
            else:
                outcome = await self._transport.send(step)

    @asynccontextmanager
    async def _lock(self, key: str) -> AsyncIterator[None]:
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks.pop(key)
            if waiting > 1:
                self._locks[key] = (lock, waiting - 1)


class Slurm:
    """As `AsyncSlurm`, without an event loop; may be shared by threads. Use as `with`."""

    def __init__(
        self,
        url: str,
        tokens: TokenSource,
        *,
        user: str = "root",
        version: str | None = None,
        timeouts: Timeouts | None = None,
        transport: SyncBase | None = None,
    ) -> None:
        from slurmrest.transport import SyncTransport

        timeouts = timeouts or Timeouts()
        self._core = Core(tokens, user, version, timeouts)
        self._submitter = Submitter(self._core)
        self._transport = SyncTransport(url, timeouts, transport)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def ping(self) -> list[Ping]:
        """As `AsyncSlurm.ping`."""
        return self._run(self._core.ping())

    def version(self) -> str:
        """As `AsyncSlurm.version`."""
        return self._run(self._core.version())

    def slurm_version(self) -> str:
        """As `AsyncSlurm.slurm_version`."""
        return self._run(self._core.slurm_version())

    def nodes(self) -> list[Node]:
        """As `AsyncSlurm.nodes`."""
        return self._run(self._core.nodes())

    def node(self, name: str) -> Node:
        """As `AsyncSlurm.node`."""
        return self._run(self._core.node(name))

    def update_node(
        self, name: str, *, state: Iterable[str] = (), reason: str | None = None, comment: str | None = None
    ) -> None:
        """As `AsyncSlurm.update_node`."""
        self._run(self._core.update_node(name, state, reason, comment))

    def partitions(self) -> list[Partition]:
        """As `AsyncSlurm.partitions`."""
        return self._run(self._core.partitions())

    def job_states(self) -> list[JobState]:
        """As `AsyncSlurm.job_states`."""
        return self._run(self._core.job_states())

    def job(self, job_id: int) -> Job:
        """As `AsyncSlurm.job`."""
        return self._run(self._core.job(job_id))

    def jobs(self) -> list[Job]:
        """As `AsyncSlurm.jobs`."""
        return self._run(self._core.jobs())

    def submit(self, job: Mapping[str, Any], script: str, *, key: str, user: str) -> Submission:
        """As `AsyncSlurm.submit`."""
        with self._lock:
            return self._run(self._submitter.submit(job, script, key, user))

    def find(self, key: str, *, user: str | None = None) -> Job | None:
        """As `AsyncSlurm.find`."""
        with self._lock:
            return self._run(self._submitter.find(key, user))

    def cancel(self, job_id: int, *, signal: str | int | None = None, user: str | None = None) -> None:
        """As `AsyncSlurm.cancel`."""
        self._run(self._core.cancel(job_id, signal, user))

    def reconfigure(self) -> None:
        """As `AsyncSlurm.reconfigure`."""
        self._run(self._core.reconfigure())

    def diag(self) -> Diag:
        """As `AsyncSlurm.diag`."""
        return self._run(self._core.diag())

    def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome = self._transport.send(step)
