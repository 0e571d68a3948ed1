"""Memory (MiB) and CPUs that the running jobs of each user hold."""

from collections import defaultdict

import slurmrest.pyslurm as pyslurm

memory: dict[str, int] = defaultdict(int)
cpus: dict[str, int] = defaultdict(int)
for job in pyslurm.Jobs.load().values():
    if job.state == "RUNNING":
        memory[job.user_name] += job.memory
        cpus[job.user_name] += job.cpus
for user in sorted(memory):
    print(user, memory[user], cpus[user])
