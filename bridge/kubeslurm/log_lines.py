"""From what the reader on a node says to what `kubectl logs` shows: frames, lines, prefixes, times.

Pure; called by the operator's `log_reading`. What always holds: the reader runs as the job's user, so its words are as
hostile as the output itself: a frame that is no frame ends the stream, and no more than MOST_HELD bytes of a line are kept.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kubeslurm.errors import Refused

MOST_HELD: Final = 2**16
MOST_FRAME: Final = 2**19
_FRAME: Final = re.compile(rb"([0-9]{1,7}) ([0-9]{1,11})\.([0-9]{9}) ([A-Za-z0-9+/=]*)")


@dataclass(frozen=True, slots=True)
class Frame:
    """A piece of the file at `index`; `time`: the file's last write then, in RFC 3339."""

    index: int
    time: str
    data: bytes


def read_frame(line: bytes, files: int) -> Frame | None:
    """A line of the reader's, without its end; None for an empty one, by which it says that it lives."""
    if not line:
        return None
    found = _FRAME.fullmatch(line)
    try:
        if found is not None and int(found[1]) < files:
            moment = datetime.fromtimestamp(int(found[2]), UTC)
            time = f"{moment:%Y-%m-%dT%H:%M:%S}.{found[3].decode()}Z"
            return Frame(int(found[1]), time, base64.b64decode(found[4], validate=True))
    except (binascii.Error, ValueError, OverflowError, OSError):
        pass  # said below
    raise Refused(502, "the node's reader said what it never says")


def shares(counts: Sequence[int], most: int) -> list[int]:
    """`most` lines dealt out to files that have so many: evenly, and what one has not goes to the others."""
    given = [0] * len(counts)
    left = most
    while left > 0 and (hungry := [index for index, count in enumerate(counts) if given[index] < count]):
        each, more = divmod(left, len(hungry))
        for place, index in enumerate(hungry):
            amount = min(each + (place < more), counts[index] - given[index])
            given[index] += amount
            left -= amount
    return given


class Printer:
    """Lines of several files as one text. A file without a prefix is passed on as it comes, others line by line."""

    def __init__(self, prefixes: Sequence[str], *, timestamps: bool) -> None:
        self._prefixes = [prefix.encode() for prefix in prefixes]
        self._held = [bytearray() for _ in prefixes]
        self._times = [""] * len(prefixes)
        self._timestamps = timestamps
        self._open: int | None = None

    def take(self, frame: Frame) -> bytes:
        """What can be shown now."""
        self._times[frame.index] = frame.time
        if not self._prefixes[frame.index] and not self._timestamps:
            return self._pass_on(frame)
        held = self._held[frame.index]
        held += frame.data
        *lines, rest = held.split(b"\n")
        held[:] = rest
        out = b"".join(self._line(frame.index, bytes(line)) for line in lines)
        if len(held) > MOST_HELD:
            out += self._line(frame.index, bytes(held))
            held.clear()
        return self._closed(out)

    def rest(self) -> bytes:
        """What is left when nothing more comes: lines without an end."""
        out = b"".join(self._line(index, bytes(held)) for index, held in enumerate(self._held) if held)
        for held in self._held:
            held.clear()
        return self._closed(out)

    def _pass_on(self, frame: Frame) -> bytes:
        if frame.data:
            self._open = None if frame.data.endswith(b"\n") else frame.index
        return frame.data

    def _closed(self, lines: bytes) -> bytes:
        """No line of one file goes on in that of another."""
        if not lines or self._open is None:
            return lines
        self._open = None
        return b"\n" + lines

    def _line(self, index: int, line: bytes) -> bytes:
        stamp = f"{self._times[index]} ".encode() if self._timestamps else b""
        return stamp + self._prefixes[index] + line + b"\n"
