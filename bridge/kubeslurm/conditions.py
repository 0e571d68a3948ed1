"""metav1.Condition lists: set one, keep the times of those that did not change. Pure; used for our own objects' status.

The training operator's conditions follow other rules; they live in `training`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

MAX_MESSAGE: Final = 1024

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a condition should say now. `holds` None is Unknown."""

    type: str
    holds: bool | None
    reason: str
    message: str = ""

    @property
    def status(self) -> str:
        """The word that Kubernetes uses."""
        return "Unknown" if self.holds is None else str(self.holds)


def rfc3339(moment: datetime) -> str:
    """A time as Kubernetes writes it, whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """A time that Kubernetes wrote."""
    return datetime.fromisoformat(text)


def merge(
    conditions: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict], *, generation: int, now: datetime
) -> list[Raw]:
    """The list with each verdict in it; `lastTransitionTime` moves only when `status` does."""
    known = {str(one.get("type")): one for one in conditions}
    judged = {verdict.type: _condition(verdict, known.get(verdict.type), generation, now) for verdict in verdicts}
    kept = [judged.get(kind) or dict(one) for kind, one in known.items()]
    return kept + [one for kind, one in judged.items() if kind not in known]


def _condition(verdict: Verdict, before: Mapping[str, Any] | None, generation: int, now: datetime) -> Raw:
    same = before is not None and before.get("status") == verdict.status
    return {
        "type": verdict.type,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message[:MAX_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if before and same else rfc3339(now),
    }


def find(conditions: Sequence[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    """The condition of that type."""
    return next((one for one in conditions if one.get("type") == kind), None)
