"""Reads a shell script into commands and words, without running anything of it.

Pure; used by `readers.sbatch`. What always holds: a word's literal pieces are what bash would pass on; what only a shell
could know (`$(date)`, `${x:-y}`, globs) is kept as a Shell piece with its text; whatever the text is, nothing is raised but
BadShell with the number of a line. Source: bash(1), QUOTING, EXPANSION and SHELL GRAMMAR.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from kubeslurm.expansion import Ref

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
_REDIRECT = re.compile(r"[0-9]*(<<-?|<<<|<>|>>|>&|<&|>\||&>>|&>|<|>)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_GLOB = "*?"
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class BadShell(ValueError):  # noqa: N818 - named after what is wrong, as slurmrest's BadScript
    """What bash would not take, either; `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Shell:
    """What only a shell can make a value of."""

    text: str


ShellWord = tuple[str | Ref | Shell, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. `before` and `after` are the operators around it; `here` is the text of its here-document."""

    line: int
    words: tuple[ShellWord, ...]
    after: str = "\n"
    before: str = "\n"
    redirected: bool = False
    here: str | None = None


def plain(word: ShellWord) -> str | None:
    """The word's text, if it is all literal."""
    return "".join(str(piece) for piece in word) if all(isinstance(piece, str) for piece in word) else None


def commands(text: str, first: int = 1) -> list[Command]:
    """All commands in their order, those within blocks as well; `first` is the number of the first line."""
    return _Lexer(text, first).run()


@dataclass
class _Lexer:
    text: str
    first: int
    at: int = 0
    found: list[Command] = field(default_factory=list)
    words: list[ShellWord] = field(default_factory=list)
    begun: int = 0
    redirected: bool = False
    here: str | None = None
    waiting: list[tuple[str, bool]] = field(default_factory=list)
    before: str = "\n"

    def run(self) -> list[Command]:
        while self.at < len(self.text):
            self._step()
        self._end("\n")
        return self.found

    def __post_init__(self) -> None:
        self.breaks = [match.start() for match in re.finditer("\n", self.text)]

    @property
    def line(self) -> int:
        return self.first + bisect_left(self.breaks, self.at)

    def _step(self) -> None:
        sign = self.text[self.at]
        if sign in " \t":
            self.at += 1
        elif self.text.startswith("\\\n", self.at):
            self.at += 2
        elif sign == "#":
            self.at = self._line_end()
        elif match := _REDIRECT.match(self.text, self.at):
            self._redirect(match)
        elif match := _OPERATOR.match(self.text, self.at):
            self.at = match.end()
            self._end(match.group())
            if match.group() == "\n":
                self._read_here()
        else:
            self.begun = self.begun or self.line
            self.words.append(self._word())

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _redirect(self, match: re.Match[str]) -> None:
        self.begun = self.begun or self.line
        self.at = match.end()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        kind = match.group(1)
        quoted = self.text[self.at : self.at + 1] in ("'", '"', "\\")
        target = self._word() if self.at < len(self.text) and self.text[self.at] not in "\n;&|()" else ()
        if kind in ("<<", "<<-"):
            self.waiting.append((plain(target) or "", quoted))
        else:
            self.redirected = True

    def _end(self, operator: str) -> None:
        if self.words or self.redirected or self.waiting:
            command = Command(self.begun, tuple(self.words), operator, self.before, self.redirected, self.here)
            self.found.append(command)
        self.words, self.begun, self.redirected, self.here = [], 0, False, None
        self.before = operator

    def _read_here(self) -> None:
        """The here-documents that the line which has just ended announces; the last one is the command's."""
        for delimiter, _ in self.waiting:
            lines = []
            while self.at < len(self.text):
                end = self._line_end()
                line, self.at = self.text[self.at : end], min(end + 1, len(self.text))
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(line + "\n")
            if self.found:
                last = self.found[-1]
                self.found[-1] = Command(
                    last.line, last.words, last.after, last.before, last.redirected, "".join(lines)
                )
        self.waiting = []

    def _word(self) -> ShellWord:
        pieces: list[str | Ref | Shell] = []
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "(" and len(pieces) and _ARRAY.fullmatch(str(_joined(pieces)[-1])):
                start = self.at
                self._skip("(", ")", start)
                pieces.append(Shell(self.text[start : self.at]))
                continue
            if sign in " \t\n;&|()<>":
                break
            pieces.extend(self._piece(sign))
        return _joined(pieces)

    def _piece(self, sign: str) -> Iterator[str | Ref | Shell]:
        if self.text.startswith("\\\n", self.at):
            self.at += 2
        elif sign == "\\":
            yield self.text[self.at + 1 : self.at + 2]
            self.at += 2
        elif sign == "'":
            yield self._until("'", self.at + 1)
        elif sign == '"':
            yield from self._double()
        elif self.text.startswith("$'", self.at):
            yield self._ansi()
        elif sign in "$`":
            yield self._expansion()
        else:
            self.at += 1
            yield Shell(sign) if sign in _GLOB else sign

    def _until(self, quote: str, start: int) -> str:
        end = self.text.find(quote, start)
        if end < 0:
            raise BadShell(f"a quote {quote} is not closed", self.line)
        self.at = end + 1
        return self.text[start:end]

    def _double(self) -> Iterator[str | Ref | Shell]:
        begun = self.line
        self.at += 1
        yield ""
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == '"':
                self.at += 1
                return
            if sign == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                yield self.text[self.at + 1].replace("\n", "")
                self.at += 2
            elif sign in "$`":
                yield self._expansion()
            else:
                self.at += 1
                yield sign
        raise BadShell('a quote " is not closed', begun)

    def _ansi(self) -> str:
        """$'...'"""
        begun = self.line
        found: list[str] = []
        self.at += 2
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "'":
                self.at += 1
                return "".join(found)
            match = _ESCAPE.match(self.text, self.at)
            if match is None:
                found.append(sign)
                self.at += 1
            else:
                code, letter = match.groups()
                found.append(chr(int(code, 16)) if code else _ESCAPES.get(letter, letter))
                self.at = match.end()
        raise BadShell("a quote $' is not closed", begun)

    def _expansion(self) -> str | Ref | Shell:
        start = self.at
        if self.text[start] == "`":
            return Shell("`" + self._until("`", start + 1) + "`")
        if match := _NAME.match(self.text, start + 1):
            self.at = match.end()
            return Ref(match.group())
        following = self.text[start + 1 : start + 2]
        if following in ("(", "{"):
            self._skip("(" if following == "(" else "{", ")" if following == "(" else "}", start + 1)
            inner = self.text[start + 2 : self.at - 1]
            return Ref(inner) if following == "{" and _NAME.fullmatch(inner) else Shell(self.text[start : self.at])
        self.at = start + 1
        if following and following in "?$!#@*-0123456789":
            self.at += 1
            return Shell(f"${following}")
        return "$"

    def _skip(self, opening: str, closing: str, start: int) -> None:
        """To behind the bracket that closes the one at `start`; quotes in between are skipped over."""
        depth, self.at = 0, start
        while self.at < len(self.text):
            sign = self.text[self.at]
            self.at += 1
            if sign == "\\":
                self.at += 1
            elif sign == "'" and opening == "(":
                self._until("'", self.at)
            elif sign == opening:
                depth += 1
            elif sign == closing:
                depth -= 1
                if not depth:
                    return
        raise BadShell(f"a bracket {opening} is not closed", self.line)


def _joined(pieces: list[str | Ref | Shell]) -> ShellWord:
    found: list[str | Ref | Shell] = []
    for piece in pieces:
        if found and isinstance(piece, str) and isinstance(found[-1], str):
            found[-1] += piece
        elif found and isinstance(piece, Shell) and isinstance(found[-1], Shell):
            found[-1] = Shell(found[-1].text + piece.text)
        else:
            found.append(piece)
    return tuple(piece for piece in found if piece != "") or ("",)
