"""All calls of slurmctld's REST, each written once as a generator; both clients have them under the same names."""

from __future__ import annotations

from slurmrest.cluster_calls import ClusterCalls
from slurmrest.job_calls import JobCalls
from slurmrest.node_calls import NodeCalls


class Calls(JobCalls, NodeCalls, ClusterCalls):
    """What `AsyncSlurm` and `Slurm` run."""
