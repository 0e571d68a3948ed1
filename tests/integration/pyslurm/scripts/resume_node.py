"""Take a node back into use: resume_node.py NODE."""

import sys

import slurmrest.pyslurm as pyslurm

node = pyslurm.Node(sys.argv[1])
node.modify(pyslurm.Node(state="RESUME"))
