"""Write a comment on several nodes: comment_nodes.py NODES COMMENT."""

import sys

import slurmrest.pyslurm as pyslurm

nodes = pyslurm.Nodes(sys.argv[1])
nodes.modify(pyslurm.Node(comment=sys.argv[2]))
