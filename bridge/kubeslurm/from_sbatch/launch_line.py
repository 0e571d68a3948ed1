"""Reads the command that starts the program: srun's own options, variables before it, apptainer around it.

Pure; called by `manifest`. What always holds: what is left of the line are the program's words alone.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubeslurm.expansion import Ref
from kubeslurm.from_sbatch import options
from kubeslurm.from_sbatch.body import Body, Values, assignment
from kubeslurm.from_sbatch.found import Asked, LeftOut, NoJob, Run
from kubeslurm.shell_words import BadShell, Command, ShellWord, commands, plain
from slurmrest.sbatch import read_arguments
from slurmrest.sbatch_table import LETTERS, OPTIONS, Takes

_SRUN_FLAGS: Final = frozenset(
    [
        "label",
        "unbuffered",
        "exact",
        "overlap",
        "no-kill",
        "disable-status",
        "multi-prog",
        "pty",
        "preserve-env",
        "resv-ports",
    ]
)
_SRUN_LETTERS: Final = {"l": "label", "u": "unbuffered", "K": "kill-on-bad-exit", "W": "wait", "m": "distribution"}
_MAY: Final = frozenset({"kill-on-bad-exit", "threads-per-core"})
_SHELLS: Final = frozenset({"bash", "sh"})
_RUNTIMES: Final = frozenset({"apptainer", "singularity"})
_RUNTIME_VALUES: Final = frozenset({"--bind", "-B", "--env", "--pwd", "--home", "-H", "--workdir", "-W", "--env-file"})


def read(command: Command, body: Body, asked: Asked) -> tuple[list[ShellWord], list[tuple[str, ShellWord]]]:
    """The program's words, and the variables that stand before it. Fills in what srun asks for."""
    words, variables = _prefixed(list(command.words))
    if words and os.path.basename(plain(words[0]) or "") == "srun":
        words = _srun(words[1:], command.line, body, asked)
        more = _prefixed(words)
        words, variables = more[0], variables + more[1]
    if words and os.path.basename(plain(words[0]) or "") in _RUNTIMES:
        words = _container(words, command.line, body, asked)
    if not words:
        raise NoJob("no program stands there", command.line)
    return words, variables


def _prefixed(words: list[ShellWord]) -> tuple[list[ShellWord], list[tuple[str, ShellWord]]]:
    """Without `exec`, `time`, `env` and the assignments."""
    variables = []
    while words:
        pair = assignment(words[0])
        if pair is not None:
            variables.append(pair)
        elif plain(words[0]) not in ("exec", "time", "env", "/usr/bin/env", "numactl"):
            break
        words = words[1:]
    return words, variables


def _srun(words: list[ShellWord], line: int, body: Body, asked: Asked) -> list[ShellWord]:
    """srun's options as sbatch's; those of their own, and pyxis', are taken here. The rest is the program."""
    kept: list[str] = []
    values = Values(body.variables, {}, [], line)
    while words:
        text = values.text(words[0])
        if not text.startswith("-") or text == "-":
            break
        words = words[1:]
        if text == "--":
            break
        name, glued, value = _option(text)
        if not glued and _takes(name):
            value, words = (values.text(words[0]), words[1:]) if words else ("", [])
            text = f"--{name}={value}"
        if name == "container-image":
            asked.image = value.replace("#", "/")
        elif name.startswith("container-"):
            body.left.append(LeftOut(line, text, "volumes and workingDir say it in a PyTorchJob"))
        elif name in OPTIONS and OPTIONS[name].name not in ("output", "error", "nodelist") and "$" not in text:
            kept.append(f"--{name}={value}" if value else f"--{name}")
    options.apply(read_arguments(kept), asked, body.left, line)
    return words


def _option(text: str) -> tuple[str, bool, str]:
    """Its long name, is its value glued to it, the value."""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        return name, bool(equals), value
    letter = text[1]
    name = LETTERS[letter].name if letter in LETTERS else _SRUN_LETTERS.get(letter, letter)
    value = text[2:]
    return name, bool(value), value.removeprefix("=")


def _takes(name: str) -> bool:
    if name in _MAY or name in _SRUN_FLAGS:
        return False
    return OPTIONS[name].takes is Takes.REQUIRED if name in OPTIONS else True


def _container(words: Sequence[ShellWord], line: int, body: Body, asked: Asked) -> list[ShellWord]:
    """`apptainer exec [options] IMAGE program`."""
    rest = list(words[2:])
    while rest and (plain(rest[0]) or "").startswith("-"):
        flag = plain(rest[0]) or ""
        rest = rest[2:] if flag in _RUNTIME_VALUES else rest[1:]
        if flag not in ("--nv", "--rocm", "--cleanenv", "-e"):
            body.left.append(LeftOut(line, flag, "volumes and workingDir say it in a PyTorchJob"))
    if not rest:
        raise NoJob("no image and no program stand behind apptainer", line)
    asked.image = Values(body.variables, {}, body.left, line).text(rest[0]).removeprefix("docker://")
    return rest[1:]


def own_task(words: Sequence[ShellWord], body: Body) -> str | None:
    """The text of `bash -c "$task"`, as kubeslurm's own scripts have it; None for any other command."""
    if len(words) == 3 and plain(words[0]) == "/bin/bash" and plain(words[1]) == "-c" and words[2] == (Ref("task"),):
        return plain(body.variables.get("task", ()))
    return None


def run_own(text: str, line: int, left: list[LeftOut]) -> Run:
    """Of such a text: the last command is the program, with its variables before it."""
    try:
        found = commands(text, line)
    except BadShell as error:
        raise NoJob(str(error), error.line) from None
    if not found:
        raise NoJob("the task's text is empty", line)
    if sum(plain(one.words[0]) == "exec" for one in found if one.words) > 1:
        raise NoJob("Master and Worker run different programs", line)
    if "KUBESLURM_PAIRS" in text or "\nlink " in text:
        left.append(LeftOut(line, "materials", "its ConfigMaps, Secrets and volumes stand in the job's own file alone"))
    last, workdir = found[-1], None
    for one in found[:-1]:
        if one.words and plain(one.words[0]) == "cd" and len(one.words) == 3:
            workdir = plain(one.words[2])
    words, variables = _prefixed(list(last.words))
    values = Values({}, {}, left, last.line)
    given = tuple((name, values.text(word)) for name, word in variables if not name.startswith("PET_"))
    environment = tuple(pair for pair in given if pair[0] != "PYTHONUNBUFFERED")
    return Run(last.line, tuple(values.text(word) for word in words), environment, workdir)


def launched_by_rank(text: str) -> bool:
    """Does the text give each task a rank of its own?"""
    return re.search(r"^export RANK=.*LOCAL_RANK=", text, re.MULTILINE) is not None


def environment(body: Body, values: Values, before: Sequence[tuple[str, ShellWord]]) -> Iterator[tuple[str, str]]:
    """The exported variables and those before the program, each once."""
    found = {name: body.variables[name] for name in body.exported if name in body.variables}
    for name, word in (found | dict(before)).items():
        where = Values(values.variables, values.slurm, values.left, body.exported.get(name, values.line))
        yield name, where.text(word, frozenset({name}))
