"""The REST description of a plan's job (`job` of POST job/submit, v0.0.40 and later). Pure."""

from __future__ import annotations

from typing import Any, Final

from kubeslurm.directives import options
from kubeslurm.plans import JobPlan

ENVIRONMENT: Final = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
"""What the batch shell gets: never the operator's environment, and never the user's (that goes to the tasks)."""


def write_description(plan: JobPlan, number: int = 0) -> dict[str, Any]:
    """The job's, or a heterogeneous one's component's; without the comment, which `slurmrest` sets to the key."""
    description: dict[str, Any] = {"environment": list(ENVIRONMENT)}
    for option in options(plan, plan.shapes[number]):
        description |= option.fields
    return description


def components(plan: JobPlan) -> dict[str, Any] | list[dict[str, Any]]:
    """What `slurmrest` submits: the description, or of a heterogeneous job all of them."""
    found = [write_description(plan, number) for number in range(len(plan.shapes))]
    return found if len(found) > 1 else found[0]
