"""The REST description of a plan's job (`job` of POST job/submit, v0.0.40 and later). Pure."""

from __future__ import annotations

from typing import Any, Final

from kubeslurm.directives import options
from kubeslurm.plans import JobPlan

ENVIRONMENT: Final = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
"""What the batch shell gets: never the operator's environment, and never the user's (that goes to the tasks)."""


def write_description(plan: JobPlan) -> dict[str, Any]:
    """Without the comment, which `slurmrest` sets to the submission key."""
    description: dict[str, Any] = {"environment": list(ENVIRONMENT)}
    for option in options(plan):
        description |= option.fields
    return description
