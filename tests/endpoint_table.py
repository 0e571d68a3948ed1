"""Writes the table of endpoints into docs/slurmrest.md: `python -m tests.endpoint_table FILE`, called by `make docs`.

Made of `slurmrest.endpoints`, which is what the client asks before it sends anything. A test fails when the page is old.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from slurmrest.endpoints import ENDPOINTS, RELEASES, Api

BEGIN: Final = "<!-- endpoints: made by `make docs` -->\n"
END: Final = "<!-- end -->\n"
METHODS: Final = ("GET", "POST", "DELETE")
DAEMONS: Final[tuple[tuple[Api, str], ...]] = (("slurm", "slurmctld"), ("slurmdb", "slurmdbd"))


def table() -> str:
    """The versions with their releases, then a table per daemon."""
    named = ", ".join(f"{version} = {release}" for version, release in RELEASES.items())
    return "\n".join([f"{named}.\n", *(part for api, daemon in DAEMONS for part in _daemon(api, daemon))])


def _daemon(api: Api, daemon: str) -> list[str]:
    since = {(one.path, one.method): one.since for one in ENDPOINTS if one.api == api}
    rows = [
        " | ".join([f"| `{path}`", *(since.get((path, method), "") for method in METHODS)]) + " |"
        for path in sorted({path for path, _ in since})
    ]
    return [f"| {daemon} | {' | '.join(METHODS)} |", "| --- " * (len(METHODS) + 1) + "|", *rows, ""]


def written(page: str) -> str:
    """The page with the table of today."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for the table")
    return f"{before}{begin}\n{table()}\n{end}{after}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(written(file.read_text()))
