"""PyTorchJob (kubeflow.org/v1) as it is: the outer shape typed, the pod templates left to the reader, field by field."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from kubeslurm.api.base import Loose, Resource


class ReplicaSpec(Loose):
    """One role: Master or Worker."""

    replicas: int = Field(default=1, ge=0, le=100_000)
    restart_policy: str | None = None
    template: dict[str, Any] = Field(default_factory=dict)


class TrainingSpec(Loose):
    """The job."""

    pytorch_replica_specs: dict[str, ReplicaSpec] = Field(min_length=1, max_length=8)
    run_policy: dict[str, Any] | None = None
    elastic_policy: dict[str, Any] | None = None
    nproc_per_node: str | None = None


class PyTorchJob(Resource):
    """The object."""

    KIND: ClassVar[str] = "PyTorchJob"
    API: ClassVar[str] = "kubeflow.org/v1"

    spec: TrainingSpec
    status: dict[str, Any] = Field(default_factory=dict)
