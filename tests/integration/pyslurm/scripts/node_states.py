"""How many nodes are in which state."""

from collections import Counter

import slurmrest.pyslurm as pyslurm

for state, count in Counter(node.state for node in pyslurm.Nodes.load().values()).items():
    print(state, count)
