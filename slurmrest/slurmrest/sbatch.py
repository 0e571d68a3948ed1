"""Reads the options of batch scripts as sbatch does: `#SBATCH` lines, SBATCH_* variables, command lines.

For whoever takes over scripts: `slurmrest.pyslurm` (load_sbatch_options) and translators. Pure text; nothing is sent.
What always holds: the order is kept, every option tells where it stood, and what sbatch would refuse is either named in
`Options.complaints` (an unknown option) or, when there is no script to speak of, raised as `BadScript`. Source: sbatch(1)
and the command itself, 24.11 and 26.05, which a test compares with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmrest.sbatch_table import (
    ALIASES,
    CONTRADICTORY,
    LETTERS,
    OPPOSITES,
    OPTIONS,
    VARIABLES,
    WAIT_VARIABLE,
    Option,
    Takes,
)

_MAGIC: Final = ("#SBATCH", "#SLURM")  # sbatch grumbles at #SLURM, and takes it
_SET: Final = re.compile(r"|(?i:yes)|\s*[+-]?0*[1-9]\d*", re.ASCII)
_FOREIGN: Final = ("#PBS", "#BSUB")
_SEPARATORS: Final = ("hetjob", "packjob")
_SPACE: Final = " \t\n\v\f\r"  # isspace(3); Python's own idea of white space is wider
_SPACES: Final = re.compile(f"[{_SPACE}]")
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/@%+[]*")


class BadScript(ValueError):  # noqa: N818 - named after what is wrong, as the client's errors
    """sbatch would not take this script at all; `line` counts from 1 (0: the whole of it)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Given:
    """One option as it was given. `value` is None for one without; `origin` is "line 3", a variable or "argument 1"."""

    option: Option
    value: str | None
    origin: str
    line: int = 0
    """Of the script; 0 for what did not stand there."""
    off: bool = False
    """Takes the option back, as SBATCH_OVERCOMMIT=0 does."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What sbatch does not know and refuses the script for: the word, and why."""

    word: str
    reason: str
    origin: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.reason}: {self.word}"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one component of a job, in the order in which they count."""

    given: tuple[Given, ...] = ()
    complaints: tuple[Complaint, ...] = ()

    def last(self) -> dict[str, Given]:
        """By name, the one that counts of each option; of a pair of opposites only the later one."""
        found: dict[str, Given] = {}
        for one in self.given:
            name = one.option.name
            for other in _same_setting(name):
                found.pop(other, None)
            if not one.off:
                found[name] = one
        return found

    def value(self, name: str, default: str | None = None) -> str | None:
        """The value of an option by its long name; "" for one that was given without, `default` if it was not given."""
        one = self.last().get(name)
        return default if one is None else one.value or ""

    def then(self, later: Options) -> Options:
        """Both, with `later` winning."""
        return Options(self.given + later.given, self.complaints + later.complaints)


@dataclass(frozen=True, slots=True)
class Script:
    """The options of a script: one entry in `components` for a plain job, one for each of a heterogeneous one.

    `foreign`: number and text of the lines for other schedulers (`#PBS`, `#BSUB`). sbatch translates a few of them; we
    do not.
    """

    components: tuple[Options, ...]
    foreign: tuple[tuple[int, str], ...] = ()


def read_script(text: str) -> Script:
    """The options in a script's `#SBATCH` lines, up to its first command. Raises BadScript."""
    check_script(text)
    words: list[list[_Word]] = [[]]
    foreign: list[tuple[int, str]] = []
    for number, line in _head(text):
        magic = next((one for one in _MAGIC if line.startswith(one)), None)
        if magic is None:
            foreign += [(number, line)] if line.startswith(_FOREIGN) else []
        elif _separates(line.removeprefix(magic)):
            words.append([])
        else:
            words[-1] += (_Word(word, f"line {number}", number) for word in _split(line.removeprefix(magic), number))
    return Script(_inherited([_read(each) for each in words]), tuple(foreign))


def read_environment(environment: Mapping[str, str]) -> Options:
    """The options in SBATCH_* variables.

    One for an option without a value sets it when it is empty, "yes" or a number but 0, and takes it back otherwise.
    """
    given = [_variable(name, option, environment[name]) for name, option in VARIABLES.items() if name in environment]
    switches = OPTIONS["switches"].variable
    if switches in environment and WAIT_VARIABLE in environment:
        both = f"{environment[switches]}@{environment[WAIT_VARIABLE]}"
        given = [Given(one.option, both, one.origin) if one.option.name == "switches" else one for one in given]
    return Options(tuple(given))


def _variable(name: str, option: Option, value: str) -> Given:
    if option.takes is Takes.NO:
        return Given(option, None, name, off=not _SET.fullmatch(value))
    return Given(option, value, name)


def read_arguments(words: Sequence[str]) -> Options:
    """The options of a command line, without the script's name and its arguments."""
    return _read([_Word(word, f"argument {number}") for number, word in enumerate(words, 1)])


def read_options(
    script: str, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> tuple[Options, ...]:
    """All of them per component: the command line wins over the environment, and that over the script."""
    found = []
    words = read_arguments(arguments)
    for component in read_script(script).components:
        both = component.then(words)
        together = Options(component.given).then(read_environment(environment or {})).then(words)
        found.append(Options(together.given, both.complaints or _contradictions(both.given)))
    return tuple(found)


def write_line(option: str, value: str | None = None) -> str:
    """The `#SBATCH` line for an option; reads back as it is. Raises ValueError for what no line can hold."""
    takes = OPTIONS[option].takes
    if takes is (Takes.REQUIRED if value is None else Takes.NO):
        raise ValueError(f"--{option}: value {takes.value}")
    if value and any(sign in value for sign in "\n\0\r"):
        raise ValueError(f"the value of --{option} holds a line break or a NUL")
    return f"#SBATCH {_quoted(f'--{option}' if value is None else f'--{option}={value}')}"


def check_script(text: str) -> None:
    """Raises BadScript for what sbatch refuses to submit as a script at all."""
    if not text:
        raise BadScript("the script is empty")
    if not text.strip(_SPACE):
        raise BadScript("the script holds only white space")
    if not text.startswith("#!"):
        raise BadScript("a batch script begins with #! and the path of an interpreter", 1)
    for sign, name in (("\0", "a NUL character"), ("\r\n", "a DOS line break (\\r\\n)")):
        if sign in text:
            raise BadScript(f"the script holds {name}", text.count("\n", 0, text.index(sign)) + 1)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    origin: str
    line: int = 0


def _head(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines before the first command: comments and blank ones."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip(_SPACE)[:1] not in ("", "#"):
            return
        yield number, line


def _separates(rest: str) -> bool:
    """Is this the line between two components? Only the bare word is; quoted it is an argument like any other."""
    return _bare(rest.lstrip(_SPACE)) in _SEPARATORS


def _bare(rest: str) -> str:
    """The first word without a look at quotes."""
    return _SPACES.split(rest, maxsplit=1)[0]


def _split(rest: str, number: int) -> Iterator[str]:
    """The words of a line. An unquoted `#` ends it, even within a word; so do an empty word and a later `hetjob`."""
    at = 0
    while True:
        while at < len(rest) and rest[at] in _SPACE:
            at += 1
        if rest[at : at + 1] == ":":
            raise BadScript("a word may not begin with a colon", number)
        if _bare(rest[at:]) in _SEPARATORS:
            return
        word, at = _word(rest, at, number)
        if not word:
            return
        yield word


def _word(rest: str, at: int, number: int) -> tuple[str, int]:
    """The word that begins at `at`, and where it ends. A backslash takes the next sign as it is, within quotes too."""
    collected: list[str] = []
    quote = ""
    while at < len(rest) and (quote or rest[at] not in _SPACE):
        sign = rest[at]
        if sign == "\\":
            at += 1
            collected.append(rest[at : at + 1])
        elif sign == quote:
            quote = ""
        elif not quote and sign in "\"'":
            quote = sign
        elif not quote and sign == "#":
            return "".join(collected), len(rest)
        else:
            collected.append(sign)
        at += 1
    if quote:
        raise BadScript(f"a quote {quote} is not closed", number)
    return "".join(collected), at


def _read(words: Sequence[_Word]) -> Options:
    """The options among the words, as getopt_long(3) takes them: the words of all lines in one row."""
    given: list[Given] = []
    complaints: list[Complaint] = []
    row = iter(words)
    for word in row:
        if word.text == "--":
            complaints += (Complaint(one.text, "not an option", one.origin) for one in row)
        elif word.text.startswith("--"):
            _long(word, row, given, complaints)
        elif word.text.startswith("-") and word.text != "-":
            _short(word, row, given, complaints)
        else:
            complaints.append(Complaint(word.text, "not an option", word.origin))
    return Options(tuple(given), (*complaints, *_contradictions(given)))


def _contradictions(given: Sequence[Given]) -> tuple[Complaint, ...]:
    """What a script or a command line may not say at once; the environment may, and wins over the script then."""
    found = []
    for group in CONTRADICTORY:
        both = list(dict.fromkeys(one.option.name for one in given if one.option.name in group))
        if len(both) > 1:
            last = next(one for one in reversed(given) if one.option.name == both[-1])
            found.append(Complaint(f"--{both[-1]}", f"not together with --{both[0]}", last.origin))
    return tuple(found)


def _long(word: _Word, row: Iterator[_Word], given: list[Given], complaints: list[Complaint]) -> None:
    name, equals, glued = word.text[2:].partition("=")
    names = _named(name)
    if len(names) != 1:
        reason = f"could be any of {', '.join(f'--{one}' for one in names)}" if names else "an unknown option"
        complaints.append(Complaint(word.text, reason, word.origin))
        return
    option = OPTIONS[ALIASES.get(names[0], names[0])]
    if equals and option.takes is Takes.NO:
        complaints.append(Complaint(word.text, "takes no value", word.origin))
        return
    _take(option, glued if equals else None, word, row, given, complaints)


def _named(name: str) -> list[str]:
    """The options that a name, or the beginning of one, may stand for."""
    every = [*OPTIONS, *ALIASES]
    return [name] if name in every else [one for one in every if name and one.startswith(name)]


def _short(word: _Word, row: Iterator[_Word], given: list[Given], complaints: list[Complaint]) -> None:
    """`-N2`, `-N 2`, or letters in a row, of which the last may take a value: `-Hn3`."""
    rest = word.text[1:]
    while rest:
        option, rest = LETTERS.get(rest[0]), rest[1:]
        if option is None:
            complaints.append(Complaint(word.text, "an unknown option", word.origin))
            return
        if option.takes is Takes.NO:
            given.append(Given(option, None, word.origin, word.line))
            continue
        _take(option, rest or None, word, row, given, complaints)
        return


def _take(
    option: Option,
    glued: str | None,
    word: _Word,
    row: Iterator[_Word],
    given: list[Given],
    complaints: list[Complaint],
) -> None:
    """The option with its value: the one glued to it, or, if it needs one, the next word, whatever that is."""
    if glued is None and option.takes is Takes.REQUIRED:
        following = next(row, None)
        if following is None:
            complaints.append(Complaint(word.text, "needs a value", word.origin))
            return
        glued = following.text
    given.append(Given(option, glued, word.origin, word.line))


def _inherited(components: Sequence[Options]) -> tuple[Options, ...]:
    """Each component with what it takes over from those before it."""
    done: list[Options] = []
    kept: tuple[Given, ...] = ()
    for one in components:
        done.append(Options(kept + one.given, one.complaints))
        kept += tuple(given for given in one.given if given.option.everywhere)
    return tuple(done)


def _same_setting(name: str) -> set[str]:
    pair = {OPPOSITES.get(name, name), name}
    return pair | {one for one, other in OPPOSITES.items() if other in pair}


def _quoted(word: str) -> str:
    if word and set(word) <= _PLAIN:
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
