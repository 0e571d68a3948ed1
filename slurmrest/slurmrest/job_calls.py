"""The calls about jobs that are there: read, change, hold, cancel, requeue. Submitting is in `slurmrest.submission`.

Part of `slurmrest.calls.Calls`. What always holds: no request reaches slurmctld that it would have to refuse because a job
is somebody else's and about a cancel or a signal: 24.11.5 and 26.05.5 answer nobody any more once they have refused one.
Such calls go out as `DELETE jobs/` with the filter `user_name`, which slurmctld applies by itself, job by job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from slurmrest import answers
from slurmrest.core import ADMINISTRATORS, Core, checked, refuse_unwritable
from slurmrest.errors import InvalidRequest, PermissionDenied
from slurmrest.messages import Request, Steps
from slurmrest.values import Job, JobOutcome, JobState, NodeShare, Submission

JOB: Final = re.compile(r"[0-9]{1,10}([_+][0-9]{1,10}|_\[[0-9,%:-]{1,500}\])?")
WORD: Final = re.compile(r"[A-Za-z0-9_]{1,40}")
SIGNAL: Final = re.compile(r"[A-Z0-9]{1,12}")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_FILTERS: Final = frozenset(
    {"account", "job_name", "job_state", "nodes", "partition", "qos", "reservation", "user_id", "user_name", "wckey"}
)
_AT_ONCE: Final = 200
"""So many ids go into one query; a longer one is cut in several."""
_OTHERS_JOB: Final = 2172
"""ESLURM_CANNOT_SIGNAL_JOB: a filter, here the user's name, doesn't match the job."""


class JobCalls(Core):
    """The calls about jobs."""

    def job_states(self, ids: Iterable[int | str] = ()) -> Steps[list[JobState]]:
        """Id and state of each job that slurmctld remembers, or of those asked for; 80 bytes each.

        An id is a job's, an array's ("3": all its tasks), or a task's ("3_1"). Ids that slurmctld doesn't know are left
        out of the answer.
        """
        wanted = list(dict.fromkeys(map(job_text, ids)))
        entries = (yield from self.adapt()).each_job_state()
        if not wanted:
            return (yield from self.stream("jobs/state/", entries))
        found: list[JobState] = []
        for start in range(0, len(wanted), _AT_ONCE):
            params = {"job_id": wanted[start : start + _AT_ONCE]}
            found += yield from self.stream("jobs/state/", entries, params=params)
        return list(dict.fromkeys(found))

    def job(self, job_id: int | str) -> Steps[Job]:
        """One job with its raw entry (of a heterogeneous job its leader), or an array's task ("7_1").

        Raises NotFound if slurmctld never had it or has purged it.
        """
        entries = (yield from self.adapt()).each_job(raw=True)
        job = job_text(job_id)
        return (yield from self.one(f"job/{job}", entries, _named(job), job))

    def job_parts(self, job_id: int | str) -> Steps[list[Job]]:
        """All of a job, with raw entries: an array's tasks (those that wait are one), a heterogeneous job's parts."""
        entries = (yield from self.adapt()).each_job(raw=True)
        return (yield from self.stream(f"job/{job_text(job_id)}", entries))

    def jobs(self, *, raw: bool = False) -> Steps[list[Job]]:
        """All jobs in full. Slow and large at scale (8 KB each): prefer `job_states` and `job`."""
        return (yield from self.stream("jobs/", (yield from self.adapt()).each_job(raw)))

    def cancel(
        self,
        job_id: int | str,
        *,
        signal: str | int | None = None,
        flags: Iterable[str] = (),
        user: str | None = None,
    ) -> Steps[None]:
        """Cancel a job, or send its processes a signal ("USR1", 10). An ended job is no error, an unknown one is.

        `flags` as scancel has them: BATCH_JOB (the script only), FULL_JOB (the script too), HURRY, ...
        """
        job = job_text(job_id)
        who = self.acting(user)
        if who in ADMINISTRATORS:
            told = yield from self._cancel_as_administrator(job, signal, flags, who)
        else:
            told = yield from self.cancel_jobs([job], signal=signal, flags=flags, user=who)
        for one in told:
            if one.number == _OTHERS_JOB and who not in ADMINISTRATORS:
                raise PermissionDenied(f"the job is not {who}'s", method="DELETE", path=f"job/{job}")
            if one.number not in (0, answers.ALREADY_DONE):
                raise answers.refusal(Request("DELETE", f"job/{job}"), one.number, one.text, safe=False)

    def _cancel_as_administrator(
        self, job: str, signal: str | int | None, flags: Iterable[str], user: str
    ) -> Steps[list[JobOutcome]]:
        params: dict[str, str | Sequence[str]] = {"flags": [checked(WORD, flag, "flag") for flag in flags]}
        if signal is not None:
            params["signal"] = _signal(signal)
        adapter = yield from self.adapt()
        answer = yield from self.call("DELETE", f"job/{job}", params=params, user=user, repeatable=signal is None)
        return adapter.outcomes(answer.payload)

    def signal(
        self, job_id: int | str, signal: str | int, *, flags: Iterable[str] = (), user: str | None = None
    ) -> Steps[None]:
        """Send the job's processes a signal ("USR1", 10); see `cancel`. It is never sent twice."""
        yield from self.cancel(job_id, signal=signal, flags=flags, user=user)

    def cancel_jobs(
        self,
        job_ids: Iterable[int | str] = (),
        *,
        signal: str | int | None = None,
        flags: Iterable[str] = (),
        filters: Mapping[str, Any] | None = None,
        user: str | None = None,
    ) -> Steps[list[JobOutcome]]:
        """Cancel, or signal, many jobs in one request; what became of each.

        `job_ids` are jobs ("7", 7), arrays or tasks ("7_3"); without any, `filters` choose: account, job_name, job_state,
        nodes, partition, qos, reservation, user_name, wckey. With both, a job must match the filters too. Who is neither
        root nor slurm reaches the own jobs only; others' have the outcome 2172.
        """
        who = self.acting(user)
        body: dict[str, Any] = {**_checked_filters(filters or {}), "jobs": [job_text(one) for one in job_ids]}
        if not any(body.values()):
            raise InvalidRequest("neither jobs nor a filter: all jobs would be meant")
        if signal is not None:
            body["signal"] = _signal(signal)
        if who not in ADMINISTRATORS:
            if body.get("user_name", who) != who:
                raise PermissionDenied(f"{who} reaches the own jobs only", method="DELETE", path="jobs/")
            body["user_name"] = who
        body = {name: value for name, value in body.items() if value}
        body["flags"] = ["VERBOSE", *(checked(WORD, flag, "flag") for flag in flags)]
        adapter = yield from self.adapt()
        answer = yield from self.call("DELETE", "jobs/", body=body, user=who, repeatable=signal is None)
        return adapter.outcomes(answer.payload)

    def update_job(self, job_id: int | str, fields: Mapping[str, Any], *, user: str | None = None) -> Steps[None]:
        """Change a job: `fields` as in a job description (`{"time_limit": number(60)}`); what isn't given stays.

        An array's tasks are changed together, by the array's id.
        """
        if not fields:
            raise InvalidRequest("no field to change")
        tail = f"job/{job_text(job_id)}"
        yield from self.call("POST", tail, body=dict(fields), user=user, repeatable=True)

    def hold(self, job_id: int | str, *, user: str | None = None) -> Steps[None]:
        """Keep a waiting job from starting. What root or slurm holds, its user can't release."""
        yield from self.update_job(job_id, {"hold": True}, user=user)

    def release(self, job_id: int | str, *, user: str | None = None) -> Steps[None]:
        """Let a held job start again."""
        yield from self.update_job(job_id, {"hold": False}, user=user)

    def requeue(
        self,
        job_ids: int | str | Iterable[int | str],
        *,
        hold: bool = False,
        incomplete: bool = False,
        special_exit: bool = False,
        user: str | None = None,
    ) -> Steps[list[JobOutcome]]:
        """Put running or ended jobs back into the queue. Slurm 26.05.

        `hold`: held there; `special_exit`: held and marked SPECIAL_EXIT; `incomplete`: of a list, those that haven't ended
        well. Raises the first refusal; the other jobs are requeued nevertheless.
        """
        many = [job_ids] if isinstance(job_ids, (int, str)) else list(job_ids)
        chosen = {"Hold": hold or special_exit, "Incomplete": incomplete, "SpecialExit": special_exit}
        body = {"jobs": [job_text(one) for one in many], "flags": [flag for flag, wanted in chosen.items() if wanted]}
        adapter = yield from self.adapt()
        answer = yield from self.call("POST", "jobs/requeue", body=body, user=user)
        return adapter.outcomes(answer.payload)

    def allocate(
        self, job: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, user: str | None = None
    ) -> Steps[Submission]:
        """Get nodes without a script, as salloc does; `job` as for `submit`. API v0.0.41 or newer.

        slurmctld answers when the job has started: with the field `immediate` at once or never, else it may take longer
        than the client waits. Then it raises Ambiguous and the job waits in the queue. Never sent twice.
        """
        body = {"job": dict(job)} if isinstance(job, Mapping) else {"hetjob": [dict(part) for part in job]}
        refuse_unwritable(body)
        answer = yield from self.call("POST", "job/allocate", body=body, user=user)
        return Submission(made_job(answer, "job/allocate"), warnings=answer.warnings)

    def resources(self, job_id: int | str) -> Steps[list[NodeShare]]:
        """What a running job holds on each of its nodes. API v0.0.44 or newer."""
        entries = (yield from self.adapt()).each_node_share()
        return (yield from self.stream(f"resources/{job_number(job_id)}", entries))


def job_text(job_id: int | str) -> str:
    """A job as Slurm writes it: 7, "7_3" (a task), "7_[0-9]", "7+1" (a part). Raises InvalidRequest for others."""
    return checked(JOB, str(job_id), "job id")


def job_number(job_id: int | str) -> int:
    """A job's plain id. Raises InvalidRequest for what is none."""
    return int(checked(_NUMBER, str(job_id), "job id"))


def _named(job: str) -> Callable[[Job], bool]:
    """Whether a job is the one that was asked for."""
    base, _, task = job.partition("_")
    if task.isdecimal():
        return lambda found: (found.array_job_id, found.array_task_id) == (int(base), int(task))
    return lambda found: found.job_id == int(re.split(r"[_+]", job)[0])


def made_job(answer: answers.Answer, path: str) -> int:
    """The id of the job that was made. What Slurm can't read (a text for a number) it drops, and the job with it."""
    job_id = answer.payload.get("job_id")
    if not isinstance(job_id, int) or job_id <= 0:
        why = "; ".join(answer.warnings) or "no reason given"
        raise InvalidRequest(f"Slurm made no job of it: {why}", method="POST", path=path)
    return job_id


def _signal(signal: str | int) -> str:
    return checked(SIGNAL, str(signal).upper(), "signal")


def _checked_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(filters) - _FILTERS)
    if unknown:
        raise InvalidRequest(f"no such filter: {unknown[0]!r:.80}")
    refuse_unwritable(filters)
    return {name: value for name, value in filters.items() if value}
