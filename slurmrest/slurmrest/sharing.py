"""One piece of work for all who wait for it: what makes a thousand submissions ask slurmctld twice, not a thousand times.

Used by the clients. What always holds: who calls is served by a run that began after the call, so it sees all that was
there before; at most one runs at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from slurmrest.errors import Unavailable


class AsyncShared:
    """For one event loop. A run goes on when one of those who wait is cancelled."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self) -> None:
        """Wait for a run that begins from now on. Raises what it raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._run())
            self._tasks.add(self._next)
            self._next.add_done_callback(self._ended)
        run = self._next
        try:
            await asyncio.shield(run)
        except asyncio.CancelledError:
            if run.cancelled() and not _being_cancelled():
                raise Unavailable("the client was closed meanwhile") from None
            raise

    async def _run(self) -> None:
        async with self._turn:
            self._next = None  # who comes now is too late for this one
            await self._work()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # those who waited have it; if all were cancelled, nobody misses it

    async def close(self) -> None:
        """End what runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class SyncShared:
    """For threads."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._changed = threading.Condition()
        self._begun = self._ended = 0
        self._error: BaseException | None = None

    def __call__(self) -> None:
        """Wait for a run that begins from now on, or do it. Raises what it raises."""
        with self._changed:
            wanted = self._begun + 1
            while self._ended < wanted and self._begun > self._ended:
                self._changed.wait()
            if self._ended >= wanted:
                if self._error is not None:
                    raise self._error
                return
            self._begun += 1
        self._run()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._work()
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._ended, self._error = self._begun, error
                self._changed.notify_all()
