"""The test harness: a Kubernetes (kind) and a Slurm on this one machine, for tests, the demo and the benches.

`Cluster` is a Kubernetes cluster; `tests.cluster.slurm.BareSlurm` a Slurm without one. `python -m tests.cluster` is the
command line. See README.md here.
"""

from __future__ import annotations

from tests.cluster.cluster import Cluster, ForeignClusterError

__all__ = ["Cluster", "ForeignClusterError"]
