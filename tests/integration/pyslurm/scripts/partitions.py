"""Size, state and limits of each partition."""

import slurmrest.pyslurm as pyslurm

for name, part in pyslurm.Partitions.load().items():
    print(name, part.state, part.total_nodes, part.total_cpus, part.max_time)
