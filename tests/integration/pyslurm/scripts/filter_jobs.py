"""Ids of the jobs of a user in a state: filter_jobs.py USER STATE."""

import sys

import slurmrest.pyslurm as pyslurm

user, state = sys.argv[1:]
jobs = pyslurm.Jobs.load()
print(*sorted(job.id for job in jobs.values() if job.user_name == user and job.state == state))
