"""Cancel all jobs of a user: cancel_jobs.py USER."""

import sys

import slurmrest.pyslurm as pyslurm

for job in pyslurm.Jobs.load().values():
    if job.user_name == sys.argv[1] and job.state in ("PENDING", "RUNNING"):
        job.cancel()
        print(job.id)
