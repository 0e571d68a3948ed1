"""Slurm's warnings, for who wants to hear them: "Ignoring unknown field", "found nothing" and the like.

The core tells each one here; `collect_warnings` gives those of the calls made inside its block. What always holds: two
threads, or two tasks, that collect at the same time hear their own calls only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Notice:
    """One warning of an answer that was a success, and the call it came with."""

    method: str
    path: str
    text: str


_collecting: Final[ContextVar[tuple[list[Notice], ...]]] = ContextVar("slurmrest.warnings", default=())


@contextmanager
def collect_warnings() -> Iterator[list[Notice]]:
    """All warnings of this block's calls, in order; the list is filled while the block runs.

    with collect_warnings() as warnings:
        slurm.update_job(7, {"time_limt": 5})
    """
    collected: list[Notice] = []
    token = _collecting.set((*_collecting.get(), collected))
    try:
        yield collected
    finally:
        _collecting.reset(token)


def tell(method: str, path: str, texts: tuple[str, ...]) -> None:
    """Called by the core with each answer's warnings."""
    for collected in _collecting.get():
        collected += [Notice(method, path, text) for text in texts]
