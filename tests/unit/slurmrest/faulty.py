"""A server on a real socket that answers as badly as a test wants. Used by the tests of faults.

    with FaultyServer("tcp", fault) as server:
        Slurm(server.url, ...)

`fault` is given the connection once the whole request is there, and writes what it likes; after it the connection is closed.
Each connection has a thread of its own.
"""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

Place = Literal["tcp", "unix"]
Fault = Callable[[socket.socket], None]


def http(status: int, body: bytes | str, *, length: int | None = None, headers: str = "") -> bytes:
    """An answer; `length` tells a lie about the body's."""
    data = body.encode() if isinstance(body, str) else body
    size = len(data) if length is None else length
    return f"HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}Content-Length: {size}\r\n\r\n".encode() + data


def says(data: bytes) -> Fault:
    """Sends this, and closes."""
    return lambda connection: connection.sendall(data)


def answers(status: int, payload: Any) -> Fault:
    """An answer of Slurm's."""
    return says(http(status, json.dumps(payload)))


class FaultyServer:
    """Listens while it is open. `requests` holds what came in: method and path."""

    def __init__(self, place: Place, fault: Fault, *, others: Fault | None = None, only: str = "") -> None:
        self._fault = fault
        self._only = only
        self._others = others
        self._folder = tempfile.TemporaryDirectory(prefix="faulty-")
        self._place = place
        self._ended = threading.Event()
        self._listener = self._listen()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        if self._place == "unix":
            return f"unix://{self._listener.getsockname()}"
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _listen(self) -> socket.socket:
        if self._place == "tcp":
            return socket.create_server(("127.0.0.1", 0))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(Path(self._folder.name) / "socket"))
        listener.listen()
        return listener

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for one in [self._listener, *self._connections]:
            with contextlib.suppress(OSError):  # it may be closed already
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(5)
        self._folder.cleanup()

    def wait(self, seconds: float) -> bool:
        """For a fault that takes its time: False once the server is closed."""
        return not self._ended.wait(seconds)

    def _run(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection = self._listener.accept()[0]
            except OSError:  # closed
                return
            self._connections.append(connection)
            self._run(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # the client has had enough, which is what is tested
            line = _request_line(connection)
            self.requests.append(line)
            fits = self._only in line or self._others is None
            (self._fault if fits or self._others is None else self._others)(connection)


def _request_line(connection: socket.socket) -> str:
    """Reads one request to its end."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError("no request")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head.split(b"\r\n")[0].decode().rpartition(" ")[0]
