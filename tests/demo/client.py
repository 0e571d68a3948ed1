"""Slurm's commands from outside: `client.py LOGIN PROGRAM ARGUMENTS...` runs PROGRAM in a pod of the pool as a user.

Called by the wrappers in `.demo/bin`, as a file and by any Python 3.11, so it imports the standard library only. LOGIN is
a JSON file (see `Login`). The user is alice, or the one that SLURM_AS names. A script file given to sbatch is sent over;
standard input is passed on where the program reads it, and a terminal where there is one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

TIMEOUT_SECONDS = 30

# Options of sbatch that take no value (or only after `=`): the word after them may be the script.
_FLAGS = (
    "-h -H -I -k -O -Q -s -v -V -W --contiguous --exclusive --get-user-env --help --hold --ignore-pbs --no-kill --nice "
    "--no-requeue --overcommit --oversubscribe --parsable --propagate --quiet --reboot --requeue --resv-ports "
    "--spread-job --test-only --usage --use-min-nodes --verbose --version --wait"
)
FLAGS = frozenset(_FLAGS.split())

_AS_USER = 'user=$1; shift; group=$(id -g "$user") || exit; exec setpriv --reuid "$user" --regid "$group" --init-groups'
AS_USER = f'{_AS_USER} --reset-env -- env -C /tmp "$@"'
SEND_SCRIPT = (
    "name=$1 options=$2; shift 2; folder=$(mktemp -d) || exit; trap 'rm -rf -- \"$folder\"' EXIT; "
    'cat > "$folder/$name" && sbatch "${@:1:options}" "$folder/$name" "${@:options+1}"'
)


@dataclass(frozen=True, slots=True)
class Login:
    """Where Slurm's commands run: the kubectl to use, and the pods that serve as login nodes."""

    kubectl: list[str]
    namespace: str
    selector: str
    container: str
    user: str


@dataclass(frozen=True, slots=True)
class Call:
    """One command in the pod: its words, and the file (None: our own) that is its standard input, if it reads one."""

    words: list[str]
    reads: bool
    script: str | None = None


def script_index(arguments: Sequence[str]) -> int | None:
    """Which of sbatch's arguments is the script, if any."""
    expects_value = False
    for index, word in enumerate(arguments):
        if word.startswith("--wrap"):
            return None
        if word == "--":
            return index + 1 if index + 1 < len(arguments) else None
        if not expects_value and not word.startswith("-"):
            return index
        expects_value = not expects_value and _takes_value(word)
    return None


def _takes_value(option: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and option not in FLAGS
    return len(option) == 2 and option not in FLAGS  # `-n4` has its value with it


def call(program: str, arguments: Sequence[str]) -> Call:
    """What runs in the pod for `program arguments...`."""
    index = script_index(arguments) if program == "sbatch" else None
    if index is None:
        reads = program in ("sbatch", "srun") or (program == "scontrol" and not arguments)
        return Call([program, *arguments], reads)
    script = arguments[index]
    options = [*arguments[:index]]
    words = ["bash", "-c", SEND_SCRIPT, "sbatch", Path(script).name, str(len(options)), *options]
    return Call([*words, *arguments[index + 1 :]], True, script)


def command(login: Login, pod: str, wanted: Call, environment: Mapping[str, str], *, terminal: bool) -> list[str]:
    """The kubectl command for it."""
    user = environment.get("SLURM_AS") or login.user
    flags = ["-i"] if wanted.reads else []
    if wanted.reads and terminal and wanted.script is None:
        flags.append("-t")
    where = ["-n", login.namespace, pod, "-c", login.container, "-q"]
    return [*login.kubectl, "exec", *flags, *where, "--", "bash", "-c", AS_USER, "as", user, *wanted.words]


def find_pod(login: Login) -> str:
    """The name of a running pod of the pool; SystemExit when there is none."""
    query = f"labelSelector={quote(login.selector)}&fieldSelector={quote('status.phase=Running')}&limit=1"
    path = f"/api/v1/namespaces/{login.namespace}/pods?{query}"
    done = subprocess.run(
        [*login.kubectl, "get", "--raw", path], capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
    )
    if done.returncode:
        sys.exit(f"no answer from the demo's Kubernetes (is it up? `make demo`): {done.stderr.strip()}")
    items = json.loads(done.stdout)["items"]
    if not items:
        sys.exit(f"no pod with {login.selector} runs in namespace {login.namespace}")
    return str(items[0]["metadata"]["name"])


def main(arguments: Sequence[str]) -> None:
    """Become the command: its input, output, signals and exit code are ours."""
    path, program, *rest = arguments
    login = Login(**json.loads(Path(path).read_text()))
    wanted = call(program, rest)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    words = command(login, find_pod(login), wanted, os.environ, terminal=terminal)
    source = wanted.script or (None if wanted.reads else os.devnull)
    if source is not None:
        try:
            os.dup2(os.open(source, os.O_RDONLY), 0)
        except OSError as error:
            sys.exit(f"sbatch: error: {source}: {error.strerror}")
    os.execvp(words[0], words)  # noqa: S606


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
