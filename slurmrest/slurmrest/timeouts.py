"""How long the client waits, how much it takes and how often it asks again. Read by the transports and the core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All in seconds but the counts. A call ends after `patience + 2 * total` at the latest, plus its pauses.

    `read` is above slurmrestd's own patience with slurmctld (MessageTimeout, 10 s), so that its words are heard: with
    slurmctld down it says so after 9 s.
    """

    connect: float = 3.0
    read: float = 20.0
    """Silence inside one answer."""
    total: float = 60.0
    """One request with its whole answer, once a connection is free for it."""
    retries: int = 2
    """Further tries of a request that is safe to repeat ..."""
    patience: float = 3.0
    """... as long as the call isn't older than this."""
    pause: float = 0.1
    """Before the first of them; doubled each time, and up to half of it added by chance."""
    settle: float = 10.0
    """How long a submission whose answer was lost may still be under way: so long, its key isn't sent again."""
    looks: tuple[float, ...] = (0.2, 0.6, 1.5)
    """Pauses between the looks for the job of such a submission."""
    connections: int = 8
    answer_bytes: int = 512 * 1024 * 1024
    """A longer answer is refused."""

    def __post_init__(self) -> None:
        if min(self.connect, self.read, self.total) <= 0:
            raise ValueError("a timeout must be above zero")
        if self.retries < 0 or self.connections < 1:
            raise ValueError("retries must not be negative, connections at least one")
