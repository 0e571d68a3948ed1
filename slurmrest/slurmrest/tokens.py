"""Where the tokens come from that slurmrestd asks for (JWT, HS256; claims exp, iat, sun).

A `TokenSource` is handed to the client, which asks it for a user's token before each request and calls `refresh` when
one was refused. What always holds: no repr, message or log line holds a token or a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from slurmrest.errors import Authentication

CLOCK_SKEW: Final = 150
"""Seconds that a token's `iat` lies back, so that a slurmctld whose clock is behind takes it."""


class TokenSource(Protocol):
    """Anything that has a token for a user."""

    def token(self, user: str) -> str:
        """A token that acts for this user. Raises Authentication when there is none."""
        ...

    def refresh(self) -> None:
        """The last token was refused: forget what is remembered."""
        ...


class StaticToken:
    """One token for every user: that user's own, or root's or SlurmUser's, which may act for others."""

    def __init__(self, token: str) -> None:
        self._token = _clean(token)

    def token(self, user: str) -> str:
        """The token, whoever the user is."""
        return self._token

    def refresh(self) -> None:
        """There is no other one."""

    def __repr__(self) -> str:
        return "StaticToken(...)"


class FileToken:
    """The token in a file that somebody else keeps fresh; read again after a refusal."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._token: str | None = None

    def token(self, user: str) -> str:
        """The file's token, whoever the user is."""
        if self._token is None:
            self._token = self._read()
        return self._token

    def refresh(self) -> None:
        """Read the file at the next request."""
        self._token = None

    def _read(self) -> str:
        try:
            text = self.path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise Authentication(f"no token in {self.path}: {type(error).__name__}") from error
        return _clean(text)

    def __repr__(self) -> str:
        return f"FileToken({str(self.path)!r})"


class SignedTokens:
    """Tokens signed with the cluster's own JWT key, one per user, of a short life; renewed at half of it.

    `key` is the key, or the file that holds it: read at first need, and again after a refusal (it may have been rotated).
    Clocks may differ by two minutes as long as `lifespan` is five or more.
    """

    def __init__(
        self,
        key: bytes | Path,
        lifespan: timedelta = timedelta(minutes=10),
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not key:
            raise ValueError("the key is empty")
        if lifespan < timedelta(seconds=2):
            raise ValueError("a token has to live for two seconds at least")
        self._file = key if isinstance(key, Path) else None
        self._key = key if isinstance(key, bytes) else b""
        self._lifespan = int(lifespan.total_seconds())
        self._clock = clock
        self._tokens: dict[str, tuple[str, float]] = {}

    def token(self, user: str) -> str:
        """A token whose `sun` is this user, with at least half of its life ahead."""
        now = self._clock()
        known = self._tokens.get(user)
        if known is not None and now < known[1]:
            return known[0]
        # A tenant comes and goes: nothing is kept for those who have not asked for a while.
        self._tokens = {name: one for name, one in self._tokens.items() if now < one[1]}
        signed = self._sign(user, int(now))
        self._tokens[user] = (signed, now + self._lifespan / 2)
        return signed

    def refresh(self) -> None:
        """Sign anew at the next request."""
        self._tokens.clear()
        if self._file is not None:
            self._key = b""

    def _sign(self, user: str, now: int) -> str:
        import jwt  # here: it costs a command line 40 ms that never signs anything

        claims = {"iat": now - CLOCK_SKEW, "exp": now + self._lifespan, "sun": user}
        return jwt.encode(claims, self._current_key(), algorithm="HS256")

    def _current_key(self) -> bytes:
        if not self._key and self._file is not None:
            try:
                self._key = self._file.read_bytes()
            except OSError as error:
                raise Authentication(f"no key in {self._file}: {type(error).__name__}") from error
        if not self._key:
            raise Authentication(f"no key in {self._file}: it is empty")
        return self._key

    def __repr__(self) -> str:
        return f"SignedTokens(..., lifespan={self._lifespan}s, users={len(self._tokens)})"


def _clean(token: str) -> str:
    """The bare token out of a file's text or of `scontrol token`'s line; it goes into a header, so only these signs."""
    text = token.strip().removeprefix("SLURM_JWT=")
    if not text or not text.isascii() or not all(sign.isalnum() or sign in "-_.=" for sign in text):
        raise Authentication("the token is empty or holds signs that no token has")
    return text
