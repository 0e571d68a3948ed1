"""The kubelet endpoint of the virtual nodes: an HTTPS server in the operator, for `kubectl logs` of mirror pods.

Made by the engine where the pod's address is known (POD_IP); the API server finds it by the virtual nodes' status. What
always holds: every request is authenticated and authorized as a kubelet does it, before anything else; a client that does
not read holds one connection and no memory that grows; nothing but logs is served.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import web

from kubeslurm.errors import Refused
from kubeslurm.log_requests import LogRequest, read_query
from kubeslurm_operator import kubelet_tls
from kubeslurm_operator.kube import CONFIG_MAP, MAX_FOLLOWERS, Kube, KubeError
from kubeslurm_operator.kubelet_auth import Gate
from kubeslurm_operator.log_reading import Logs, Source
from kubeslurm_operator.store import Key, Store

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

LOG = logging.getLogger(__name__)

PORT = 10250
CA_SECONDS = 300.0
CA_MAP = ("kube-system", "extension-apiserver-authentication", "client-ca-file")
UNSUPPORTED = frozenset({"exec", "attach", "portForward", "run", "cri", "checkpoint"})


class Kubelet:
    """See the module. `endpoint` is address and port."""

    def __init__(self, kube: Kube, store: Store, runtimes: Mapping[Key, Runtime], endpoint: tuple[str, int]) -> None:
        self._kube = kube
        self._endpoint = endpoint
        self._logs = Logs(kube, store, runtimes)
        self._gate = Gate(kube)
        self._followers = 0
        self._certificate = kubelet_tls.self_signed(endpoint[0])
        self._client_ca = ""
        self._site: web.TCPSite | None = None
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        # a client that goes away ends its handler, and that the reader on the node
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Listen. OSError where the address can't be had."""
        await self._runner.setup()
        self._client_ca = await self._read_ca() or ""
        await self._listen()
        LOG.info("serving logs of mirror pods on %s port %d", *self._endpoint)

    async def stop(self) -> None:
        """End it and all that it serves."""
        await self._runner.cleanup()

    async def run(self) -> None:
        """Until cancelled: take a new CA of clients when there is one."""
        while True:
            await asyncio.sleep(CA_SECONDS)
            found = await self._read_ca()
            if found is not None and found != self._client_ca:
                LOG.info("the CA of API clients has changed")
                self._client_ca = found
                await self._listen()

    async def _listen(self) -> None:
        """Anew where it listens already; connections that are open go on."""
        try:
            context = kubelet_tls.context(self._certificate, self._client_ca)
        except ssl.SSLError as error:
            LOG.warning("%s/%s: %s can't be read: %s; tokens alone are accepted", *CA_MAP, error)
            context = kubelet_tls.context(self._certificate, "")
        if self._site is not None:
            await self._site.stop()
        self._site = web.TCPSite(self._runner, *self._endpoint, ssl_context=context)
        await self._site.start()

    async def _read_ca(self) -> str | None:
        """None where it can't be asked for."""
        namespace, name, field = CA_MAP
        try:
            found = await self._kube.find(CONFIG_MAP, namespace, name)
        except KubeError as error:
            LOG.warning("the CA of API clients can't be read: %s", error)
            return None
        return str(((found or {}).get("data") or {}).get(field) or "")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            parts = request.path.split("/")[1:]
            key = Key(*parts[1:3]) if len(parts) == 4 else Key("", "")
            await self._gate.admit(request, self._logs.node(key))
            return await self._answer(request, parts)
        except Refused as error:
            LOG.debug("%s %s: %d %s", request.method, request.path, error.status, error)
            return web.Response(status=error.status, text=f"{error}\n")

    async def _answer(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        if parts[0] in UNSUPPORTED:
            raise Refused(
                501, f"{parts[0]} is not supported on a virtual node: the replica runs in Slurm; logs are served"
            )
        if parts[0] != "containerLogs" or len(parts) != 4 or request.method != "GET":
            raise Refused(404, "404 page not found")
        _, namespace, pod, container = parts
        query = read_query(request.query, datetime.now(UTC))
        source = await self._logs.find(Key(namespace, pod), container, previous=query.previous)
        if self._followers >= MAX_FOLLOWERS:
            raise Refused(429, f"{MAX_FOLLOWERS} logs are being read; try again later")
        self._followers += 1
        try:
            return await self._send(request, source, query)
        finally:
            self._followers -= 1

    async def _send(self, request: web.Request, source: Source, query: LogRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        try:
            async with self._logs.open(source, query) as pieces, aclosing(pieces):
                await response.prepare(request)
                async for piece in pieces:
                    await response.write(piece)
        except Refused as error:
            if not response.prepared:
                raise
            # the status has gone out: the reader of the log is told in the log
            await response.write(f"kubeslurm: {error}\n".encode())
        except ConnectionResetError:
            LOG.debug("%s: the client is gone", request.path)
            return response
        await response.write_eof()
        return response
