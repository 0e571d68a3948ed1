"""Reads a batch script's body: its variables, and the one command that starts the program.

Pure; called by `manifest`. What always holds: nothing is run; a variable that only the running script could know is told of
where it is used; of several commands the last srun counts, else the last known launcher, and the others are listed.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubeslurm.expansion import Ref
from kubeslurm.from_sbatch import arithmetic
from kubeslurm.from_sbatch.found import LeftOut, NoJob
from kubeslurm.launch import OWN_LAUNCHERS
from kubeslurm.shell_words import Command, Shell, ShellWord, plain

_ASSIGNED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)
_PROGRAMS: Final = re.compile(r"python(3(\.\d+)?)?\Z")
_QUIET: Final = frozenset({":", "true", "set", "shopt", "ulimit", "umask", "wait", "exit", "trap", "fail", "read"})
"""Of the shell itself: nothing of the job is lost with them."""
_BLOCKS: Final = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "{",
        "}",
        "[[",
    ]
)
_HOSTS: Final = re.compile(r"scontrol\s+(show\s+hostnames?|getaddrs)|SLURM_(JOB_)?NODELIST|hostname|SLURM_LAUNCH_NODE")
_RANKS: Final = frozenset(
    ["MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"]
)
_INNER: Final = re.compile(r"\$\{?(SLURM_[A-Z0-9_]+)")
_FIRST: Final = re.compile(r"addr|host|head|node|ip|master", re.IGNORECASE)


@dataclass
class Body:
    """What the body says. `variables` by name, `exported` those that the program gets; `launch` the command itself."""

    left: list[LeftOut]
    variables: dict[str, ShellWord] = field(default_factory=dict)
    exported: dict[str, int] = field(default_factory=dict)
    workdir: ShellWord | None = None
    launch: Command | None = None
    depth: int = 0


def read(commands: Sequence[Command], left: list[LeftOut]) -> Body:
    """Raises NoJob where no command starts a program."""
    body, chosen = Body(left), _launching(commands)
    if chosen is None:
        raise NoJob("no command starts a program: neither srun nor a known launcher")
    for number, command in enumerate(commands):
        if number == chosen:
            body.launch = command
            _told_of_launch(command, left)
        elif number > chosen:
            _behind(command, left)
        else:
            _before(command, body)
    return body


def _launching(commands: Sequence[Command]) -> int | None:
    """Which of them starts the program."""
    found: dict[bool, int] = {}
    for number, command in enumerate(commands):
        program = _program(command)
        if program == "srun" or _launches(command):
            found[program == "srun"] = number
    return found.get(True, found.get(False))


def _program(command: Command) -> str:
    rest = [word for word in command.words if not assignment(word)]
    while rest and plain(rest[0]) in ("exec", "time", "do", "then", "else", "{"):
        rest = rest[1:]
    return os.path.basename(plain(rest[0]) or "") if rest else ""


def _launches(command: Command) -> bool:
    program = _program(command)
    return program in OWN_LAUNCHERS or bool(_PROGRAMS.match(program)) or program in ("apptainer", "singularity")


def assignment(word: ShellWord) -> tuple[str, ShellWord] | None:
    first = word[0]
    match = _ASSIGNED.match(first) if isinstance(first, str) else None
    if match is None:
        return None
    rest = tuple(piece for piece in (match.group(2), *word[1:]) if piece != "")
    return match.group(1), rest or ("",)


def _before(command: Command, body: Body) -> None:
    words = command.words
    if command.here is not None or not words:
        _here(command, body)
    assigned = [assignment(word) for word in words]
    if words and all(assigned):
        for pair in assigned:
            _assign(pair, command.line, body, exported=False)
        return
    name = plain(words[0]) if words else ""
    if name in ("export", "declare", "readonly"):
        _export(command, body)
    elif name == "cd" and len(words) == 2 and not body.depth:
        body.workdir = words[1]
    else:
        _leave(command, body)


def _here(command: Command, body: Body) -> None:
    """`read -d '' name <<END || true`: the document is the value of what was read just before."""
    if body.variables.get("?") and command.here is not None:
        name = plain(body.variables.pop("?"))
        body.variables[name or ""] = (command.here,)


def _export(command: Command, body: Body) -> None:
    for word in command.words[1:]:
        text = plain(word)
        if pair := assignment(word):
            _assign(pair, command.line, body, exported=True)
        elif text and text in body.variables:
            body.exported[text] = command.line


def _assign(pair: tuple[str, ShellWord] | None, line: int, body: Body, *, exported: bool) -> None:
    if pair is None:
        return
    name, value = pair
    if name == "IFS":
        return
    body.variables[name] = _meeting(name, value)
    if exported and name not in _RANKS:
        body.exported[name] = line


def _meeting(name: str, value: ShellWord) -> ShellWord:
    """The well-known idioms for where ranks meet: the first node's name or address, and a port made of the job's number."""
    shells = [piece.text for piece in value if isinstance(piece, Shell)]
    if name in ("MASTER_ADDR", "MASTER_PORT") and shells:
        return (Ref(name),)
    if len(shells) == 1 and len(value) == 1 and _HOSTS.search(shells[0]) and _FIRST.search(name):
        return (Ref("MASTER_ADDR"),)
    if len(shells) == 1 and len(value) == 1 and "port" in name.lower() and shells[0].startswith("$(("):
        return (Ref("MASTER_PORT"),)
    return value


def _leave(command: Command, body: Body) -> None:
    words = [plain(word) or "..." for word in command.words if not assignment(word)]
    name = words[0] if words else ""
    if name == "read" and len(words) > 1:
        body.variables["?"] = command.words[-1]
    if name in ("if", "for", "while", "until", "case"):
        body.depth += 1
    elif name in ("fi", "done", "esac"):
        body.depth = max(0, body.depth - 1)
    elif name and name not in _QUIET and name not in _BLOCKS:
        why = "the image or a ConfigMap has to bring the file" if command.redirected else _why(name)
        body.left.append(LeftOut(command.line, " ".join(words), why))


def _why(name: str) -> str:
    if name in ("module", "ml", "source", ".", "conda", "mamba", "spack", "eval"):
        return "the image has to bring it"
    if name in ("echo", "date", "hostname", "printf", "nvidia-smi", "env", "printenv", "pwd", "ls", "cat", "which"):
        return "only tells something"
    return "a PyTorchJob starts one program"


def _told_of_launch(command: Command, left: list[LeftOut]) -> None:
    if command.redirected:
        left.append(LeftOut(command.line, "redirection", "kubectl logs shows what the replicas write"))
    if command.after in ("|", "|&"):
        left.append(LeftOut(command.line, "pipe", "the program's output goes to its log"))


def _behind(command: Command, left: list[LeftOut]) -> None:
    words = [plain(word) or "..." for word in command.words]
    if words and words[0] not in _QUIET and words[0] not in _BLOCKS:
        why = (
            "the end of the pipe" if command.before in ("|", "|&") else "runs after the program, and a job ends with it"
        )
        left.append(LeftOut(command.line, " ".join(words), why))


@dataclass(frozen=True)
class Values:
    """What words mean in Kubernetes: literals with `$` as the kubelet wants it, variables as `$(NAME)` or their value."""

    variables: Mapping[str, ShellWord]
    slurm: Mapping[str, str]
    left: list[LeftOut]
    line: int

    def text(self, word: ShellWord, seen: frozenset[str] = frozenset()) -> str:
        """The word as Kubernetes writes it."""
        return "".join(self._piece(piece, seen) for piece in _escaped(word))

    def _known(self, name: str) -> str | None:
        if name in self.slurm:
            return self.slurm[name]
        return plain(self.variables[name]) if name in self.variables else None

    def _piece(self, piece: str | Ref | Shell, seen: frozenset[str]) -> str:
        if isinstance(piece, str):
            for name in dict.fromkeys(_INNER.findall(piece)):
                self.left.append(LeftOut(self.line, f"${name}", "the program's own shell gets no such variable"))
            return piece
        if isinstance(piece, Shell):
            if piece.text in ("*", "?"):
                return piece.text
            number = arithmetic.value(piece.text, self._known)
            if number is not None:
                return str(number)
            self.left.append(LeftOut(self.line, piece.text, "only a shell can tell; the text stands there as it is"))
            return escaped(piece.text)
        if piece.name in self.slurm:
            return self.slurm[piece.name]
        if piece.name in self.variables and piece.name not in seen and self.variables[piece.name] != (piece,):
            return self.text(self.variables[piece.name], seen | {piece.name})
        if piece.name not in _RANKS and not piece.name.startswith("PET_"):
            self.left.append(LeftOut(self.line, f"${piece.name}", "has no value here; $(NAME) stands there"))
        return f"$({piece.name})"


def escaped(text: str) -> str:
    """The text as the kubelet leaves it as it is."""
    return re.sub(r"\$(?=[$(])", "$$", text)


def _escaped(word: ShellWord) -> Iterator[str | Ref | Shell]:
    """`$(` and `$$` mean something to the kubelet; a `$` at a piece's end could become one with what follows."""
    for index, piece in enumerate(word):
        if not isinstance(piece, str):
            yield piece
            continue
        text = escaped(piece)
        yield text + ("$" if text.endswith("$") and index + 1 < len(word) else "")
