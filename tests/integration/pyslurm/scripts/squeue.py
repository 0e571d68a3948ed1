"""A small squeue."""

import slurmrest.pyslurm as pyslurm

for job_id, job in pyslurm.Jobs.load().items():
    if job.state in ("PENDING", "RUNNING"):
        print(job_id, job.partition, job.name, job.user_name, job.state, job.num_nodes)
