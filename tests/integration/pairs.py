"""The Slurm releases and the API versions of each that the tests of the client run on.

Used by the modules next to it. What always holds: a Slurm is started once for a module, when the first test needs it, and
its release is skipped, with the reason, on a day on which Debian's unstable doesn't give it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.cluster.slurm import BareSlurm

VERSIONS: Final = {"trixie": ("v0.0.40", "v0.0.41", "v0.0.42"), "sid": ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")}
"""By Debian suite: 24.11 and 26.05."""
PAIRS: Final = [(suite, version) for suite, versions in VERSIONS.items() for version in versions]
RAN: Final[set[tuple[str, str, bool]]] = set()
"""Suite, API version, with slurmdbd?: what a test has run on. conftest.py counts them at the end."""
NAMES: Final = ["-".join(pair) for pair in PAIRS]


@contextmanager
def slurms(start: Callable[[str], BareSlurm], *, accounting: bool = False) -> Iterator[Callable[[str], BareSlurm]]:
    """Gives the running Slurm of a suite; `start` makes one that is entered and, at the end, left."""
    from tests.integration.conftest import need_root_file_system  # it imports this module

    running: dict[str, BareSlurm] = {}
    with ExitStack() as stack:

        def of(suite: str) -> BareSlurm:
            if suite not in running:
                need_root_file_system(suite, accounting=accounting)
                running[suite] = stack.enter_context(start(suite))
            return running[suite]

        yield of
