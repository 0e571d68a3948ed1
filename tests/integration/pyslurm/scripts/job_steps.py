"""Steps of a job: job_steps.py ID."""

import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.db.Job.load(int(sys.argv[1]))
for step_id, step in job.steps.items():
    print(step_id, step.name, step.state, step.exit_code)
