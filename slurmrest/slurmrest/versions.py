"""One adapter per version of the API (Slurm's data_parser): reads its payloads into the values of `slurmrest.values`.

Used by the core. What always holds: a field that a version lacks leaves the value's default, unknown fields are
ignored, and anything of a wrong type raises ProtocolError, never TypeError or KeyError. Reading is plain code without
a validator per field: 5,000 nodes take about 0.1 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from slurmrest.endpoints import RELEASES, Api
from slurmrest.errors import ProtocolError, Unsupported
from slurmrest.numbers import read_int, read_number
from slurmrest.states import JobStates, NodeStates
from slurmrest.streams import Entries, Raw
from slurmrest.values import Diag, ExitCode, Job, JobState, Node, Partition, Ping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Adapter:
    """Reads the payloads of one version."""

    version: str

    def path(self, tail: str, api: Api = "slurm") -> str:
        """The path of a call of this version."""
        return f"/{api}/{self.version}/{tail}"

    def each_node(self) -> Entries[Node]:
        """Of `GET nodes/`, while it arrives."""
        return Entries("nodes", _node)

    def each_job(self) -> Entries[Job]:
        """Of `GET jobs/`, while it arrives."""
        return Entries("jobs", _job)

    def each_job_state(self) -> Entries[JobState]:
        """Of `GET jobs/state/`, while it arrives."""
        return Entries("jobs", _job_state)

    def nodes(self, payload: Raw) -> list[Node]:
        """Of `GET nodes/` and `GET node/{name}`."""
        return _each(payload, "nodes", _node)

    def partitions(self, payload: Raw) -> list[Partition]:
        """Of `GET partitions/`."""
        return _each(payload, "partitions", _partition)

    def jobs(self, payload: Raw) -> list[Job]:
        """Of `GET jobs/` and `GET job/{id}`."""
        return _each(payload, "jobs", _job)

    def job_states(self, payload: Raw) -> list[JobState]:
        """Of `GET jobs/state/`."""
        return _each(payload, "jobs", _job_state)

    def pings(self, payload: Raw) -> list[Ping]:
        """Of `GET ping/`."""
        return _each(payload, "pings", _ping)

    def diag(self, payload: Raw) -> Diag:
        """Of `GET diag/`."""
        return _each({"statistics": [payload.get("statistics")]}, "statistics", _diag)[0]


ADAPTERS: Final[dict[str, Adapter]] = {version: Adapter(version) for version in RELEASES}
"""The versions that the client speaks, oldest first."""

_OFFERED: Final = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/")


def choose(paths: Any) -> Adapter:
    """The newest known version among the paths of an OpenAPI document."""
    if not isinstance(paths, Mapping):
        raise ProtocolError("the OpenAPI document has no paths")
    offered = {found[1] for found in map(_OFFERED.match, paths) if found}
    for version in reversed(ADAPTERS):
        if version in offered:
            return ADAPTERS[version]
    raise Unsupported(f"slurmrestd offers {_listed(offered)}; known are {_listed(ADAPTERS)}")


def forced(version: str) -> Adapter:
    """The adapter of the version that the caller wants."""
    if version not in ADAPTERS:
        raise Unsupported(f"version {version!r} is not one of {_listed(ADAPTERS)}")
    return ADAPTERS[version]


def _listed(versions: set[str] | Mapping[str, Adapter]) -> str:
    return ", ".join(sorted(versions)) or "no version"


def _each(payload: Raw, field: str, read: Callable[[Raw], T]) -> list[T]:
    """Each entry of the list `field`. A field that isn't there is not an empty list: nothing was answered then."""
    return Entries(field, read).read_all(payload)


def _node(raw: Raw) -> Node:
    get = raw.get
    return Node(
        name=_text(raw["name"]),
        states=NodeStates.parse(get("state") or ()),
        address=get("address") or "",
        hostname=get("hostname") or "",
        reason=get("reason") or "",
        reason_changed_at=_time(get("reason_changed_at")),
        cpus=int(get("cpus") or 0),
        alloc_cpus=int(get("alloc_cpus") or 0),
        real_memory=int(get("real_memory") or 0),
        gres=get("gres") or "",
        gres_used=get("gres_used") or "",
        features=_texts(get("features")),
        partitions=_texts(get("partitions")),
        boot_time=_time(get("boot_time")),
        slurmd_start_time=_time(get("slurmd_start_time")),
        comment=get("comment") or "",
        extra=get("extra") or "",
    )


def _partition(raw: Raw) -> Partition:
    nodes = raw.get("nodes") or {}
    return Partition(
        name=_text(raw["name"]),
        states=frozenset((raw.get("partition") or {}).get("state") or ()),
        nodes=nodes.get("configured") or "",
        node_count=int(nodes.get("total") or 0),
        max_time=read_number((raw.get("maximums") or {}).get("time")),
        default_time=read_number((raw.get("defaults") or {}).get("time")),
    )


def _job(raw: Raw) -> Job:
    get = raw.get
    return Job(
        job_id=_job_id(raw["job_id"]),
        states=JobStates.parse(get("job_state") or ()),
        name=get("name") or "",
        user_name=get("user_name") or "",
        user_id=read_int(get("user_id")),
        account=get("account") or "",
        partition=get("partition") or "",
        state_reason=get("state_reason") or "",
        state_description=get("state_description") or "",
        comment=_text(get("comment") or ""),
        nodes=get("nodes") or "",
        node_count=read_int(get("node_count")),
        tasks=read_int(get("tasks")),
        cpus_per_task=read_int(get("cpus_per_task")),
        tres_per_node=get("tres_per_node") or "",
        memory_per_node=read_int(get("memory_per_node")),
        time_limit=read_number(get("time_limit")),
        exit_code=_exit_code(get("exit_code") or {}),
        submit_time=_time(get("submit_time")),
        start_time=_time(get("start_time")),
        end_time=_time(get("end_time")),
        restart_count=int(get("restart_cnt") or 0),
        failed_node=get("failed_node") or "",
        batch_host=get("batch_host") or "",
        standard_output=get("stdout_expanded") or get("standard_output") or "",
        current_working_directory=get("current_working_directory") or "",
    )


def _exit_code(raw: Raw) -> ExitCode:
    status = _texts(raw.get("status"))
    signal = raw.get("signal") or {}
    return ExitCode("+".join(status), read_int(raw.get("return_code")), read_int(signal.get("id")) or None)


def _job_state(raw: Raw) -> JobState:
    """Written as text, of an array's task as "3_1"."""
    states = JobStates.parse(raw.get("state") or raw.get("job_state") or ())
    written = raw["job_id"]
    if isinstance(written, int):
        return JobState(written, states)
    job_id, _, task = written.partition("_")
    return JobState(_job_id(job_id), states, int(task) if task.isdecimal() else None)


def _ping(raw: Raw) -> Ping:
    responding = raw.get("responding", raw.get("pinged") == "UP")
    primary = raw.get("primary", raw.get("mode") == "primary")
    return Ping(_text(raw.get("hostname") or ""), bool(responding), bool(primary))


def _diag(raw: Raw) -> Diag:
    get = raw.get
    return Diag(
        server_threads=int(get("server_thread_count") or 0),
        agent_queue=int(get("agent_queue_size") or 0),
        jobs_submitted=int(get("jobs_submitted") or 0),
        jobs_started=int(get("jobs_started") or 0),
        jobs_running=int(get("jobs_running") or 0),
        jobs_pending=int(get("jobs_pending") or 0),
        last_cycle=int(get("schedule_cycle_last") or 0),
        mean_cycle=int(get("schedule_cycle_mean") or 0),
        backfill_last_cycle=int(get("bf_cycle_last") or 0),
    )


def _job_id(raw: Any) -> int:
    """A plain id; `jobs/state/` writes it as text, and a job array's task as "3_1", which belongs to job 3."""
    if isinstance(raw, int):
        return raw
    return int(raw if raw.isdecimal() else re.split(r"[_+]", raw, maxsplit=1)[0])


def _time(raw: Any) -> int | None:
    """Seconds since 1970; Slurm writes 0 for "never"."""
    return read_int(raw) or None


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {type(raw).__name__}")
    return raw


def _texts(raw: Any) -> tuple[str, ...]:
    """A list of words; some versions write comma separated text, and one word alone as text."""
    if isinstance(raw, str):
        return tuple(part for part in raw.split(",") if part)
    return tuple(map(_text, raw or ()))
