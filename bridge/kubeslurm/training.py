"""The training operator's status contract: its list of conditions, its counters, its words.

Pure; used by `jobs`. Source: kubeflow/trainer v1.9, pkg/util/status.go as described in its behaviour; where dashboards and
the SDK read it they must find the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kubeslurm import names
from kubeslurm.conditions import rfc3339

Raw = dict[str, Any]

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
_EXCLUDES: Final = {RESTARTING: RUNNING, RUNNING: RESTARTING}


def set_condition(
    conditions: Sequence[Mapping[str, Any]], kind: str, reason: str, message: str, now: datetime, *, holds: bool = True
) -> list[Raw]:
    """The list with the condition at its end, by upstream's rules: nothing after Failed, nothing twice."""
    status = str(holds)
    current = [dict(one) for one in conditions]
    known = next((one for one in current if one["type"] == kind), None)
    if any(one["type"] == FAILED and one["status"] == "True" for one in current):
        return current
    if known and known["status"] == status and known.get("reason") == reason:
        return current
    stamp = rfc3339(now)
    kept = [one for one in current if one["type"] not in (kind, _EXCLUDES.get(kind))]
    if kind in (SUCCEEDED, FAILED):
        kept = [one | {"status": "False"} if one["type"] == RUNNING else one for one in kept]
    same = known is not None and known["status"] == status
    fresh = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp,
        "lastTransitionTime": known["lastTransitionTime"] if known and same else stamp,
    }
    return [*kept, fresh]


def holds(conditions: Sequence[Mapping[str, Any]], kind: str) -> bool:
    """Is the condition True?"""
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def finished(status: Mapping[str, Any]) -> bool:
    """Succeeded or Failed: nothing more happens."""
    conditions = status.get("conditions") or ()
    return holds(conditions, SUCCEEDED) or holds(conditions, FAILED)


def selector(job: str, role: str) -> str:
    """Labels of a role's pods, as upstream writes them."""
    parts = {
        names.LABEL_JOB_NAME: job,
        names.LABEL_OPERATOR_NAME: names.PYTORCHJOB_CONTROLLER,
        names.LABEL_REPLICA_TYPE: role.lower(),
    }
    return ",".join(f"{key}={value}" for key, value in sorted(parts.items()))


def replica_statuses(job: str, roles: Mapping[str, int], counter: str | None) -> Raw:
    """All replicas of each role in one counter: `active`, `succeeded`, `failed`, or in none while they wait."""
    return {
        role: ({counter: count} if counter else {}) | {"selector": selector(job, role)} for role, count in roles.items()
    }
