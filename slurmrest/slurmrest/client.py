"""The two faces of the client: `AsyncSlurm` and `Slurm`, same calls over the same core.

Made by users of the package. What always holds: each method may raise any `SlurmError`, and nothing else but
cancellation; two submissions of one key wait for each other, all other calls run side by side.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self
from weakref import WeakSet

from slurmrest.core import Core
from slurmrest.messages import Outcome, Pause, Steps, T
from slurmrest.submission import Submitter
from slurmrest.timeouts import Timeouts
from slurmrest.tokens import TokenSource
from slurmrest.values import Job, Submission

if TYPE_CHECKING:
    from slurmrest.transport import AsyncBase, SyncBase
    from slurmrest.watching import AsyncWatch, Watch


P = ParamSpec("P")


def _async(
    steps: Callable[Concatenate[Core, P], Steps[T]],
) -> Callable[Concatenate[AsyncSlurm, P], Coroutine[Any, Any, T]]:
    """The method of `AsyncSlurm` that runs a call of the core: same parameters, same documentation."""

    @wraps(steps)
    async def method(self: AsyncSlurm, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(self._core, *args, **kwargs))

    return method


def _sync(steps: Callable[Concatenate[Core, P], Steps[T]]) -> Callable[Concatenate[Slurm, P], T]:
    """The method of `Slurm` that runs a call of the core: same parameters, same documentation."""

    @wraps(steps)
    def method(self: Slurm, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(self._core, *args, **kwargs))

    return method


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
        self._watches: WeakSet[AsyncWatch] = WeakSet()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all watches, close all connections."""
        for watch in list(self._watches):
            await watch.close()
        await self._transport.close()

    ping = _async(Core.ping)
    version = _async(Core.version)
    slurm_version = _async(Core.slurm_version)
    nodes = _async(Core.nodes)
    node = _async(Core.node)
    update_node = _async(Core.update_node)
    partitions = _async(Core.partitions)
    job_states = _async(Core.job_states)
    job = _async(Core.job)
    jobs = _async(Core.jobs)
    cancel = _async(Core.cancel)
    reconfigure = _async(Core.reconfigure)
    diag = _async(Core.diag)
    request = _async(Core.request)

    def watch(self, period: float = 2.0, *, jobs: bool = True, nodes: bool = True) -> AsyncWatch:
        """Changes of jobs and nodes, by one look per `period` (seconds) for any number of subscribers.

        `async for change in watch` gives `JobChange`, `NodeChange`, `PollFailed` and `PollRecovered`: see
        `slurmrest.watching`. It ends when the watch or the client is closed.
        """
        from slurmrest.watching import AsyncWatch, Seen

        seen = Seen(self._core, jobs=jobs, nodes=nodes)
        watch = AsyncWatch(lambda: self._run(seen.look()), period)
        self._watches.add(watch)
        return watch

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
        self._watches: WeakSet[Watch] = WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all watches, close all connections."""
        for watch in list(self._watches):
            watch.close()
        self._transport.close()

    ping = _sync(Core.ping)
    version = _sync(Core.version)
    slurm_version = _sync(Core.slurm_version)
    nodes = _sync(Core.nodes)
    node = _sync(Core.node)
    update_node = _sync(Core.update_node)
    partitions = _sync(Core.partitions)
    job_states = _sync(Core.job_states)
    job = _sync(Core.job)
    jobs = _sync(Core.jobs)
    cancel = _sync(Core.cancel)
    reconfigure = _sync(Core.reconfigure)
    diag = _sync(Core.diag)
    request = _sync(Core.request)

    def watch(self, period: float = 2.0, *, jobs: bool = True, nodes: bool = True) -> Watch:
        """As `AsyncSlurm.watch`, for `for change in watch`, from any thread."""
        from slurmrest.watching import Seen, Watch

        seen = Seen(self._core, jobs=jobs, nodes=nodes)
        watch = Watch(lambda: self._run(seen.look()), period)
        self._watches.add(watch)
        return watch

    def submit(self, job: Mapping[str, Any], script: str, *, key: str, user: str) -> Submission:
        """As `AsyncSlurm.submit`."""
        with self._lock:
            return self._run(self._submitter.submit(job, script, key, user))

    def find(self, key: str, *, user: str | None = None) -> Job | None:
        """As `AsyncSlurm.find`."""
        with self._lock:
            return self._run(self._submitter.find(key, user))

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
