"""Submit a job and wait for its end; its exit code is ours."""

import sys
import time

import slurmrest.pyslurm as pyslurm

desc = pyslurm.JobSubmitDescription(name="wait", working_directory="/tmp", script="#!/bin/sh\nexit 7\n")
job_id = desc.submit()
for _ in range(300):
    job = pyslurm.Job.load(job_id)
    if job.state not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
        break
    time.sleep(0.1)
print(job_id, job.state, job.exit_code)
sys.exit(job.exit_code)
