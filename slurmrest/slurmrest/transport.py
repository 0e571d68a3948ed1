"""Sends requests with httpx: the one module that imports it (and so costs its 100 ms; imported at a client's making).

`AsyncTransport` and `SyncTransport` are driven by the clients. What always holds: an outcome is a complete `Response`
or a `Lost` that says whether anything may have been sent; nothing is redirected, no proxy is taken from the
environment (a token must not reach one), each request ends within `Timeouts.total` once its turn has come: no more than
`Timeouts.connections` are under way, the others wait here, unsent.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore
import httpx

from slurmrest.messages import Lost, Request, Response
from slurmrest.streams import Malformed, Splitter
from slurmrest.timeouts import Timeouts
from slurmrest.tls import TLS

AsyncBase = httpx.AsyncBaseTransport
SyncBase = httpx.BaseTransport

_SLICE: Final = 1 << 16
_FAILED: Final = (httpx.HTTPError, OSError)
"""httpx lets an ssl.SSLError through now and then: a server that refuses our certificate says so after the handshake."""
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class AsyncTransport:
    """For `AsyncSlurm`."""

    def __init__(
        self, url: str, timeouts: Timeouts, transport: AsyncBase | None = None, tls: TLS | None = None
    ) -> None:
        base, socket = _split(url)
        trust = _trust(base, tls)
        self._timeouts = timeouts
        inner = transport or httpx.AsyncHTTPTransport(uds=socket, verify=trust, limits=_limits(timeouts))
        # httpcore looks at every request that waits each time one ends: a thousand at once would cost it seconds.
        self._turns = asyncio.Semaphore(timeouts.connections)
        self._client = httpx.AsyncClient(transport=inner, base_url=base, **_options(timeouts))

    async def send(self, request: Request) -> Response | Lost:
        """One request, one outcome."""
        try:
            async with self._turns, asyncio.timeout(self._timeouts.total):
                return await self._exchange(request)
        except TimeoutError:
            return Lost(True, f"no answer within {self._timeouts.total:g} s")
        except _FAILED as error:
            return _lost(error)

    async def _exchange(self, request: Request) -> Response | Lost:
        async with self._client.stream(request.method, request.path, **_content(request)) as answer:
            intake = _Intake(request, answer.status_code, self._timeouts)
            async for chunk in answer.aiter_bytes():
                if not intake.take(chunk):
                    break
        return intake.outcome()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class SyncTransport:
    """For `Slurm`, and any number of threads."""

    def __init__(self, url: str, timeouts: Timeouts, transport: SyncBase | None = None, tls: TLS | None = None) -> None:
        base, socket = _split(url)
        trust = _trust(base, tls)
        self._timeouts = timeouts
        self._deadlines = _Deadlines()
        inner = transport or _bounded(
            httpx.HTTPTransport(uds=socket, verify=trust, limits=_limits(timeouts)), self._deadlines
        )
        self._turns = threading.Semaphore(timeouts.connections)
        self._client = httpx.Client(transport=inner, base_url=base, **_options(timeouts))

    def send(self, request: Request) -> Response | Lost:
        """One request, one outcome."""
        try:
            with self._turns:
                self._deadlines.begin(self._timeouts.total)
                return self._exchange(request)
        except _FAILED as error:
            return _lost(error)

    def _exchange(self, request: Request) -> Response | Lost:
        with self._client.stream(request.method, request.path, **_content(request)) as answer:
            intake = _Intake(request, answer.status_code, self._timeouts)
            for chunk in answer.iter_bytes():
                if not intake.take(chunk):
                    break
        return intake.outcome()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


class _Deadlines(threading.local):
    """When the request of this thread must have ended. httpx knows only how long a single read may take."""

    total = 0.0
    end = float("inf")

    def begin(self, total: float) -> None:
        """A request begins, and ends within so many seconds."""
        self.total, self.end = total, time.monotonic() + total

    def left(self, timeout: float | None) -> float:
        """How long the next wait may take. Raises ReadTimeout when there is nothing left."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout(f"no complete answer within {self.total:g} s")
        return left if timeout is None else min(timeout, left)


def _bounded(transport: httpx.HTTPTransport, deadlines: _Deadlines) -> httpx.HTTPTransport:
    """The transport with an end to each request, even if the other side sends a byte of its headers per second.

    httpcore takes a network backend; httpx has no argument that hands one on.
    """
    transport._pool._network_backend = _Network(transport._pool._network_backend, deadlines)
    return transport


class _Network(httpcore.NetworkBackend):
    """Makes the streams of `_bounded`."""

    def __init__(self, inner: httpcore.NetworkBackend, deadlines: _Deadlines) -> None:
        self._inner = inner
        self._deadlines = deadlines

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        """Waits for `Timeouts.connect`."""
        return _Stream(self._inner.connect_tcp(*args, **kwargs), self._deadlines)

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        """Waits for `Timeouts.connect`."""
        return _Stream(self._inner.connect_unix_socket(*args, **kwargs), self._deadlines)

    def sleep(self, seconds: float) -> None:
        """Between httpcore's own retries, of which there are none here."""
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends with the request."""

    def __init__(self, inner: httpcore.NetworkStream, deadlines: _Deadlines) -> None:
        self._inner = inner
        self._deadlines = deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has arrived."""
        return self._inner.read(max_bytes, self._deadlines.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """In slices: the inner stream waits anew for each part that the other side takes."""
        for start in range(0, len(buffer), _SLICE):
            self._inner.write(buffer[start : start + _SLICE], self._deadlines.left(timeout))

    def close(self) -> None:
        """At once."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same stream, encrypted."""
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadlines.left(timeout))
        return _Stream(inner, self._deadlines)

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks about the socket."""
        return self._inner.get_extra_info(info)


class _Intake:
    """The body of one answer: collected, or read while it arrives where the request asks for that."""

    def __init__(self, request: Request, status: int, timeouts: Timeouts) -> None:
        self._status = status
        self._most = timeouts.answer_bytes
        self._size = 0
        self._body = bytearray()
        self._splitter = Splitter(request.entries) if request.entries and 200 <= status < 300 else None
        self._complaint = ""

    def take(self, chunk: bytes) -> bool:
        """One piece; False: there is no use in another one."""
        self._size += len(chunk)
        if self._size > self._most:
            return False
        if self._splitter is None:
            self._body += chunk
            return True
        try:
            self._splitter.feed(chunk)
        except Malformed as error:
            self._complaint = str(error)
        return not self._complaint

    def outcome(self) -> Response | Lost:
        """After the last piece."""
        if self._size > self._most:
            return Lost(True, f"the answer is longer than {self._most} bytes")
        if self._splitter is None:
            return Response(self._status, bytes(self._body))
        if self._complaint:
            return Response(self._status, b"", None, self._complaint)
        try:
            payload = self._splitter.finish()
        except Malformed as error:
            return Response(self._status, b"", None, str(error))
        return Response(self._status, b"", payload, self._splitter.complaint)


def _split(url: str) -> tuple[str, str | None]:
    """Base URL and socket path of `http(s)://host:port` or `unix:///path`. Raises ValueError for others."""
    parts = urlsplit(url)
    if parts.scheme == "unix" and parts.path and not parts.netloc:
        return "http://slurmrestd", parts.path
    if parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc:
        return url.rstrip("/"), None
    raise ValueError("the URL is neither http(s)://host[:port] nor unix:///path")


def _trust(base: str, tls: TLS | None) -> ssl.SSLContext | bool:
    """Whose certificates are believed. Reading them all takes 50 ms: not done where none is shown."""
    if not base.startswith("https:"):
        if tls is not None:
            raise ValueError("certificates are of use with https:// only")
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls is None:
        return True
    return tls.context(httpx.create_ssl_context(trust_env=False) if tls.ca is None else None)


def _options(timeouts: Timeouts) -> dict[str, Any]:
    waits = httpx.Timeout(timeouts.read, connect=timeouts.connect)
    headers = {"Accept": "application/json", "User-Agent": "slurmrest"}
    return {"timeout": waits, "headers": headers, "follow_redirects": False, "trust_env": False}


def _limits(timeouts: Timeouts) -> httpx.Limits:
    return httpx.Limits(max_connections=timeouts.connections, max_keepalive_connections=timeouts.connections)


def _content(request: Request) -> dict[str, Any]:
    headers = dict(request.headers)
    if request.body is None:
        return {"headers": headers}
    return {
        "headers": headers | {"Content-Type": "application/json"},
        "content": json.dumps(request.body, allow_nan=False).encode(),
    }


def _lost(error: Exception) -> Lost:
    return Lost(not isinstance(error, _UNSENT), f"{type(error).__name__}: {error}".rstrip(": "))
