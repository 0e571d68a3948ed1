"""A job as slurmdbd recorded it, as the job that slurmctld would tell of if it had not forgotten it.

Pure; used by the operator's job loop. What always holds: only an end is taken; a record that still runs, though
slurmctld does not know it, says nothing.
"""

from __future__ import annotations

from slurmrest import Job
from slurmrest.db_values import JobRecord


def ended(record: JobRecord) -> Job | None:
    """The ended job."""
    if not record.states.finished:
        return None
    return Job(
        job_id=record.job_id,
        states=record.states,
        name=record.name,
        user_name=record.user,
        account=record.account,
        partition=record.partition,
        comment=record.comment,
        nodes=record.nodes,
        exit_code=record.exit_code,
        submit_time=record.submit_time,
        start_time=record.start_time,
        end_time=record.end_time,
        restart_count=record.restart_count,
        qos=record.qos,
    )
