"""The client without any I/O: each call is a generator that yields requests and pauses and returns the result.

`AsyncSlurm` and `Slurm` run the same generators over their transports, so both behave alike. What always holds: a
request goes out with a token of the user it is for, one refused token is renewed once, and only what may be repeated
safely, or surely never arrived, is repeated.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from slurmrest import answers, endpoints, versions
from slurmrest.answers import Answer
from slurmrest.endpoints import Api
from slurmrest.errors import (
    Ambiguous,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ProtocolError,
    Unavailable,
    Unsupported,
)
from slurmrest.messages import Lost, Pause, Request, Steps, T
from slurmrest.numbers import read_int
from slurmrest.streams import Entries
from slurmrest.timeouts import Timeouts
from slurmrest.tokens import TokenSource
from slurmrest.values import Diag, Job, JobState, Node, Partition, Ping
from slurmrest.versions import Adapter

USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,127}\$?")
NODE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
STATE_WORD: Final = re.compile(r"[A-Z_]{1,40}")
TAIL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./%@:+=,\[\]-]{0,2000}")
_CHANGING_GET: Final = re.compile(r"reconfigure/?|job/[^/]+/requeue/?")
SIGNAL: Final = re.compile(r"[A-Z0-9]{1,12}")
_ADMINISTRATORS: Final = frozenset({"root", "slurm"})
_SPECIFICATION: Final = "/openapi/v3"


class Core:
    """The calls. Holds the negotiated version, the release last seen, and nothing else that changes."""

    def __init__(self, tokens: TokenSource, user: str, version: str | None, timeouts: Timeouts) -> None:
        self._clock = time.monotonic
        self.tokens = tokens
        self.user = checked(USER, user, "user name")
        self.timeouts = timeouts
        self._forced = version is not None
        self._adapter: Adapter | None = versions.forced(version) if version else None
        self._release = ""

    def version(self) -> Steps[str]:
        """The API version in use, such as "v0.0.42"; negotiated at first need."""
        return (yield from self._adapt()).version

    def slurm_version(self) -> Steps[str]:
        """slurmrestd's release, such as "24.11.5"."""
        if not self._release:
            yield from self.ping()
        return self._release

    def ping(self) -> Steps[list[Ping]]:
        """Each slurmctld of the cluster, and whether it responds to slurmrestd."""
        adapter = yield from self._adapt()
        return adapter.pings((yield from self.get("ping/")).payload)

    def diag(self) -> Steps[Diag]:
        """slurmctld's own figures."""
        adapter = yield from self._adapt()
        return adapter.diag((yield from self.get("diag/")).payload)

    def nodes(self) -> Steps[list[Node]]:
        """All nodes; 2.4 KB and 0.17 ms each on the wire."""
        adapter = yield from self._adapt()
        return (yield from self.stream("nodes/", adapter.each_node()))

    def nodes_since(self, moment: int | None) -> Steps[tuple[list[Node] | None, int | None]]:
        """All nodes, or None if none has changed since `moment`; and the moment to ask with next time.

        A changed one costs the whole list, none costs nothing. 24.11's older versions can't be asked like this (error
        9202), and its v0.0.42 fails when nodes have changed but no partition ("Unable to query partitions").
        """
        adapter = yield from self._adapt()
        entries = adapter.each_node()
        if moment is not None and adapter.takes_update_time:
            params = {"update_time": moment}
            try:
                answer = yield from self.call("GET", "nodes/", params=params, safe=True, entries=entries, retries=0)
            except Unavailable:
                pass  # if it really is, the plain call tells
            else:
                return (entries.of(answer.payload), _last_update(answer.payload)) if answer.payload else (None, moment)
        answer = yield from self.call("GET", "nodes/", safe=True, entries=entries)
        return entries.of(answer.payload), _last_update(answer.payload)

    def node(self, name: str) -> Steps[Node]:
        """One node, or NotFound."""
        tail = f"node/{quote(checked(NODE_NAME, name, 'node name'), safe='')}"
        adapter = yield from self._adapt()
        try:
            found = adapter.nodes((yield from self.get(tail)).payload)
        except InvalidRequest as error:
            if error.number == 0:  # 24.11 and 26.05 say "Failure to query node" without a number
                raise NotFound(error.text, method="GET", path=adapter.path(tail)) from error
            raise
        return _the_one(found, [node.name for node in found], name, adapter.path(tail))

    def update_node(
        self, name: str, *, state: Iterable[str] = (), reason: str | None = None, comment: str | None = None
    ) -> Steps[None]:
        """Change a node: `state` such as ["DRAIN"], ["RESUME"], ["DOWN"], ["UNDRAIN"]; what isn't given stays."""
        words = [checked(STATE_WORD, word, "node state") for word in state]
        values = {"state": words or None, "reason": reason, "comment": comment}
        body = {field: value for field, value in values.items() if value is not None}
        refuse_nul(body)
        tail = f"node/{quote(checked(NODE_NAME, name, 'node name'), safe='')}"
        yield from self.call("POST", tail, body=body, repeatable=True)

    def partitions(self) -> Steps[list[Partition]]:
        """All partitions."""
        adapter = yield from self._adapt()
        return adapter.partitions((yield from self.get("partitions/")).payload)

    def job_states(self) -> Steps[list[JobState]]:
        """Id and state of each job that slurmctld remembers; 80 bytes each. An array's tasks share their job's id."""
        adapter = yield from self._adapt()
        return (yield from self.stream("jobs/state/", adapter.each_job_state()))

    def job(self, job_id: int) -> Steps[Job]:
        """One job (of an array its first task, of a heterogeneous job its leader).

        Raises NotFound if slurmctld never had it or has purged it.
        """
        tail = f"job/{int(job_id)}"
        adapter = yield from self._adapt()
        found = adapter.jobs((yield from self.get(tail)).payload)
        return _the_one(found, [job.job_id for job in found], int(job_id), adapter.path(tail))

    def jobs(self) -> Steps[list[Job]]:
        """All jobs in full. Slow and large at scale (8 KB each): prefer `job_states` and `job`."""
        adapter = yield from self._adapt()
        return (yield from self.stream("jobs/", adapter.each_job()))

    def cancel(self, job_id: int, *, signal: str | int | None = None, user: str | None = None) -> Steps[None]:
        """Cancel a job, or send its processes a signal ("USR1", 10). An ended job is no error, an unknown one is."""
        tail = f"job/{int(job_id)}"
        path = (yield from self._adapt()).path(tail)
        who = checked(USER, self.user if user is None else user, "user name")
        if who not in _ADMINISTRATORS:
            yield from self._refuse_stranger(job_id, who, path)
        if signal is not None:
            tail += f"?signal={checked(SIGNAL, str(signal).upper(), 'signal')}"
        answer = yield from self.call("DELETE", tail, user=who, repeatable=signal is None)
        for number, text in _status_errors(answer.payload):
            if number != answers.ALREADY_DONE:
                raise answers.refusal(Request("DELETE", path), number, text, safe=False)

    def _refuse_stranger(self, job_id: int, user: str, path: str) -> Steps[None]:
        """slurmctld (24.11.5, 26.05.5) answers nobody any more once it has refused a DELETE: it must not come to that."""
        job = yield from self.job(job_id)
        if job.user_name != user:
            raise PermissionDenied(f"the job is not {user}'s", method="DELETE", path=path)

    def reconfigure(self) -> Steps[None]:
        """Have Slurm read its configuration files again. It has not yet done so on all nodes when this returns."""
        yield from self.call("GET", "reconfigure/", repeatable=True, safe=False)

    def request(
        self,
        method: str,
        tail: str,
        *,
        api: Api = "slurm",
        params: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        user: str | None = None,
    ) -> Steps[Answer]:
        """Any call of the API, such as `request("GET", "jobs/", params={"flags": "DETAIL"})`; its answer as it is.

        `tail` follows the version in the path, `api` precedes it ("slurm" or "slurmdb"). Reads are repeated when that
        may help, nothing else is. Judged like every call: an answer with errors raises.
        """
        if not TAIL.fullmatch(tail) or "//" in tail or ".." in tail:
            raise InvalidRequest(f"{tail!r:.80} is not the path of a call")
        refuse_nul(body)
        safe = method == "GET" and not _CHANGING_GET.fullmatch(tail)
        return (
            yield from self.call(method, tail, api=api, params=params, body=body, user=user, repeatable=safe, safe=safe)
        )

    def get(self, tail: str) -> Steps[Answer]:
        """A call that changes nothing."""
        return (yield from self.call("GET", tail, repeatable=True, safe=True))

    def stream(
        self, tail: str, entries: Entries[T], *, api: Api = "slurm", params: Mapping[str, str | int] | None = None
    ) -> Steps[list[T]]:
        """A call that answers with a long list: each entry is read while the answer arrives, so memory stays flat."""
        answer = yield from self.call("GET", tail, api=api, params=params, repeatable=True, safe=True, entries=entries)
        return entries.of(answer.payload)

    def call(
        self,
        method: str,
        tail: str,
        *,
        api: Api = "slurm",
        params: Mapping[str, str | int] | None = None,
        user: str | None = None,
        body: Mapping[str, Any] | None = None,
        repeatable: bool = False,
        safe: bool = False,
        entries: Entries[Any] | None = None,
        retries: int | None = None,
    ) -> Steps[Answer]:
        """One call of the API. `safe`: changes nothing. `repeatable`: twice has the same effect as once.

        `entries`: the answer's payload holds values in place of that list's entries. `retries`: other than usual.
        """
        who = self.user if user is None else checked(USER, user, "user name")
        adapter = yield from self._adapt()
        path = adapter.path(tail, api) + (f"?{urlencode(params)}" if params else "")
        self._refuse_missing(adapter, api, method, tail)
        try:
            answer = yield from self._try(_Call(method, path, who, body, repeatable, safe, entries, retries))
        except Unsupported:
            # slurmrestd was exchanged for another release under our feet: ask again what it speaks, next time.
            self._adapter = self._adapter if self._forced else None
            raise
        self._release = _release(answer.payload) or self._release
        return answer

    def _refuse_missing(self, adapter: Adapter, api: Api, method: str, tail: str) -> None:
        """slurmrestd would say 404 and nothing else; this says which Slurm has the call."""
        endpoint = endpoints.find(api, method, tail)
        missing = endpoint.missing(adapter.version) if endpoint else ""
        if missing:
            raise Unsupported(missing, method=method, path=adapter.path(tail, api))

    def _adapt(self) -> Steps[Adapter]:
        if self._adapter is None:
            specification = yield from self._try(_Call("GET", _SPECIFICATION, self.user, None, True, True))
            self._adapter = versions.choose(specification.payload.get("paths"))
        return self._adapter

    def _try(self, call: _Call) -> Steps[Answer]:
        """The call, again after a quick failure that another try may mend. A slow one has cost enough already."""
        started = self._clock()
        for attempt in range(self.timeouts.retries if call.retries is None else call.retries):
            try:
                return (yield from self._once(call))
            except (Unavailable, Ambiguous) as error:
                hopeless = isinstance(error, Ambiguous) and not call.repeatable
                if hopeless or self._clock() - started > self.timeouts.patience:
                    raise
            pause = self.timeouts.pause * 2**attempt
            yield Pause(pause + random.uniform(0, pause / 2))  # noqa: S311 - jitter, not a secret
        return (yield from self._once(call))

    def _once(self, call: _Call) -> Steps[Answer]:
        """The call, with a fresh token if the first one is refused: a refused request has had no effect."""
        try:
            return (yield from self._send(call))
        except Authentication:
            self.tokens.refresh()
        return (yield from self._send(call))

    def _send(self, call: _Call) -> Steps[Answer]:
        headers = {"X-SLURM-USER-NAME": call.user, "X-SLURM-USER-TOKEN": self.tokens.token(call.user)}
        request = Request(call.method, call.path, headers, call.body, call.entries)
        outcome = yield request
        if isinstance(outcome, Lost):
            raise answers.lost(request, outcome, safe=call.safe)
        if outcome is None:
            raise ProtocolError("the transport gave no outcome", method=call.method, path=call.path)
        return answers.judge(request, outcome, safe=call.safe)


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    user: str
    body: Mapping[str, Any] | None
    repeatable: bool
    safe: bool
    entries: Entries[Any] | None = None
    retries: int | None = None


def checked(pattern: re.Pattern[str], text: str, what: str) -> str:
    """`text` if all of it matches; it goes into a header, a path or a host list. Raises InvalidRequest."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise InvalidRequest(f"{text!r:.80} is not a {what}")
    return text


def refuse_nul(value: Any, where: str = "") -> None:
    """Slurm reads C strings: a NUL would silently cut one short. Raises InvalidRequest."""
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidRequest(f"{where or 'text'} holds a NUL character")
    elif isinstance(value, Mapping):
        for field, inner in value.items():
            refuse_nul(field, where)
            refuse_nul(inner, f"{where}.{field}" if where else str(field))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            refuse_nul(inner, f"{where}[{index}]")


def _the_one(found: list[T], names: list[Any], wanted: Any, path: str) -> T:
    """The entry that was asked for. An answer with other entries only is as good as none."""
    if wanted not in names:
        raise NotFound(f"slurmctld answered without {wanted}", method="GET", path=path)
    return found[names.index(wanted)]


def _status_errors(payload: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The errors that a DELETE hides in `status`, next to an empty `errors`."""
    for entry in payload.get("status") or []:
        error = (entry.get("error") if isinstance(entry, dict) else None) or {}
        number = error.get("code") or 0
        if isinstance(number, int) and number:
            yield number, str(error.get("message") or error.get("string") or "an error without a text")


def _last_update(payload: Mapping[str, Any]) -> int | None:
    try:
        return read_int(payload.get("last_update"))
    except (KeyError, TypeError, ValueError):
        return None


def _release(payload: Mapping[str, Any]) -> str:
    meta = payload.get("meta")
    slurm = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, dict) else None
    return str(slurm.get("release") or "") if isinstance(slurm, dict) else ""
