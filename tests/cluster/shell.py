"""Running programs, with a timeout and an error that shows what the program said.

Called by every part of the harness. `run` never waits for ever and never hides a failure.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_SHOWN = 4000  # characters of a failed program's output in the error


class CommandError(RuntimeError):
    """A program failed or took too long; the message ends with the last of its output."""

    def __init__(self, argv: Sequence[str], reason: str, output: str) -> None:
        self.reason = reason
        self.output = output
        super().__init__(f"{' '.join(argv)[:300]}: {reason}\n{output[-_SHOWN:]}".rstrip())


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float,
    input: str | None = None,  # noqa: A002 (as in subprocess)
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run `argv` and return its text output; `env` is added to this process's own. CommandError on failure (if `check`)
    and on a timeout (always)."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            timeout=timeout,
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            text=True,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(words, f"not done after {timeout:g} s", _text(error.stdout) + _text(error.stderr)) from error
    if check and done.returncode != 0:
        raise CommandError(words, f"exit code {done.returncode}", done.stdout + done.stderr)
    return done


def _text(output: bytes | str | None) -> str:
    """What subprocess caught before a timeout: bytes, text or nothing."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
