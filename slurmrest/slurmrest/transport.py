"""Sends requests with httpx: the one module that imports it (and so costs its 100 ms; imported at a client's making).

`AsyncTransport` and `SyncTransport` are driven by the clients. What always holds: an outcome is a complete `Response`
or a `Lost` that says whether anything may have been sent; nothing is redirected, no proxy is taken from the
environment (a token must not reach one), each request ends within `Timeouts.total`.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from slurmrest.messages import Lost, Request, Response
from slurmrest.streams import Malformed, Splitter
from slurmrest.timeouts import Timeouts

AsyncBase = httpx.AsyncBaseTransport
SyncBase = httpx.BaseTransport

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class AsyncTransport:
    """For `AsyncSlurm`."""

    def __init__(self, url: str, timeouts: Timeouts, transport: AsyncBase | None = None) -> None:
        base, socket = _split(url)
        self._timeouts = timeouts
        inner = transport or httpx.AsyncHTTPTransport(uds=socket, limits=_limits(timeouts))
        self._client = httpx.AsyncClient(transport=inner, base_url=base, **_options(timeouts))

    async def send(self, request: Request) -> Response | Lost:
        """One request, one outcome."""
        try:
            async with asyncio.timeout(self._timeouts.total):
                return await self._exchange(request)
        except TimeoutError:
            return Lost(True, f"no answer within {self._timeouts.total:g} s")
        except httpx.HTTPError as error:
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
    """For `Slurm`. Its deadline is looked at between the pieces of an answer, each of which takes `read` at most."""

    def __init__(self, url: str, timeouts: Timeouts, transport: SyncBase | None = None) -> None:
        base, socket = _split(url)
        self._timeouts = timeouts
        inner = transport or httpx.HTTPTransport(uds=socket, limits=_limits(timeouts))
        self._client = httpx.Client(transport=inner, base_url=base, **_options(timeouts))

    def send(self, request: Request) -> Response | Lost:
        """One request, one outcome."""
        try:
            return self._exchange(request, time.monotonic() + self._timeouts.total)
        except httpx.HTTPError as error:
            return _lost(error)

    def _exchange(self, request: Request, deadline: float) -> Response | Lost:
        with self._client.stream(request.method, request.path, **_content(request)) as answer:
            intake = _Intake(request, answer.status_code, self._timeouts)
            for chunk in answer.iter_bytes():
                if not intake.take(chunk):
                    break
                if time.monotonic() > deadline:
                    return Lost(True, f"no complete answer within {self._timeouts.total:g} s")
        return intake.outcome()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


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


def _lost(error: httpx.HTTPError) -> Lost:
    return Lost(not isinstance(error, _UNSENT), f"{type(error).__name__}: {error}".rstrip(": "))
