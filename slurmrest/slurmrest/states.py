"""States of nodes and jobs: one base word and any number of flags, as Slurm composes them.

Parsed from the API's list of words or from the text that Slurm's commands print (`IDLE+DRAIN`). What always holds: the
order of the words has no meaning, and a word of a newer Slurm never raises: it goes into `unknown`, and without any
known base word the base is UNKNOWN. Word lists: data_parser v0.0.40 to v0.0.45.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

_Word = TypeVar("_Word", bound=StrEnum)


class NodeBase(StrEnum):
    """What a node does. UNKNOWN is Slurm's own word too: slurmctld has not heard of the node yet."""

    UNKNOWN = "UNKNOWN"
    ALLOCATED = "ALLOCATED"
    DOWN = "DOWN"
    ERROR = "ERROR"
    FUTURE = "FUTURE"
    IDLE = "IDLE"
    MIXED = "MIXED"


class NodeFlag(StrEnum):
    """What is true of a node besides."""

    BLOCKED = "BLOCKED"
    CLOUD = "CLOUD"
    COMPLETING = "COMPLETING"
    DRAIN = "DRAIN"
    DYNAMIC_FUTURE = "DYNAMIC_FUTURE"
    DYNAMIC_NORM = "DYNAMIC_NORM"
    EXTERNAL = "EXTERNAL"
    FAIL = "FAIL"
    INVALID = "INVALID"
    INVALID_REG = "INVALID_REG"
    MAINTENANCE = "MAINTENANCE"
    NOT_RESPONDING = "NOT_RESPONDING"
    PLANNED = "PLANNED"
    POWERED_DOWN = "POWERED_DOWN"
    POWERING_DOWN = "POWERING_DOWN"
    POWERING_UP = "POWERING_UP"
    POWER_DOWN = "POWER_DOWN"
    POWER_DRAIN = "POWER_DRAIN"
    POWER_UP = "POWER_UP"
    REBOOT_CANCELED = "REBOOT_CANCELED"
    REBOOT_ISSUED = "REBOOT_ISSUED"
    REBOOT_REQUESTED = "REBOOT_REQUESTED"
    RESERVED = "RESERVED"
    RESUME = "RESUME"
    UNDRAIN = "UNDRAIN"


class JobBase(StrEnum):
    """How far a job is."""

    UNKNOWN = "UNKNOWN"
    BOOT_FAIL = "BOOT_FAIL"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    DEADLINE = "DEADLINE"
    FAILED = "FAILED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PENDING = "PENDING"
    PREEMPTED = "PREEMPTED"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    TIMEOUT = "TIMEOUT"


class JobFlag(StrEnum):
    """What is true of a job besides."""

    COMPLETING = "COMPLETING"
    CONFIGURING = "CONFIGURING"
    EXPEDITING = "EXPEDITING"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    POWER_UP_NODE = "POWER_UP_NODE"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    REQUEUED = "REQUEUED"
    REQUEUE_FED = "REQUEUE_FED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    RESIZING = "RESIZING"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    REVOKED = "REVOKED"
    SIGNALING = "SIGNALING"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    STAGE_OUT = "STAGE_OUT"
    STOPPED = "STOPPED"
    UPDATE_DB = "UPDATE_DB"


_FINISHED = frozenset(JobBase) - {JobBase.UNKNOWN, JobBase.PENDING, JobBase.RUNNING, JobBase.SUSPENDED}


@dataclass(frozen=True, slots=True)
class NodeStates:
    """The state of a node."""

    base: NodeBase
    flags: frozenset[NodeFlag] = frozenset()
    unknown: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, words: Iterable[str] | str) -> NodeStates:
        """From `["IDLE", "DRAIN"]` or "IDLE+DRAIN". Equal words give the same object."""
        return _node_states(words if isinstance(words, str) else tuple(words))

    def __str__(self) -> str:
        return "+".join([self.base, *sorted(self.flags), *sorted(self.unknown)])


@dataclass(frozen=True, slots=True)
class JobStates:
    """The state of a job."""

    base: JobBase
    flags: frozenset[JobFlag] = frozenset()
    unknown: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, words: Iterable[str] | str) -> JobStates:
        """From `["RUNNING", "COMPLETING"]` or "RUNNING+COMPLETING". Equal words give the same object."""
        return _job_states(words if isinstance(words, str) else tuple(words))

    @property
    def finished(self) -> bool:
        """Has the job ended for good: a terminal base, its clean-up done and no way back into the queue?"""
        return self.base in _FINISHED and not self.flags & _UNFINISHED and not self.unknown

    def __str__(self) -> str:
        return "+".join([self.base, *sorted(self.flags), *sorted(self.unknown)])


_UNFINISHED = frozenset(
    {
        JobFlag.COMPLETING,
        JobFlag.EXPEDITING,
        JobFlag.REQUEUED,
        JobFlag.REQUEUE_FED,
        JobFlag.REQUEUE_HOLD,
        JobFlag.RESV_DEL_HOLD,
        JobFlag.SPECIAL_EXIT,
        JobFlag.STAGE_OUT,
    }
)
_NODE_BASES = {str(one): one for one in NodeBase}
_NODE_FLAGS = {str(one): one for one in NodeFlag}
_JOB_BASES = {str(one): one for one in JobBase}
_JOB_FLAGS = {str(one): one for one in JobFlag}


# Two levels: what an answer says over and over again is found without making a set of it each time, and equal words in
# another order or writing still give the same object.
@lru_cache(maxsize=1024)
def _node_states(words: tuple[str, ...] | str) -> NodeStates:
    return _node_states_of(_words(words))


@lru_cache(maxsize=1024)
def _job_states(words: tuple[str, ...] | str) -> JobStates:
    return _job_states_of(_words(words))


def _words(words: Iterable[str] | str) -> frozenset[str]:
    parts = words.split("+") if isinstance(words, str) else words
    return frozenset(word.strip().upper() for word in parts if word.strip())


@lru_cache(maxsize=1024)
def _node_states_of(words: frozenset[str]) -> NodeStates:
    base = _base(words, _NODE_BASES, NodeBase.UNKNOWN)
    flags = frozenset(_NODE_FLAGS[word] for word in words if word in _NODE_FLAGS)
    return NodeStates(base, flags, words.difference(_NODE_FLAGS, (base, NodeBase.UNKNOWN)))


@lru_cache(maxsize=1024)
def _job_states_of(words: frozenset[str]) -> JobStates:
    base = _base(words, _JOB_BASES, JobBase.UNKNOWN)
    flags = frozenset(_JOB_FLAGS[word] for word in words if word in _JOB_FLAGS)
    return JobStates(base, flags, words.difference(_JOB_FLAGS, (base, JobBase.UNKNOWN)))


def _base(words: frozenset[str], known: dict[str, _Word], unknown: _Word) -> _Word:
    """The one base word. Two of them contradict each other: then the base is UNKNOWN, and both are kept as unknown."""
    found = [known[word] for word in words if word in known and word != unknown.value]
    return found[0] if len(found) == 1 else unknown
