"""One key, one job: whatever is lost, whoever else submits."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from slurmrest import Ambiguous, InvalidRequest, Submission, Timeouts, Unavailable
from tests.unit.slurmrest.fake import (
    DESCRIPTION,
    EMPTY,
    QUICK,
    SCRIPT,
    FakeSlurmrestd,
    Fault,
    answer_lost,
    failed,
    instead,
    reply,
    swallowed,
    unsent,
)


def posts(slurmrestd: FakeSlurmrestd) -> int:
    """How often a job was sent."""
    return len(slurmrestd.calls("POST", "job/submit"))


async def test_a_job_is_sent_as_its_user_with_the_key_in_its_comment() -> None:
    """And with nothing else changed."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="uid-1", user="alice") == Submission(1)
    (request,) = slurmrestd.calls("POST", "job/submit")
    assert request.headers["X-SLURM-USER-NAME"] == "alice"
    assert json.loads(request.content) == {"script": SCRIPT, "job": {**DESCRIPTION, "comment": "kubeslurm:uid-1"}}


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "CANCELLED", "FAILED", "COMPLETED"])
async def test_a_second_submission_finds_the_first_in_any_state(state: str) -> None:
    """Also by a client that has never seen it: after a restart nothing is sent again."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
    slurmrestd.jobs[1]["job_state"] = [state]
    async with slurmrestd.client() as another:
        assert await another.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1, existing=True)
    assert posts(slurmrestd) == 1


async def test_a_job_whose_answer_was_lost_is_found() -> None:
    """The same call returns it, and one job is all there is."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", answer_lost)
    async with slurmrestd.client() as slurm:
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1, existing=True)
    assert len(slurmrestd.jobs) == 1


async def test_a_look_that_fails_is_not_the_last_one() -> None:
    """slurmrestd may be back a moment after it has lost the answer."""
    slurmrestd = FakeSlurmrestd()

    async with slurmrestd.client() as slurm:
        await slurm.job_states()

        def lost_and_down(request: httpx.Request, effect: Any) -> httpx.Response:
            slurmrestd.fail("GET", "jobs/state/", *[unsent] * 3)
            return answer_lost(request, effect)

        slurmrestd.fail("POST", "job/submit", lost_and_down)
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1, existing=True)


async def test_the_index_forgets_what_slurmctld_has_forgotten() -> None:
    """A service that runs for months must not keep each job it has ever seen."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        for job_id, comment in ((1, "kubeslurm:a"), (2, "kubeslurm:a"), (3, "a person's own words")):
            slurmrestd.add(job_id, "alice", comment)
        await slurm.find("a")
        index = slurm._submitter._index
        assert (index.ids("a"), index.known()) == ([1, 2], frozenset({1, 2, 3}))
        del slurmrestd.jobs[1]
        await slurm.find("a")
        assert (index.ids("a"), index.known()) == ([2], frozenset({2, 3}))
        slurmrestd.jobs.clear()
        await slurm.find("a")
        assert (index._read, index._ids) == ({}, {})


@pytest.mark.parametrize("fault", [swallowed, instead(reply(500, EMPTY)), instead(reply(502, "Bad gateway"))])
async def test_a_key_whose_request_may_still_arrive_is_not_sent_again(fault: Fault) -> None:
    """Only after the time to settle; until then the caller hears that it isn't known."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", fault)
    async with slurmrestd.client(timeouts=Timeouts(looks=(0.0,), settle=0.2)) as slurm:
        for _ in range(2):
            with pytest.raises(Ambiguous):
                await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
        assert posts(slurmrestd) == 1
        await asyncio.sleep(0.25)
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1)
    assert posts(slurmrestd) == 2


async def test_a_request_that_arrives_late_is_found_then() -> None:
    """The next call looks before it sends."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", swallowed)
    async with slurmrestd.client() as slurm:
        with pytest.raises(Ambiguous):
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
        slurmrestd.add(7, "alice", "kubeslurm:k")
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(7, existing=True)


async def test_a_cancelled_submission_counts_as_one_that_may_arrive() -> None:
    """The task that waited for the answer is gone, the request is not."""
    slurmrestd = FakeSlurmrestd()
    sent = asyncio.Event()

    async def hang(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and not sent.is_set():
            sent.set()
            await asyncio.sleep(60)
        return slurmrestd.answer(request)

    async with slurmrestd.client(transport=httpx.MockTransport(hang)) as slurm:
        task = asyncio.create_task(slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice"))
        await sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(Ambiguous, match="may still arrive"):
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")


async def test_what_surely_never_arrived_is_sent_again_at_once() -> None:
    """A refused connection has had no effect."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", unsent)
    async with slurmrestd.client() as slurm:
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1)
    assert len(slurmrestd.jobs) == 1


async def test_nothing_is_sent_while_nobody_can_look() -> None:
    """A lookup that fails is no "not found"."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "jobs/state/", *[unsent] * 3)
    async with slurmrestd.client() as slurm:
        with pytest.raises(Unavailable):
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
    assert posts(slurmrestd) == 0


async def test_a_refused_job_may_be_sent_again_at_once() -> None:
    """Slurm's no is an answer: nothing is under way."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", instead(failed(2000, "Invalid partition name specified")))
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest) as caught:
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
        assert caught.value.number == 2000
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(1)


async def test_the_record_of_a_refused_job_is_not_taken_for_a_job() -> None:
    """slurmctld keeps one for each submission that it refused with 2014, key and all: refused stays refused."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "kubeslurm:k")
    slurmrestd.jobs[1] |= {"job_state": ["FAILED"], "state_reason": "BadConstraints", "start_time": 5, "end_time": 5}
    async with slurmrestd.client() as slurm:
        assert await slurm.find("k") is None
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(2)


async def test_a_node_name_in_a_job_that_doesnt_exist_is_a_refusal() -> None:
    """NotFound would say that the job itself is missing."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", instead(failed(2018, "Invalid node name specified")))
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest):
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")


async def test_an_answer_without_a_job_is_a_refusal_with_slurms_warnings() -> None:
    """Slurm drops a field of a wrong type with a warning, and then makes no job of the rest."""
    warnings = [{"source": "#/job/tasks/", "description": "Expected integer"}]
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", instead(reply(200, {"errors": [], "warnings": warnings})))
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest, match="#/job/tasks/: Expected integer"):
            await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")


async def test_warnings_of_a_job_that_was_made_are_kept() -> None:
    """An unknown field is ignored by Slurm: the caller shall know."""
    answer = {"job_id": 5, "errors": [], "warnings": [{"source": "#/job/zzz/", "description": "Ignoring"}]}
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "job/submit", instead(reply(200, answer)))
    async with slurmrestd.client() as slurm:
        submission = await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")
    assert submission == Submission(5, warnings=("#/job/zzz/: Ignoring",))


async def test_submissions_of_one_key_at_the_same_time_make_one_job() -> None:
    """The others wait and find it."""
    slurmrestd = FakeSlurmrestd()

    async def slowly(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.005)
        return slurmrestd.answer(request)

    async with slurmrestd.client(transport=httpx.MockTransport(slowly)) as slurm:
        calls = [slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") for _ in range(20)]
        assert {one.job_id for one in await asyncio.gather(*calls)} == {1}
        assert not slurm._locks
    assert posts(slurmrestd) == 1


def test_threads_that_submit_one_key_make_one_job() -> None:
    """As above, for the synchronous client."""
    slurmrestd = FakeSlurmrestd()

    def slowly(request: httpx.Request) -> httpx.Response:
        time.sleep(0.005)
        return slurmrestd.answer(request)

    with slurmrestd.sync_client(transport=httpx.MockTransport(slowly)) as slurm, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(slurm.submit, DESCRIPTION, SCRIPT, key="k", user="alice") for _ in range(8)]
        assert {call.result().job_id for call in calls} == {1}
    assert posts(slurmrestd) == 1


async def test_another_users_comment_is_not_ones_job() -> None:
    """Comments are free text: whoever writes a key that isn't theirs must not stop or hijack the job."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "mallory", "kubeslurm:k")
    async with slurmrestd.client() as slurm:
        assert await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice") == Submission(2)
        found = await slurm.find("k", user="alice")
    assert found is not None
    assert found.job_id == 2


async def test_a_user_that_slurmctld_cant_name_is_still_the_owner() -> None:
    """It shows "" when its user database is behind; a second job would be worse."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "", "kubeslurm:k")
    async with slurmrestd.client() as slurm:
        assert (await slurm.submit(DESCRIPTION, SCRIPT, key="k", user="alice")).existing


async def test_a_lookup_reads_each_job_once() -> None:
    """The second one asks for the states, for the newest one known and for the found one."""
    slurmrestd = FakeSlurmrestd()
    for job_id in range(1, 11):
        slurmrestd.add(job_id, "alice", f"kubeslurm:k{job_id}")
    async with slurmrestd.client() as slurm:
        await slurm.find("k3")
        before = len(slurmrestd.requests)
        found = await slurm.find("k7")
    assert found is not None
    assert [one.url.path.rsplit("/", 2)[-2:] for one in slurmrestd.requests[before:]] == [
        ["state", ""],
        ["job", "10"],
        ["job", "7"],
    ]


async def test_many_unread_jobs_are_read_in_one_answer() -> None:
    """As at a start: a request each would take longer."""
    slurmrestd = FakeSlurmrestd()
    for job_id in range(1, 101):
        slurmrestd.add(job_id, "alice", f"kubeslurm:k{job_id}")
    async with slurmrestd.client() as slurm:
        assert await slurm.find("k64") is not None
        assert await slurm.find("none") is None
    assert len(slurmrestd.calls("GET", "jobs/")) == 1


@pytest.mark.parametrize("newest", [2, 3, 5])
async def test_ids_that_begin_again_dont_hide_the_jobs_under_them(newest: int) -> None:
    """slurmctld lost its state and has given the ids that we have read to others: to fewer, as many or more jobs."""
    slurmrestd = FakeSlurmrestd()
    for job_id in (1, 2, 3):
        slurmrestd.add(job_id, "alice", f"kubeslurm:old{job_id}", submitted=1000)
    async with slurmrestd.client() as slurm:
        assert await slurm.find("old1") is not None
        slurmrestd.jobs.clear()
        for job_id in range(1, newest + 1):
            slurmrestd.add(job_id, "alice", f"kubeslurm:new{job_id}", submitted=2000)
        submission = await slurm.submit(DESCRIPTION, SCRIPT, key="new2", user="alice")
        assert await slurm.find("old1") is None
    assert submission == Submission(2, existing=True)
    assert posts(slurmrestd) == 0


async def test_ones_own_id_given_to_another_is_noticed_too() -> None:
    """Of what was just submitted only the id is known: its comment must still be the key's."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        await slurm.submit(DESCRIPTION, SCRIPT, key="mine", user="alice")
        slurmrestd.add(1, "alice", "kubeslurm:theirs", submitted=2000)
        found = await slurm.find("theirs")
    assert found is not None


async def test_a_purged_job_and_a_reused_id_are_not_taken_for_the_old_one() -> None:
    """Ids begin again when slurmctld's state is lost."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "kubeslurm:old")
    async with slurmrestd.client() as slurm:
        assert await slurm.find("old") is not None
        slurmrestd.add(1, "alice", "kubeslurm:new")
        assert await slurm.find("old") is None
        del slurmrestd.jobs[1]
        assert await slurm.find("new") is None


@pytest.mark.parametrize(
    ("job", "script", "key", "user"),
    [
        (DESCRIPTION | {"comment": "mine"}, SCRIPT, "k", "alice"),
        (DESCRIPTION | {"environment": ["A=b\0c"]}, SCRIPT, "k", "alice"),
        (DESCRIPTION, SCRIPT + "\0rm -rf /", "k", "alice"),
        (DESCRIPTION, SCRIPT, "", "alice"),
        (DESCRIPTION, SCRIPT, "k\n", "alice"),
        (DESCRIPTION, SCRIPT, "k", "alice\r\nX: y"),
        (DESCRIPTION, SCRIPT, "k", ""),
    ],
)
async def test_what_slurm_would_misread_is_refused_before_it_is_sent(
    job: dict[str, Any], script: str, key: str, user: str
) -> None:
    """A NUL ends a C string, a line break ends a header."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client(timeouts=QUICK) as slurm:
        with pytest.raises(InvalidRequest):
            await slurm.submit(job, script, key=key, user=user)
    assert not slurmrestd.requests


async def test_without_a_key_a_job_is_sent_once_with_its_own_comment() -> None:
    """Nothing is looked for, and a lost answer is the caller's to think about."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client(user="alice") as slurm:
        assert await slurm.submit(DESCRIPTION | {"comment": "mine"}, SCRIPT) == Submission(1)
        slurmrestd.fail("POST", "job/submit", answer_lost)
        with pytest.raises(Ambiguous):
            await slurm.submit(DESCRIPTION, SCRIPT)
    assert [one.method for one in slurmrestd.requests] == ["GET", "POST", "POST"]
    assert [job["comment"] for job in slurmrestd.jobs.values()] == ["mine", ""]
    assert {job["user_name"] for job in slurmrestd.jobs.values()} == {"alice"}


async def test_a_heterogeneous_job_has_its_key_at_the_leader() -> None:
    """The other parts keep their comments: found is the leader, which stands for all."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        parts = [DESCRIPTION, DESCRIPTION | {"comment": "part"}]
        assert await slurm.submit(parts, SCRIPT, key="k", user="alice") == Submission(1)
        assert await slurm.submit(parts, SCRIPT, key="k", user="alice") == Submission(1, existing=True)
        with pytest.raises(InvalidRequest, match="without a part"):
            await slurm.submit([], SCRIPT)
    (request,) = slurmrestd.calls("POST", "job/submit")
    body = json.loads(request.content)
    assert [job.get("comment") for job in body["jobs"]] == ["kubeslurm:k", "part"]
    assert set(body) == {"script", "jobs"}


async def test_a_hundred_submissions_at_the_same_time_share_their_looks() -> None:
    """All who came before a look began are served by it."""
    slurmrestd = FakeSlurmrestd()

    async def slowly(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.002)
        return slurmrestd.answer(request)

    async with slurmrestd.client(transport=httpx.MockTransport(slowly)) as slurm:
        calls = [slurm.submit(DESCRIPTION, SCRIPT, key=f"k{number}", user="alice") for number in range(100)]
        assert len({one.job_id for one in await asyncio.gather(*calls)}) == 100
    assert len(slurmrestd.calls("GET", "jobs/state/")) <= 2


def test_threads_share_their_looks_and_their_failures() -> None:
    """As above for the synchronous client; each of them hears that Slurm can't be asked."""
    slurmrestd = FakeSlurmrestd()

    def slowly(request: httpx.Request) -> httpx.Response:
        time.sleep(0.02)
        return slurmrestd.answer(request)

    def outcome(key: str) -> str:
        try:
            return str(slurm.submit(DESCRIPTION, SCRIPT, key=key, user="alice").existing)
        except Unavailable:
            return "down"

    with slurmrestd.sync_client(transport=httpx.MockTransport(slowly)) as slurm, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, [f"k{number}" for number in range(8)])) == ["False"] * 8
        assert len(slurmrestd.calls("GET", "jobs/state/")) <= 3
        slurmrestd.fail("GET", "jobs/state/", *[unsent] * 9)
        assert list(pool.map(outcome, [f"l{number}" for number in range(8)])).count("down") >= 7
        assert not slurm._locks


async def test_one_who_gives_up_doesnt_end_the_look_of_the_others() -> None:
    """A look is shared; its first asker may be cancelled."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "kubeslurm:k")

    async def slowly(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.01)
        return slurmrestd.answer(request)

    async with slurmrestd.client(transport=httpx.MockTransport(slowly)) as slurm:
        first, second = (asyncio.create_task(slurm.find("k")) for _ in range(2))
        await asyncio.sleep(0.005)
        first.cancel()
        assert await second is not None
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_who_waits_for_a_look_hears_that_the_client_was_closed() -> None:
    """It is no cancellation of the one who waits."""
    slurmrestd = FakeSlurmrestd()

    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return reply(200, EMPTY)

    slurm = slurmrestd.client(transport=httpx.MockTransport(never))
    waiting = asyncio.create_task(slurm.find("k"))
    await asyncio.sleep(0.01)
    await slurm.close()
    with pytest.raises(Unavailable, match="closed"):
        await waiting
