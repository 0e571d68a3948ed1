"""A slurmrestd in memory, for faults that a real one can't be made to show on demand.

Used by the unit tests of the client through `httpx.MockTransport`. It keeps jobs, answers like 24.11 does, records each
request, and first plays the `faults` queued for a call: a response instead of the effect, or an exception before or
after it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import httpx

from slurmrest import AsyncSlurm, Slurm, StaticToken, Timeouts, TokenSource

EMPTY: dict[str, list[str]] = {"errors": [], "warnings": []}
"""What an answer holds besides its payload."""

QUICK = Timeouts(pause=0.0, looks=(0.0, 0.0), settle=5.0)
DESCRIPTION = {"name": "train", "current_working_directory": "/tmp", "environment": ["A=b"]}
SCRIPT = "#!/bin/sh\n"
Fault = Callable[[httpx.Request, Callable[[httpx.Request], httpx.Response]], httpx.Response]


def reply(status: int, body: Any) -> httpx.Response:
    """An answer of Slurm's: JSON, or plain text for a str."""
    if isinstance(body, str):
        return httpx.Response(status, text=body)
    return httpx.Response(status, json=body)


def failed(number: int, text: str = "refused", status: int = 500) -> httpx.Response:
    """Slurm's own error."""
    return reply(status, {"errors": [{"error_number": number, "error": text, "description": ""}], "warnings": []})


def instead(response: httpx.Response) -> Fault:
    """This answer, and no effect."""
    return lambda request, effect: response


def unsent(request: httpx.Request, effect: Callable[[httpx.Request], httpx.Response]) -> httpx.Response:
    """Nobody listens."""
    raise httpx.ConnectError("refused", request=request)


def answer_lost(request: httpx.Request, effect: Callable[[httpx.Request], httpx.Response]) -> httpx.Response:
    """The effect, and no answer."""
    effect(request)
    raise httpx.ReadError("reset", request=request)


def swallowed(request: httpx.Request, effect: Callable[[httpx.Request], httpx.Response]) -> httpx.Response:
    """Neither effect nor answer."""
    raise httpx.ReadTimeout("timed out", request=request)


class FakeSlurmrestd:
    """State, faults and a record of requests."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions or ("v0.0.40", "v0.0.41", "v0.0.42")
        self.jobs: dict[int, dict[str, Any]] = {}
        self.requests: list[httpx.Request] = []
        self.faults: dict[tuple[str, str], list[Fault]] = {}

    def client(self, *, tokens: TokenSource | None = None, **options: Any) -> AsyncSlurm:
        """An asynchronous client of it."""
        settings: dict[str, Any] = {"timeouts": QUICK, "transport": httpx.MockTransport(self.answer)} | options
        return AsyncSlurm("http://slurm:6820", tokens or StaticToken("secret"), **settings)

    def sync_client(self, **options: Any) -> Slurm:
        """A synchronous client of it."""
        settings: dict[str, Any] = {"timeouts": QUICK, "transport": httpx.MockTransport(self.answer)} | options
        return Slurm("http://slurm:6820", StaticToken("secret"), **settings)

    def fail(self, method: str, tail: str, *faults: Fault) -> None:
        """Queue faults for a call, named without its version."""
        self.faults.setdefault((method, tail), []).extend(faults)

    def calls(self, method: str, tail: str) -> list[httpx.Request]:
        """The requests of this call so far."""
        return [one for one in self.requests if (one.method, _tail(one)) == (method, tail)]

    def answer(self, request: httpx.Request) -> httpx.Response:
        """What MockTransport calls."""
        self.requests.append(request)
        queue = self.faults.get((request.method, _tail(request)))
        return queue.pop(0)(request, self._effect) if queue else self._effect(request)

    def _effect(self, request: httpx.Request) -> httpx.Response:
        tail = _tail(request)
        if tail == "openapi/v3":
            pairs = itertools.product(("slurm", "slurmdb"), self.versions)
            return reply(200, {"paths": {f"/{api}/{version}/ping/": {} for api, version in pairs}})
        if (request.method, tail) == ("POST", "job/submit"):
            return self._submit(request)
        if tail == "jobs/state/":
            wanted = request.url.params.get_list("job_id") or list(map(str, self.jobs))
            found = [(one, job) for one, job in self.jobs.items() if str(one) in wanted]
            return self._ok(jobs=[{"job_id": str(one), "state": job["job_state"]} for one, job in found])
        if (request.method, tail) == ("DELETE", "jobs/"):
            return self._kill(json.loads(request.content))
        if tail == "jobs/":
            return self._ok(jobs=list(self.jobs.values()))
        if tail.startswith("job/"):
            return self._job(request.method, int(tail.removeprefix("job/")))
        if tail == "ping/":
            return self._ok(pings=[{"hostname": "c", "responding": True, "primary": True}])
        return reply(404, "Unable find requested URL.")

    def _submit(self, request: httpx.Request) -> httpx.Response:
        job_id = max(self.jobs, default=0) + 1
        user = request.headers["X-SLURM-USER-NAME"]
        body = json.loads(request.content)
        for offset, job in enumerate(body.get("jobs") or [body["job"]]):
            self.add(job_id + offset, user, job.get("comment", ""))
        return self._ok(job_id=job_id, step_id="batch")

    def add(self, job_id: int, user: str, comment: str, submitted: int = 1) -> None:
        """Make a job by other means."""
        when = {"set": True, "infinite": False, "number": submitted}
        job = {"job_id": job_id, "job_state": ["PENDING"], "user_name": user, "comment": comment, "submit_time": when}
        self.jobs[job_id] = job

    def _job(self, method: str, job_id: int) -> httpx.Response:
        job = self.jobs.get(job_id)
        if method == "DELETE":
            code = 0 if job else 2017
            return self._ok(status=[{"error": {"code": code, "message": "Invalid job id specified"}}])
        return self._ok(jobs=[job]) if job else failed(2017, "Invalid job id specified", 404)

    def _kill(self, body: dict[str, Any]) -> httpx.Response:
        """As slurmctld: an outcome for each job, also for those that the filter `user_name` shuts out."""
        told = []
        for name in body["jobs"]:
            job = self.jobs.get(int(name))
            wanted = body.get("user_name")
            shut_out = 2172 if job and wanted not in (None, job["user_name"]) else 0
            error = {"code": shut_out if job else 2017, "message": "Cannot signal job" if job else "Invalid job id"}
            told.append({"step_id": name, "job_id": {"set": job is not None, "number": int(name)}, "error": error})
        return self._ok(status=told)

    def _ok(self, **payload: Any) -> httpx.Response:
        meta = {"slurm": {"release": "24.11.5"}}
        return reply(200, payload | {"meta": meta, "errors": [], "warnings": []})


def _tail(request: httpx.Request) -> str:
    parts = request.url.path.strip("/").split("/")
    tail = "/".join(parts[2:] if parts[0] == "slurm" else parts)
    return tail + ("/" if request.url.path.endswith("/") else "")
