"""The kubelet endpoint over real TLS, against an API server that answers reviews and runs programs: who is let in, what
is served, and that nothing piles up."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from kubernetes.aio import client

from kubeslurm import log_places
from kubeslurm.log_places import Place
from kubeslurm_operator import kubelet_auth, pod_exec
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, POD, PYTORCH_JOB, SLURM_CLUSTER, Kube
from kubeslurm_operator.kubelet import Kubelet
from kubeslurm_operator.runtimes import Runtime
from kubeslurm_operator.slurm import Snapshot
from kubeslurm_operator.store import Key, Store
from slurmrest import JobStates

SEAL = b"s" * 32
PLACE = Place(7, "gpu-node-1", 1, 1)
NODE = "slurm-slurm-ai"
URL = "/containerLogs/research/train-worker-0/pytorch"
Program = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]


def frame(text: bytes) -> bytes:
    """As the reader says it, on standard output."""
    return b"\1" + b"0 1796601600.000000001 " + base64.b64encode(text) + b"\n"


@dataclass
class Api:
    """The API server: reviews by token and user, one program for every exec."""

    program: Program | None = None
    reviews: int = 0
    accesses: list[dict[str, Any]] = field(default_factory=list)

    async def token(self, request: web.Request) -> web.Response:
        """`good` and `poor` are users; only the first may anything."""
        self.reviews += 1
        token = (await request.json())["spec"]["token"]
        known = token in ("good", "poor")
        user = {"username": token, "groups": ["g"], "extra": {"k": ["v"]}}
        return web.json_response({"status": {"authenticated": known, "user": user if known else {}}})

    async def access(self, request: web.Request) -> web.Response:
        """Noted, and allowed to `good`."""
        self.accesses.append((await request.json())["spec"])
        return web.json_response({"status": {"allowed": self.accesses[-1]["user"] == "good"}})

    async def execute(self, request: web.Request) -> web.StreamResponse:
        """The program's words."""
        assert self.program is not None
        made = web.WebSocketResponse(protocols=(pod_exec.FINE,))
        await made.prepare(request)
        await self.program(made, request)
        await made.close()
        return made


@dataclass
class Setting:
    """An endpoint that listens, and what it stands on."""

    api: Api
    store: Store
    runtime: Any
    url: str
    session: aiohttp.ClientSession

    async def get(self, path: str, token: str = "good", method: str = "GET") -> tuple[int, str]:  # noqa: S107
        """Status and text of an answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.request(method, self.url + path, headers=headers) as answer:
            return answer.status, await answer.text()


def pod(container_id: str | None, uid: str = "u1") -> dict[str, Any]:
    """The mirror pod of a worker."""
    owner = {"kind": "PyTorchJob", "name": "train", "uid": uid}
    state: dict[str, Any] = {"state": {"waiting": {"reason": "SlurmPending"}}}
    return {
        "metadata": {"namespace": "research", "name": "train-worker-0", "uid": "p1", "ownerReferences": [owner]},
        "spec": {"nodeName": NODE, "containers": [{"name": "pytorch"}]},
        "status": {"containerStatuses": [state if container_id is None else {"containerID": container_id}]},
    }


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    """A job whose worker's output is task 1 on gpu-node-1."""
    api = Api()
    app = web.Application()
    app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", api.token)
    app.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", api.access)
    app.router.add_get("/api/v1/namespaces/slurm/pods/gpu-node-1/exec", api.execute)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    kube = Kube(client.Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}"))
    store = Store((POD, PYTORCH_JOB, SLURM_CLUSTER, NODE_SET, NAMESPACE))
    store.put(PYTORCH_JOB, {"metadata": {"namespace": "research", "name": "train", "uid": "u1"}})
    store.put(POD, pod(log_places.seal(str(PLACE), SEAL, "u1", "train-worker-0")))
    runtime = SimpleNamespace(key=Key("slurm", "ai"), seal=SEAL, slurm=None, virtual=SimpleNamespace(name=NODE))
    runtime.snapshot = Snapshot(nodes={}, jobs={7: JobStates.parse("RUNNING")})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kubelet = Kubelet(kube, store, {runtime.key: cast(Runtime, runtime)}, ("127.0.0.1", port))
    await kubelet.start()
    connector = aiohttp.TCPConnector(ssl=ssl._create_unverified_context())  # noqa: S323 - a certificate of its own
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Setting(api, store, runtime, f"https://127.0.0.1:{port}", session)
    await kubelet.stop()
    await kube.close()
    await runner.cleanup()


async def two_lines(program: web.WebSocketResponse, request: web.Request) -> None:
    """A reader that ends well."""
    for words in (b"\1ok\n", frame(b"one\n"), b"\1\n", frame(b"two\n"), b'\3{"status": "Success"}'):
        await program.send_bytes(words)


async def test_a_log_is_served_from_its_place(setting: Setting) -> None:
    """The reader is run for the files of the sealed place; its frames are shown."""
    setting.api.program = two_lines
    assert await setting.get(URL) == (200, "one\ntwo\n")
    assert await setting.get(URL + "?limitBytes=5") == (200, "one\nt")
    assert await setting.get(URL + "?timestamps=true&tailLines=5") == (
        200,
        "2026-12-07T00:00:00.000000001Z one\n2026-12-07T00:00:00.000000001Z two\n",
    )


@pytest.mark.parametrize(("token", "status"), [("", 401), ("nobody", 401), ("poor", 403)])
async def test_strangers_are_turned_away(setting: Setting, token: str, status: int) -> None:
    """Also from paths that are not there: nobody learns which pods there are."""
    for path in (URL, "/containerLogs/research/none/pytorch", "/nothing"):
        assert (await setting.get(path, token))[0] == status


async def test_rights_are_asked_for_as_a_kubelet_does(setting: Setting) -> None:
    """get nodes/proxy of the pod's virtual node; each answer is used again."""
    setting.api.program = two_lines
    await setting.get(URL)
    await setting.get(URL)
    (access,) = setting.api.accesses
    wanted = {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "proxy", "name": NODE}
    assert (access["resourceAttributes"], access["groups"], access["extra"]) == (wanted, ["g"], {"k": ["v"]})
    assert setting.api.reviews == 1


@pytest.mark.parametrize(
    ("path", "method", "status", "words"),
    [
        ("/exec/research/train-worker-0/pytorch", "POST", 501, "exec is not supported on a virtual node"),
        ("/portForward/research/train-worker-0", "POST", 501, "portForward is not supported"),
        (URL, "POST", 404, "not found"),
        (URL + "/more", "GET", 404, "not found"),
        ("/containerLogs/research/..%2f..%2fx/pytorch", "GET", 404, "not found"),
        ("/containerLogs/research/none/pytorch", "GET", 404, 'pod "none" does not exist'),
        ("/containerLogs/research/train-worker-0/side", "GET", 404, 'container "side" not found'),
        (URL + "?tailLines=x", "GET", 400, "tailLines"),
        (URL + "?previous=true", "GET", 400, "previous terminated container"),
    ],
)
async def test_all_else_is_refused_in_words(setting: Setting, path: str, method: str, status: int, words: str) -> None:
    """What is not served, and what is not there."""
    found = await setting.get(path, method=method)
    assert (found[0], words in found[1]) == (status, True)


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        (pod(None), 400, "is waiting to start: SlurmPending"),
        (pod(str(PLACE)), 403, "was not written by kubeslurm"),
        (pod(log_places.seal(str(PLACE), SEAL, "u2", "train-worker-0")), 403, "was not written by kubeslurm"),
        (pod(log_places.seal(str(PLACE), SEAL, "u1", "train-worker-0"), uid="u2"), 400, "is gone"),
    ],
)
async def test_a_pod_leads_to_nothing_that_we_did_not_say(
    setting: Setting, changed: dict[str, Any], status: int, words: str
) -> None:
    """Not yet started, a place without or with another's seal, an owner that is another object."""
    changed["metadata"]["resourceVersion"] = "2"
    setting.store.put(POD, changed)
    found = await setting.get(URL)
    assert (found[0], words in found[1]) == (status, True)


async def test_output_that_is_gone_is_told(setting: Setting) -> None:
    """By the reader's code; a node that has no pod any more, by the API server's answer."""

    async def nothing(program: web.WebSocketResponse, request: web.Request) -> None:
        causes = '{"causes": [{"reason": "ExitCode", "message": "3"}]}'
        await program.send_bytes(b'\3{"status": "Failure", "details": ' + causes.encode() + b"}")

    setting.api.program = nothing
    status, text = await setting.get(URL)
    assert (status, "its output on gpu-node-1 is gone" in text) == (400, True)


async def test_a_follower_is_ended_with_the_job(setting: Setting) -> None:
    """The reader is told by a line of input, reads on to the end, and the answer is complete."""

    async def waits(program: web.WebSocketResponse, request: web.Request) -> None:
        await program.send_bytes(b"\1ok\n" + frame(b"one\n")[1:])
        setting.runtime.snapshot = Snapshot(nodes={}, jobs={})
        assert (await program.receive_bytes()) == b"\0\n"
        await program.send_bytes(frame(b"last\n"))
        await program.send_bytes(b'\3{"status": "Success"}')

    setting.api.program = waits
    async with asyncio.timeout(10):
        assert await setting.get(URL + "?follow=true") == (200, "one\nlast\n")


async def test_a_reader_that_breaks_is_told_in_the_log(setting: Setting) -> None:
    """The status has gone out by then."""

    async def breaks(program: web.WebSocketResponse, request: web.Request) -> None:
        await program.send_bytes(b"\1ok\n" + frame(b"one\n")[1:])

    setting.api.program = breaks
    status, text = await setting.get(URL)
    assert (status, text.startswith("one\nkubeslurm: the output of Slurm job 7")) == (200, True)


async def test_a_client_that_does_not_read_stops_the_reader(setting: Setting) -> None:
    """Nothing piles up: an endless reader gets no further than the buffers of the connections."""
    sent = 0
    piece = frame(b"x" * 99_999 + b"\n")

    async def endless(program: web.WebSocketResponse, request: web.Request) -> None:
        nonlocal sent
        await program.send_bytes(b"\1ok\n")
        while sent < 4000:
            await program.send_bytes(piece)
            sent += 1

    setting.api.program = endless
    headers = {"Authorization": "Bearer good"}
    async with setting.session.get(setting.url + URL, headers=headers) as answer:
        assert answer.status == 200
        await asyncio.sleep(1)
        before = sent
        await asyncio.sleep(1)
        assert 0 < before == sent < 1000
        answer.close()


async def test_a_client_that_goes_ends_the_reader(setting: Setting) -> None:
    """Its websocket is closed, by which the program learns of it."""
    gone = asyncio.Event()

    async def silent(program: web.WebSocketResponse, request: web.Request) -> None:
        await program.send_bytes(b"\1ok\n" + frame(b"one\n")[1:])
        async for _ in program:
            continue
        gone.set()

    setting.api.program = silent
    headers = {"Authorization": "Bearer good"}
    async with setting.session.get(setting.url + URL + "?follow=true", headers=headers) as answer:
        assert await answer.content.readline() == b"one\n"
        answer.close()
    await asyncio.wait_for(gone.wait(), 10)


def test_a_certificates_subject_is_a_user() -> None:
    """Common name and organizations; one without a name is nobody."""
    subject = ((("organizationName", "system:masters"),), (("commonName", "kube-apiserver"),))
    user = kubelet_auth.by_subject(subject)
    assert user == kubelet_auth.User("kube-apiserver", ("system:masters", "system:authenticated"))
    assert kubelet_auth.by_subject(subject[:1]) is None


def test_answers_are_few_and_do_not_hold_for_ever() -> None:
    """The oldest goes, and what is too old."""
    answers = kubelet_auth.Answers[bool](most=2)
    for question in range(3):
        answers.keep(question, False, 60)
    answers.keep(2, True, -1)
    assert [answers.get(question) for question in range(3)] == [None, (False,), None]
