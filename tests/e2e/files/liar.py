"""A proxy before slurmrestd that answers some calls wrongly; runs in a pod of its own, beside slurmrestd behind its Service.

Each wrong answer is one of: none at all though the call was carried out, half of the body, 500 with an error of Slurm's,
503 in plain text, 200 with nothing in it. Its last line on SIGTERM: calls and wrong answers.
"""

import http.client
import os
import random
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UPSTREAM = os.environ["UPSTREAM"]
WRONG = float(os.environ["WRONG"])
ERROR = b'{"errors": [{"error_number": 1007, "error": "Zero Bytes were transmitted or received"}], "warnings": []}'
DICE = random.Random()  # noqa: S311 - no secret hangs on it
COUNTS = {"calls": 0, "wrong": 0}


class Liar(BaseHTTPRequestHandler):
    """One connection of the operator's."""

    protocol_version = "HTTP/1.1"

    def handle_call(self) -> None:
        """Pass it on, or lie."""
        COUNTS["calls"] += 1
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lie = DICE.choice(("silent", "half", "error", "busy", "empty")) if DICE.random() < WRONG else ""
        COUNTS["wrong"] += bool(lie)
        if lie in ("error", "busy", "empty"):
            status, text = {"error": (500, ERROR), "busy": (503, b"busy"), "empty": (200, b"{}")}[lie]
            self.answer(status, "text/plain" if lie == "busy" else "application/json", text, len(text))
            return
        try:
            status, kind, text = self.ask(body)
        except OSError:
            self.answer(503, "text/plain", b"no slurmrestd", 13)
            return
        if lie == "silent":
            self.hang_up()
        else:
            self.answer(status, kind, text if not lie else text[: len(text) // 2], len(text))
            if lie:
                self.hang_up()

    do_GET = do_POST = do_DELETE = handle_call  # noqa: N815 - http.server's names

    def ask(self, body: bytes) -> tuple[int, str, bytes]:
        """What slurmrestd says."""
        upstream = http.client.HTTPConnection(UPSTREAM, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        upstream.request(self.command, self.path, body or None, {**headers, "Connection": "close"})
        got = upstream.getresponse()
        text = got.read()
        upstream.close()
        return got.status, got.headers.get("Content-Type") or "text/plain", text

    def answer(self, status: int, kind: str, text: bytes, length: int) -> None:
        """Send it, of the length that is said."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(text)

    def hang_up(self) -> None:
        """End the connection here and now."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Nothing: there are thousands."""


def end(*_: object) -> None:
    """Say what was done, and go."""
    print(f"{COUNTS['calls']} calls, {COUNTS['wrong']} answered wrongly", flush=True)
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    sys.stderr = sys.stdout
    ThreadingHTTPServer(("", 6820), Liar).serve_forever()
