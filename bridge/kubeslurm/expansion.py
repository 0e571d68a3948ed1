"""The kubelet's `$(NAME)` references in commands, arguments and variables, and their way into a shell.

Pure. A text becomes a Word: literal pieces, and references to variables that only the running task knows (its rank).
What always holds: `shell(word)` is one word to bash whatever the literals hold, and nothing in them is expanded.
Source: the kubelet's third_party/forked/golang/expansion and Kubernetes' documentation of `command`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ref:
    """A variable of the running task."""

    name: str


Word = tuple[str | Ref, ...]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, known: Mapping[str, Word], runtime: Iterable[str] = ()) -> Word:
    """`$$` becomes `$`; `$(NAME)` the variable's word or a reference; unknown names stay as they are."""
    late = frozenset(runtime)
    pieces: list[str | Ref] = []
    at = 0
    for match in _TOKEN.finditer(text):
        pieces.append(text[at : match.start()])
        pieces.extend(_meaning(match, known, late))
        at = match.end()
    pieces.append(text[at:])
    return _joined(pieces)


def references(text: str) -> frozenset[str]:
    """The names that the text refers to."""
    return frozenset(match.group(1) for match in _TOKEN.finditer(text) if match.group(1) is not None)


def _meaning(match: re.Match[str], known: Mapping[str, Word], late: frozenset[str]) -> Word:
    name = match.group(1)
    if name is None:
        return ("$",)
    if name in late:
        return (Ref(name),)
    return known.get(name, (match.group(0),))


def _joined(pieces: Iterable[str | Ref]) -> Word:
    result: list[str | Ref] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        elif piece != "":
            result.append(piece)
    return tuple(result)


def shell(word: Word) -> str:
    """The word for bash, on one line: a newline in it can't begin a line of the script."""
    parts = [_quote(piece) if isinstance(piece, str) else f'"${{{piece.name}}}"' for piece in word]
    return "".join(parts) or "''"


def _quote(text: str) -> str:
    if not _CONTROL.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", escaped) + "'"


def literal(word: Word) -> str:
    """The word for a reader, references as the kubelet writes them."""
    return "".join(piece if isinstance(piece, str) else f"$({piece.name})" for piece in word)
