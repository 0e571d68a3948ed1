"""Judges slurmrestd's answers: the one place that knows what a success is.

Called by the core for each answer. What always holds: a success is a JSON object whose `errors` is empty (the status
code alone tells nothing: Slurm sends 200 with errors and 500 for a wrong partition name); whether the expected payload
is there is asked by the caller. Numbers: slurm_errno.h; shapes: data_parser v0.0.40 to v0.0.45.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from slurmrest.errors import (
    Ambiguous,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ProtocolError,
    SlurmError,
    Unavailable,
    Unsupported,
)
from slurmrest.messages import Lost, Request, Response
from slurmrest.streams import decode

ALREADY_DONE: Final = 2021
_AUTHENTICATION: Final = frozenset({1007, *range(6000, 6100)})
_DENIED: Final = frozenset({2002, 2010, 2052, 2103})
_NOT_FOUND: Final = frozenset({2017, 2018})
_NOT_SENT: Final = frozenset({1001, 1800, 1804, 2027, 7000})  # can not reach slurmctld or slurmdbd; busy
_NO_ANSWER: Final = frozenset({1002, 1003, 1004, 1801, 1802, 1803, 5004})  # slurmctld got lost in the middle
_UNRESOLVED: Final = "Unable to resolve"
"""Of a user's name that slurmrestd doesn't know: it asks nobody then."""
_FIRST_NUMBER: Final = 1000
"""Slurm's own numbers begin here. Smaller ones are slurmrestd's errno or -1: with slurmctld down, 24.11 answers
`jobs/state/` with -1 and a cancel with EPERM. They tell of trouble on the way, never of a refusal."""


class Where(TypedDict):
    """Which call an error is of."""

    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: the JSON object, and the texts of its warnings."""

    payload: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


def judge(request: Request, response: Response, *, safe: bool) -> Answer:
    """The success in `response`, or the error it stands for. `safe`: the request changes nothing."""
    if response.status == 401:
        raise Authentication("slurmrestd does not take the token", method=request.method, path=request.path)
    if response.status == 304 and (not safe or "update_time=" in request.path):
        return Answer({})  # nothing to change, or nothing has changed since `update_time`
    payload = _object(response.body) if response.payload is None else response.payload
    if payload is None:
        raise _without_json(request, response, safe=safe)
    errors = payload.get("errors") or []
    if errors:
        raise _from_errors(request, errors, safe=safe)
    if response.status >= 300:
        raise _without_errors(request, response.status, safe=safe)
    complaint = response.complaint or _without_entries(request, payload)
    if complaint:
        raise ProtocolError(complaint, method=request.method, path=request.path)
    return Answer(payload, tuple(map(_warning, payload.get("warnings") or [])))


def lost(request: Request, outcome: Lost, *, safe: bool) -> SlurmError:
    """The error for a request without an answer."""
    kind = Ambiguous if outcome.sent and not safe else Unavailable
    return kind(outcome.text, method=request.method, path=request.path)


def refusal(request: Request, number: int, text: str, *, safe: bool) -> SlurmError:
    """The error that Slurm's error number stands for. A name in a job that nothing answers to is a fault of the job."""
    where: Where = {"method": request.method, "path": request.path}
    if number < 0 and _UNRESOLVED in text:
        return InvalidRequest(text, **where)
    if number in _NO_ANSWER or (number and number < _FIRST_NUMBER):
        return (Unavailable if safe else Ambiguous)(text, number=number, **where)
    kinds: tuple[tuple[frozenset[int], type[SlurmError]], ...] = (
        (_AUTHENTICATION, Authentication),
        (_DENIED, PermissionDenied),
        (_NOT_FOUND, NotFound),
        (_NOT_SENT, Unavailable),
    )
    for numbers, kind in kinds:
        if number in numbers and not (kind is NotFound and request.path.endswith("/job/submit")):
            return kind(text, number=number, **where)
    return InvalidRequest(text, number=number, **where)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(decode(body))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _without_entries(request: Request, payload: Mapping[str, Any]) -> str:
    """The complaint about a missing list: that is not an empty one, nothing was answered then."""
    if request.entries is None or isinstance(payload.get(request.entries.field), list):
        return ""
    return f"the answer holds no list of {request.entries.field}"


def _from_errors(request: Request, errors: list[Any], *, safe: bool) -> SlurmError:
    """Slurm often puts a general complaint first: the first error with a number counts."""
    entries = [entry for entry in errors if isinstance(entry, dict)]
    first = next((entry for entry in entries if _number(entry)), entries[0] if entries else {})
    texts = [str(first.get(part) or "") for part in ("error", "description")]
    text = "; ".join(part for part in texts if part and part != "No error") or "an error without a text"
    return refusal(request, _number(first), _without_token(request, text), safe=safe)


def _without_token(request: Request, text: str) -> str:
    """What came back may be an echo of what was sent: proxies do that, to help."""
    for name, value in request.headers.items():
        if name.upper() == "X-SLURM-USER-TOKEN" and value:
            text = text.replace(value, "...")
    return text


def _number(entry: Mapping[str, Any]) -> int:
    value = entry.get("error_number") or entry.get("error_code") or 0
    return value if isinstance(value, int) else 0


def _without_errors(request: Request, status: int, *, safe: bool) -> SlurmError:
    where: Where = {"method": request.method, "path": request.path}
    if status == 511:
        return Authentication("slurmctld does not take the token", **where)
    if status >= 500:
        return (Unavailable if safe else Ambiguous)(f"status {status} without an error", **where)
    return ProtocolError(f"status {status} without an error", **where)


def _without_json(request: Request, response: Response, *, safe: bool) -> SlurmError:
    where: Where = {"method": request.method, "path": request.path}
    if response.status == 404:
        return Unsupported("slurmrestd has no such call", **where)
    if response.status >= 500 or response.status < 400:
        text = f"status {response.status} without a JSON object"
        text += f": {response.complaint}" if response.complaint else ""
        if not safe:
            return Ambiguous(text, **where)
        return (Unavailable if response.status >= 500 else ProtocolError)(text, **where)
    text = _without_token(request, response.body.decode("ascii", "replace"))
    return InvalidRequest(f"status {response.status}: {text[:200]}", method=request.method, path=request.path)


def _warning(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    source, text = str(entry.get("source") or ""), str(entry.get("description") or "")
    return f"{source}: {text}" if source else text
