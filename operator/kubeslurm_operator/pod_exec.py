"""Run a program in a pod's container over a websocket, with standard input and bounded output.

Called by whoever reads from or brings to slurmd pods (materials, ranks' exit codes, logs). What always holds: `execute` ends
within its timeout, a `Stream` with its user; no more than `MOST` bytes of output are kept, and an error's text holds
neither input nor output.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from kubernetes.aio.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDIN_CHANNEL, STDOUT_CHANNEL

from kubeslurm_operator.kube import Kube, KubeError

MOST = 4 * 2**20
CHUNK = 2**16
CLOSE_CHANNEL = 255
OPEN_SECONDS = 15.0
WRITE_SECONDS = 15.0
_ENDS = frozenset(
    {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
)
FINE = "v5.channel.k8s.io"
PROTOCOLS = (FINE, "v4.channel.k8s.io")
"""Only v5 can end standard input while the program runs on: with an older server, let the program count its bytes."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the program wrote and its exit code; -1 when it was not said."""

    stdout: bytes
    stderr: bytes
    code: int


@dataclass
class _Output:
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    code: int = -1

    def take(self, message: bytes) -> None:
        channel, data = message[0], message[1:]
        if channel == ERROR_CHANNEL:
            self.code = _code(data)
        elif channel in (STDOUT_CHANNEL, STDERR_CHANNEL):
            kept = self.stdout if channel == STDOUT_CHANNEL else self.stderr
            kept += data[: max(0, MOST - len(kept))]


async def execute(
    kube: Kube,
    namespace: str,
    pod: str,
    container: str,
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout: float = 15.0,  # noqa: ASYNC109 - the caller's limit is part of what this promises
) -> Result:
    """Run it to its end. KubeError where it could not be run or did not end in time."""
    try:
        async with asyncio.timeout(timeout):
            return await _run(kube, namespace, pod, container, argv, stdin)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise KubeError(0, "ExecFailed", f"pod {namespace}/{pod}: {type(error).__name__} {error}".strip()) from None


class Stream:
    """A program that runs: its output in pieces, read no faster than they are asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.code = -1
        """Its exit code, once the output has ended; -1 where it was not said."""
        self._socket = socket

    async def read(self, seconds: float) -> bytes:
        """The next piece; empty at the end. KubeError where nothing comes for so long."""
        while True:
            try:
                async with asyncio.timeout(seconds):
                    message = await self._socket.receive()
            except TimeoutError:
                raise KubeError(0, "ExecFailed", f"the program was silent for {seconds:g} s") from None
            if message.type in _ENDS:
                return b""
            if not isinstance(message.data, bytes) or not message.data:
                continue
            if message.data[0] == ERROR_CHANNEL:
                self.code = _code(message.data[1:])
            elif message.data[0] == STDOUT_CHANNEL and len(message.data) > 1:
                return message.data[1:]

    async def write(self, data: bytes) -> None:
        """To its standard input."""
        async with asyncio.timeout(WRITE_SECONDS):
            await self._socket.send_bytes(bytes([STDIN_CHANNEL]) + data)


@asynccontextmanager
async def stream(kube: Kube, namespace: str, pod: str, container: str, argv: Sequence[str]) -> AsyncIterator[Stream]:
    """Run it until the context ends; its input ends then, by which it must know. KubeError where it could not be run."""
    try:
        connection = await kube.open_exec(namespace, pod, container, argv, stdin=True, protocols=PROTOCOLS, long=True)
        async with asyncio.timeout(OPEN_SECONDS):
            socket = await connection
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        status = getattr(error, "status", 0)
        raise KubeError(
            status, "ExecFailed", f"pod {namespace}/{pod}: {type(error).__name__} {error}".strip()
        ) from None
    try:
        yield Stream(socket)
    finally:
        await socket.close()


async def _run(kube: Kube, namespace: str, pod: str, container: str, argv: Sequence[str], stdin: bytes) -> Result:
    output = _Output()
    connection = await kube.open_exec(namespace, pod, container, argv, stdin=bool(stdin), protocols=PROTOCOLS)
    async with connection as socket:
        writer = asyncio.create_task(_write(socket, stdin)) if stdin else None
        try:
            async for message in socket:
                if isinstance(message.data, bytes) and message.data:
                    output.take(message.data)
        finally:
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
    return Result(bytes(output.stdout), bytes(output.stderr), output.code)


async def _write(socket: aiohttp.ClientWebSocketResponse, data: bytes) -> None:
    for start in range(0, len(data), CHUNK):
        await socket.send_bytes(bytes([STDIN_CHANNEL]) + data[start : start + CHUNK])
    if socket.protocol == FINE:
        await socket.send_bytes(bytes([CLOSE_CHANNEL, STDIN_CHANNEL]))


def _code(data: bytes) -> int:
    """The exit code in the status that ends a stream; -1 where there is none."""
    try:
        status = json.loads(data)
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        return next((int(one["message"]) for one in causes if one.get("reason") == "ExitCode"), -1)
    except (ValueError, AttributeError, KeyError):
        return -1
