"""Events: one per thing that happened, however often it is said."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from kubeslurm_operator.events import REPEAT_SECONDS, Events

JOB = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j", "namespace": "n", "uid": "u"}}


class Server:
    """An API server that keeps the messages of what is posted."""

    def __init__(self) -> None:
        self.posted: list[str] = []

    async def create(self, body: dict[str, Any]) -> None:
        """Keep it."""
        self.posted.append(body["message"])


def test_the_same_words_are_posted_again_after_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before; other words at once."""
    server = Server()
    poster = Events(server)  # type: ignore[arg-type]
    for at, words in [(0.0, "a"), (1.0, "b"), (REPEAT_SECONDS - 1, "a"), (REPEAT_SECONDS, "a"), (REPEAT_SECONDS, "b")]:
        monkeypatch.setattr(time, "monotonic", lambda at=at: at)
        asyncio.run(poster.normal(JOB, "Reason", words))
    assert server.posted == ["a", "b", "a"]
