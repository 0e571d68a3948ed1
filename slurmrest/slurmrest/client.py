"""The two faces of the client: `AsyncSlurm` and `Slurm`, same calls over the same core.

Made by users of the package. What always holds: each method may raise any `SlurmError`, and nothing else but
cancellation; two submissions of one key wait for each other, all other calls run side by side.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from slurmrest.binding import AsyncFace, SyncFace, as_async, as_sync
from slurmrest.calls import Calls
from slurmrest.db import AsyncDb, Db
from slurmrest.db_calls import DbCalls
from slurmrest.sharing import AsyncShared, SyncShared
from slurmrest.submission import Description, Submitter, checked_key, described
from slurmrest.timeouts import Timeouts
from slurmrest.tls import TLS
from slurmrest.tokens import TokenSource
from slurmrest.values import Job, Submission

if TYPE_CHECKING:
    from slurmrest.transport import AsyncBase, SyncBase
    from slurmrest.watching import AsyncWatch, Watch


class AsyncSlurm(AsyncFace[Calls]):
    """A slurmrestd at `url` (`http://host:6820`, `https://...` or `unix:///path`), for one event loop.

    `tokens` gives a token per user; `user` is whom calls are made as unless they name another (X-SLURM-USER-NAME: a token
    of root or SlurmUser may act for everybody, any other for its own user only); `version` forces an API version
    ("v0.0.42"), None negotiates; `tls` names certificates for https; `transport` replaces httpx's own, for tests. `db`
    has slurmdbd's calls. Use as `async with`.
    """

    def __init__(
        self,
        url: str,
        tokens: TokenSource,
        *,
        user: str = "root",
        version: str | None = None,
        timeouts: Timeouts | None = None,
        tls: TLS | None = None,
        transport: AsyncBase | None = None,
    ) -> None:
        from slurmrest.transport import AsyncTransport

        timeouts = timeouts or Timeouts()
        super().__init__(Calls(tokens, user, version, timeouts), AsyncTransport(url, timeouts, transport, tls))
        self.db = AsyncDb(DbCalls(self._core), self._transport)
        self._submitter = Submitter(self._core)
        self._learned = AsyncShared(lambda: self._run(self._submitter.learn()))
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
        await self._learned.close()
        await self._transport.close()

    ping = as_async(Calls.ping)
    version = as_async(Calls.version)
    slurm_version = as_async(Calls.slurm_version)
    nodes = as_async(Calls.nodes)
    node = as_async(Calls.node)
    update_node = as_async(Calls.update_node)
    update_nodes = as_async(Calls.update_nodes)
    create_nodes = as_async(Calls.create_nodes)
    delete_node = as_async(Calls.delete_node)
    partitions = as_async(Calls.partitions)
    partition = as_async(Calls.partition)
    save_partitions = as_async(Calls.save_partitions)
    delete_partition = as_async(Calls.delete_partition)
    reservations = as_async(Calls.reservations)
    reservation = as_async(Calls.reservation)
    save_reservation = as_async(Calls.save_reservation)
    delete_reservation = as_async(Calls.delete_reservation)
    licenses = as_async(Calls.licenses)
    shares = as_async(Calls.shares)
    job_states = as_async(Calls.job_states)
    job = as_async(Calls.job)
    job_parts = as_async(Calls.job_parts)
    jobs = as_async(Calls.jobs)
    update_job = as_async(Calls.update_job)
    hold = as_async(Calls.hold)
    release = as_async(Calls.release)
    cancel = as_async(Calls.cancel)
    signal = as_async(Calls.signal)
    cancel_jobs = as_async(Calls.cancel_jobs)
    requeue = as_async(Calls.requeue)
    allocate = as_async(Calls.allocate)
    resources = as_async(Calls.resources)
    diag = as_async(Calls.diag)
    conf = as_async(Calls.conf)
    reconfigure = as_async(Calls.reconfigure)
    request = as_async(Calls.request)

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

    async def submit(
        self, job: Description, script: str, *, key: str | None = None, user: str | None = None
    ) -> Submission:
        """Submit `script` with the job description `job` (the API's fields; several make a heterogeneous job) as `user`.

        With a `key`, once per key: the job carries it in its comment, and is looked for before anything is sent. Raises
        InvalidRequest when Slurm refuses the job, Ambiguous when it isn't known whether one was made: submit again with
        the same key later on. Without a key one request is sent, and never a second one.
        """
        body, who = described(job, script, key), self._core.acting(user)
        if key is None:
            return await self._run(self._submitter.post(body, who))
        async with self._lock(key):
            await self._learned()
            return await self._run(self._submitter.submit(body, key, who))

    async def find(self, key: str, *, user: str | None = None) -> Job | None:
        """The job submitted under this key (by this user, if given), in whatever state, or None."""
        checked_key(key)
        await self._learned()
        return await self._run(self._submitter.find(key, user))

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


class Slurm(SyncFace[Calls]):
    """As `AsyncSlurm`, without an event loop; may be shared by threads. Use as `with`."""

    def __init__(
        self,
        url: str,
        tokens: TokenSource,
        *,
        user: str = "root",
        version: str | None = None,
        timeouts: Timeouts | None = None,
        tls: TLS | None = None,
        transport: SyncBase | None = None,
    ) -> None:
        from slurmrest.transport import SyncTransport

        timeouts = timeouts or Timeouts()
        super().__init__(Calls(tokens, user, version, timeouts), SyncTransport(url, timeouts, transport, tls))
        self.db = Db(DbCalls(self._core), self._transport)
        self._submitter = Submitter(self._core)
        self._learned = SyncShared(lambda: self._run(self._submitter.learn()))
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
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

    ping = as_sync(Calls.ping)
    version = as_sync(Calls.version)
    slurm_version = as_sync(Calls.slurm_version)
    nodes = as_sync(Calls.nodes)
    node = as_sync(Calls.node)
    update_node = as_sync(Calls.update_node)
    update_nodes = as_sync(Calls.update_nodes)
    create_nodes = as_sync(Calls.create_nodes)
    delete_node = as_sync(Calls.delete_node)
    partitions = as_sync(Calls.partitions)
    partition = as_sync(Calls.partition)
    save_partitions = as_sync(Calls.save_partitions)
    delete_partition = as_sync(Calls.delete_partition)
    reservations = as_sync(Calls.reservations)
    reservation = as_sync(Calls.reservation)
    save_reservation = as_sync(Calls.save_reservation)
    delete_reservation = as_sync(Calls.delete_reservation)
    licenses = as_sync(Calls.licenses)
    shares = as_sync(Calls.shares)
    job_states = as_sync(Calls.job_states)
    job = as_sync(Calls.job)
    job_parts = as_sync(Calls.job_parts)
    jobs = as_sync(Calls.jobs)
    update_job = as_sync(Calls.update_job)
    hold = as_sync(Calls.hold)
    release = as_sync(Calls.release)
    cancel = as_sync(Calls.cancel)
    signal = as_sync(Calls.signal)
    cancel_jobs = as_sync(Calls.cancel_jobs)
    requeue = as_sync(Calls.requeue)
    allocate = as_sync(Calls.allocate)
    resources = as_sync(Calls.resources)
    diag = as_sync(Calls.diag)
    conf = as_sync(Calls.conf)
    reconfigure = as_sync(Calls.reconfigure)
    request = as_sync(Calls.request)

    def watch(self, period: float = 2.0, *, jobs: bool = True, nodes: bool = True) -> Watch:
        """As `AsyncSlurm.watch`, for `for change in watch`, from any thread."""
        from slurmrest.watching import Seen, Watch

        seen = Seen(self._core, jobs=jobs, nodes=nodes)
        watch = Watch(lambda: self._run(seen.look()), period)
        self._watches.add(watch)
        return watch

    def submit(self, job: Description, script: str, *, key: str | None = None, user: str | None = None) -> Submission:
        """As `AsyncSlurm.submit`."""
        body, who = described(job, script, key), self._core.acting(user)
        if key is None:
            return self._run(self._submitter.post(body, who))
        with self._lock(key):
            self._learned()
            return self._run(self._submitter.submit(body, key, who))

    def find(self, key: str, *, user: str | None = None) -> Job | None:
        """As `AsyncSlurm.find`."""
        checked_key(key)
        self._learned()
        return self._run(self._submitter.find(key, user))

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        with self._guard:
            lock, waiting = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, waiting = self._locks.pop(key)
                if waiting > 1:
                    self._locks[key] = (lock, waiting - 1)
