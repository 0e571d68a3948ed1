"""NodeSet: a number of equal Slurm nodes, each a pod with GPUs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from kubeslurm import names, quantities
from kubeslurm.api.base import Condition, Loose, Model, Resource
from kubeslurm.api.slurmcluster import DNS_LABEL, Quantity, SlurmName, Totals
from kubeslurm.errors import InvalidObject

CONTAINER = "slurmd"
TEMPLATE = "template.spec.containers"
DEVICES = r"^/dev/[A-Za-z0-9/_.\[\],-]{1,200}$"
MAX_REPLICAS = 20_000


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
        default=None, description="Device files, default /dev/nvidia[0-(count-1)].", pattern=DEVICES
    )


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

    @model_validator(mode="after")
    def _one_container(self) -> Self:
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
        return self


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
        le=65535,
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
        return limit

    def cpu_count(self) -> int:
        """CPUs of each node."""
        if self.cpus is not None:
            return self.cpus
        path = f"{TEMPLATE}[0].resources.limits.cpu"
        value = self._limit_or_request("cpu")
        if value is None:
            raise InvalidObject("cpus", f"missing, and so is {path}")
        return max(1, _checked(path, quantities.to_cpus, value))

    def memory_mib(self) -> int:
        """Memory of each node in MiB; rounded down where it is a limit of the container."""
        path = f"{TEMPLATE}[0].resources.limits.memory"
        value = self.memory if self.memory is not None else self._limit_or_request("memory")
        if value is None:
            raise InvalidObject("memory", f"missing, and so is {path}")
        mib = _checked("memory" if self.memory is not None else path, quantities.to_mib, value)
        if mib < 1:
            raise InvalidObject("memory", "less than 1 MiB")
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
        if len(self.metadata.name) > 50:
            raise InvalidObject("metadata.name", "at most 50 characters, so that node names fit")
        return self
