"""How a call of the core becomes a method of a client: `as_async` and `as_sync`, over the faces that run it.

Used by `slurmrest.client`. What always holds: a method has the parameters, the types and the documentation of the call
that it runs, on both clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from slurmrest.errors import ProtocolError
from slurmrest.messages import Outcome, Pause, Request, Steps, T

if TYPE_CHECKING:
    from slurmrest.transport import AsyncTransport, SyncTransport

P = ParamSpec("P")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class AsyncFace(Generic[C_co]):
    """Runs the calls of `core` over an asynchronous transport."""

    def __init__(self, core: C_co, transport: AsyncTransport) -> None:
        self._core = core
        self._transport = transport

    async def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        sent: Request | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                result: T = stop.value
                return result
            except ProtocolError as error:
                _place(error, sent)
                raise
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                outcome = None
            else:
                outcome, sent = await self._transport.send(step), step


class SyncFace(Generic[C_co]):
    """Runs the calls of `core` over a synchronous transport."""

    def __init__(self, core: C_co, transport: SyncTransport) -> None:
        self._core = core
        self._transport = transport

    def _run(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        sent: Request | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                result: T = stop.value
                return result
            except ProtocolError as error:
                _place(error, sent)
                raise
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                outcome = None
            else:
                outcome, sent = self._transport.send(step), step


def _place(error: ProtocolError, sent: Request | None) -> None:
    """What reads an answer doesn't know which call it was."""
    if sent is not None and not error.method:
        error.method, error.path = sent.method, sent.path


def as_async(
    steps: Callable[Concatenate[C, P], Steps[T]],
) -> Callable[Concatenate[AsyncFace[C], P], Coroutine[Any, Any, T]]:
    """The method of the asynchronous client that runs a call."""

    @wraps(steps)
    async def method(self: AsyncFace[C], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(self._core, *args, **kwargs))

    return method


def as_sync(steps: Callable[Concatenate[C, P], Steps[T]]) -> Callable[Concatenate[SyncFace[C], P], T]:
    """The method of the synchronous client that runs a call."""

    @wraps(steps)
    def method(self: SyncFace[C], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(self._core, *args, **kwargs))

    return method
