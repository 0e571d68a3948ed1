"""Give a job more time and another comment: extend_job.py ID LIMIT."""

import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.Job.load(int(sys.argv[1]))
job.modify(pyslurm.JobSubmitDescription(time_limit=sys.argv[2], comment="more time"))
job = pyslurm.Job.load(job.id)
print(job.time_limit, job.comment)
