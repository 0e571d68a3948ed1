"""Reads a JSON answer while it arrives: of a long list, each entry is turned into its light value at once.

The transports feed a `Splitter` with the pieces of an answer's body; the core says by an `Entries` which list it is about
and what an entry becomes. What always holds: of the list only the values are kept, so memory stays flat whatever the
answer's size, and where the body is cut into pieces makes no difference. The result is what `json` makes of the whole
text. Bytes that are no UTF-8 become U+FFFD: Slurm passes on what is in a job's name, and one user's name must not make the
answer about everybody's jobs unreadable. json's own scanner does the work, or msgspec's where only some keys of an entry
are wanted: no parser in Python comes near them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypedDict, TypeVar

from slurmrest.errors import ProtocolError

T = TypeVar("T")
Raw = Mapping[str, Any]

_BATCH: Final = 1 << 18
"""So many characters are gathered before they are read: less, and entries cut in two would be read twice too often."""
LONGEST: Final = 1 << 26
"""A single entry of more characters (or a single other value) is no answer of Slurm's."""
_WRONG: Final = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What plain code that reads an entry raises when the entry has another form than the API promises."""

_space: Final = re.compile(r"[ \t\n\r]*").match
_comma: Final = re.compile(r"[ \t\n\r]*,[ \t\n\r]*").match
_after_scalar: Final = re.compile(r"[ \t\n\r,:\]}]").match
_decode: Final = json.JSONDecoder().raw_decode


class Malformed(ValueError):  # noqa: N818 - named after what is wrong, as the errors of the client
    """The body is no JSON object. The text says what is wrong with it, and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class Entries(Generic[T]):
    """The list `field` of an answer, and what each of its entries becomes."""

    field: str
    read: Callable[[Raw], T]
    keys: str = ""
    """All that `read` looks at in an entry, with spaces between; the rest is skipped. "": the entry is wanted whole."""

    def of(self, payload: Raw) -> list[T]:
        """The values of an answer that was called for with these entries.

        Raises ProtocolError if the list isn't there: that is not an empty list, nothing was answered then.
        """
        found: list[T] = self._list(payload)
        return found

    def read_all(self, payload: Raw) -> list[T]:
        """The values of a payload that is there as a whole. Raises ProtocolError."""
        try:
            return [self.read(entry) for entry in self._list(payload)]
        except _WRONG as error:
            raise ProtocolError(self.complaint(error)) from error

    def _list(self, payload: Raw) -> list[Any]:
        found = payload.get(self.field)
        if not isinstance(found, list):
            raise ProtocolError(f"the answer holds no list of {self.field}")
        return found

    def complaint(self, error: Exception) -> str:
        """One line for an entry of another form."""
        return f"an entry of {self.field} has an unexpected form: {type(error).__name__} {str(error)[:200]}"


def decode(body: bytes) -> str:
    """An answer's text, whatever bytes Slurm passed on in it."""
    return body.decode("utf-8-sig", "replace")


def _decode_list(text: str, keys: str) -> list[Any] | None:
    """The list that `text` is, of each object these keys only ("": all). None: it is no list, or something follows it.

    msgspec skips what isn't asked for, five times as fast as json makes objects of all. What it can't read (NaN, half of
    a surrogate pair, an entry that is no object) json is tried on.
    """
    if keys:
        try:
            return _skipping(keys)(text)
        except (ValueError, RecursionError):
            pass  # json tells
    try:
        entries, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, list) and end == len(text) else None


@lru_cache(maxsize=64)
def _skipping(keys: str) -> Callable[[str], list[Any]]:
    import msgspec  # here: who never asks for a list doesn't wait for it

    entry: Any = TypedDict
    entry = entry("Entry", dict.fromkeys(keys.split(), Any), total=False)
    return msgspec.json.Decoder(list[entry]).decode


class Splitter:
    """Reads one answer: `feed` each piece of the body as it comes, then `finish`. Both raise Malformed."""

    def __init__(self, entries: Entries[Any]) -> None:
        self._entries = entries
        self._payload: dict[str, Any] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._pieces: list[str] = []
        self._gathered = 0
        self._text = ""
        self._at = 0
        self._ended = self._complete = False
        self._between: str | None = None
        """What stands between two entries, from the end of one to the beginning of the next. None: not seen yet."""
        self.complaint = ""
        """What is wrong with the first entry that couldn't be read ("": nothing). The values are none then."""
        self._reading = self._read()
        self._wanted = next(self._reading)

    def feed(self, data: bytes) -> None:
        """The next piece of the body, of any length."""
        self._gather(self._decoder.decode(data))
        if self._gathered >= self._wanted:
            self._advance()

    def finish(self) -> dict[str, Any]:
        """The object, once all of the body was fed; in it the list is one of values."""
        self._gather(self._decoder.decode(b"", final=True))
        self._ended = True
        self._advance()
        if not self._complete:
            raise Malformed("it was no JSON object before its end")
        return self._payload

    def _gather(self, text: str) -> None:
        self._pieces.append(text)
        self._gathered += len(text)

    def _advance(self) -> None:
        self._text = self._text[self._at :] + "".join(self._pieces)
        self._at, self._gathered = 0, 0
        self._pieces.clear()
        self._wanted = next(self._reading, 0)

    def _read(self) -> Generator[int, None, None]:
        """The whole object. Yields how many more characters are needed to go on."""
        yield _BATCH
        yield from self._take("{")
        if (yield from self._peek()) == "}":
            self._at += 1
        else:
            while (yield from self._member()) == ",":
                pass
        yield from self._refuse_rest()
        self._complete = True

    def _refuse_rest(self) -> Generator[int, None, None]:
        while not self._ended or self._at < len(self._text):
            self._at = self._end_of_space()
            if self._at < len(self._text):
                raise Malformed("something follows the JSON object")
            if not self._ended:
                yield _BATCH

    def _member(self) -> Generator[int, None, str]:
        """One key with its value. Returns what follows: a comma or the closing brace."""
        if (yield from self._peek()) != '"':
            raise Malformed("a key that is no text")
        key = yield from self._value()
        yield from self._take(":")
        is_list = key == self._entries.field and (yield from self._peek()) == "["
        self._payload[key] = (yield from self._list()) if is_list else (yield from self._value())
        return (yield from self._take(",}"))

    def _list(self) -> Generator[int, None, list[Any]]:
        values: list[Any] = []
        self._at += 1
        if (yield from self._peek()) == "]":
            self._at += 1
            return values
        following = ","
        while following == ",":
            self._take_ready(values)
            self._keep(values, (yield from self._value()))
            following = yield from self._take(",]")
        return [] if self.complaint else values

    def _take_ready(self, values: list[Any]) -> None:
        """Every entry that is here with the comma behind it: the fast lane, on which nearly all go."""
        while self._take_one(values) and self._between:
            self._take_many(values)

    def _take_one(self, values: list[Any]) -> bool:
        """The next entry, if all of it and the comma are here. Sees how entries are told apart in this answer."""
        text, start = self._text, self._end_of_space()
        try:
            entry, end = _decode(text, start)
        except (ValueError, RecursionError):  # not all of it is here, or it is no JSON: the slow lane finds out
            return False
        comma = _comma(text, end)
        if comma is None:
            return False
        self._at = comma.end()
        self._keep(values, entry)
        if self._between is None and self._at < len(text):
            self._between = text[end - 1 : self._at + 1]
        return True

    def _take_many(self, values: list[Any]) -> None:
        """All entries before the last of those that look like the end of one: many by one call of a scanner.

        If that reads as a list to its very end, it was the end of an entry; if not, this answer's entries are taken one
        by one.
        """
        start, between = self._end_of_space(), self._between or ""
        end = self._text.rfind(between, start) + 1
        if end <= start:
            return
        entries = _decode_list(f"[{self._text[start:end]}]", self._entries.keys)
        if entries is None:
            self._between = ""
            return
        self._at = end + len(between) - 2
        for entry in entries:
            self._keep(values, entry)

    def _keep(self, values: list[Any], entry: Any) -> None:
        if self.complaint:
            return
        try:
            values.append(self._entries.read(entry))
        except _WRONG as error:
            self.complaint = self._entries.complaint(error)
            values.clear()

    def _value(self) -> Generator[int, None, Any]:
        """The value that begins here, once all of it is here."""
        first = yield from self._peek()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except ValueError:
                yield self._more()
                continue
            except RecursionError:
                raise Malformed("nested too deeply") from None
            # A number may go on in the next piece of the body.
            if first in '"{[' or _after_scalar(self._text, end) or (self._ended and end == len(self._text)):
                self._at = end
                return value
            yield self._more()

    def _more(self) -> int:
        """As much as is here already: what is tried again each time it has doubled takes linear time in all."""
        here = len(self._text) - self._at
        if self._ended:
            raise Malformed("it ends too early, or is no JSON")
        if here > LONGEST:
            raise Malformed(f"a value of more than {LONGEST} characters, or no JSON")
        return max(here, _BATCH)

    def _peek(self) -> Generator[int, None, str]:
        """The next character that is no white space."""
        while True:
            self._at = self._end_of_space()
            if self._at < len(self._text):
                return self._text[self._at]
            yield self._more()

    def _take(self, wanted: str) -> Generator[int, None, str]:
        """The next character, which must be one of these."""
        found = yield from self._peek()
        if found not in wanted:
            raise Malformed(f"not one of {wanted} where it must be")
        self._at += 1
        return found

    def _end_of_space(self) -> int:
        found = _space(self._text, self._at)
        return found.end() if found else self._at
