"""The example objects as values, and small changes to them; shared by the unit tests of the pool and of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.api.slurmcluster import SlurmCluster

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

Raw = dict[str, Any]
Change = Callable[[Raw], object]


def documents(name: str) -> Iterator[Raw]:
    """The objects of an example file."""
    yield from yaml.safe_load_all((EXAMPLES / name).read_text())


def raw(kind: str, change: Change | None = None) -> Raw:
    """The example's object of the kind, changed if wanted."""
    name = "pytorchjob.yaml" if kind == "PyTorchJob" else "pool.yaml"
    found: Raw = json.loads(
        json.dumps(next(one for one in documents(name) if one["kind"] == kind))
    )  # YAML's aliases undone
    if change:
        change(found)
    return found


def cluster(change: Change | None = None) -> SlurmCluster:
    """The example SlurmCluster."""
    return SlurmCluster.parse(raw("SlurmCluster", change))


def nodeset(change: Change | None = None) -> NodeSet:
    """The example NodeSet."""
    return NodeSet.parse(raw("NodeSet", change))


def training(change: Change | None = None) -> PyTorchJob:
    """The example PyTorchJob."""
    return PyTorchJob.parse(raw("PyTorchJob", change))


def container(job: Raw, role: str = "Master") -> Raw:
    """The one container of a role."""
    found: Raw = job["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["containers"][0]
    return found


def only_master(job: Raw) -> Raw:
    """Drop the Workers; returns the container that is left."""
    del job["spec"]["pytorchReplicaSpecs"]["Worker"]
    return container(job)
