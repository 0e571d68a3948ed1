"""PyTorchJob (kubeflow.org/v1) as it is: the outer shape typed, the pod templates left to the reader, field by field.

What always holds: what the reader reads of a template has the types that Kubernetes gives it, whatever the CRD let through.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, ValidationError, field_validator

from kubeslurm.api.base import Loose, Resource, first_complaint


class _Variable(Loose):
    name: str
    value: str | None = None
    value_from: dict[str, Any] | None = None


class _Port(Loose):
    name: str | None = None
    container_port: int | None = Field(default=None, ge=1, le=65535)


class _Resources(Loose):
    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class _Container(Loose):
    name: str | None = None
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    working_dir: str | None = None
    ports: list[_Port] | None = None
    resources: _Resources | None = None


class _PodSpec(Loose):
    containers: list[_Container] | None = None


class _Labels(Loose):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Template(Loose):
    metadata: _Labels | None = None
    spec: _PodSpec | None = None


class ReplicaSpec(Loose):
    """One role: Master or Worker."""

    replicas: int = Field(default=1, ge=0, le=100_000)
    restart_policy: str | None = None
    template: dict[str, Any] = Field(default_factory=dict)

    @field_validator("template")
    @classmethod
    def _has_the_shape(cls, value: dict[str, Any]) -> dict[str, Any]:
        """The template as it came, once the types are right."""
        try:
            _Template.model_validate(value)
        except ValidationError as error:
            raise first_complaint(error) from None
        return value


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
