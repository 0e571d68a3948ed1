"""NodeSet: a number of equal Slurm nodes, each a pod with GPUs."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from kubeslurm import names, quantities
from kubeslurm.api.base import Condition, Loose, Model, Resource, first_complaint
from kubeslurm.api.fields import DNS_LABEL, Quantity, SlurmName
from kubeslurm.api.slurmcluster import Totals, check_object_name
from kubeslurm.errors import InvalidObject

CONTAINER = "slurmd"
TEMPLATE = "template.spec.containers"
DEVICES = r"^/dev/[A-Za-z0-9/_-]+(\[[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*\])?$"
MAX_REPLICAS = 20_000
MAX_NAME = 50
MAX_CPUS = 65535
MAX_MEMORY_MIB = 1 << 40
OWN_ENV = frozenset({"SLURM_NODE_NAME", "SLURMCTLD_HOST", "SLURMCTLD_PORT"})
OWN_MOUNTS = frozenset({"/keys", "/etc/slurm", "/run/kubeslurm", "/var/lib/extrausers"})
OWN_PREFIX = "kubeslurm-"
"""Begins the names of the volumes that the operator adds."""


class ClusterRef(Model):
    """A SlurmCluster of the same namespace."""

    name: str = Field(description="Its name.", pattern=DNS_LABEL)


class Ordinals(Model):
    """How nodes are numbered."""

    start: int = Field(default=0, description="The first number.", ge=0, le=1_000_000)
    width: int = Field(default=1, description="Least number of digits; shorter numbers get zeros in front.", ge=1, le=7)


def _resource(text: str) -> str:
    if "/" not in text:
        raise ValueError(f"{text!r} is no extended resource, such as nvidia.com/gpu")
    return text


class GpuSpec(Model):
    """The GPUs of each node."""

    resource: Annotated[str, AfterValidator(_resource)] = Field(
        default="nvidia.com/gpu", description="The pods' extended resource.", pattern=r"^[a-z0-9./-]{3,253}$"
    )
    type: SlurmName | None = Field(default=None, description="Type in Slurm, as in --gres=gpu:h100:8.")
    count: int | None = Field(
        default=None, description="GPUs of a node; what the container's limits say when absent.", ge=1, le=1024
    )
    devices: str | None = Field(
        default=None, description="Device files, default /dev/nvidia[0-(count-1)].", pattern=DEVICES, max_length=200
    )

    def device_count(self) -> int | None:
        """How many files `devices` names; None where it is not given."""
        if self.devices is None:
            return None
        _, bracket, ranges = self.devices.rstrip("]").partition("[")
        if not bracket:
            return 1
        ends = [[int(end) for end in re.findall("[0-9]+", one)] for one in ranges.split(",")]
        return sum(max(0, end[-1] - end[0] + 1) for end in ends)


class _Named(Loose):
    name: str


class _Mount(_Named):
    mount_path: str


class _Resources(Loose):
    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class _Container(_Named):
    image: str
    env: list[_Named] | None = None
    ports: list[dict[str, Any]] | None = None
    volume_mounts: list[_Mount] | None = None
    resources: _Resources | None = None


class _PodSpec(Loose):
    """The types of what we read of the template's spec: the CRD lets anything through."""

    containers: list[_Container]
    volumes: list[_Named] | None = None


class _PodMetadata(Model):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: None = None  # programs that write templates leave it there, empty


class Template(Model):
    """The slurmd pod."""

    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="Labels and annotations of the pods.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    spec: dict[str, Any] = Field(
        description="The pod's spec, with one container named slurmd.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    @field_validator("metadata")
    @classmethod
    def _metadata_has_the_shape(cls, value: dict[str, Any]) -> dict[str, Any]:
        return _shaped(_PodMetadata, value)

    @model_validator(mode="after")
    def _can_be_a_slurmd(self) -> Self:
        self._check_container()
        try:
            _shaped(_PodSpec, self.spec)
        except InvalidObject as error:
            raise error.below("spec") from None
        self._check_ours()
        return self

    def _check_container(self) -> None:
        containers = self.spec.get("containers")
        if not isinstance(containers, list) or not containers:
            raise InvalidObject("spec.containers", f"one container, named {CONTAINER}, is needed")
        for index, one in enumerate(containers):
            if not isinstance(one, dict) or one.get("name") != CONTAINER:
                raise InvalidObject(f"spec.containers[{index}].name", f"the only container must be named {CONTAINER}")
            if index:
                raise InvalidObject(f"spec.containers[{index}]", "a second container is not supported")
        for field in ("command", "args", "securityContext"):
            if containers[0].get(field):
                raise InvalidObject(f"spec.containers[0].{field}", "set by the operator")
        for field in ("hostNetwork", "hostPID", "hostIPC", "restartPolicy", "nodeName", "hostname", "subdomain"):
            if self.spec.get(field):
                raise InvalidObject(f"spec.{field}", "set by the operator")
        if not containers[0].get("image"):
            raise InvalidObject("spec.containers[0].image", "required")

    def _check_ours(self) -> None:
        """Refuse names and places that the operator fills itself, where one of the two would be lost."""
        pod = _PodSpec.model_validate(self.spec)
        container, where = pod.containers[0], "spec.containers[0]"
        for index, variable in enumerate(container.env or []):
            if variable.name in OWN_ENV:
                raise InvalidObject(f"{where}.env[{index}].name", f"{variable.name} is set by the operator")
        for index, mount in enumerate(container.volume_mounts or []):
            if mount.mount_path.rstrip("/") in OWN_MOUNTS:
                raise InvalidObject(f"{where}.volumeMounts[{index}].mountPath", "used by the operator")
        for index, volume in enumerate(pod.volumes or []):
            if volume.name.startswith(OWN_PREFIX):
                raise InvalidObject(f"spec.volumes[{index}].name", f"{OWN_PREFIX}... is used by the operator")


def _shaped(shape: type[Loose | Model], value: dict[str, Any]) -> dict[str, Any]:
    """The value as it came, once the types are right."""
    try:
        shape.model_validate(value)
    except ValidationError as error:
        raise first_complaint(error) from None
    return value


class NodeSetSpec(Model):
    """What the nodes should be."""

    cluster_ref: ClusterRef = Field(description="The SlurmCluster that they belong to.")
    replicas: int = Field(default=1, description="How many nodes.", ge=0, le=MAX_REPLICAS)
    ordinals: Ordinals = Field(default=Ordinals(), description="How nodes are numbered.")
    gpu: GpuSpec | None = Field(default=None, description="The GPUs of each node.")
    cpus: int | None = Field(
        default=None,
        description="CPUs that Slurm may give away on each node; the container's by default.",
        ge=1,
        le=MAX_CPUS,
    )
    memory: Quantity | None = Field(
        default=None, description="Memory that Slurm may give away on each node; the container's by default."
    )
    features: list[SlurmName] = Field(
        default_factory=list, description="Slurm features, for --constraint.", max_length=64
    )
    weight: int = Field(default=1, description="Nodes of less weight are taken first.", ge=1, le=65533)
    template: Template = Field(description="The slurmd pod.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        self.gpu_count()
        self.cpu_count()
        self.memory_mib()
        return self

    def gpu_count(self) -> int:
        """GPUs of each node: `gpu.count` and the container's limit, which must not differ."""
        gpu = self.gpu
        limits = self._resources("limits")
        if gpu is None:
            found = [name for name in limits if name.endswith("/gpu")]
            if found:
                raise InvalidObject("gpu", f"missing, but {TEMPLATE}[0].resources.limits has {found[0]}")
            return 0
        path = f"{TEMPLATE}[0].resources.limits[{gpu.resource}]"
        limit = _number(path, limits.get(gpu.resource, 0))
        if gpu.count is not None and gpu.resource in limits and gpu.count != limit:
            raise InvalidObject("gpu.count", f"{gpu.count}, but {path} is {limit}")
        if gpu.count is not None and gpu.resource not in limits:
            raise InvalidObject(path, f"missing, but gpu.count is {gpu.count}")
        if not limit:
            what = f"gpu.type is {gpu.type}" if gpu.type else "gpu is set"
            raise InvalidObject(path, f"0 GPUs, but {what}")
        files = gpu.device_count()
        if files is not None and files != limit:
            raise InvalidObject("gpu.devices", f"{files} files, but a node has {limit} GPUs")
        return limit

    def cpu_count(self) -> int:
        """CPUs of each node."""
        if self.cpus is not None:
            return self.cpus
        path = f"{TEMPLATE}[0].resources.limits.cpu"
        value = self._limit_or_request("cpu")
        if value is None:
            raise InvalidObject("cpus", f"missing, and so is {path}")
        cpus = max(1, _checked(path, quantities.to_cpus, value))
        if cpus > MAX_CPUS:
            raise InvalidObject(path, f"more than {MAX_CPUS}")
        return cpus

    def memory_mib(self) -> int:
        """Memory of each node in MiB; rounded down where it is a limit of the container."""
        path = f"{TEMPLATE}[0].resources.limits.memory"
        value = self.memory if self.memory is not None else self._limit_or_request("memory")
        if value is None:
            raise InvalidObject("memory", f"missing, and so is {path}")
        path = "memory" if self.memory is not None else path
        mib = _checked(path, quantities.to_mib, value)
        if not 1 <= mib <= MAX_MEMORY_MIB:
            raise InvalidObject(path, "not between 1 MiB and 1 EiB")
        return mib

    def _limit_or_request(self, name: str) -> Any:
        limit = self._resources("limits").get(name)
        return limit if limit is not None else self._resources("requests").get(name)

    def _resources(self, kind: str) -> dict[str, Any]:
        resources = self.template.spec["containers"][0].get("resources") or {}
        found: dict[str, Any] = resources.get(kind) or {}
        return found


def _number(path: str, value: Any) -> int:
    return _checked(path, quantities.to_count, value)


def _checked(path: str, read: Any, value: Any) -> int:
    try:
        return int(read(value))
    except ValueError as error:
        raise InvalidObject(path, str(error)) from None


class NodeSetStatus(Loose):
    """What the nodes are now."""

    conditions: list[Condition] = Field(default_factory=list, description="Ready.")
    observed_generation: int = Field(default=0, description="The metadata.generation that this speaks of.")
    selector: str = Field(default="", description="Labels of the pods, for the scale subresource.")
    replicas: int = Field(default=0, description="Pods that exist.")
    ready_replicas: int = Field(default=0, description="Nodes that have registered with Slurm.")
    idle: int = Field(default=0, description="Nodes that run nothing.")
    allocated: int = Field(default=0, description="Nodes that jobs hold.")
    drained: int = Field(default=0, description="Nodes that take no new job.")
    down: int = Field(default=0, description="Nodes that are down or do not answer.")
    gpus: Totals = Field(default=Totals(), description="GPUs.")


class NodeSet(Resource):
    """A number of equal Slurm nodes."""

    KIND: ClassVar[str] = "NodeSet"
    API: ClassVar[str] = names.API_VERSION

    spec: NodeSetSpec
    status: NodeSetStatus = NodeSetStatus()

    @model_validator(mode="after")
    def _name(self) -> Self:
        check_object_name(self.metadata, MAX_NAME)
        return self
