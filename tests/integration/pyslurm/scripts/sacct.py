"""A small sacct: all jobs of today."""

import slurmrest.pyslurm as pyslurm

for job_id, job in pyslurm.db.Jobs.load().items():
    print(job_id, job.name, job.user_name, job.account, job.state, job.exit_code)
