"""GPUs per node that each running job has."""

import slurmrest.pyslurm as pyslurm

for job in pyslurm.Jobs.load().values():
    if job.state == "RUNNING" and job.gres_per_node:
        print(job.id, job.num_nodes, job.gres_per_node)
