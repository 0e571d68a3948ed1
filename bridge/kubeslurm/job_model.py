"""The words of `jobs`: what is known of one PyTorchJob at a moment, and what can be done about it.

Pure values; made and carried out by the operator's job loop. Annotations are the user's to write: what is read of them
here is believed only where Slurm's own answer agrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from kubeslurm import mirror, mirror_names, names, training
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan, RestartPolicy
from kubeslurm.ranks import RankEnd
from slurmrest import Job

Raw = dict[str, Any]


class Slurm(Enum):
    """What else than a job Slurm can say of one."""

    NOT_SUBMITTED = "not submitted"
    ABSENT = "slurmctld does not know it"
    UNREACHABLE = "slurmctld does not answer"


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """One PyTorchJob at one moment. `plan` or `refusal` is given; `pods` are its mirror pods by name.

    `hosts`: the Slurm nodes that it has, in the order of its tasks. `lost`: nodes that it had and that went down lately.
    `missing`: the ConfigMaps and Secrets that it waits for. `bare`: those of its hosts that it has no materials on yet.
    `ranks`: how the ranks of a failed job ended, those that ended well left out; None where nobody can say.
    """

    raw: Mapping[str, Any]
    plan: JobPlan | None
    refusal: InvalidObject | None
    slurm: Job | Slurm
    hosts: Sequence[str]
    lost: Sequence[str]
    pods: Mapping[str, Mapping[str, Any]]
    now: datetime
    missing: Sequence[str] = ()
    bare: Sequence[str] = ()
    ranks: Mapping[int, RankEnd] | None = None


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Hold the object until its Slurm job is gone."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the object go."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the plan, once per key."""


@dataclass(frozen=True, slots=True)
class Bring:
    """Bring what it gets of ConfigMaps and Secrets to these of its nodes, for this start of it."""

    job_id: int
    restart: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the Slurm job."""

    job_id: int


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """The object's whole status."""

    status: Raw


@dataclass(frozen=True, slots=True)
class Annotate:
    """Annotations to set, or to remove (None)."""

    annotations: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Mirror pods to make, by their places in the gang."""

    replicas: tuple[mirror.Replica, ...]


@dataclass(frozen=True, slots=True)
class PatchPods:
    """Statuses of mirror pods, by the pods' names."""

    statuses: Mapping[str, Raw]


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Mirror pods to remove at once."""

    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the object itself: its time after the end is over."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell the user."""

    type: str
    reason: str
    message: str


JobAction = (
    AddFinalizer
    | RemoveFinalizer
    | Submit
    | Bring
    | Cancel
    | PatchStatus
    | Annotate
    | CreatePods
    | PatchPods
    | DeletePods
    | DeleteJob
    | Event
)


@dataclass(frozen=True, slots=True)
class JobDecision:
    """Actions in their order, and when to look again though nothing changed (seconds)."""

    actions: tuple[JobAction, ...] = ()
    retry_after: float | None = None


@dataclass
class Draft:
    """A decision being made: the status as it becomes, and the actions so far."""

    status: Raw
    actions: list[JobAction] = field(default_factory=list)
    retry_after: float | None = None

    def condition(self, kind: str, reason: str, message: str, now: datetime, *, holds: bool = True) -> bool:
        """Set it; was it new?"""
        before = self.conditions
        self.status["conditions"] = training.set_condition(before, kind, reason, message, now, holds=holds)
        return bool(self.status["conditions"] != before)

    @property
    def conditions(self) -> list[Raw]:
        """As they stand."""
        return self.status.get("conditions") or []

    def again(self, seconds: float) -> None:
        """Look again by then."""
        self.retry_after = seconds if self.retry_after is None else min(self.retry_after, seconds)


@dataclass(frozen=True, slots=True)
class Gang:
    """What of an object it takes to follow its Slurm job; `counts` are replicas by role, `retries` those made so far."""

    name: str
    namespace: str
    counts: Mapping[str, int]
    attempt: int
    retries: int
    restart_policy: RestartPolicy
    backoff_limit: int | None

    @property
    def label(self) -> str:
        """Its name as a label's value."""
        return mirror_names.label(self.name)

    def count(self, draft: Draft, counter: str | None) -> None:
        """All replicas in one counter."""
        draft.status["replicaStatuses"] = training.replica_statuses(self.label, self.counts, counter)


def attempt_of(raw: Mapping[str, Any]) -> int:
    """Which attempt the object is at, by its annotation; 1 where it says nothing or nonsense."""
    return _number(raw, names.ANNOTATION_ATTEMPT) or 1


def retries_of(raw: Mapping[str, Any]) -> int:
    """How many attempts were made because the program failed: the others came after a suspension."""
    number = _number(raw, names.ANNOTATION_RETRIES)
    return attempt_of(raw) - 1 if number is None else number


def job_id_of(raw: Mapping[str, Any]) -> int | None:
    """The Slurm job of this attempt, by the annotation."""
    return _number(raw, names.ANNOTATION_JOB_ID, 10**11)


def submitted_as(raw: Mapping[str, Any]) -> str:
    """The uid of the object that the noted Slurm job was submitted for: another's, where the annotations were copied."""
    return str((raw["metadata"].get("annotations") or {}).get(names.ANNOTATION_SUBMISSION, "")).rpartition("/")[0]


def ending_of(raw: Mapping[str, Any]) -> int | None:
    """The Slurm job that is ended because the object was suspended."""
    return _number(raw, names.ANNOTATION_ENDING, 10**11)


def held(raw: Mapping[str, Any]) -> bool:
    """Is our finalizer on it? Without it, Slurm holds nothing of it."""
    return names.FINALIZER in (raw["metadata"].get("finalizers") or ())


def belongs(raw: Mapping[str, Any], job: Job) -> bool:
    """Is it this object's? Its comment ends with the submission key, `<uid>/<attempt>`."""
    uid, _, attempt = job.comment.rpartition(":")[2].rpartition("/")
    return attempt.isdigit() and uid == raw["metadata"].get("uid")


def _number(raw: Mapping[str, Any], annotation: str, most: int = 10**6) -> int | None:
    text = (raw["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 and int(text) < most else None
