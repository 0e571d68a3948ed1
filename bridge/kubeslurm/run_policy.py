"""`spec.runPolicy` of a training job: what to do around its run.

Pure; `read` is the reader's (each wrong value refused by its path), `of` the life cycle's, which has to follow a submitted
job whatever became of its object since: there a wrong value counts as not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubeslurm.errors import InvalidObject

PATH: Final = "spec.runPolicy"
_LEAST: Final = {"activeDeadlineSeconds": 1, "backoffLimit": 0, "ttlSecondsAfterFinished": 0}
MOST: Final = 2**31


class CleanPodPolicy(StrEnum):
    """Which mirror pods go when the job has ended."""

    NONE = "None"
    RUNNING = "Running"
    """Those that have not ended; the others keep their logs."""
    ALL = "All"


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """The numbers are seconds, but the limit, which counts retries. None: no such bound."""

    suspend: bool = False
    clean_pods: CleanPodPolicy = CleanPodPolicy.NONE
    deadline: int | None = None
    backoff_limit: int | None = None
    ttl: int | None = None


def read(given: Mapping[str, Any]) -> RunPolicy:
    """The policy; InvalidObject with the path of the first wrong value."""
    suspend = given.get("suspend")
    if suspend not in (None, True, False):
        raise InvalidObject(f"{PATH}.suspend", "true or false is wanted")
    return RunPolicy(
        suspend=bool(suspend),
        clean_pods=_clean(given.get("cleanPodPolicy")),
        deadline=_number(given, "activeDeadlineSeconds"),
        backoff_limit=_number(given, "backoffLimit"),
        ttl=_number(given, "ttlSecondsAfterFinished"),
    )


def of(raw: Mapping[str, Any]) -> RunPolicy:
    """The same of an object, value by value."""
    given = (raw.get("spec") or {}).get("runPolicy")
    policy = RunPolicy()
    for field, value in (given if isinstance(given, dict) else {}).items():
        try:
            read({field: value})
        except InvalidObject:
            continue  # the reader has said so on the job, or will
        policy = read({**_given(policy), field: value})
    return policy


def _given(policy: RunPolicy) -> dict[str, Any]:
    return {
        "suspend": policy.suspend,
        "cleanPodPolicy": policy.clean_pods,
        "activeDeadlineSeconds": policy.deadline,
        "backoffLimit": policy.backoff_limit,
        "ttlSecondsAfterFinished": policy.ttl,
    }


def _clean(value: Any) -> CleanPodPolicy:
    if value is None:
        return CleanPodPolicy.NONE
    if value not in list(CleanPodPolicy):
        raise InvalidObject(f"{PATH}.cleanPodPolicy", f"{str(value)[:40]!r} is none of None, Running, All")
    return CleanPodPolicy(value)


def _number(given: Mapping[str, Any], field: str) -> int | None:
    value, least = given.get(field), _LEAST[field]
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise InvalidObject(f"{PATH}.{field}", f"a whole number of at least {least} is wanted")
    return value
