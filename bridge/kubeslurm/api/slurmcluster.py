"""SlurmCluster: one Slurm, with its partitions, its tenants and how jobs run on it."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from kubeslurm import names, slurmconf
from kubeslurm.api.accounting import Accounting
from kubeslurm.api.base import Condition, Loose, Metadata, Model, Resource
from kubeslurm.api.fields import DNS_LABEL, IMAGE, AccountName, PartitionName, Quantity, SlurmName, SlurmTime, is_label
from kubeslurm.api.tenants import Tenant
from kubeslurm.errors import InvalidObject

MAX_NAME = 40
"""A StatefulSet's pods carry its name with a hash behind it as a label, of at most 63 characters."""


def check_object_name(metadata: Metadata, longest: int) -> None:
    """Pods and Services are named after the object, so a dot is no part of its name; raises InvalidObject."""
    if not re.fullmatch(DNS_LABEL, metadata.name):
        raise InvalidObject("metadata.name", f"{metadata.name[:64]!r}: only a-z, 0-9 and '-', at most {longest}")
    if len(metadata.name) > longest:
        raise InvalidObject("metadata.name", f"at most {longest} characters, so that the names of its pods fit")


class Managed(Model):
    """A Slurm that the operator runs."""

    image: str = Field(description="Image with slurmctld and slurmrestd (24.11 or later).", pattern=IMAGE)
    storage: Quantity = Field(default="1Gi", description="Size of the volume that keeps slurmctld's state.")
    storage_class_name: str | None = Field(
        default=None, description="StorageClass of that volume; the cluster's default when absent.", max_length=253
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Where slurmctld and slurmrestd run, by node labels."
    )


class Controller(Model):
    """Where slurmctld is."""

    managed: Managed = Field(description="The operator runs slurmctld and slurmrestd.")


class Partition(Model):
    """A Slurm partition."""

    name: PartitionName = Field(description="The partition's name.")
    node_sets: list[str] = Field(
        description="NodeSets of this namespace whose nodes it holds.", min_length=1, max_length=64
    )
    default: bool = Field(default=False, description="Take jobs that name no partition.")
    max_time: SlurmTime = Field(default="UNLIMITED", description="Longest time limit of a job.")
    default_time: SlurmTime | None = Field(default=None, description="Time limit of a job that names none.")
    priority_tier: int | None = Field(default=None, description="Jobs of a higher tier go first.", ge=0, le=65533)
    allow_accounts: list[AccountName] = Field(
        default_factory=list,
        description="Accounts whose jobs it takes, however they come; all when empty.",
        max_length=256,
    )
    allow_qos: list[AccountName] = Field(
        default_factory=list, description="QOS whose jobs it takes, however they come; all when empty.", max_length=256
    )
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = Field(default="UP", description="May jobs be queued and run?")

    @field_validator("node_sets")
    @classmethod
    def _labels(cls, value: list[str]) -> list[str]:
        for name in value:
            if not is_label(name):
                raise ValueError(f"{name[:64]!r} is no NodeSet name")
        return value


class JobDefaults(Model):
    """What a job gets that does not say."""

    cpus_per_gpu: int | None = Field(default=None, description="CPUs for each GPU of a replica.", ge=1, le=1024)
    exclusive: bool = Field(
        default=False,
        description="A replica that does not say how many CPUs it needs, where cpusPerGpu gives it none, has its node"
        " for itself; else it is refused.",
    )
    memory_per_node: Quantity | None = Field(default=None, description="Memory on each node.")
    time: SlurmTime = Field(default="UNLIMITED", description="Time limit.")
    mpi: str = Field(default="none", description="srun's --mpi, such as none or pmix.", pattern=r"^[a-z0-9_]{1,32}$")


def _folder(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9_./+@=-]{1,255}", text) or {"..", "."} & set(text.split("/")):
        raise ValueError(f"{text[:64]!r}: an absolute path of plain characters, without '..'")
    return text.rstrip("/")


Folder = Annotated[str, AfterValidator(_folder), Field(max_length=256)]


class Claim(Model):
    """A PersistentVolumeClaim that jobs may mount, by the folder where the nodes have its files."""

    namespace: str = Field(description="The claim's namespace.", pattern=DNS_LABEL)
    name: str = Field(description="The claim's name.", min_length=1, max_length=253)
    path: Folder = Field(description="The folder on the nodes.")


class Mounts(Model):
    """What jobs may mount."""

    links: list[Folder] = Field(
        default=["/tmp"],
        description="Folders on the nodes that users may write to: with containerRuntime none, a volume is mounted as a"
        " symbolic link below one of them.",
        max_length=64,
    )
    host_paths: list[Folder] = Field(
        default_factory=list,
        description="Folders on the nodes that hostPath volumes may name, and all below them.",
        max_length=64,
    )
    claims: list[Claim] = Field(
        default_factory=list, description="PersistentVolumeClaims that the nodes have as folders.", max_length=256
    )


def _object_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", text):
        raise ValueError(f"{text[:64]!r} is no name of a Kubernetes object")
    return text


Name = Annotated[str, AfterValidator(_object_name), Field(max_length=253)]


class Image(Model):
    """Where the nodes have an image."""

    image: str = Field(description="The image as jobs name it.", pattern=IMAGE)
    path: Folder = Field(description="Its file (apptainer) or folder (charliecloud) on the nodes.")


class NodeLabel(Model):
    """What a node label stands for in Slurm: nothing that Slurm has to be told where neither is given."""

    label: str = Field(description="The label's name.", pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$")
    value: str = Field(description="Its value.", max_length=63)
    gpu_type: SlurmName | None = Field(default=None, description="Nodes with GPUs of this type.")
    feature: SlurmName | None = Field(default=None, description="Nodes with this feature.")


def _gres(text: str) -> str:
    if not re.fullmatch(r"([a-z][a-z0-9_]{0,31}(:[A-Za-z0-9_.-]{1,63})?)?", text):
        raise ValueError(f"{text[:64]!r} is nothing like gpu or gpu:h100")
    return text


Gres = Annotated[str, AfterValidator(_gres), Field(max_length=96)]


class Jobs(Model):
    """How Kubernetes jobs run in Slurm."""

    container_runtime: Literal["none", "pyxis", "apptainer", "charliecloud"] = Field(
        default="none",
        description="none: a job runs in the pool's own image. Others run the image of the job's container, and have to"
        " be installed on the nodes.",
    )
    image_root: Folder | None = Field(
        default=None,
        description="Folder on the nodes with images by name, '/' as '%' and ':' as '+', for apptainer with .sif behind"
        " it. Without it, apptainer pulls what images does not list.",
    )
    images: list[Image] = Field(
        default_factory=list, description="Images that the nodes have elsewhere.", max_length=1024
    )
    mounts: Mounts = Field(default=Mounts(), description="What jobs may mount.")
    defaults: JobDefaults = Field(default=JobDefaults(), description="What a job gets that does not say.")
    resources: dict[Annotated[str, Field(max_length=253)], Gres] = Field(
        default_factory=dict,
        description="What an extended resource is called in Slurm, such as gpu:a100_1g.5gb for nvidia.com/mig-1g.5gb;"
        " empty for one that means nothing there. nvidia.com/gpu, amd.com/gpu and the pool's own are gpu anyway.",
        max_length=256,
    )
    ignored_resources: list[Annotated[str, Field(max_length=253)]] = Field(
        default=[
            "rdma/*",
            "nvidia.com/rdma*",
            "nvidia.com/roce*",
            "vpc.amazonaws.com/efa",
            "hugepages-*",
            "smarter-devices/*",
        ],
        description="Resources that Slurm's nodes have without being asked; * stands for anything.",
        max_length=64,
    )
    node_labels: list[NodeLabel] = Field(
        default_factory=list,
        description="What node selectors stand for in Slurm. A job with one that is not here is refused.",
        max_length=256,
    )
    priority_classes: dict[Name, AccountName] = Field(
        default_factory=dict, description="The QOS that a PriorityClass stands for.", max_length=256
    )
    queues: dict[Name, SlurmName] = Field(
        default_factory=dict, description="The partition that a queue stands for.", max_length=256
    )


class ClusterSpec(Model):
    """What the Slurm should be."""

    controller: Controller = Field(description="Where slurmctld is.")
    partitions: list[Partition] = Field(description="Slurm partitions.", min_length=1, max_length=64)
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Further slurm.conf keys: a string, number or boolean, or a list for list-valued keys.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    tenants: list[Tenant] = Field(default_factory=list, description="Who may submit, and as whom.", max_length=256)
    accounting: Accounting | None = Field(default=None, description="slurmdbd; without it nothing is accounted.")
    jobs: Jobs = Field(default=Jobs(), description="How Kubernetes jobs run in Slurm.")

    @field_validator("config")
    @classmethod
    def _config(cls, value: dict[str, Any]) -> dict[str, Any]:
        checked: dict[str, Any] = {}
        for key, given in value.items():
            try:
                known = slurmconf.check_key(key)
                if known in checked:
                    raise ValueError(f"{known} stands twice; Slurm takes its keys in any case")
                checked[known] = _config_value(known, given)
            except ValueError as error:
                raise InvalidObject(f"[{key}]" if not key.isalnum() else key, str(error)) from None
        return checked

    @model_validator(mode="after")
    def _unique(self) -> Self:
        _refuse_repeats("partitions", [partition.name for partition in self.partitions], "name")
        defaults = [index for index, one in enumerate(self.partitions) if one.default]
        if len(defaults) > 1:
            raise InvalidObject(f"partitions[{defaults[1]}].default", "only one partition can be the default")
        self._check_tenants()
        self._check_queues()
        self._check_accounting()
        self._check_allowed()
        return self

    def _check_queues(self) -> None:
        known = {partition.name for partition in self.partitions}
        for queue, partition in self.jobs.queues.items():
            if partition not in known:
                raise InvalidObject(f"jobs.queues[{queue}]", f"there is no partition {partition!r}")

    def _check_allowed(self) -> None:
        """Slurm heeds these lists only where it checks associations and QOS (24.11: else every job runs)."""
        enforced = self.accounting.enforce if self.accounting else []
        for index, partition in enumerate(self.partitions):
            if partition.allow_accounts and not enforced:
                raise InvalidObject(f"partitions[{index}].allowAccounts", "of no effect without accounting.enforce")
            if partition.allow_qos and "qos" not in enforced:
                raise InvalidObject(f"partitions[{index}].allowQos", "of no effect without qos in accounting.enforce")

    def _check_accounting(self) -> None:
        if self.accounting is None:
            if "AccountingStorageTRES" in self.config:
                raise InvalidObject("config.AccountingStorageTRES", "slurmctld does not start on it without accounting")
            return
        _refuse_repeats("accounting.qos", [one.name for one in self.accounting.qos], "name")
        for index, tenant in enumerate(self.tenants):
            if self.accounting.manage and not tenant.accounts:
                raise InvalidObject(f"tenants[{index}].accounts", "missing, but accounting.manage is to make them")

    def _check_groups(self, index: int) -> None:
        """A user is the same in all its tenants, a name is one group and a gid has one name."""
        user, before = self.tenants[index].user, [one.user for one in self.tenants[:index]]
        if any(one.name == user.name and one != user for one in before):
            raise InvalidObject(f"tenants[{index}].user", f"{user.name} is another one in a tenant before")
        known = [group for one in before for group in one.groups]
        for number, group in enumerate(user.groups):
            others = [*known, *user.groups[:number]]
            if any((one.name == group.name) != (one.gid == group.gid) for one in others):
                text = f"{group.name} {group.gid}: another group has the name or the gid"
                raise InvalidObject(f"tenants[{index}].user.groups[{number}]", text)

    def _check_tenants(self) -> None:
        known = {partition.name for partition in self.partitions}
        owner: dict[str, int] = {}
        ids: dict[int, str] = {}
        for index, tenant in enumerate(self.tenants):
            user = tenant.user
            if ids.setdefault(user.uid, user.name) != user.name:
                raise InvalidObject(f"tenants[{index}].user.uid", f"{user.uid} is {ids[user.uid]}'s already")
            if [uid for uid, name in ids.items() if name == user.name] != [user.uid]:
                raise InvalidObject(f"tenants[{index}].user.uid", f"{user.name} has another uid already")
            self._check_groups(index)
            for name in tenant.partitions:
                if name not in known:
                    raise InvalidObject(f"tenants[{index}].partitions", f"there is no partition {name!r}")
            for namespace in tenant.namespaces:
                if owner.setdefault(namespace, index) != index:
                    raise InvalidObject(f"tenants[{index}].namespaces", f"{namespace!r} belongs to another tenant")


MAX_LIST = 64


def _config_value(key: str, given: Any) -> str | list[str]:
    if isinstance(given, list):
        if not 1 <= len(given) <= MAX_LIST:
            raise ValueError(f"a list has 1 to {MAX_LIST} values")
        return [slurmconf.check_value(_scalar(key, one)) for one in given]
    return slurmconf.check_value(_scalar(key, given))


def _scalar(key: str, given: Any) -> str:
    if isinstance(given, bool):
        return slurmconf.boolean(key, given)
    if isinstance(given, str | int) or (isinstance(given, float) and math.isfinite(given)):
        return str(given)
    raise ValueError(f"{given!r} is neither text, number, boolean nor a list of these")


def _refuse_repeats(path: str, found: list[str], field: str) -> None:
    for index, name in enumerate(found):
        if name in found[:index]:
            raise InvalidObject(f"{path}[{index}].{field}", f"{name!r} stands twice")


class Totals(Loose):
    """A whole and the part that jobs hold."""

    total: int = Field(default=0, description="All there are.")
    allocated: int = Field(default=0, description="Held by jobs.")


class JobTotals(Loose):
    """Jobs by state."""

    running: int = Field(default=0, description="Jobs that run.")
    pending: int = Field(default=0, description="Jobs that wait.")


class ClusterStatus(Loose):
    """What it is now."""

    conditions: list[Condition] = Field(default_factory=list, description="Ready, SlurmReachable, ConfigApplied ...")
    observed_generation: int = Field(default=0, description="The metadata.generation that this speaks of.")
    slurm_version: str = Field(default="", description="Slurm's version.")
    api_version: str = Field(default="", description="The REST API version in use.")
    config_digest: str = Field(default="", description="Digest of the config that slurmctld has confirmed.")
    accounting_digest: str = Field(default="", description="Digest of the tenants that slurmdbd has been told of.")
    nodes: int = Field(default=0, description="Slurm nodes.")
    gpus: Totals = Field(default=Totals(), description="GPUs.")
    jobs: JobTotals = Field(default=JobTotals(), description="Jobs.")


class SlurmCluster(Resource):
    """One Slurm."""

    KIND: ClassVar[str] = "SlurmCluster"
    API: ClassVar[str] = names.API_VERSION

    spec: ClusterSpec
    status: ClusterStatus = ClusterStatus()

    @model_validator(mode="after")
    def _name(self) -> Self:
        check_object_name(self.metadata, MAX_NAME)
        return self
