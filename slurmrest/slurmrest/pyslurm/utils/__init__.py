"""Helpers for scripts: times, memory, ranges and host lists.

Used by scripts as `pyslurm.utils`, and by the modules of this package. Pure: nothing here asks Slurm.
"""

from __future__ import annotations

from slurmrest.pyslurm.utils.ctime import (
    date_to_timestamp,
    mins_to_timestr,
    secs_to_timestr,
    timestamp_to_date,
    timestr_to_mins,
    timestr_to_secs,
)
from slurmrest.pyslurm.utils.helpers import (
    dehumanize,
    expand_range_str,
    gid_to_name,
    group_to_gid,
    humanize,
    nodelist_from_range_str,
    nodelist_to_range_str,
    uid_to_name,
    user_to_uid,
)

__all__ = [
    "date_to_timestamp",
    "dehumanize",
    "expand_range_str",
    "gid_to_name",
    "group_to_gid",
    "humanize",
    "mins_to_timestr",
    "nodelist_from_range_str",
    "nodelist_to_range_str",
    "secs_to_timestr",
    "timestamp_to_date",
    "timestr_to_mins",
    "timestr_to_secs",
    "uid_to_name",
    "user_to_uid",
]
