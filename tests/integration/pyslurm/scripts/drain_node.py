"""Drain a node: drain_node.py NODE REASON."""

import sys

import slurmrest.pyslurm as pyslurm

name, reason = sys.argv[1:]
node = pyslurm.Node.load(name)
node.modify(pyslurm.Node(state="DRAIN", reason=reason))
print(pyslurm.Node.load(name).state)
