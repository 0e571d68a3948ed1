"""`make bench ARGS=slurmrest`: the REST client against what else there is, in one run.

Called by `python -m tests.bench`. Against `slurmrestapi` (the client that is generated from Slurm's own specification; PyPI)
in a virtual environment of its own, and against a loop of `sbatch` on a bare Slurm. Each figure comes from a child process
of its own; the answers are recorded ones, multiplied. Times of parsing are CPU seconds, best of three.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster import cache
from tests.cluster.shell import run
from tests.cluster.slurm import BareSlurm

Row = tuple[str, str, str]

OTHER = "slurmrestapi==25.11.4.0"
RECORD = Path(__file__).parents[1] / "unit/slurmrest/records/v0.0.42-24.11.5.json"
NODES, JOBS, SUBMISSIONS, ROUNDS = 5000, 10_000, 1000, 3
BIG = 100 * 1024 * 1024


def bench() -> list[Row]:
    """All of it."""
    other = _other()
    with tempfile.TemporaryDirectory() as folder:
        files = {tail: _answer(tail, count, Path(folder)) for tail, count in _COUNTS.items()}
        return [*_imports(other), *_parses(other, files), *_states(files["jobs/state/"]), *_memory(), *_submissions()]


_COUNTS = {"nodes/": NODES, "jobs/": JOBS, "jobs/state/": JOBS}
_FIELDS = {"nodes/": "nodes", "jobs/": "jobs", "jobs/state/": "jobs"}


def _other() -> str:
    """The interpreter of a virtual environment with the other client in it."""

    def build(path: Path) -> None:
        venv.create(path, with_pip=True)
        run([str(path / "bin/pip"), "install", "--quiet", OTHER], timeout=300)

    return str(cache.artefact("bench-slurmrestapi", cache.key_of(OTHER, sys.version), build) / "bin/python")


def _recorded(tail: str) -> list[dict[str, Any]]:
    payload: dict[str, list[dict[str, Any]]] = json.loads(RECORD.read_text())[tail]
    return payload[_FIELDS[tail]]


def _entry(tail: str, number: int, recorded: list[dict[str, Any]]) -> dict[str, Any]:
    """A recorded entry with a name or an id of its own."""
    entry = dict(recorded[number % len(recorded)])
    if tail == "nodes/":
        return entry | {
            "name": f"node{number}",
            "hostname": f"node{number}",
            "address": f"10.0.{number // 250}.{number % 250}",
        }
    return entry | {"job_id": str(number) if tail == "jobs/state/" else number, "name": f"train-{number}"}


def _answer(tail: str, count: int, folder: Path) -> Path:
    """An answer of so many entries, written as slurmrestd writes it."""
    recorded = _recorded(tail)
    entries = [_entry(tail, number, recorded) for number in range(1, count + 1)]
    if tail == "jobs/state/":
        entries = [{"job_id": one["job_id"], "state": one["state"]} for one in entries]
    number = {"set": True, "infinite": False, "number": 1}
    around = {"last_update": number, "last_backfill": number, "errors": [], "warnings": []}
    path = folder / f"{tail.replace('/', '-')}.json"
    path.write_text(json.dumps({_FIELDS[tail]: entries, **around}, indent=2))
    return path


def _child(python: str, code: str, *argv: str, timeout: float = 600, **secret: str) -> Any:
    """What a program of its own prints as JSON; `secret` goes into its environment."""
    done = run([python, "-c", code, *argv], timeout=timeout, env={"PYTHONPATH": "", **secret})
    return json.loads(done.stdout)


def _ratio(label: str, theirs: float, ours: float, goal: float) -> Row:
    ratio = theirs / ours
    return (label, f"{ratio:.1f}x", f">= {goal:g}x: {'met' if ratio >= goal else 'MISSED'}")


_IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


def _imports(other: str) -> list[Row]:
    """From nothing to a client that is made."""
    bare = min(_child(sys.executable, _IMPORT.format("import slurmrest")) for _ in range(5))
    make = "import slurmrest; slurmrest.Slurm('http://h:1', slurmrest.StaticToken('t'))"
    ours = min(_child(sys.executable, _IMPORT.format(make)) for _ in range(5))
    make = "import slurmrestapi; slurmrestapi.SlurmApi(slurmrestapi.ApiClient())"
    theirs = min(_child(other, _IMPORT.format(make)) for _ in range(ROUNDS))
    return [
        ("import slurmrest", f"{bare * 1000:.0f} ms", f"<= 150 ms: {'met' if bare <= 0.15 else 'MISSED'}"),
        ("import slurmrest and make a client", f"{ours * 1000:.0f} ms", ""),
        ("import slurmrestapi and make a client", f"{theirs * 1000:.0f} ms", ""),
        _ratio("import: slurmrestapi / slurmrest", theirs, ours, 5),
    ]


_OURS = """
import json, sys, time
from slurmrest.streams import Splitter
from slurmrest.versions import forced
data, each = open(sys.argv[1], "rb").read(), sys.argv[2]
def parse():
    splitter = Splitter(getattr(forced("v0.0.42"), each)())
    for start in range(0, len(data), 65536):
        splitter.feed(data[start:start + 65536])
    return splitter.finish()[sys.argv[3]]
times = []
for _ in range(3):
    begun = time.process_time(); found = parse(); times.append(time.process_time() - begun)
    count = len(found); del found
print(json.dumps([min(times), count]))
"""
_THEIRS = """
import json, sys, time
import slurmrestapi
data, model = open(sys.argv[1]).read(), getattr(slurmrestapi, sys.argv[2])
times = []
for _ in range(3):
    begun = time.process_time(); found = model.from_json(data); times.append(time.process_time() - begun)
    count = len(getattr(found, sys.argv[3])); del found
print(json.dumps([min(times), count]))
"""


def _parses(other: str, files: dict[str, Path]) -> list[Row]:
    """From the bytes of an answer to values."""
    rows: list[Row] = []
    cases = (("nodes/", "each_node", "V0042OpenapiNodesResp"), ("jobs/", "each_job", "V0042OpenapiJobInfoResp"))
    for tail, each, model in cases:
        field, size = _FIELDS[tail], files[tail].stat().st_size / 1e6
        ours, count = _child(sys.executable, _OURS, str(files[tail]), each, field)
        theirs, others = _child(other, _THEIRS, str(files[tail]), model, field)
        if count != others or count != _COUNTS[tail]:
            raise ValueError(f"{count} and {others} {field} were read instead of {_COUNTS[tail]}")
        label = f"{count} {field} ({size:.1f} MB)"
        rows += [(f"slurmrest: {label}", f"{ours:.3f} s", ""), (f"slurmrestapi: {label}", f"{theirs:.3f} s", "")]
        rows.append(_ratio(f"parse {field}: slurmrestapi / slurmrest", theirs, ours, 5))
    return rows


@contextmanager
def _serving(pieces: list[bytes]) -> Iterator[str]:
    """A server that gives this answer, whatever is asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(sum(len(piece) for piece in pieces)))
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


_CALL = """
import json, re, sys, time
from slurmrest import Slurm, StaticToken
slurm = Slurm(sys.argv[1], StaticToken("t"), version="v0.0.42")
call = getattr(slurm, sys.argv[2])
def memory(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024
rounds = int(sys.argv[3])
before, times = memory(), []
for _ in range(rounds):
    begun = time.process_time(); found = call(); times.append(time.process_time() - begun)
    count = len(found)
    if rounds > 1: del found
print(json.dumps([min(times), count, before, memory()]))
"""


def _states(path: Path) -> list[Row]:
    """A whole call, socket and all."""
    with _serving([path.read_bytes()]) as url:
        seconds, count, *_ = _child(sys.executable, _CALL, url, "job_states", "5")
    goal = f"<= 40 ms: {'met' if seconds <= 0.04 else 'MISSED'}"
    return [(f"jobs/state of {count}: the client's CPU for the whole call", f"{seconds * 1000:.0f} ms", goal)]


_LOADS = """
import json, re, sys, urllib.request
def memory(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024
before = memory()
found = json.loads(urllib.request.urlopen(sys.argv[1]).read())
print(json.dumps([len(found["jobs"]), before, memory()]))
"""


def _memory() -> list[Row]:
    """100 MB of jobs: what the process grows by at its peak, and what json.loads of the same costs."""
    recorded = _recorded("jobs/")
    size, pieces = 0, [b'{"errors": [], "jobs": [']
    while size < BIG:
        text = json.dumps(_entry("jobs/", len(pieces), recorded), indent=2).encode()
        pieces.append((b"," if size else b"") + text)
        size += len(text)
    pieces.append(b"]}")
    with _serving(pieces) as url:
        seconds, count, before, peak = _child(sys.executable, _CALL, url, "jobs", "1")
        _, plain_before, plain_peak = _child(sys.executable, _LOADS, url)
    return [
        (f"{size / 1e6:.0f} MB of {count} jobs: CPU", f"{seconds:.2f} s", ""),
        ("its peak of memory above the client's own", f"{peak - before:.0f} MB", ""),
        ("json.loads of the same", f"{plain_peak - plain_before:.0f} MB", ""),
    ]


_SUBMIT = """
import asyncio, json, os, sys, time
from slurmrest import AsyncSlurm, SignedTokens
url, count, keyed = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "keyed"
key = bytes.fromhex(os.environ["KEY"])
job = {"name": "b", "current_working_directory": "/tmp", "environment": ["A=b"], "hold": True}
job["standard_output"] = "/dev/null"
async def main():
    async with AsyncSlurm(url, SignedTokens(key)) as slurm:
        await slurm.version()
        begun = time.perf_counter()
        script = "#!/bin/sh\\ntrue\\n"
        await asyncio.gather(*(
            slurm.submit(job, script, user="alice", key=f"bench/{n}") if keyed else slurm.submit(job, script, user="alice")
            for n in range(count)))
        print(json.dumps([time.perf_counter() - begun, time.process_time()]))
asyncio.run(main())
"""
_LOOP = """
i=0
while [ $i -lt $1 ]; do sbatch --quiet --hold --output=/dev/null --job-name=b /tmp/b.sh || exit 1; i=$((i+1)); done
"""


def _sbatch() -> float:
    """Seconds of a loop of sbatch, as alice on the same machine."""
    with BareSlurm(nodes=2) as slurm:
        slurm.run("sh", "-c", "printf '#!/bin/sh\\ntrue\\n' > /tmp/b.sh; chmod 644 /tmp/b.sh")
        begun = time.perf_counter()
        slurm.run("sh", "-c", _LOOP, "loop", str(SUBMISSIONS), user="alice", timeout=600)
        return time.perf_counter() - begun


def _rest(mode: str) -> tuple[float, float]:
    """Seconds of as many submissions over REST at once, and the client's CPU."""
    with BareSlurm(nodes=2) as slurm:
        seconds, cpu = _child(sys.executable, _SUBMIT, slurm.url, str(SUBMISSIONS), mode, KEY=slurm.jwt_key.hex())
        found = slurm.run("squeue", "--noheader", "--states=all", "--format=%i").stdout.split()
        if len(found) != SUBMISSIONS:
            raise ValueError(f"{len(found)} jobs were made of {SUBMISSIONS}")
    return seconds, cpu


def _submissions() -> list[Row]:
    """1,000 jobs, each kind on a fresh Slurm."""
    plain = _sbatch()
    rows: list[Row] = [(f"{SUBMISSIONS} x sbatch, one after the other", f"{plain:.1f} s", "")]
    for mode in ("unkeyed", "keyed"):
        seconds, cpu = _rest(mode)
        rows.append((f"{SUBMISSIONS} x submit, {mode}, at once (CPU {cpu:.1f} s)", f"{seconds:.1f} s", ""))
        rows.append(_ratio(f"sbatch / submit, {mode}", plain, seconds, 2))
    return rows
