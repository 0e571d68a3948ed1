"""The Slurm releases that pyslurm's face is tested on, and the API versions of each.

Used by the tests next to it. What always holds: Debian's stable Slurm is always there; a newer one is skipped, with the
reason, on a day on which Debian unstable can't be had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from slurmrest import pyslurm
from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system

VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "trixie": ("v0.0.40", "v0.0.41", "v0.0.42"),
    "sid": ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"),
}
"""By Debian suite: 24.11 and 26.05."""
NEWEST: Final = VERSIONS["trixie"][-1]


def available(suite: str) -> None:
    """Skips the test where this suite's Slurm can't be started."""
    need_root_file_system(suite, accounting=False)


def until(what: str, done: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)


@contextmanager
def connected(slurm: BareSlurm, folder: Path, version: str, user: str = "root") -> Iterator[None]:
    """pyslurm's face, connected to a Slurm with one API version as a user."""
    key = folder / "key"
    key.write_bytes(slurm.jwt_key)
    pyslurm.connect(slurm.url, key_file=key, user=user, version=version)
    try:
        yield
    finally:
        pyslurm.disconnect()
