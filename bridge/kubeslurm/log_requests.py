"""What is asked of a virtual node's kubelet endpoint: the query of `containerLogs`, and the rights that a path takes.

Pure; called by the operator's `kubelet`. What always holds: a query is read as the kubelet reads it or refused with the
parameter's name; a path that is not known takes the right to everything (`nodes/proxy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kubeslurm.errors import Refused

MOST: Final = 2**63 - 1
_FALSE: Final = frozenset({"false", "0"})


@dataclass(frozen=True, slots=True)
class LogRequest:
    """`tail`: so many of the last lines, None for all. `limit`: bytes of the answer, None for no limit."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit: int | None = None

    @property
    def since_epoch(self) -> int:
        """Whole seconds since 1970, rounded down; 0 for all time."""
        return 0 if self.since is None else max(0, int(self.since.timestamp()))


def read_query(query: Mapping[str, str], now: datetime) -> LogRequest:
    """The parameters of PodLogOptions. Refused: 400 where one can't be read, 422 where its value is out of range."""
    if query.get("stream", "All") != "All":
        raise Refused(400, "stream: a rank's stdout and stderr are one file, there is only All")
    return LogRequest(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail=_number(query, "tailLines", 0),
        since=_since(query, now),
        limit=_number(query, "limitBytes", 1),
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in _FALSE


def _number(query: Mapping[str, str], name: str, least: int) -> int | None:
    if name not in query:
        return None
    text = query[name]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and abs(int(text)) <= MOST):
        raise Refused(400, f"{name}: {text[:40]!r} is no whole number")
    if int(text) < least:
        raise Refused(422, f"{name}: {text}, must be {least} or more")
    return int(text)


def _since(query: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = _number(query, "sinceSeconds", 1)
    if "sinceTime" not in query:
        # nothing is older than the epoch
        return None if seconds is None else now - timedelta(seconds=min(seconds, now.timestamp()))
    if seconds is not None:
        raise Refused(422, "sinceSeconds: only one of sinceSeconds and sinceTime may be given")
    text = query["sinceTime"]
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(400, f"sinceTime: {text[:40]!r} is no time of RFC 3339") from None
    if since.tzinfo is None:
        raise Refused(400, f"sinceTime: {text[:40]!r} has no time zone")
    return since.astimezone(UTC)


_VERBS: Final[Mapping[str, str]] = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "statusz": ("statusz",),
    "flagz": ("configz",),
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
}


def verb(method: str) -> str:
    """The API's verb for an HTTP method; empty for one that no right can be given for."""
    return _VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """The subresources of `nodes` of which one must be allowed, as the kubelet asks for them."""
    first = path.removeprefix("/").partition("/")[0]
    return _RIGHTS.get(first, ("proxy",))
