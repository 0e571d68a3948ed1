"""CPU seconds of each user."""

from collections import Counter

import slurmrest.pyslurm as pyslurm

seconds: Counter[str] = Counter()
for job in pyslurm.db.Jobs.load().values():
    seconds[job.user_name] += job.cpus * job.elapsed_time
for user, used in sorted(seconds.items()):
    print(user, used)
