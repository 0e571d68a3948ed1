"""Hold a pending job: hold_job.py ID."""

import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.Job(int(sys.argv[1]))
job.hold()
print(pyslurm.Job.load(job.id).priority)
