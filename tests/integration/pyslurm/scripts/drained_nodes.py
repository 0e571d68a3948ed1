"""Who drained what, and why."""

import slurmrest.pyslurm as pyslurm

for node in pyslurm.Nodes.load().values():
    if "DRAIN" in node.state:
        print(f"{node.name}: {node.reason}")
