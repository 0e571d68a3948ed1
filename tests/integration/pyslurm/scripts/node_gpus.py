"""GPUs of each node: how many there are, and how many jobs hold."""

import slurmrest.pyslurm as pyslurm

for name, node in sorted(pyslurm.Nodes.load().items()):
    total = sum(count for gres, count in node.configured_gres.items() if gres.startswith("gpu"))
    print(name, total, node.allocated_gres.get("gpu:h100", 0))
