"""Ids of the jobs that a user ended since a time: jobs_of_user.py USER TIME."""

import sys

import slurmrest.pyslurm as pyslurm

db_filter = pyslurm.db.JobFilter(users=[sys.argv[1]], start_time=sys.argv[2])
print(*sorted(pyslurm.db.Jobs.load(db_filter)))
