"""The client without any I/O: each call is a generator that yields requests and pauses and returns the result.

`AsyncSlurm` and `Slurm` run the same generators over their transports, so both behave alike. What always holds: a
request goes out with a token of the user it is for, one refused token is renewed once, and only what may be repeated
safely, or surely never arrived, is repeated.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote, urlencode

from slurmrest import answers, endpoints, notices, versions
from slurmrest.answers import Answer, Where
from slurmrest.endpoints import Api
from slurmrest.errors import (
    Ambiguous,
    Authentication,
    InvalidRequest,
    NotFound,
    ProtocolError,
    Unavailable,
    Unsupported,
)
from slurmrest.messages import Lost, Pause, Request, Steps, T
from slurmrest.numbers import Infinite
from slurmrest.streams import Entries
from slurmrest.timeouts import Timeouts
from slurmrest.tokens import TokenSource
from slurmrest.versions import Adapter

USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,127}\$?")
ADMINISTRATORS: Final = frozenset({"root", "slurm"})
"""Whose requests slurmctld does not refuse because of a job's owner."""
NODE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_UNKNOWN: Final = "Unable to find"
STATE_WORD: Final = re.compile(r"[A-Z_]{1,40}")
TAIL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./%@:+=,\[\]-]{0,2000}")
_CHANGING_GET: Final = re.compile(r"reconfigure/?|job/[^/]+/requeue/?")
Params: TypeAlias = Mapping[str, str | int | Sequence[str]]
"""A query: a sequence is written as several."""
_METHODS: Final = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH"})
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
        return (yield from self.adapt()).version

    def slurm_version(self) -> Steps[str]:
        """slurmrestd's release, such as "24.11.5"."""
        if not self._release:
            yield from self.get("ping/")
        return self._release

    def request(
        self,
        method: str,
        tail: str,
        *,
        api: Api = "slurm",
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
        user: str | None = None,
    ) -> Steps[Answer]:
        """Any call of the API, such as `request("GET", "jobs/", params={"flags": "DETAIL"})`; its answer as it is.

        `tail` follows the version in the path, `api` precedes it ("slurm" or "slurmdb"). Reads are repeated when that
        may help, nothing else is. Judged like every call: an answer with errors raises.
        """
        if method not in _METHODS or api not in ("slurm", "slurmdb"):
            raise InvalidRequest(f"{method!r:.20} {api!r:.20} is no call")
        if not TAIL.fullmatch(tail) or "//" in tail or ".." in tail:
            raise InvalidRequest(f"{tail!r:.80} is not the path of a call")
        safe = method == "GET" and not _CHANGING_GET.fullmatch(tail)
        return (
            yield from self.call(method, tail, api=api, params=params, body=body, user=user, repeatable=safe, safe=safe)
        )

    def acting(self, user: str | None) -> str:
        """Whom a call is made as. Raises InvalidRequest for what can't be a user's name."""
        return self.user if user is None else checked(USER, user, "user name")

    def one(
        self,
        tail: str,
        entries: Entries[T],
        is_it: Callable[[T], bool],
        wanted: str,
        *,
        api: Api = "slurm",
        params: Params | None = None,
    ) -> Steps[T]:
        """The one entry that was asked for. An answer with other entries only is as good as none: NotFound."""
        adapter = yield from self.adapt()
        where: Where = {"method": "GET", "path": adapter.path(tail, api)}
        try:
            answer = yield from self.call("GET", tail, api=api, params=params, repeatable=True, safe=True)
        except InvalidRequest as error:
            # "Failure to query node" comes without a number; for partitions 24.11 says 9000, "Unable to find".
            if error.number == 0 or _UNKNOWN in error.text:
                raise NotFound(error.text, **where) from error
            raise
        if entries.field not in answer.payload and any(_UNKNOWN in text for text in answer.warnings):
            raise NotFound("; ".join(answer.warnings), **where)  # 26.05 on partitions
        found = next(filter(is_it, entries.read_all(answer.payload)), None)
        if found is None:
            raise NotFound(f"Slurm answered without {wanted}", **where)
        return found

    def get(self, tail: str) -> Steps[Answer]:
        """A call that changes nothing."""
        return (yield from self.call("GET", tail, repeatable=True, safe=True))

    def stream(
        self, tail: str, entries: Entries[T], *, api: Api = "slurm", params: Params | None = None
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
        params: Params | None = None,
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
        who = self.acting(user)
        body = None if body is None else dict(body)
        refuse_unwritable(body)
        _refuse_fatal(api, method, tail, body, who)
        _refuse_group_names(body or {})
        _refuse_reserved_resources(tail, body or {})
        _refuse_group_filter(api, params or {})
        adapter = yield from self.adapt()
        query = urlencode(params or {}, doseq=True)
        path = adapter.path(tail, api) + (f"?{query}" if query else "")
        self._refuse_missing(adapter, api, method, tail)
        try:
            answer = yield from self._try(_Call(method, path, who, body, repeatable, safe, entries, retries))
        except Unsupported:
            # slurmrestd was exchanged for another release under our feet: ask again what it speaks, next time.
            self._adapter = self._adapter if self._forced else None
            raise
        self._release = _release(answer.payload) or self._release
        notices.tell(method, path, answer.warnings)
        return answer

    def _refuse_missing(self, adapter: Adapter, api: Api, method: str, tail: str) -> None:
        """slurmrestd would say 404 and nothing else; this says which Slurm has the call."""
        endpoint = endpoints.find(api, method, tail)
        missing = endpoint.missing(adapter.version) if endpoint else ""
        if not missing and api == "slurmdb" and not adapter.serves_slurmdb:
            missing = "this slurmrestd serves no calls of slurmdbd (see its option -s)"
        if missing:
            raise Unsupported(missing, method=method, path=adapter.path(tail, api))

    def adapt(self) -> Steps[Adapter]:
        """The adapter of the version in use; asks slurmrestd what it speaks at first need."""
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


def refuse_unwritable(value: Any, where: str = "") -> None:
    """Raises InvalidRequest, naming the field, for what JSON can't hold, and for what Slurm would cut at a NUL."""
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidRequest(f"{where or 'text'} holds a NUL character")
    elif isinstance(value, dict):
        for field, inner in value.items():
            refuse_unwritable(str(field), where)
            refuse_unwritable(inner, f"{where}.{field}" if where else str(field))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            refuse_unwritable(inner, f"{where}[{index}]")
    elif not (value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))):
        hint = "; write number(...)" if isinstance(value, Infinite) else ""
        raise InvalidRequest(f"{where or 'a value'} is {value!r:.80}, which JSON can't hold{hint}")


def written_time(moment: int | str) -> str:
    """A time for a query: seconds since 1970, which v0.0.40 and v0.0.41 take in no other form, or Slurm's own words."""
    return f"uts{moment}" if isinstance(moment, int) else moment


def segment(pattern: re.Pattern[str], text: str, what: str) -> str:
    """`text` as one part of a path. Raises InvalidRequest unless all of it matches."""
    return quote(checked(pattern, text, what), safe="")


def _refuse_fatal(api: Api, method: str, tail: str, body: Mapping[str, Any] | None, user: str) -> None:
    """slurmctld (24.11.5, 26.05.5) answers nobody any more once it has refused a kill: it must not come to that."""
    first = unquote(tail.partition("?")[0]).partition("/")[0]
    if method != "DELETE" or api != "slurm" or first not in ("job", "jobs") or user in ADMINISTRATORS:
        return
    if first == "job" or (body or {}).get("user_name") != user:
        raise InvalidRequest(
            f"slurmctld may hang on it for good; use cancel or cancel_jobs, which keep to {user}'s jobs"
        )


def _release(payload: Mapping[str, Any]) -> str:
    meta = payload.get("meta")
    slurm = (meta.get("slurm") or meta.get("Slurm")) if isinstance(meta, dict) else None
    return str(slurm.get("release") or "") if isinstance(slurm, dict) else ""


def _refuse_reserved_resources(tail: str, body: Mapping[str, Any]) -> None:
    """slurmrestd 26.05.5 crashes at a resource of a reservation that it doesn't know; without slurmdbd it knows none."""
    if unquote(tail).partition("?")[0].strip("/") not in ("reservation", "reservations"):
        return
    many = body.get("reservations")
    for one in (body, *(many if isinstance(many, (list, tuple)) else ())):
        if isinstance(one, Mapping) and one.get("tres"):
            raise InvalidRequest("tres: slurmrestd may crash at it; say core_count, node_count, licenses")


def _refuse_group_names(body: Mapping[str, Any]) -> None:
    """slurmrestd 24.11.5 ends with "fatal: invalid type" when a job's `group_id` is a name; a number as text will do."""
    lists = (body.get(field) for field in ("jobs", "hetjob"))
    for job in (body, body.get("job"), *(part for one in lists if isinstance(one, (list, tuple)) for part in one)):
        group = job.get("group_id") if isinstance(job, Mapping) else None
        if group is not None and not (isinstance(group, str) and group.isascii() and group.isdigit()):
            raise InvalidRequest(f"group_id: {group!r:.80} is not a number as text, and a name may end slurmrestd")


def _refuse_group_filter(api: Api, params: Params) -> None:
    """slurmrestd 24.11.5 ends as well when jobs of slurmdbd are asked for by a group's name."""
    given = params.get("groups", ()) if api == "slurmdb" else ()
    for group in [given] if isinstance(given, (str, int)) else given:
        if not (str(group).isascii() and str(group).isdigit()):
            raise InvalidRequest(f"groups: {group!r:.80} is not a number, and a name may end slurmrestd")
