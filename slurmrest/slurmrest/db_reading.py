"""Reads the entries of slurmdbd's answers into `slurmrest.db_values`, each by one function; see `slurmrest.reading`."""

from __future__ import annotations

from typing import Any

from slurmrest.db_values import (
    Account,
    Association,
    Cluster,
    Instance,
    JobRecord,
    Qos,
    StepRecord,
    Tres,
    User,
    Wckey,
)
from slurmrest.numbers import read_int, read_number
from slurmrest.reading import exit_code, fraction, text, time, words
from slurmrest.states import JobStates
from slurmrest.streams import Raw


def account(raw: Raw) -> Account:
    """Of `GET accounts/`."""
    get = raw.get
    return Account(
        name=text(raw["name"]),
        description=get("description") or "",
        organization=get("organization") or "",
        coordinators=_names(get("coordinators")),
        flags=frozenset(words(get("flags"))),
    )


def user(raw: Raw) -> User:
    """Of `GET users/`."""
    default = raw.get("default") or {}
    return User(
        name=text(raw["name"]),
        admin_level="+".join(words(raw.get("administrator_level"))),
        default_account=default.get("account") or "",
        default_wckey=default.get("wckey") or "",
        coordinates=_names(raw.get("coordinators")),
        flags=frozenset(words(raw.get("flags"))),
    )


def association(raw: Raw) -> Association:
    """Of `GET associations/`. Its id is a plain number, or in an object that names it; 24.11 gives 0 for none."""
    get = raw.get
    written = get("id")
    return Association(
        account=text(raw["account"]),
        cluster=get("cluster") or "",
        user=get("user") or "",
        partition=get("partition") or "",
        id=read_int(written.get("id") if isinstance(written, dict) else written) or None,
        parent_account=get("parent_account") or "",
        shares=read_int(get("shares_raw")),
        qos=words(get("qos")),
        default_qos=(get("default") or {}).get("qos") or "",
        is_default=bool(get("is_default")),
        comment=get("comment") or "",
        flags=frozenset(words(get("flags"))),
    )


def qos(raw: Raw) -> Qos:
    """Of `GET qos/`."""
    get = raw.get
    preempt = get("preempt") or {}
    return Qos(
        name=text(raw["name"]),
        id=read_int(get("id")),
        description=get("description") or "",
        priority=read_number(get("priority")),
        usage_factor=fraction(get("usage_factor")),
        preempts=words(preempt.get("list")),
        preempt_mode=words(preempt.get("mode")),
        flags=frozenset(words(get("flags"))),
    )


def wckey(raw: Raw) -> Wckey:
    """Of `GET wckeys/`."""
    get = raw.get
    flags = frozenset(words(get("flags")))
    return Wckey(text(raw["name"]), read_int(get("id")), get("user") or "", get("cluster") or "", flags)


def tres(raw: Raw) -> Tres:
    """Of `GET tres/`, and wherever resources are counted."""
    return Tres(text(raw["type"]), raw.get("name") or "", read_int(raw.get("id")), read_int(raw.get("count")))


def cluster(raw: Raw) -> Cluster:
    """Of `GET clusters/`."""
    controller = raw.get("controller") or {}
    return Cluster(
        name=text(raw["name"]),
        host=controller.get("host") or "",
        port=read_int(controller.get("port")) or None,
        nodes=raw.get("nodes") or "",
        rpc_version=read_int(raw.get("rpc_version")),
        tres=_resources(raw.get("tres")),
        flags=frozenset(words(raw.get("flags"))),
    )


def instance(raw: Raw) -> Instance:
    """Of `GET instances/`."""
    get = raw.get
    when = get("time") or {}
    return Instance(
        node_name=get("node_name") or "",
        cluster=get("cluster") or "",
        instance_id=get("instance_id") or "",
        instance_type=get("instance_type") or "",
        extra=get("extra") or "",
        start_time=time(when.get("time_start")),
        end_time=time(when.get("time_end")),
    )


def job(raw: Raw) -> JobRecord:
    """Of `GET jobs/` and `GET job/{id}`."""
    get = raw.get
    when, state, said = get("time") or {}, get("state") or {}, get("comment") or {}
    used, array, het = get("tres") or {}, get("array") or {}, get("het") or {}
    return JobRecord(
        job_id=int(raw["job_id"]),
        states=JobStates.parse(state.get("current") or ()),
        name=get("name") or "",
        cluster=get("cluster") or "",
        user=get("user") or (get("association") or {}).get("user") or "",
        account=get("account") or "",
        partition=get("partition") or "",
        qos=get("qos") or "",
        nodes=get("nodes") or "",
        exit_code=exit_code(get("exit_code") or {}),
        submit_time=time(when.get("submission")),
        eligible_time=time(when.get("eligible")),
        start_time=time(when.get("start")),
        end_time=time(when.get("end")),
        elapsed=read_int(when.get("elapsed")),
        time_limit=read_number(when.get("limit")),
        restart_count=int(get("restart_cnt") or 0),
        state_reason=state.get("reason") or "",
        comment=said.get("job") or "",
        admin_comment=said.get("administrator") or "",
        wckey=_wckey_of(get("wckey")),
        working_directory=get("working_directory") or "",
        submit_line=get("submit_line") or "",
        allocated=_resources(used.get("allocated")),
        requested=_resources(used.get("requested")),
        array_job_id=read_int(array.get("job_id")) or None,
        array_task_id=read_int(array.get("task_id")),
        het_job_id=read_int(het.get("job_id")) or None,
        het_job_offset=read_int(het.get("job_offset")),
        steps=tuple(_step(one) for one in get("steps") or ()),
    )


def _step(raw: Raw) -> StepRecord:
    step, when, nodes = raw.get("step") or {}, raw.get("time") or {}, raw.get("nodes") or {}
    return StepRecord(
        step=str(step.get("id") or ""),
        name=step.get("name") or "",
        states=JobStates.parse(raw.get("state") or ()),
        exit_code=exit_code(raw.get("exit_code") or {}),
        nodes=nodes.get("range") or "",
        tasks=read_int((raw.get("tasks") or {}).get("count")),
        start_time=time(when.get("start")),
        end_time=time(when.get("end")),
        elapsed=read_int(when.get("elapsed")),
    )


def _wckey_of(raw: Any) -> str:
    return (raw.get("wckey") or "") if isinstance(raw, dict) else (raw or "")


def _resources(raw: Any) -> tuple[Tres, ...]:
    return tuple(tres(one) for one in raw or ())


def _names(raw: Any) -> tuple[str, ...]:
    return tuple(text(one["name"]) for one in raw or ())
