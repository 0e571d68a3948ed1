"""Runs the scripts of this folder as their users do: as programs of their own, told by the environment where to ask.

Used by the tests next to it. The truth that a script's output is compared with comes from Slurm's own commands.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.slurm import BareSlurm

SCRIPTS = Path(__file__).parent / "scripts"
_SECONDS = 30.0


@dataclass
class Scripts:
    """One Slurm, and the scripts that were run against it so far."""

    slurm: BareSlurm
    ran: set[str] = field(default_factory=set)

    def run(
        self,
        script: str,
        *args: str | int,
        user: str = "root",
        code: int = 0,
        environment: dict[str, str] | None = None,
    ) -> list[str]:
        """The lines that a script prints. It gets nothing but where slurmrestd is, a token, and `environment`."""
        self.ran.add(script)
        variables = {"SLURM_REST_URL": self.slurm.url, "SLURM_JWT": self.slurm.token(user), "PATH": os.environ["PATH"]}
        argv = [sys.executable, "-W", "error", str(SCRIPTS / f"{script}.py"), *map(str, args)]
        done = subprocess.run(
            argv, env=variables | (environment or {}), capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (code, ""), done
        return done.stdout.splitlines()

    def lines(self, *argv: str, user: str = "root") -> list[str]:
        """The lines that one of Slurm's commands prints, without blanks at their ends."""
        return [line.strip() for line in self.slurm.run(*argv, user=user).stdout.splitlines() if line.strip()]

    def shown(self, kind: str, name: str | int) -> dict[str, str]:
        """What `scontrol show` says of one thing: value by word."""
        said = self.slurm.run("scontrol", "-o", "show", kind, str(name)).stdout
        return dict(word.partition("=")[::2] for word in said.split())

    def job(self, *options: str, script: str = "sleep 300", user: str = "alice") -> int:
        """Submit a job with sbatch; its id."""
        argv = ["sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}"]
        return int(self.slurm.run(*argv, user=user).stdout.split(";")[0])

    def until(self, what: str, done: Callable[[], bool]) -> None:
        """Wait for something to be true."""
        end = time.monotonic() + _SECONDS
        while not done():
            assert time.monotonic() < end, f"not within {_SECONDS:g} s: {what}"
            time.sleep(0.05)

    def in_state(self, job_id: int, state: str) -> int:
        """Wait until a job is in a state; its id."""
        self.until(f"job {job_id} is {state}", lambda: self.shown("job", job_id)["JobState"] == state)
        return job_id

    def clear(self) -> None:
        """End all jobs."""
        for user in ("alice", "bob", "root"):
            self.slurm.run("scancel", f"--user={user}")
        self.until("no job is left", lambda: not self.lines("squeue", "-h"))
