"""Reads the entries of slurmctld's answers into the values of `slurmrest.values`, each by one function.

Used by the adapters (`slurmrest.versions`). What always holds: a field that isn't there leaves the value's default, one
of a wrong type raises what plain code raises (KeyError, TypeError, ValueError ...; `Entries` makes a ProtocolError of it).
Plain code without a validator per field: 5,000 nodes take about 0.1 s. Where versions write a thing differently, it is
told apart by what is there, not by the version: a value then never depends on a table that may be wrong.
"""

from __future__ import annotations

import re
from typing import Any, Final

from slurmrest.numbers import read_int, read_number
from slurmrest.states import JobStates, NodeStates
from slurmrest.streams import Raw
from slurmrest.values import (
    Diag,
    ExitCode,
    Job,
    JobOutcome,
    JobState,
    License,
    Node,
    NodeShare,
    Partition,
    Ping,
    Reservation,
    Share,
)

NODE_KEYS: Final = (
    "active_features address alloc_cpus boot_time comment cpus extra features gres gres_used hostname name "
    "partitions real_memory reason reason_changed_at slurmd_start_time state version weight"
)
"""All that `node` looks at."""


def node(raw: Raw) -> Node:
    get = raw.get
    return Node(
        name=text(raw["name"]),
        states=NodeStates.parse(get("state") or ()),
        address=get("address") or "",
        hostname=get("hostname") or "",
        reason=get("reason") or "",
        reason_changed_at=time(get("reason_changed_at")),
        cpus=int(get("cpus") or 0),
        alloc_cpus=int(get("alloc_cpus") or 0),
        real_memory=int(get("real_memory") or 0),
        gres=get("gres") or "",
        gres_used=get("gres_used") or "",
        features=words(get("features")),
        partitions=words(get("partitions")),
        boot_time=time(get("boot_time")),
        slurmd_start_time=time(get("slurmd_start_time")),
        comment=get("comment") or "",
        extra=get("extra") or "",
        active_features=words(get("active_features")),
        weight=int(get("weight") or 0),
        version=get("version") or "",
    )


def partition(raw: Raw) -> Partition:
    nodes = raw.get("nodes") or {}
    return Partition(
        name=text(raw["name"]),
        states=frozenset((raw.get("partition") or {}).get("state") or ()),
        nodes=nodes.get("configured") or "",
        node_count=int(nodes.get("total") or 0),
        max_time=read_number((raw.get("maximums") or {}).get("time")),
        default_time=read_number((raw.get("defaults") or {}).get("time")),
    )


JOB_KEYS: Final = (
    "account array_job_id array_task_id batch_host comment cpus cpus_per_task current_working_directory "
    "dependency end_time exit_code failed_node het_job_id het_job_offset job_id job_state memory_per_node name "
    "node_count nodes partition priority qos restart_cnt standard_output start_time state_description "
    "state_reason stdout_expanded submit_time tasks time_limit tres_per_node user_id user_name"
)
"""All that `job` looks at."""


def job(raw: Raw) -> Job:
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
        comment=text(get("comment") or ""),
        nodes=get("nodes") or "",
        node_count=read_int(get("node_count")),
        tasks=read_int(get("tasks")),
        cpus_per_task=read_int(get("cpus_per_task")),
        tres_per_node=get("tres_per_node") or "",
        memory_per_node=read_int(get("memory_per_node")),
        time_limit=read_number(get("time_limit")),
        exit_code=exit_code(get("exit_code") or {}),
        submit_time=time(get("submit_time")),
        start_time=time(get("start_time")),
        end_time=time(get("end_time")),
        restart_count=int(get("restart_cnt") or 0),
        failed_node=get("failed_node") or "",
        batch_host=get("batch_host") or "",
        standard_output=get("stdout_expanded") or get("standard_output") or "",
        current_working_directory=get("current_working_directory") or "",
        qos=get("qos") or "",
        cpus=read_int(get("cpus")),
        priority=read_int(get("priority")),
        dependency=get("dependency") or "",
        array_job_id=read_int(get("array_job_id")) or None,
        array_task_id=read_int(get("array_task_id")),
        het_job_id=read_int(get("het_job_id")) or None,
        het_job_offset=read_int(get("het_job_offset")) if read_int(get("het_job_id")) else None,
    )


def exit_code(raw: Raw) -> ExitCode:
    status = words(raw.get("status"))
    signal = raw.get("signal") or {}
    return ExitCode("+".join(status), read_int(raw.get("return_code")), read_int(signal.get("id")) or None)


JOB_STATE_KEYS: Final = "job_id job_state state"
"""All that `job_state` looks at."""


def job_state(raw: Raw) -> JobState:
    """Written as text, of an array's task as "3_1"."""
    states = JobStates.parse(raw.get("state") or raw.get("job_state") or ())
    written = raw["job_id"]
    if isinstance(written, int) or written.isdecimal():
        return JobState(int(written), states)
    job_id, _, task = written.partition("_")
    return JobState(_job_id(job_id), states, int(task) if task.isdecimal() else None)


def ping(raw: Raw) -> Ping:
    responding = raw.get("responding", raw.get("pinged") == "UP")
    primary = raw.get("primary", raw.get("mode") == "primary")
    return Ping(text(raw.get("hostname") or ""), bool(responding), bool(primary))


def diag(raw: Raw) -> Diag:
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


def reservation(raw: Raw) -> Reservation:
    """Of `GET reservations/`."""
    get = raw.get
    return Reservation(
        name=text(raw["name"]),
        start_time=time(get("start_time")),
        end_time=time(get("end_time")),
        nodes=get("node_list") or "",
        node_count=int(get("node_count") or 0),
        core_count=int(get("core_count") or 0),
        users=words(get("users")),
        accounts=words(get("accounts")),
        groups=words(get("groups")),
        partition=get("partition") or "",
        features=get("features") or "",
        licenses=get("licenses") or "",
        tres=get("tres") or "",
        flags=frozenset(words(get("flags"))),
    )


def license(raw: Raw) -> License:  # noqa: A001 - used as reading.license
    """Of `GET licenses/`."""
    get = raw.get
    return License(
        name=text(raw["LicenseName"]),
        total=int(get("Total") or 0),
        used=int(get("Used") or 0),
        free=int(get("Free") or 0),
        reserved=int(get("Reserved") or 0),
        remote=bool(get("Remote")),
    )


def share(raw: Raw) -> Share:
    """Of `GET shares`."""
    get = raw.get
    return Share(
        name=text(raw["name"]),
        parent=get("parent") or "",
        cluster=get("cluster") or "",
        partition=get("partition") or "",
        kind="+".join(words(get("type"))),
        shares=read_number(get("shares")),
        shares_normalized=fraction(get("shares_normalized")),
        usage=int(get("usage") or 0),
        usage_normalized=fraction(get("usage_normalized")),
        effective_usage=fraction(get("effective_usage")) or 0.0,
        fairshare=fraction((get("fairshare") or {}).get("factor")) or 0.0,
    )


def node_share(raw: Raw) -> NodeShare:
    """Of `GET resources/{job_id}`."""
    get = raw.get
    return NodeShare(
        node=text(raw["node"]),
        memory=int(get("mem_alloc") or 0),
        sockets=int(get("sockets_per_node") or 0),
        cores_per_socket=int(get("cores_per_socket") or 0),
        cores=get("core_bitmap") or "",
        gres=tuple(_gres(one) for one in get("gres") or ()),
    )


def _gres(raw: Raw) -> str:
    """As Slurm's commands write it: gpu:h100:2(IDX:0-1)."""
    parts = [text(raw["name"]), raw.get("type") or "", str(raw.get("count") or 0)]
    index = raw.get("index") or ""
    return ":".join(part for part in parts if part) + (f"(IDX:{index})" if index else "")


def outcome(raw: Raw) -> JobOutcome:
    """An entry of `status`: of a cancel, or (flat, with `error_code`) of a requeue."""
    error = raw.get("error")
    if isinstance(error, dict):
        number, words_ = error.get("code") or 0, error.get("message") or error.get("string")
    else:
        number, words_ = raw.get("error_code") or 0, raw.get("why") or error
    if not isinstance(number, int):
        raise TypeError("an error number that is none")
    job_id = read_int(raw.get("job_id")) or None
    said = str(words_ or "an error without a text") if number else ""
    return JobOutcome(str(raw.get("step_id") or job_id or ""), job_id, number, said)


def fraction(raw: Any) -> float | None:
    """A number with a point, plain or as Slurm's object."""
    if isinstance(raw, dict):
        raw = raw.get("number") if raw.get("set") else None
    if raw is not None and not isinstance(raw, (int, float)):
        raise TypeError(f"expected a number, got {type(raw).__name__}")
    return None if raw is None else float(raw)


def _job_id(raw: Any) -> int:
    """A plain id; `jobs/state/` writes it as text, and a job array's task as "3_1", which belongs to job 3."""
    if isinstance(raw, int):
        return raw
    return int(raw if raw.isdecimal() else re.split(r"[_+]", raw, maxsplit=1)[0])


def time(raw: Any) -> int | None:
    """Seconds since 1970; Slurm writes 0 for "never"."""
    return read_int(raw) or None


def text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {type(raw).__name__}")
    return raw


def words(raw: Any) -> tuple[str, ...]:
    """A list of words; some versions write comma separated text, and one word alone as text."""
    if isinstance(raw, str):
        return tuple(part for part in raw.split(",") if part)
    return tuple(map(text, raw or ()))
