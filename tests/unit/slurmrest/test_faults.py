"""Everything that can go wrong on the way, over real sockets: a named exception in bounded time, and never a token in it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slurmrest import (
    Ambiguous,
    AsyncSlurm,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ProtocolError,
    Slurm,
    SlurmError,
    StaticToken,
    Timeouts,
    Unavailable,
    Unsupported,
)
from tests.unit.slurmrest.fake import EMPTY, SCRIPT
from tests.unit.slurmrest.faulty import Fault, FaultyServer, Place, answers, http, says

TOKEN = "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0LXNlY3JldC1zZWNyZXQ.c2lnbmF0dXJl"  # noqa: S105 - of no server
PATIENT = Timeouts(connect=20, read=20, total=30, retries=0, looks=(0.0,), settle=0.0)
HASTY = Timeouts(connect=20, read=0.2, total=0.4, retries=0, looks=(0.0,), settle=0.0, answer_bytes=1 << 22)
SLACK = 8.0
"""Seconds that a loaded machine may take on top."""
DESCRIPTION = {"name": "n", "current_working_directory": "/tmp", "environment": ["A=b"]}
NO_JOBS = answers(200, {"jobs": []} | EMPTY)
HALF = '{"nodes": [{"name": "n0", "sta'


def slurm_error(status: int, number: int) -> Fault:
    """An answer with one of Slurm's numbers."""
    return answers(status, {"errors": [{"error_number": number, "error": "no", "description": ""}], "warnings": []})


def reset(connection: socket.socket) -> None:
    """Half of an answer, and then a reset instead of an end."""
    connection.sendall(http(200, HALF, length=10_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hang_up(connection: socket.socket) -> None:
    """The request is taken, and nothing is said."""


def silence(connection: socket.socket) -> None:
    """Says nothing, and waits for the client to go."""
    connection.recv(1)


def drip(data: bytes) -> Fault:
    """One byte at a time, each well within `read`."""

    def fault(connection: socket.socket) -> None:
        for place in range(len(data)):
            connection.sendall(data[place : place + 1])
            time.sleep(0.05)

    return fault


def without_end(head: bytes, piece: bytes) -> Fault:
    """One piece after the other, as fast as they are taken."""

    def fault(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return fault


def echo(connection: socket.socket) -> None:
    """A helpful proxy: it says what it was sent."""
    connection.sendall(http(400, f"bad request: X-SLURM-USER-TOKEN: {TOKEN}"))


@dataclass(frozen=True)
class Case:
    """A fault; what a call that changes nothing raises, and what a submission; how patient the client is."""

    name: str
    fault: Fault
    read: type[SlurmError]
    submit: type[SlurmError]
    timeouts: Timeouts = field(default=PATIENT)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LIST = b'b\r\n{"nodes": [\r\n'
CASES = [
    Case("hang up", hang_up, Unavailable, Ambiguous),
    Case("reset in the body", reset, Unavailable, Ambiguous),
    Case("silence", silence, Unavailable, Ambiguous, HASTY),
    Case("drip of the headers", drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 500), Unavailable, Ambiguous, HASTY),
    Case("drip of the body", drip(http(200, " " * 500)), Unavailable, Ambiguous, HASTY),
    Case("100 Continue for ever", without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Unavailable, Ambiguous, HASTY),
    Case("body without end", without_end(CHUNKED, b"8\r\n        \r\n" * 100), Unavailable, Ambiguous, HASTY),
    Case("list without end", without_end(CHUNKED + LIST, b"2\r\n1,\r\n" * 9), Unavailable, Ambiguous, HASTY),
    Case("half of the JSON", says(http(200, HALF)), ProtocolError, Ambiguous),
    Case("length too long", says(http(200, HALF, length=10_000)), Unavailable, Ambiguous),
    Case("length too short", says(http(200, json.dumps({"nodes": []} | EMPTY), length=9)), ProtocolError, Ambiguous),
    Case("length no number", says(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}"), Unavailable, Ambiguous),
    Case("no HTTP", says(b"SSH-2.0-OpenSSH_9.2p1\r\n"), Unavailable, Ambiguous),
    Case("binary", says(bytes(range(256)) * 50), Unavailable, Ambiguous),
    Case("header bomb", says(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 3_000_000 + b"\r\n\r\n{}"), Unavailable, Ambiguous),
    Case("many headers", says(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 99_999 + b"\r\n{}"), Unavailable, Ambiguous),
    Case("no gzip", says(http(200, "{}", headers="Content-Encoding: gzip\r\n")), Unavailable, Ambiguous),
    Case("nested too deeply", says(http(200, '{"nodes": ' + "[" * 200_000)), ProtocolError, Ambiguous),
    Case("empty", says(http(200, "")), ProtocolError, Ambiguous),
    Case("a list", says(http(200, "[]")), ProtocolError, Ambiguous),
    Case("nothing in it", answers(200, EMPTY), ProtocolError, InvalidRequest),
    Case("entries of another form", answers(200, {"nodes": ["n0"]} | EMPTY), ProtocolError, InvalidRequest),
    Case("200 with an error", slurm_error(200, 2014), InvalidRequest, InvalidRequest),
    Case("500 with a number", slurm_error(500, 2000), InvalidRequest, InvalidRequest),
    Case("500 denied", slurm_error(500, 2002), PermissionDenied, PermissionDenied),
    Case("404 with a number", slurm_error(404, 2018), NotFound, InvalidRequest),
    Case("500, slurmctld away", slurm_error(500, 1800), Unavailable, Unavailable),
    Case("500, slurmctld lost", slurm_error(500, 5004), Unavailable, Ambiguous),
    Case("500 of the proxy", says(http(500, "<html>oops")), Unavailable, Ambiguous),
    Case("503 of the proxy", says(http(503, "<html>busy")), Unavailable, Ambiguous),
    Case("401", says(http(401, "Authentication failure")), Authentication, Authentication),
    Case("511", slurm_error(511, 1007), Authentication, Authentication),
    Case("511 of a network", says(http(511, "{}")), Authentication, Authentication),
    Case("404 text", says(http(404, "Unable find requested URL.")), Unsupported, Unsupported),
    Case("405 text", says(http(405, "Method not allowed")), InvalidRequest, InvalidRequest),
    Case("echo of the token", echo, InvalidRequest, InvalidRequest),
    Case("redirect", says(http(302, "", headers="Location: http://127.0.0.1:9/\r\n")), ProtocolError, Ambiguous),
    Case("304", says(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"), ProtocolError, InvalidRequest),
]  # fmt: skip
WAYS = [("sync", "tcp"), ("async", "unix"), ("async", "tcp"), ("sync", "unix")]
each_client = pytest.mark.parametrize(("kind", "place"), WAYS)
ON_THE_WAY = ("hang up", "reset in the body", "silence", "drip of the headers")
"""The faults that sockets make; what an answer says is the same on each kind of socket, so two ways are enough."""
each_fault = pytest.mark.parametrize(
    ("case", "kind", "place"),
    [
        pytest.param(case, kind, place, id=f"{case.name}-{kind}-{place}")
        for case in CASES
        for kind, place in (WAYS if case.name in ON_THE_WAY else WAYS[:2])
    ],
)


def call(kind: str, url: str, timeouts: Timeouts, name: str, *args: Any, **kwargs: Any) -> tuple[SlurmError, float]:
    """What a call of either client raises, and after how long."""
    options: dict[str, Any] = {"version": "v0.0.42", "timeouts": timeouts}
    started = time.monotonic()

    async def run() -> None:
        async with AsyncSlurm(url, StaticToken(TOKEN), **options) as slurm:
            await getattr(slurm, name)(*args, **kwargs)

    with pytest.raises(SlurmError) as caught:  # noqa: PT012 - either of the two
        if kind == "async":
            asyncio.run(run())
        with Slurm(url, StaticToken(TOKEN), **options) as slurm:
            getattr(slurm, name)(*args, **kwargs)
    return caught.value, time.monotonic() - started


def check(error: SlurmError, seconds: float, wanted: type[SlurmError], timeouts: Timeouts) -> None:
    """Named, in time, telling which call it was, in one line without the token."""
    assert type(error) is wanted, error
    assert seconds < timeouts.total + SLACK
    assert error.path or isinstance(error, InvalidRequest)
    assert "\n" not in str(error)
    texts = str(error) + repr(error) + "".join(traceback.format_exception(error))
    assert not [part for part in TOKEN.split(".") if part in texts]


@each_fault
def test_a_call_that_changes_nothing_raises_the_error_of_that_name(case: Case, kind: str, place: Place) -> None:
    """In bounded time, whatever the other side does."""
    with FaultyServer(place, case.fault) as server:
        error, seconds = call(kind, server.url, case.timeouts, "nodes")
    check(error, seconds, case.read, case.timeouts)
    assert (error.method, error.path) == ("GET", "/slurm/v0.0.42/nodes/")


@each_fault
def test_a_submission_whose_fate_is_unknown_is_ambiguous_and_sent_once(case: Case, kind: str, place: Place) -> None:
    """An answer that surely means "no job" is that error; all others leave it open."""
    with FaultyServer(place, case.fault, only="POST", others=NO_JOBS) as server:
        options = {"key": "k", "user": "alice"}
        error, seconds = call(kind, server.url, case.timeouts, "submit", DESCRIPTION, SCRIPT, **options)
    check(error, seconds, case.submit, case.timeouts)
    tries = 2 if case.submit is Authentication else 1  # a refused token was renewed, nothing came of the first try
    assert server.requests.count("POST /slurm/v0.0.42/job/submit") == tries


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # httpcore leaves the socket to the gc
@each_client
def test_nobody_who_listens_is_unavailable_for_reads_and_submissions(kind: str, place: Place, tmp_path: Path) -> None:
    """Nothing was sent, so nothing is in doubt."""
    with FaultyServer(place, hang_up) as server:
        url = server.url
    for name, args, kwargs in (("nodes", (), {}), ("submit", (DESCRIPTION, SCRIPT), {"key": "k", "user": "alice"})):
        error, seconds = call(kind, url, PATIENT, name, *args, **kwargs)
        check(error, seconds, Unavailable, PATIENT)


@each_client
def test_a_read_that_fails_quickly_is_tried_again(kind: str, place: Place) -> None:
    """As often as the retries say, and no more."""
    with FaultyServer(place, hang_up) as server:
        call(kind, server.url, Timeouts(retries=2, pause=0.01), "nodes")
    assert len(server.requests) == 3


def test_no_change_is_an_answer_of_its_own() -> None:
    """Slurm's two ways to say that nothing has changed since `update_time`: 304, and an empty list with a warning."""
    warning = {"source": "jobs", "description": "No job changes since update_time[9999999999]=..."}
    nothing = answers(200, {"jobs": [], "errors": [], "warnings": [warning]})
    unchanged = says(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")
    with FaultyServer("tcp", nothing, only="jobs/", others=unchanged) as server, _client(server.url) as slurm:
        answer = slurm.request("GET", "jobs/", params={"update_time": 9999999999})
        assert answer.warnings == ("jobs: No job changes since update_time[9999999999]=...",)
        assert not slurm.request("GET", "nodes/", params={"update_time": 9999999999}).payload


def test_an_answer_beyond_the_limit_is_refused() -> None:
    """Memory is bounded, whatever is sent."""
    body = json.dumps({"nodes": [{"name": "n" * 1000}] * 100} | EMPTY)
    with FaultyServer("tcp", says(http(200, body))) as server:
        error, _ = call("sync", server.url, Timeouts(answer_bytes=50_000, retries=0), "nodes")
    assert "longer than 50000 bytes" in str(error)
    assert isinstance(error, Unavailable)


def test_other_threads_keep_their_own_deadlines() -> None:
    """A slow call of one thread doesn't cut short the next call of another."""
    others = answers(200, {"pings": []} | EMPTY)
    with FaultyServer("tcp", silence, only="nodes", others=others) as server, _client(server.url, HASTY) as slurm:
        thread = threading.Thread(target=_fails, args=(slurm,))
        thread.start()
        thread.join(20)
        assert slurm.ping() == []


def _fails(slurm: Slurm) -> None:
    with pytest.raises(Unavailable):
        slurm.nodes()


def _client(url: str, timeouts: Timeouts = PATIENT) -> Slurm:
    return Slurm(url, StaticToken(TOKEN), version="v0.0.42", timeouts=timeouts)


async def test_a_request_that_waits_for_its_turn_is_not_late() -> None:
    """Its time runs once a connection is free: a thousand submissions at once don't end as "may have been sent"."""
    slow = Timeouts(total=1.5, retries=0, connections=1)

    def fault(connection: socket.socket) -> None:
        time.sleep(0.4)
        answers(200, {"pings": []} | EMPTY)(connection)

    with FaultyServer("tcp", fault) as server:
        async with AsyncSlurm(server.url, StaticToken(TOKEN), version="v0.0.42", timeouts=slow) as slurm:
            assert await asyncio.gather(*(slurm.ping() for _ in range(6))) == [[]] * 6
