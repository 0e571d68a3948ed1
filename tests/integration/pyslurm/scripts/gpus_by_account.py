"""GPUs that the jobs of each account were given."""

from collections import Counter

import slurmrest.pyslurm as pyslurm

gpus: Counter[str] = Counter()
for job in pyslurm.db.Jobs.load().values():
    if job.allocated_tres:
        gpus[job.account] += sum(gpu.count for gpu in job.allocated_tres.gpus.values())
for account, count in sorted(gpus.items()):
    print(account, count)
