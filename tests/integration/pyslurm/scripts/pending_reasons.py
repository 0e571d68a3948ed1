"""Why jobs wait."""

import slurmrest.pyslurm as pyslurm

for job in pyslurm.Jobs.load().values():
    if job.state == "PENDING":
        print(job.id, job.state_reason)
