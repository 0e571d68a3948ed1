"""Programs in pods: standard input, output, exit codes and limits, against a server that speaks the websocket protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import WSMsgType, web
from kubernetes.aio import client

from kubeslurm_operator import pod_exec
from kubeslurm_operator.kube import Kube, KubeError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[Kube]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a server with this handler of exec, and gives a connection to it."""
    runners: list[web.AppRunner] = []
    kubes: list[Kube] = []

    async def start(handler: Handler) -> Kube:
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/exec", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        port = runner.addresses[0][1]
        kubes.append(Kube(client.Configuration(host=f"http://127.0.0.1:{port}")))
        return kubes[-1]

    yield start
    for kube in kubes:
        await kube.close()
    for runner in runners:
        await runner.cleanup()


def ends(code: int) -> bytes:
    """The status that ends a stream."""
    if code == 0:
        return b"\3" + json.dumps({"status": "Success"}).encode()
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    return b"\3" + json.dumps({"status": "Failure", "reason": "NonZeroExitCode", "details": causes}).encode()


def echo(protocol: str, size: int) -> Handler:
    """A program that reads to the end of its input (or `size` bytes) and says how much that was."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(protocol,), max_msg_size=0)
        await socket.prepare(request)
        got = 0
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            if message.data[0] == pod_exec.CLOSE_CHANNEL:
                break
            got += len(message.data) - 1
            if protocol != pod_exec.FINE and got == size:
                break
        await socket.send_bytes(b"\1" + f"{got} {request.query.getall('command')}".encode())
        await socket.send_bytes(b"\2words")
        await socket.send_bytes(ends(3))
        await socket.close()
        return socket

    return handler


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_program_gets_its_input_and_gives_its_output(serve: Serve, protocol: str) -> None:
    """Whole, in pieces; with v5, its end as well."""
    size = 3 * pod_exec.CHUNK + 1
    kube = await serve(echo(protocol, size))
    result = await pod_exec.execute(kube, "slurm", "n0", "slurmd", ["cat", "a b"], stdin=b"x" * size, timeout=10)
    assert result == pod_exec.Result(f"{size} ['cat', 'a b']".encode(), b"words", 3)


async def test_output_is_bounded(serve: Serve) -> None:
    """What comes beyond it is read and forgotten."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(pod_exec.FINE,))
        await socket.prepare(request)
        for _ in range(80):
            await socket.send_bytes(b"\1" + b"y" * 2**16)
        await socket.send_bytes(ends(0))
        await socket.close()
        return socket

    kube = await serve(handler)
    result = await pod_exec.execute(kube, "slurm", "n0", "slurmd", ["yes"], timeout=20)
    assert (len(result.stdout), result.code) == (pod_exec.MOST, 0)


async def test_a_program_that_does_not_end_is_given_up(serve: Serve) -> None:
    """An error with the pod's name and none of the input."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(pod_exec.FINE,))
        await socket.prepare(request)
        await asyncio.sleep(2)
        return socket

    kube = await serve(handler)
    with pytest.raises(KubeError, match="slurm/n0") as caught:
        await pod_exec.execute(kube, "slurm", "n0", "slurmd", ["cat"], stdin=b"s3cr3t", timeout=0.2)
    assert "s3cr3t" not in str(caught.value)


async def test_a_pod_that_is_not_there_is_told(serve: Serve) -> None:
    """As an error of Kubernetes'."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404)

    kube = await serve(handler)
    with pytest.raises(KubeError, match="slurm/n0"):
        await pod_exec.execute(kube, "slurm", "n0", "slurmd", ["true"], timeout=5)


async def test_an_end_without_a_code_is_no_success(serve: Serve) -> None:
    """A stream that just stops, or says something unknown."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(pod_exec.FINE,))
        await socket.prepare(request)
        await socket.send_bytes(b"\3{nonsense")
        await socket.close()
        return socket

    kube = await serve(handler)
    assert (await pod_exec.execute(kube, "slurm", "n0", "slurmd", ["true"], timeout=5)).code == -1
