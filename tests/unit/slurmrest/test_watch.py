"""Polls become changes: one look per period for all, nothing lost, nothing declared gone without Slurm's word."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest import (
    AsyncWatch,
    Change,
    JobBase,
    JobChange,
    JobStates,
    NodeChange,
    PollFailed,
    PollRecovered,
    Unavailable,
    Watch,
    What,
)
from slurmrest.watching import Hub, Key, Object, changes
from tests.unit.slurmrest.fake import EMPTY, FakeSlurmrestd, failed, instead, reply

PENDING, RUNNING, COMPLETED = (JobStates(base) for base in (JobBase.PENDING, JobBase.RUNNING, JobBase.COMPLETED))
STATES = st.dictionaries(st.integers(0, 5), st.sampled_from("PRC"))
PERIOD = 0.01


def appeared(job_id: int, states: JobStates = PENDING) -> JobChange:
    """A job that a subscriber hears of for the first time."""
    return JobChange(What.APPEARED, job_id, None, None, states)


def drained(hub: Hub, box: Any) -> list[Change]:
    """All that waits for a subscriber."""
    return list(iter(lambda: hub.take(box), None))


class Nodes:
    """A slurmrestd with nodes, that answers 304 while none has changed."""

    def __init__(self) -> None:
        self.fake = FakeSlurmrestd()
        self.states = {"n0": "IDLE", "n1": "IDLE"}
        self.moment = 100

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What MockTransport calls."""
        if not request.url.path.endswith("/nodes/"):
            return self.fake.answer(request)
        self.fake.requests.append(request)
        if request.url.params.get("update_time") == str(self.moment):
            return httpx.Response(304)
        nodes = [{"name": name, "state": [state]} for name, state in self.states.items()]
        return reply(200, {"nodes": nodes, "last_update": {"set": True, "number": self.moment}} | EMPTY)


@given(STATES, STATES)
def test_the_changes_lead_from_the_old_state_to_the_new_and_name_nothing_else(
    old: dict[int, str], new: dict[int, str]
) -> None:
    """Each difference once, with its old value."""
    found = changes(old, new)
    assert found == {key: old.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


@given(st.lists(st.one_of(STATES, st.none()), max_size=12))
def test_a_subscriber_that_replays_its_events_knows_the_state_whenever_it_reads(
    steps: list[dict[int, str] | None],
) -> None:
    """`None`: it reads here. What it was told as old is what it knew."""
    bases = {"P": PENDING, "R": RUNNING, "C": COMPLETED}
    hub = Hub()
    box = hub.join(lambda: None)
    known: dict[int, JobStates] = {}
    state: dict[Key, Object] = {}
    for step in [*steps, None]:
        if step is not None:
            state = {(job_id, None): bases[letter] for job_id, letter in step.items()}
            hub.publish(state)
            continue
        for event in drained(hub, box):
            assert isinstance(event, JobChange)
            assert known.get(event.job_id) == event.old
            known.pop(event.job_id, None)
            if event.new is not None:
                known[event.job_id] = event.new
        assert {(job_id, None): states for job_id, states in known.items()} == state


def test_a_slow_subscriber_hears_only_the_newest_state_of_each_job() -> None:
    """Steps on the way fall together."""
    hub = Hub()
    box = hub.join(lambda: None)
    for states in (PENDING, RUNNING, COMPLETED):
        hub.publish({(1, None): states})
    assert drained(hub, box) == [appeared(1, COMPLETED)]


def test_what_waits_for_a_slow_subscriber_never_exceeds_what_is_there() -> None:
    """A thousand jobs that came and went untold leave nothing behind."""
    hub = Hub()
    box = hub.join(lambda: None)
    for job_id in range(1000):
        hub.publish({(job_id, None): PENDING})
    assert len(box.pending) == 1


def test_a_job_that_changed_and_changed_back_is_no_news() -> None:
    """Told is what differs from what was told last."""
    hub = Hub()
    box = hub.join(lambda: None)
    hub.publish({(1, None): PENDING})
    assert len(drained(hub, box)) == 1
    hub.publish({(1, None): RUNNING})
    hub.publish({(1, None): PENDING})
    assert drained(hub, box) == []


def test_a_later_subscriber_first_gets_what_is_there() -> None:
    """From then on, both get the same."""
    hub = Hub()
    first = hub.join(lambda: None)
    hub.publish({(1, None): PENDING})
    second = hub.join(lambda: None)
    assert drained(hub, first) == drained(hub, second) == [appeared(1)]


def test_a_failure_is_told_once_and_its_end_too() -> None:
    """The newest failure is enough for who is slow; what is known stays."""
    hub = Hub()
    box = hub.join(lambda: None)
    hub.publish({(1, None): PENDING})
    drained(hub, box)
    error = Unavailable("second")
    hub.fail(Unavailable("first"))
    hub.fail(error)
    assert drained(hub, box) == [PollFailed(error)]
    hub.publish({(1, None): PENDING})
    assert drained(hub, box) == [PollRecovered()]


def test_a_failure_that_ended_before_it_was_told_is_not_told() -> None:
    """Then there is nothing to recover from either."""
    hub = Hub()
    box = hub.join(lambda: None)
    hub.fail(Unavailable("gone by"))
    hub.publish({})
    assert drained(hub, box) == []


async def taken(stream: AsyncIterator[Change], count: int) -> list[Change]:
    """The next events."""
    return [await asyncio.wait_for(anext(stream), 5) for _ in range(count)]


async def test_two_subscribers_of_one_watch_see_the_same_for_one_call_per_period() -> None:
    """The number of calls doesn't depend on how many listen."""
    fake = FakeSlurmrestd()
    fake.add(1, "alice", "")
    async with fake.client() as slurm, slurm.watch(PERIOD, nodes=False) as watch:
        first, second = aiter(watch), aiter(watch)
        assert await taken(first, 1) == await taken(second, 1) == [appeared(1)]
        before = len(fake.calls("GET", "jobs/state/"))
        fake.jobs[1]["job_state"] = ["RUNNING"]
        wanted = [JobChange(What.CHANGED, 1, None, PENDING, RUNNING)]
        assert await taken(first, 1) == await taken(second, 1) == wanted
        assert len(fake.calls("GET", "jobs/state/")) - before <= 3


async def test_a_watch_that_nobody_listens_to_asks_nothing() -> None:
    """Neither before the first subscriber nor after the last."""
    fake = FakeSlurmrestd()
    fake.add(1, "alice", "")
    async with fake.client() as slurm, slurm.watch(PERIOD, nodes=False) as watch:
        await asyncio.sleep(3 * PERIOD)
        assert fake.requests == []
        stream = watch.__aiter__()
        await taken(stream, 1)
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(3 * PERIOD)
        before = len(fake.requests)
        await asyncio.sleep(5 * PERIOD)
        assert len(fake.requests) == before


async def test_a_failed_poll_is_an_event_and_nothing_is_gone() -> None:
    """Slurm that can't be asked says nothing about its jobs."""
    fake = FakeSlurmrestd()
    fake.add(1, "alice", "")
    async with fake.client() as slurm, slurm.watch(PERIOD, nodes=False) as watch:
        stream = aiter(watch)
        await taken(stream, 1)
        fake.fail("GET", "jobs/state/", *[instead(failed(2017))] * 1)
        [event] = await taken(stream, 1)
        assert isinstance(event, PollFailed)
        del fake.jobs[1]
        fake.add(2, "alice", "")
        assert await taken(stream, 3) == [
            PollRecovered(),
            appeared(2),
            JobChange(What.GONE, 1, None, PENDING, None),
        ]


async def test_jobs_are_gone_all_at_once_only_when_slurm_says_it_twice() -> None:
    """One empty answer between full ones is an accident."""
    fake = FakeSlurmrestd()
    fake.add(1, "alice", "")
    empty = reply(200, {"jobs": []} | EMPTY)
    async with fake.client() as slurm, slurm.watch(PERIOD, nodes=False) as watch:
        stream = aiter(watch)
        await taken(stream, 1)
        fake.fail("GET", "jobs/state/", instead(empty))
        while fake.faults[("GET", "jobs/state/")]:  # noqa: ASYNC110 - the fake has no event for it
            await asyncio.sleep(PERIOD)
        fake.add(2, "alice", "")
        assert await taken(stream, 1) == [appeared(2)]
        fake.jobs.clear()
        assert {event.what for event in await taken(stream, 2) if isinstance(event, JobChange)} == {What.GONE}


async def test_nodes_are_sent_again_only_after_a_change() -> None:
    """While none changes, slurmctld answers 304 and nothing else."""
    nodes = Nodes()
    async with nodes.fake.client(transport=httpx.MockTransport(nodes.answer)) as slurm:
        stream = aiter(slurm.watch(PERIOD, jobs=False))
        assert [event.name for event in await taken(stream, 2) if isinstance(event, NodeChange)] == ["n0", "n1"]
        nodes.states, nodes.moment = {"n0": "DOWN"}, 101
        changed, gone = await taken(stream, 2)
        assert isinstance(changed, NodeChange)
        assert isinstance(gone, NodeChange)
        assert (changed.what, changed.name, str(changed.new and changed.new.states)) == (What.CHANGED, "n0", "DOWN")
        assert (gone.what, gone.name, gone.new) == (What.GONE, "n1", None)


async def test_nodes_are_asked_for_anew_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slurmctld whose clock was set back calls everything unchanged for a while."""
    monkeypatch.setattr("slurmrest.watching.FULL_EVERY", 3 * PERIOD)
    nodes = Nodes()
    async with nodes.fake.client(transport=httpx.MockTransport(nodes.answer)) as slurm:
        stream = aiter(slurm.watch(PERIOD, jobs=False))
        await taken(stream, 2)
        nodes.states["n1"] = "DOWN"
        [event] = await taken(stream, 1)
        assert isinstance(event, NodeChange)
        assert event.name == "n1"


async def test_nodes_come_by_a_plain_call_where_slurm_fails_to_tell_what_changed() -> None:
    """24.11 answers "Unable to query partitions" when a node has changed and no partition."""
    nodes = Nodes()
    fault = failed(-1, "Unable to query partitions")

    def answer(request: httpx.Request) -> httpx.Response:
        found = nodes.answer(request)
        return fault if "update_time" in request.url.params and found.status_code == 200 else found

    async with nodes.fake.client(transport=httpx.MockTransport(answer)) as slurm:
        stream = aiter(slurm.watch(PERIOD, jobs=False))
        await taken(stream, 2)
        nodes.states["n1"], nodes.moment = "DOWN", 101
        [event] = await taken(stream, 1)
        assert isinstance(event, NodeChange)
        assert event.what is What.CHANGED


async def test_closing_ends_every_subscription() -> None:
    """Those that wait wake up, and the loop is over."""
    fake = FakeSlurmrestd()
    async with fake.client() as slurm:
        watch = slurm.watch(PERIOD, nodes=False)
        listening = [asyncio.create_task(_count(watch)) for _ in range(3)]
        await asyncio.sleep(3 * PERIOD)
        await slurm.close()
        assert await asyncio.wait_for(asyncio.gather(*listening), 5) == [0, 0, 0]
        assert await _count(watch) == 0


async def _count(watch: AsyncWatch) -> int:
    return len([event async for event in watch])


async def test_what_breaks_a_watch_is_raised_to_its_subscribers() -> None:
    """An error that is no SlurmError is a bug, and bugs are heard."""

    async def look() -> dict[Key, Object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await _count(AsyncWatch(look, PERIOD))


@pytest.fixture
def watched() -> Iterator[tuple[FakeSlurmrestd, Watch]]:
    """A watch of the synchronous client, and what it watches: job 1."""
    fake = FakeSlurmrestd()
    fake.add(1, "alice", "")
    with fake.sync_client() as slurm:
        yield fake, slurm.watch(PERIOD, nodes=False)


def test_threads_that_share_a_watch_see_the_same(watched: tuple[FakeSlurmrestd, Watch]) -> None:
    """For one call per period, as with the asynchronous client."""
    fake, watch = watched
    found: list[list[Change]] = []
    ready = threading.Barrier(4, timeout=5)

    def listen() -> None:
        stream = iter(watch)
        first = next(stream)
        ready.wait()
        found.append([first, *islice(stream, 1)])

    threads = [threading.Thread(target=listen) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready.wait()
    fake.jobs[1]["job_state"] = ["RUNNING"]
    for thread in threads:
        thread.join(5)
    assert found == [[appeared(1), JobChange(What.CHANGED, 1, None, PENDING, RUNNING)]] * 3


def test_closing_from_another_thread_ends_the_loop(watched: tuple[FakeSlurmrestd, Watch]) -> None:
    """A subscriber that waits for news doesn't wait for ever."""
    _, watch = watched
    stream = iter(watch)
    assert next(stream) == appeared(1)
    threading.Timer(3 * PERIOD, watch.close).start()
    assert list(stream) == []


def test_a_thread_hears_of_a_failed_poll(watched: tuple[FakeSlurmrestd, Watch]) -> None:
    """As an event among the others."""
    fake, watch = watched
    stream = iter(watch)
    next(stream)
    fake.fail("GET", "jobs/state/", instead(failed(2017)))
    event = next(stream)
    assert isinstance(event, PollFailed)
    assert next(stream) == PollRecovered()


@pytest.mark.parametrize("period", [0.0, -1.0, float("nan"), 1e9])
def test_a_period_of_nonsense_is_refused(period: float) -> None:
    """No busy loop, no watch that never looks."""
    with FakeSlurmrestd().sync_client() as slurm, pytest.raises(ValueError, match="period"):
        slurm.watch(period)
