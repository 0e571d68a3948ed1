"""Release a held job: release_job.py ID."""

import sys

import slurmrest.pyslurm as pyslurm

pyslurm.Job(int(sys.argv[1])).release()
