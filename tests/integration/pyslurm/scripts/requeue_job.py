"""Put a running job back into the queue: requeue_job.py ID."""

import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.Job.load(int(sys.argv[1]))
try:
    job.requeue()
except pyslurm.PyslurmError as error:
    print(error)
