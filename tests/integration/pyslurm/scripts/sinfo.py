"""A small sinfo: one line per node."""

import slurmrest.pyslurm as pyslurm

for node in sorted(pyslurm.Nodes.load().values(), key=lambda node: node.name):
    partitions = ",".join(node.partitions)
    print(node.name, node.state, node.total_cpus, node.real_memory, partitions)
