"""Every snippet of docs/slurmrest.md, as it stands there, against a real Slurm."""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.shell import run
from tests.cluster.slurm import BareSlurm

pytestmark = pytest.mark.slurm

PAGE = Path(__file__).parents[2] / "docs/slurmrest.md"
CERTIFICATES = PAGE.parents[1] / "tests/unit/slurmrest/certificates"
URL, TOKEN, KEY = "http://slurm.example.org:6820", "/home/alice/.slurm.jwt", "/etc/slurm/jwt_hs256.key"
"""What the page calls the places that are elsewhere here."""


@dataclass(frozen=True)
class Snippet:
    """One fenced block: the heading above it, the word behind "python", its text."""

    heading: str
    kind: str
    code: str


def snippets() -> list[Snippet]:
    """Those of the page."""
    found: list[Snippet] = []
    for section in re.split(r"(?m)^## ", PAGE.read_text())[1:]:
        heading = section.partition("\n")[0]
        found += [
            Snippet(heading, kind.strip(), code)
            for kind, code in re.findall(r"(?ms)^```python(.*?)\n(.*?)^```$", section)
        ]
    return found


def ran(slurm: BareSlurm, code: str, folder: Path) -> str:
    """What a snippet prints, run by itself as a script."""
    token, key = folder / "token", folder / "key"
    token.write_text(f"SLURM_JWT={slurm.token('alice')}\n")
    key.write_bytes(slurm.jwt_key)
    for name, here in ((URL, slurm.url), (TOKEN, str(token)), (KEY, str(key))):
        code = code.replace(name, here)
    script = folder / "snippet.py"
    script.write_text(code)
    done = run([sys.executable, "-W", "error", str(script)], timeout=60, cwd=folder)
    assert done.stderr == ""
    return done.stdout


def test_the_page_has_snippets_for_both_clients() -> None:
    """The others of this module would pass on an empty page."""
    codes = [snippet.code for snippet in snippets()]
    assert len(codes) > 8
    assert any("AsyncSlurm" in code for code in codes)


@pytest.mark.parametrize("snippet", [one for one in snippets() if not one.kind], ids=lambda one: one.heading)
def test_a_snippet_runs_as_it_stands(slurm: BareSlurm, snippet: Snippet, tmp_path: Path) -> None:
    """To its end, and with nothing on stderr."""
    ran(slurm, snippet.code, tmp_path)


def test_the_snippets_about_accounting_run_where_there_is_a_slurmdbd(tmp_path: Path) -> None:
    """They show the job that was made just before."""
    [code] = [one.code for one in snippets() if one.kind == "accounting"]
    with BareSlurm(nodes=1, accounting=True) as slurm:
        job_id = slurm.run("sbatch", "--parsable", "--job-name=shown", "--wrap=true", user="alice").stdout.strip()
        end = time.monotonic() + 30
        while f"{job_id} shown" not in (printed := ran(slurm, code, tmp_path)):
            assert time.monotonic() < end, printed
        assert "physics" in printed


def test_the_snippet_about_tls_runs_through_a_proxy_that_demands_a_certificate(
    slurm: BareSlurm, tmp_path: Path
) -> None:
    """As in front of a slurmrestd that speaks plain http."""
    [code] = [one.code for one in snippets() if one.kind == "tls"]
    for name, file in (("/etc/pki/site-ca", "ca"), ("/home/alice/alice", "client")):
        code = code.replace(name, str(CERTIFICATES / file))
    with tls_proxy(slurm.url.removeprefix("unix://")) as url:
        assert "responding=True" in ran(slurm, code.replace("https://slurm.example.org", url), tmp_path)


class _Relay(socketserver.BaseRequestHandler):
    """Hands the bytes of one connection to the server's `target` and back."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as inner, contextlib.suppress(OSError):  # one of the two went away
            inner.connect(self.server.target)  # type: ignore[attr-defined]
            back = threading.Thread(target=_copy, args=(inner, self.request), daemon=True)
            back.start()
            _copy(self.request, inner)
            inner.shutdown(socket.SHUT_RDWR)
            back.join(5)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)


@contextlib.contextmanager
def tls_proxy(target: str) -> Iterator[str]:
    """Ends TLS in front of a unix socket, for clients of our CA only; its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    context.load_verify_locations(CERTIFICATES / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Relay) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.target = target  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_the_watch_of_the_page_sees_its_job_to_the_end(slurm: BareSlurm, tmp_path: Path) -> None:
    """From its appearance to its completion."""
    [code] = [one.code for one in snippets() if one.heading == "Watch"]
    lines = ran(slurm, code, tmp_path).splitlines()
    assert lines[0].startswith("APPEARED None -> ")
    assert lines[-1].endswith("-> COMPLETED")


def test_the_first_snippet_shows_the_nodes_and_makes_the_job(slurm: BareSlurm, tmp_path: Path) -> None:
    """As squeue has it."""
    printed = ran(slurm, snippets()[0].code, tmp_path)
    assert [line.split()[0] for line in printed.splitlines()[:-1]] == list(slurm.nodes)
    job_id = printed.splitlines()[-1].split()[1]
    told = slurm.run("scontrol", "-o", "show", "job", job_id).stdout
    assert "JobName=hello" in told
    assert "UserId=alice" in told
