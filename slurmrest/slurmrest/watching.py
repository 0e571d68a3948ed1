"""Turns polls into changes: jobs and nodes that appeared, changed or are gone, for any number of subscribers.

Made by `AsyncSlurm.watch` and `Slurm.watch`; who iterates over a watch is a subscriber of it. What always holds: however
many subscribe, slurmctld is asked once per period (about jobs, and about nodes, of which nothing is sent while none
changes), and not at all while nobody does. A subscriber first gets all that is there as APPEARED, then what changes. A
slow one gets the newest state of each object once, not each step on the way: what waits for it is never more than one
entry per object. A poll that fails is told, and changes nothing: nothing is gone because Slurm could not be asked. Nor
because it suddenly knows no job, or no node, at all: that must be said twice.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from slurmrest.calls import Calls
from slurmrest.errors import SlurmError
from slurmrest.messages import Steps
from slurmrest.states import JobStates
from slurmrest.values import Node

K = TypeVar("K")
V = TypeVar("V")


class What(StrEnum):
    """What happened to a job or a node."""

    APPEARED = "APPEARED"
    CHANGED = "CHANGED"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job's state. `old` is what this subscriber was last told (None: nothing), `new` is None when it is gone.

    Gone means that slurmctld has forgotten it: MinJobAge (300 s by default) after its end, or at once for an array's task
    that begins, since it goes on under an id of its own. `task` is the number of an array's task.
    """

    what: What
    job_id: int
    task: int | None
    old: JobStates | None
    new: JobStates | None


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node. `old` is what this subscriber was last told (None: nothing), `new` is None when it is gone."""

    what: What
    name: str
    old: Node | None
    new: Node | None


@dataclass(frozen=True, slots=True)
class PollFailed:
    """Slurm could not be asked; what was told before may be out of date. Told once per failing poll at most."""

    error: SlurmError


@dataclass(frozen=True, slots=True)
class PollRecovered:
    """The first poll that succeeds after one that was told to have failed. The changes in between follow."""


Change: TypeAlias = JobChange | NodeChange | PollFailed | PollRecovered
JobKey: TypeAlias = tuple[int, int | None]
Key: TypeAlias = JobKey | str
Object: TypeAlias = JobStates | Node
FULL_EVERY: Final = 60.0
"""Seconds after which all nodes are asked for whatever slurmctld calls unchanged: its clock may have been set back."""
_RECOVERED: Final = PollRecovered()


def changes(old: Mapping[K, V], new: Mapping[K, V]) -> dict[K, V | None]:
    """What differs between two states: each such key with its old value (None: it wasn't there)."""
    found: dict[K, V | None] = {key: old.get(key) for key, value in new.items() if old.get(key) != value}
    found.update((key, value) for key, value in old.items() if key not in new)
    return found


def change(key: Key, old: Object | None, new: Object | None) -> JobChange | NodeChange:
    """The event of one difference."""
    what = What.APPEARED if old is None else What.GONE if new is None else What.CHANGED
    if isinstance(key, str):
        return NodeChange(what, key, _node(old), _node(new))
    return JobChange(what, *key, _states(old), _states(new))


def _node(value: Object | None) -> Node | None:
    return value if isinstance(value, Node) else None


def _states(value: Object | None) -> JobStates | None:
    return value if isinstance(value, JobStates) else None


class Seen:
    """What Slurm said last, and how to ask it again."""

    def __init__(self, core: Calls, *, jobs: bool, nodes: bool) -> None:
        self._core = core
        self._jobs = _Doubted[JobStates]() if jobs else None
        self._nodes = _Doubted[Node]() if nodes else None
        self._moment: int | None = None
        self._full = time.monotonic()

    def look(self) -> Steps[dict[Key, Object]]:
        """Everything as it is now."""
        found: dict[Key, Object] = {}
        if self._jobs is not None:
            states = yield from self._core.job_states()
            found.update(self._jobs.take({(one.job_id, one.task): one.states for one in states}))
        if self._nodes is not None:
            found.update((yield from self._look_at_nodes(self._nodes)))
        return found

    def _look_at_nodes(self, kept: _Doubted[Node]) -> Steps[dict[Key, Node]]:
        now = time.monotonic()
        if kept.doubted or now - self._full > FULL_EVERY:
            self._moment, self._full = None, now
        nodes, self._moment = yield from self._core.nodes_since(self._moment)
        return kept.last if nodes is None else kept.take({node.name: node for node in nodes})


class _Doubted(Generic[V]):
    """The last answer of a kind. An empty one after one that was not empty counts when it is given again."""

    def __init__(self) -> None:
        self.last: dict[Key, V] = {}
        self.doubted = False

    def take(self, found: dict[Key, V]) -> dict[Key, V]:
        """The answer that counts now."""
        self.doubted = not found and bool(self.last) and not self.doubted
        if not self.doubted:
            self.last = found
        return self.last


class Mailbox:
    """What one subscriber has not been told yet."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.pending: dict[Key, Object | None] = {}
        """Each object that has changed, and what the subscriber knows of it."""
        self.failure: SlurmError | None = None
        self.failed = self.recovered = False


class Hub:
    """The present state, and the mailboxes of all subscribers. No I/O; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: dict[Key, Object] | None = None
        self._boxes: list[Mailbox] = []
        self.closed = False
        self.broken: BaseException | None = None

    def join(self, wake: Callable[[], None]) -> Mailbox:
        """A new subscriber's mailbox: all that is there is news to it."""
        box = Mailbox(wake)
        with self._lock:
            box.pending = dict.fromkeys(self._state or ())
            self._boxes.append(box)
        return box

    def leave(self, box: Mailbox) -> None:
        """A subscriber has enough. When nobody is left, the state gets old and is dropped."""
        with self._lock:
            if box in self._boxes:
                self._boxes.remove(box)
            if not self._boxes:
                self._state = None

    @property
    def wanted(self) -> bool:
        """Is anybody there?"""
        return bool(self._boxes)

    def publish(self, state: dict[Key, Object]) -> None:
        """A poll's answer."""
        with self._lock:
            new = changes(self._state or {}, state)
            self._state = state if self._boxes else None
            for box in self._boxes:
                for key, old in new.items():
                    if box.pending.setdefault(key, old) is None and key not in state:
                        del box.pending[key]  # came and went untold: else these would pile up
                box.failure, box.recovered = None, box.failed
        self._wake(bool(new))

    def fail(self, error: SlurmError) -> None:
        """A poll's failure."""
        with self._lock:
            for box in self._boxes:
                box.failure, box.recovered = error, False
        self._wake(True)

    def close(self, broken: BaseException | None = None) -> None:
        """No poll comes any more: all subscriptions end, with the error if there is one."""
        self.broken = self.broken or broken
        self.closed = True
        self._wake(True)

    def _wake(self, news: bool) -> None:
        for box in list(self._boxes):
            if news or box.recovered:
                box.wake()

    def take(self, box: Mailbox) -> Change | None:
        """The subscriber's next event, or None while there is none."""
        with self._lock:
            if box.failure is not None:
                error, box.failure, box.failed = box.failure, None, True
                return PollFailed(error)
            if box.recovered:
                box.failed = box.recovered = False
                return _RECOVERED
            state = self._state or {}
            while box.pending:
                key = next(iter(box.pending))
                old, new = box.pending.pop(key), state.get(key)
                if old != new:
                    return change(key, old, new)
        return None

    def ended(self) -> bool:
        """Has the watch been closed? Raises what broke it."""
        if self.closed and self.broken is not None:
            raise self.broken
        return self.closed


class AsyncWatch:
    """Iterate over it (`async for change in watch`), as often and from as many tasks as you like. Use as `async with`."""

    def __init__(self, look: Callable[[], Coroutine[Any, Any, dict[Key, Object]]], period: float) -> None:
        self._look = look
        self._period = checked_period(period)
        self._hub = Hub()
        self._joined = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the polls and all subscriptions."""
        self._hub.close()
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])

    async def __aiter__(self) -> AsyncIterator[Change]:
        news = asyncio.Event()
        box = self._hub.join(news.set)
        self._joined.set()
        if self._poller is None and not self._hub.closed:
            self._poller = asyncio.create_task(self._poll(), name="slurmrest watch")
        try:
            while not self._hub.ended():
                news.clear()
                while not self._hub.closed and (event := self._hub.take(box)) is not None:
                    yield event
                if not self._hub.closed:
                    await news.wait()
        finally:
            self._hub.leave(box)

    async def _poll(self) -> None:
        try:
            while not self._hub.closed:
                await self._joined.wait()
                started = time.monotonic()
                await self._ask()
                await asyncio.sleep(max(0.0, started + self._period - time.monotonic()))
                self._joined.clear()
                if self._hub.wanted:
                    self._joined.set()
        except Exception as error:
            self._hub.close(error)

    async def _ask(self) -> None:
        try:
            self._hub.publish(await self._look())
        except SlurmError as error:
            self._hub.fail(error)


class Watch:
    """Iterate over it (`for change in watch`), as often and from as many threads as you like. Use as `with`.

    The polls run in a thread of their own. Close the watch (from another thread, or by leaving the `with`) to end them.
    """

    def __init__(self, look: Callable[[], dict[Key, Object]], period: float) -> None:
        self._look = look
        self._period = checked_period(period)
        self._hub = Hub()
        self._joined = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._poller: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the polls and all subscriptions. A poll under way is waited for, as long as its request takes."""
        self._hub.close()
        self._closed.set()
        self._joined.set()
        poller = self._poller
        if poller is not None and poller is not threading.current_thread():
            poller.join()

    def __iter__(self) -> Iterator[Change]:
        news = threading.Event()
        box = self._hub.join(news.set)
        self._start()
        try:
            while not self._hub.ended():
                news.clear()
                while not self._hub.closed and (event := self._hub.take(box)) is not None:
                    yield event
                if not self._hub.closed:
                    news.wait()
        finally:
            self._hub.leave(box)

    def _start(self) -> None:
        self._joined.set()
        with self._lock:
            if self._poller is None and not self._hub.closed:
                self._poller = threading.Thread(target=self._poll, name="slurmrest watch", daemon=True)
                self._poller.start()

    def _poll(self) -> None:
        try:
            while not self._hub.closed:
                self._joined.wait()
                started = time.monotonic()
                self._ask()
                self._closed.wait(max(0.0, started + self._period - time.monotonic()))
                self._joined.clear()
                if self._hub.wanted or self._hub.closed:
                    self._joined.set()
        except Exception as error:
            self._hub.close(error)

    def _ask(self) -> None:
        if self._hub.closed:
            return
        try:
            self._hub.publish(self._look())
        except SlurmError as error:
            self._hub.fail(error)


def checked_period(period: float) -> float:
    """The period, if it is one. Raises ValueError."""
    if not 0.01 <= period <= 86_400:
        raise ValueError("the period of a watch is between 0.01 s and a day")
    return period
