"""All nodes as JSON, for another program."""

import slurmrest.pyslurm as pyslurm

print(pyslurm.Nodes.load().to_json())
