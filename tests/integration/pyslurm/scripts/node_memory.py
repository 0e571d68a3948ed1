"""Memory of the cluster, in MiB: all, allocated, idle."""

import slurmrest.pyslurm as pyslurm

nodes = pyslurm.Nodes.load()
print(nodes.real_memory, nodes.allocated_memory, nodes.idle_memory)
print(nodes.total_cpus, nodes.allocated_cpus, nodes.idle_cpus)
