"""Each fault of the way to Slurm and back, and the one error that it becomes."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from slurmrest import (
    INFINITE,
    Ambiguous,
    AsyncSlurm,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ProtocolError,
    SignedTokens,
    Slurm,
    SlurmError,
    StaticToken,
    Timeouts,
    Unavailable,
    Unsupported,
)
from tests.unit.slurmrest.fake import (
    EMPTY,
    QUICK,
    FakeSlurmrestd,
    Fault,
    answer_lost,
    failed,
    instead,
    reply,
    swallowed,
    unsent,
)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (reply(401, "Authentication failure"), Authentication),
        (reply(511, EMPTY), Authentication),
        (failed(1007, status=511), Authentication),
        (failed(6010), Authentication),
        (failed(2010), PermissionDenied),
        (failed(2002), PermissionDenied),
        (failed(2017, status=404), NotFound),
        (failed(2018), NotFound),
        (failed(2028), InvalidRequest),
        (failed(2014, status=200), InvalidRequest),
        (failed(1800), Unavailable),
        (failed(7000), Unavailable),  # slurmdbd is away
        (failed(1803), Unavailable),
        (failed(-1), Unavailable),
        (failed(1), Unavailable),
        (reply(502, "Bad gateway"), Unavailable),
        (reply(503, EMPTY), Unavailable),
        (reply(200, {"nodes": {}, **EMPTY}), ProtocolError),
        (reply(200, EMPTY), ProtocolError),
        (reply(200, "<html>"), ProtocolError),
        (reply(200, {"nodes": [{"name": 5}], **EMPTY}), ProtocolError),
        (reply(200, {"nodes": [{"state": ["IDLE"]}], **EMPTY}), ProtocolError),
        (reply(200, {"nodes": [{"name": "n", "cpus": "many"}], **EMPTY}), ProtocolError),
        (reply(304, ""), ProtocolError),
        (reply(302, ""), ProtocolError),
        (reply(404, "Unable find requested URL."), Unsupported),
        (reply(400, "Bad request"), InvalidRequest),
    ],
)
async def test_a_bad_answer_to_a_read_becomes_one_error(response: httpx.Response, kind: type[SlurmError]) -> None:
    """The status code alone never decides."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "nodes/", *[instead(response)] * 3)
    async with slurmrestd.client() as slurm:
        with pytest.raises(kind) as caught:
            await slurm.nodes()
    assert type(caught.value) is kind
    assert (caught.value.method, caught.value.path) in (("GET", "/slurm/v0.0.42/nodes/"), ("", ""))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (unsent, Unavailable),
        (answer_lost, Ambiguous),
        (swallowed, Ambiguous),
        (instead(reply(500, EMPTY)), Ambiguous),
        (instead(reply(200, "{")), Ambiguous),
        (instead(failed(1802)), Ambiguous),
        (instead(failed(1)), Ambiguous),
        (instead(failed(1800)), Unavailable),
    ],
)
async def test_a_write_without_a_plain_answer_is_ambiguous(fault: Fault, kind: type[SlurmError]) -> None:
    """Only when it surely never arrived may it be called without effect."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "")
    slurmrestd.fail("DELETE", "job/1", *[fault] * 3)
    async with slurmrestd.client() as slurm:
        with pytest.raises(kind):
            await slurm.cancel(1)


async def test_the_first_numbered_error_counts() -> None:
    """Slurm puts a general complaint without a number before it."""
    errors = [{"description": "Failure", "error_number": 0}, {"error": "Invalid job id", "error_number": 2017}]
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "nodes/", instead(reply(500, {"errors": errors})))
    async with slurmrestd.client() as slurm:
        with pytest.raises(NotFound, match="Invalid job id"):
            await slurm.nodes()


async def test_a_refusal_keeps_slurms_number_and_words() -> None:
    """Callers and people look them up."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("POST", "node/n1", instead(failed(2028, "Invalid node state\nspecified")))
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest) as caught:
            await slurm.update_node("n1", state=["RESUME"])
    assert caught.value.number == 2028
    assert str(caught.value) == ("POST /slurm/v0.0.42/node/n1: Invalid node state specified (Slurm error 2028)")


async def test_a_read_is_tried_again_and_then_succeeds() -> None:
    """Two quick failures are mended without the caller's knowing."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "jobs/state/", unsent, answer_lost)
    async with slurmrestd.client() as slurm:
        assert await slurm.job_states() == []
    assert len(slurmrestd.calls("GET", "jobs/state/")) == 3


async def test_tries_are_bounded() -> None:
    """A slurmrestd that stays down is reported after three of them."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "jobs/state/", *[unsent] * 10)
    async with slurmrestd.client() as slurm:
        with pytest.raises(Unavailable):
            await slurm.job_states()
    assert len(slurmrestd.calls("GET", "jobs/state/")) == 3


async def test_a_slow_failure_is_not_tried_again() -> None:
    """With slurmctld down each try costs slurmrestd many seconds and a thread."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "jobs/state/", *[swallowed] * 10)
    async with slurmrestd.client(timeouts=Timeouts(patience=-1.0)) as slurm:
        with pytest.raises(Unavailable):
            await slurm.job_states()
    assert len(slurmrestd.calls("GET", "jobs/state/")) == 1


async def test_a_signal_is_never_sent_twice() -> None:
    """Two SIGUSR1 are not one."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "")
    slurmrestd.fail("DELETE", "job/1", answer_lost)
    async with slurmrestd.client() as slurm:
        with pytest.raises(Ambiguous):
            await slurm.cancel(1, signal="USR1")
    assert len(slurmrestd.calls("DELETE", "job/1")) == 1


async def test_a_refused_token_is_renewed_once() -> None:
    """The second one goes through; a second refusal is the caller's."""
    slurmrestd = FakeSlurmrestd()
    refused = instead(reply(401, "Authentication failure"))
    slurmrestd.fail("GET", "jobs/state/", refused)
    now = iter(range(1_000_000, 2_000_000, 10))
    async with slurmrestd.client(tokens=SignedTokens(b"k" * 32, clock=lambda: next(now))) as slurm:
        await slurm.job_states()
        first, second = (one.headers["X-SLURM-USER-TOKEN"] for one in slurmrestd.calls("GET", "jobs/state/"))
        assert first != second
        slurmrestd.fail("GET", "jobs/state/", *[refused] * 3)
        with pytest.raises(Authentication):
            await slurm.job_states()
    assert len(slurmrestd.calls("GET", "jobs/state/")) == 4


async def test_no_error_shows_the_token() -> None:
    """Neither its text nor the repr of what it holds or comes from."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "nodes/", *[unsent] * 3)
    async with slurmrestd.client(tokens=StaticToken("topsecret")) as slurm:
        with pytest.raises(Unavailable) as caught:
            await slurm.nodes()
    error: BaseException | None = caught.value
    while error is not None:
        assert "topsecret" not in f"{error} {error!r} {vars(error)!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "call",
    [
        lambda slurm: slurm.node("n1/../../jobs"),
        lambda slurm: slurm.node("n[0-99]"),
        lambda slurm: slurm.update_node("n1?x=1", state=["DRAIN"]),
        lambda slurm: slurm.update_node("n1", state=["DRAIN;"]),
        lambda slurm: slurm.update_node("n1", reason="a\0b"),
        lambda slurm: slurm.cancel(1, signal="9&user_id=0"),
        lambda slurm: slurm.cancel(1, user="root\r\nX-Evil: 1"),
        lambda slurm: slurm.find("key with spaces"),
        lambda slurm: slurm.cancel("1/../2"),
        lambda slurm: slurm.cancel(1, flags=["A&B"]),
        lambda slurm: slurm.cancel_jobs(["1,2"]),
        lambda slurm: slurm.cancel_jobs(),
        lambda slurm: slurm.cancel_jobs(filters={"user_name": ""}),
        lambda slurm: slurm.cancel_jobs(filters={"nonsense": "x"}),
        lambda slurm: slurm.job_states(["1&x"]),
        lambda slurm: slurm.job("x"),
        lambda slurm: slurm.job(-1),
        lambda slurm: slurm.resources("1_2"),
        lambda slurm: slurm.db.job("1/2"),
        lambda slurm: slurm.job_parts("1_[2]/x"),
        lambda slurm: slurm.update_job(1, {}),
        lambda slurm: slurm.update_job(1, {"comment": "a\0b"}),
        lambda slurm: slurm.update_job(1, {"time_limit": INFINITE}),
        lambda slurm: slurm.update_job(1, {"nice": {1, 2}}),
        lambda slurm: slurm.update_job(1, {"environment": ["A=b", object()]}),
        lambda slurm: slurm.submit({"priority": float("nan")}, "#!/bin/sh", user="alice"),
        lambda slurm: slurm.update_nodes(["n1,n2"], reason="x"),
        lambda slurm: slurm.update_nodes([], reason="x"),
        lambda slurm: slurm.delete_node("a b"),
        lambda slurm: slurm.partition("a/b"),
        lambda slurm: slurm.reservation("a?b"),
        lambda slurm: slurm.save_reservation({"name": "r", "tres": [{"type": "cpu", "count": 1}]}),
        lambda slurm: slurm.save_reservation({"name": "r\nx"}),
        lambda slurm: slurm.request("POST", "reservation", body={"name": "r", "tres": [{"type": "cpu"}]}),
        lambda slurm: slurm.request("POST", "reservations/", body={"reservations": [{"name": "r", "tres": [1]}]}),
        lambda slurm: slurm.request("GET\r\nX: y", "ping/"),
    ],
)
def test_hostile_arguments_never_leave_the_process(call: Callable[[Slurm], object]) -> None:
    """Names go into paths, headers and host lists: only names are taken."""
    slurmrestd = FakeSlurmrestd()
    with slurmrestd.sync_client() as slurm:
        slurm.version()
        before = len(slurmrestd.requests)
        with pytest.raises(InvalidRequest):
            call(slurm)
    assert len(slurmrestd.requests) == before


async def test_an_unknown_node_is_not_found_though_slurm_gives_no_number() -> None:
    """24.11 and 26.05 answer 200 with error 0."""
    errors = [{"error": "No error", "error_number": 0, "description": "Failure to query node n9"}]
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "node/n9", instead(reply(200, {"errors": errors})))
    async with slurmrestd.client() as slurm:
        with pytest.raises(NotFound, match="Failure to query node n9"):
            await slurm.node("n9")


async def test_an_answer_about_another_node_is_as_good_as_none() -> None:
    """The caller asked for one, and gets that or NotFound."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "node/n1", instead(reply(200, {"nodes": [{"name": "n10"}], **EMPTY})))
    async with slurmrestd.client() as slurm:
        with pytest.raises(NotFound):
            await slurm.node("n1")


async def test_a_cancel_reads_the_errors_in_status() -> None:
    """Slurm answers 200 with an empty `errors` for an unknown job."""
    async with FakeSlurmrestd().client() as slurm:
        with pytest.raises(NotFound, match="Invalid job id"):
            await slurm.cancel(99)


async def test_cancelling_an_ended_job_is_no_error() -> None:
    """It is what was wanted."""
    status = [{"error": {"code": 2021, "message": "Job/step already completing or completed"}}]
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("DELETE", "job/1", instead(reply(200, {"status": status, **EMPTY})))
    async with slurmrestd.client() as slurm:
        await slurm.cancel(1)


async def test_nobody_cancels_a_strangers_job() -> None:
    """slurmctld (24.11.5, 26.05.5) hangs for good once it has refused that: it is asked with a filter instead."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "")
    async with slurmrestd.client() as slurm:
        with pytest.raises(PermissionDenied, match="not bob's"):
            await slurm.cancel(1, user="bob")
        await slurm.cancel(1, user="alice")
        await slurm.cancel(1, user="root")
    sent = [(one.headers["X-SLURM-USER-NAME"], one.content) for one in slurmrestd.calls("DELETE", "jobs/")]
    assert [(user, json.loads(body)["user_name"]) for user, body in sent] == [("bob", "bob"), ("alice", "alice")]
    assert len(slurmrestd.calls("DELETE", "job/1")) == 1


@pytest.mark.parametrize(
    ("tail", "body"),
    [
        ("job/1", None),
        ("job/1?signal=9", None),
        ("%6aob/1", None),
        ("jobs/", {"jobs": ["1"]}),
        ("jobs/", {"jobs": ["1"], "user_name": "alice"}),
        ("jobs/", None),
    ],
)
async def test_no_raw_call_makes_slurmctld_refuse_a_kill_either(tail: str, body: dict[str, Any] | None) -> None:
    """It would be the last thing that slurmctld says."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest):
            await slurm.request("DELETE", tail, body=body, user="bob")
    assert not slurmrestd.requests


async def test_the_outcome_of_each_job_of_a_list_is_told() -> None:
    """An ended or unknown one doesn't hide what became of the others."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.add(1, "alice", "")
    slurmrestd.add(2, "bob", "")
    async with slurmrestd.client(user="alice") as slurm:
        told = await slurm.cancel_jobs([1, "2", 9])
        with pytest.raises(PermissionDenied):
            await slurm.cancel_jobs(filters={"user_name": "bob"})
    assert [(one.job_id, one.number, one.ok) for one in told] == [(1, 0, True), (2, 2172, False), (None, 2017, False)]


async def test_an_answer_that_drips_for_ever_ends_at_the_deadline() -> None:
    """The read timeout alone would start again with each byte."""

    async def drip(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return reply(200, EMPTY)

    timeouts = Timeouts(total=0.05, retries=0)
    async with FakeSlurmrestd().client(timeouts=timeouts, transport=httpx.MockTransport(drip)) as slurm:
        with pytest.raises(Unavailable, match=r"no answer within 0\.05 s"):
            await slurm.nodes()


async def test_an_endless_answer_is_refused() -> None:
    """Memory is not the other side's to take."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client(timeouts=Timeouts(answer_bytes=10, retries=0)) as slurm:
        with pytest.raises(Unavailable, match="longer than 10 bytes"):
            await slurm.nodes()


@pytest.mark.parametrize("url", ["slurm:6820", "ftp://slurm", "unix://host/path", "unix://", "http://root:x@slurm", ""])
def test_a_url_that_leads_nowhere_is_refused_at_once(url: str) -> None:
    """Not at the first call; credentials have no place in it."""
    with pytest.raises(ValueError, match="neither"):
        AsyncSlurm(url, StaticToken("x"))


def test_both_clients_have_the_same_calls() -> None:
    """What one can do, the other can."""
    ours = {name for name in vars(AsyncSlurm) if not name.startswith("_")}
    assert ours == {name for name in vars(Slurm) if not name.startswith("_")}


def test_the_synchronous_client_goes_through_the_same_faults() -> None:
    """Retries, renewal and values, without an event loop."""
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "ping/", unsent, instead(reply(401, "no")))
    with slurmrestd.sync_client(timeouts=QUICK) as slurm:
        assert slurm.ping()[0].responding
        assert slurm.slurm_version() == "24.11.5"


async def test_what_is_changed_of_a_node_is_written_as_slurm_reads_it() -> None:
    """Numbers as objects, single names as lists, and [""] for "none": Slurm overlooks an empty list."""
    slurmrestd = FakeSlurmrestd("v0.0.45")
    done = instead(reply(200, EMPTY))
    slurmrestd.fail("POST", "node/n0", done)
    slurmrestd.fail("POST", "nodes/", done)
    async with slurmrestd.client() as slurm:
        await slurm.update_node("n0", state="DRAIN", reason="disk", weight=5, address="10.0.0.1", topology="t:b")
        await slurm.update_nodes(["n0", "n1"], features=[], active_features=["a"], resume_after=INFINITE, comment=None)
    one, many = (json.loads(request.content) for request in slurmrestd.requests if request.method == "POST")
    five = {"set": True, "infinite": False, "number": 5}
    wanted = {"state": ["DRAIN"], "reason": "disk", "weight": five, "address": ["10.0.0.1"], "topology_str": "t:b"}
    assert one == wanted
    never = {"set": False, "infinite": True, "number": 0}
    assert many == {"name": ["n0", "n1"], "features": [""], "features_act": ["a"], "resume_after": never}


async def test_a_field_that_the_version_would_overlook_is_refused() -> None:
    """slurmrestd takes it with a warning only."""
    slurmrestd = FakeSlurmrestd("v0.0.42")
    async with slurmrestd.client() as slurm:
        with pytest.raises(Unsupported, match=r"topology .* needs v0\.0\.43 \(Slurm 25\.05\)"):
            await slurm.update_node("n0", topology="t:b")


async def test_a_long_list_of_ids_is_asked_for_in_pieces() -> None:
    """A request line has its limits; ids asked for twice are answered once."""
    slurmrestd = FakeSlurmrestd()
    for job_id in range(1, 451):
        slurmrestd.add(job_id, "alice", "")
    async with slurmrestd.client() as slurm:
        states = await slurm.job_states([*range(1, 451), 7, "7"])
    assert [one.job_id for one in states] == list(range(1, 451))
    asked = [request.url.params.get_list("job_id") for request in slurmrestd.calls("GET", "jobs/state/")]
    assert [len(ids) for ids in asked] == [200, 200, 50]


async def test_a_task_of_an_array_is_found_by_its_number() -> None:
    """Slurm answers with all of the array, in an order of its own."""
    number = [{"set": True, "number": value} for value in range(10)]
    tasks = [
        {"job_id": 3, "job_state": ["PENDING"], "array_job_id": number[3], "array_task_id": {"set": False}},
        {"job_id": 4, "job_state": ["RUNNING"], "array_job_id": number[3], "array_task_id": number[1]},
    ]
    slurmrestd = FakeSlurmrestd()
    slurmrestd.fail("GET", "job/3_1", instead(reply(200, {**EMPTY, "jobs": tasks})))
    slurmrestd.fail("GET", "job/3_2", instead(reply(200, {**EMPTY, "jobs": tasks})))
    async with slurmrestd.client() as slurm:
        assert (await slurm.job("3_1")).job_id == 4
        with pytest.raises(NotFound):
            await slurm.job("3_2")


async def test_a_user_that_slurmrestd_cant_name_is_a_refusal() -> None:
    """It has asked nobody: there is nothing ambiguous about it."""
    slurmrestd = FakeSlurmrestd()
    refused = failed(-1, "Unspecified error; Unable to resolve zoe to numeric user id")
    slurmrestd.fail("DELETE", "jobs/", instead(refused))
    async with slurmrestd.client() as slurm:
        with pytest.raises(InvalidRequest, match="zoe"):
            await slurm.cancel_jobs(filters={"user_name": "zoe"})


async def test_a_broken_answer_names_its_call() -> None:
    """Whatever reads it."""
    slurmrestd = FakeSlurmrestd()
    for tail in ("diag/", "node/n0", "shares"):
        slurmrestd.fail("GET", tail, instead(reply(200, EMPTY)))
    async with slurmrestd.client() as slurm:
        for call, tail in ((slurm.diag, "diag/"), (lambda: slurm.node("n0"), "node/n0"), (slurm.shares, "shares")):
            with pytest.raises(ProtocolError) as caught:
                await call()
            assert (caught.value.method, caught.value.path) == ("GET", f"/slurm/v0.0.42/{tail}")


def test_no_log_shows_the_token(caplog: pytest.LogCaptureFixture) -> None:
    """httpx and httpcore tell a lot at DEBUG: here over a real socket, through a failure."""
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        timeouts = Timeouts(read=0.1, total=0.2, retries=1, pause=0)
        with Slurm(url, StaticToken("topsecret"), version="v0.0.42", timeouts=timeouts) as slurm:
            with pytest.raises(Unavailable):
                slurm.nodes()
            told = repr([slurm, slurm.db, vars(slurm), vars(slurm._core)])
    assert "send_request_headers" in caplog.text
    assert "topsecret" not in caplog.text + told
