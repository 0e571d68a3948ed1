"""https with an own CA and a client's certificate, against a real TLS server that demands one."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slurmrest import TLS, AsyncSlurm, Ping, Slurm, StaticToken, Timeouts, Unavailable
from tests.unit.slurmrest.fake import EMPTY

FILES = Path(__file__).parent / "certificates"
OURS = TLS(ca=FILES / "ca.pem", certificate=FILES / "client.pem", key=FILES / "client.key")
ONCE = Timeouts(retries=0, connect=10, read=10)


class Pong(BaseHTTPRequestHandler):
    """Answers each request as slurmrestd answers a ping."""

    def do_GET(self) -> None:
        """One slurmctld, that responds."""
        body = json.dumps({"pings": [{"hostname": "c", "responding": True, "primary": True}], **EMPTY}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


class Quiet(ThreadingHTTPServer):
    """A handshake that fails is what some tests are about: no traceback of it."""

    def handle_error(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def server(certificate: str = "server") -> Iterator[str]:
    """A server with this certificate that talks to clients of our CA only; its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FILES / f"{certificate}.pem", FILES / f"{certificate}.key")
    context.load_verify_locations(FILES / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with Quiet(("127.0.0.1", 0), Pong) as http:
        # The handshake belongs to the thread of its connection, not to the one that accepts them all.
        http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()


def ping(kind: str, url: str, tls: TLS | None) -> list[Ping]:
    """One call through a client of this kind."""
    if kind == "sync":
        with Slurm(url, StaticToken("x"), version="v0.0.42", tls=tls, timeouts=ONCE) as slurm:
            return slurm.ping()

    async def ask() -> list[Ping]:
        async with AsyncSlurm(url, StaticToken("x"), version="v0.0.42", tls=tls, timeouts=ONCE) as slurm:
            return await slurm.ping()

    return asyncio.run(ask())


both = pytest.mark.parametrize("kind", ["async", "sync"])


@both
def test_an_own_ca_and_a_clients_certificate_are_taken(kind: str) -> None:
    """Both sides know each other."""
    with server() as url:
        assert ping(kind, url, OURS)[0].responding


@both
@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (None, "CERTIFICATE_VERIFY_FAILED"),
        (TLS(ca=FILES / "stranger.pem", certificate=OURS.certificate, key=OURS.key), "CERTIFICATE_VERIFY_FAILED"),
        (TLS(ca=FILES / "ca.pem"), "ReadError|SSLError"),
    ],
)
def test_who_isnt_known_to_the_other_gets_no_answer(kind: str, tls: TLS | None, words: str) -> None:
    """A server of a CA that we don't believe in, and a server that doesn't believe in us."""
    with server() as url, pytest.raises(Unavailable, match=words):
        ping(kind, url, tls)


@both
def test_a_certificate_for_another_host_is_not_taken(kind: str) -> None:
    """Though our CA has signed it."""
    with server("elsewhere") as url, pytest.raises(Unavailable, match=r"not valid for|mismatch"):
        ping(kind, url, OURS)


@both
@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (TLS(ca=FILES / "nowhere.pem"), r"no certificates in .*nowhere\.pem: No such file"),
        (TLS(ca=FILES / "client.key"), r"no certificates in .*client\.key"),
        (TLS(ca=OURS.ca, certificate=FILES / "gone.pem"), r"no certificate in .*gone\.pem .*No such file"),
        (TLS(ca=OURS.ca, certificate=OURS.certificate), r"no certificate in .*client\.pem"),
        (TLS(ca=OURS.ca, certificate=OURS.certificate, key=FILES / "server.key"), "KEY_VALUES_MISMATCH"),
        (TLS(certificate=OURS.certificate, key=FILES / "locked.key"), "the key has a password"),
    ],
)
def test_a_file_that_is_of_no_use_is_named_at_once(kind: str, tls: TLS, words: str) -> None:
    """Not at the first call, and without a question at the terminal."""
    with pytest.raises(ValueError, match=words) as caught:
        ping(kind, "https://slurm", tls)
    assert "BEGIN" not in str(caught.value)


@both
@pytest.mark.parametrize("url", ["http://slurm:6820", "unix:///run/slurmrestd"])
def test_certificates_without_https_are_a_mistake(kind: str, url: str) -> None:
    """Who names them believes that the way is safe."""
    with pytest.raises(ValueError, match="https:// only"):
        ping(kind, url, OURS)


def test_a_key_without_its_certificate_is_a_mistake() -> None:
    """Nothing would be shown to the server."""
    with pytest.raises(ValueError, match="without its certificate"):
        TLS(key="x.key")
