"""Write a comment on a job in the database: comment_job.py ID TEXT."""

import sys

import slurmrest.pyslurm as pyslurm

job_id, text = sys.argv[1:]
try:
    pyslurm.db.Job.load(int(job_id)).modify(pyslurm.db.Job(comment=text))
except pyslurm.PyslurmError as error:
    print(error)
