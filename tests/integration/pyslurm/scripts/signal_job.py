"""Send a signal to a job's batch script: signal_job.py ID SIGNAL."""

import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.Job.load(int(sys.argv[1]))
job.send_signal(sys.argv[2], steps="batch")
