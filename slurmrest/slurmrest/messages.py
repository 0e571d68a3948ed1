"""What passes between the core, which decides, and a transport, which sends: no I/O, no httpx here."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from slurmrest.streams import Entries

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. The repr leaves the headers out: they hold the token."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    entries: Entries[Any] | None = field(default=None, repr=False)
    """The list of the answer that is to be read while it arrives."""


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer: its body, or what was made of it while it arrived."""

    status: int
    body: bytes
    payload: Mapping[str, Any] | None = None
    """The object, with values in place of the entries asked for; then the body is empty."""
    complaint: str = ""
    """What was wrong with a body, or with an entry, that was read while it arrived."""


@dataclass(frozen=True, slots=True)
class Lost:
    """No complete answer. `sent`: may any part of the request have reached slurmrestd?"""

    sent: bool
    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds before going on."""

    seconds: float


Outcome: TypeAlias = Response | Lost | None
Steps: TypeAlias = Generator[Request | Pause, Outcome, T]
"""A call as a plain generator: it yields what is to be done, is sent the outcome and returns the result."""
