"""`pyslurm.db.Connection`: changes that wait for `commit`, over a REST API that commits each call by itself.

Opened by scripts, passed to `load` and `modify` of the classes of `pyslurm.db`. What always holds: a change made with a
connection reaches slurmdbd at `commit` and not before; `rollback` and `close` drop what was not committed. slurmdbd
commits call by call, so a `commit` of several changes that fails in the middle keeps those before it; its error tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from slurmrest.pyslurm import _session
from slurmrest.pyslurm.error import PyslurmError

if TYPE_CHECKING:
    from slurmrest.core import Params

Change = Callable[[], None]


class Connection:
    """A connection to slurmdbd. Made by `open`; use as `with`: the end commits, an exception rolls back."""

    def __init__(self) -> None:
        self._open = False
        self._waiting: list[Change] = []

    @classmethod
    def open(cls) -> Self:
        """A new connection. Raises PyslurmError when slurmdbd can't be asked (or slurmrestd doesn't serve it)."""
        _session.request("GET", "clusters/", api="slurmdb")
        made = cls()
        made._open = True
        return made

    @property
    def is_open(self) -> bool:
        """Whether it may be used."""
        return self._open

    def commit(self) -> None:
        """Send the changes that wait, in their order. Those after one that fails are dropped."""
        self.check()
        waiting, self._waiting = self._waiting, []
        for number, change in enumerate(waiting):
            try:
                change()
            except PyslurmError as error:
                error.add_note(f"change {number + 1} of {len(waiting)}: those before it are committed, the rest is not")
                raise

    def rollback(self) -> None:
        """Drop the changes that wait."""
        self.check()
        self._waiting.clear()

    def close(self) -> None:
        """End the connection; changes that wait are dropped. Closing twice is no error."""
        self._waiting.clear()
        self._open = False

    def check(self) -> None:
        """Raise PyslurmError when it is closed."""
        if not self._open:
            raise PyslurmError("the connection to slurmdbd is not open: use Connection.open()")

    def add(self, change: Change) -> None:
        """Let a change wait for the next commit."""
        self.check()
        self._waiting.append(change)

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._open:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"Connection({'open' if self._open else 'closed'}, {len(self._waiting)} changes wait)"


def ask(
    tail: str, field: str, params: Params | None = None, connection: Connection | None = None
) -> list[Mapping[str, Any]]:
    """The entries of an answer of slurmdbd. Raises PyslurmError, also for a closed connection."""
    if connection is not None:
        connection.check()
    found = _session.request("GET", tail, api="slurmdb", params=params).payload.get(field)
    if not isinstance(found, list):
        raise PyslurmError(f"slurmdbd's answer to {tail} holds no list of {field}")
    return found


def change(send: Change, connection: Connection | None) -> None:
    """Make a change at once, or at the commit of the connection that is given."""
    if connection is None:
        send()
    else:
        connection.add(send)
