"""Tenants: who submits from which namespaces, as which Slurm user, and within which bounds. Part of SlurmCluster's spec.

Read by `kubeslurm.tenants` and `kubeslurm.requests`. What always holds: a tenant has a user that is none of the system's
own, at least one partition, and says by name or by label which namespaces it means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from kubeslurm.api.base import Model
from kubeslurm.api.fields import AccountName, Quantity, SlurmName, SlurmTime, is_label
from kubeslurm.errors import InvalidObject

USER = r"^[a-z_][a-z0-9_-]{0,30}$"
RESERVED_USERS = frozenset({"root", "slurm", "nobody", "daemon", "munge"})
SLURM_UID = 64030
"""uid and gid of user slurm in Debian's packages: who has it rules the cluster."""

NOBODY = 65534
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z")


def _key(text: str) -> str:
    if not _LABEL_KEY.match(text):
        raise ValueError(f"{text[:64]!r} is no key of a label")
    return text


def _value(text: str) -> str:
    if not _LABEL_VALUE.match(text):
        raise ValueError(f"{text[:64]!r} is no value of a label")
    return text


LabelKey = Annotated[str, AfterValidator(_key), Field(max_length=317)]
LabelValue = Annotated[str, AfterValidator(_value), Field(max_length=63)]


def _group(text: str) -> str:
    if text in RESERVED_USERS:
        raise ValueError(f"{text!r} is reserved")
    return text


def _id(value: int) -> int:
    if value in (SLURM_UID, NOBODY):
        raise ValueError(f"{value} is reserved: Slurm's own daemons run as it")
    return value


Id = Annotated[int, Field(ge=1, le=4294967293), AfterValidator(_id)]


class Group(Model):
    """A group that a user is in besides its own."""

    name: Annotated[str, AfterValidator(_group)] = Field(description="Its name.", pattern=USER)
    gid: Id = Field(description="Group id.")


class User(Model):
    """A Slurm user. It needs to exist in no image: the operator brings it to every pod."""

    name: str = Field(description="Login name.", pattern=USER)
    uid: Id = Field(description="User id.")
    gid: Id = Field(description="Group id.")
    groups: tuple[Group, ...] = Field(
        default=(), description="Further groups, for files shared by them.", max_length=64
    )

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value in RESERVED_USERS:
            raise ValueError(f"{value!r} is reserved")
        return value


class LabelRule(Model):
    """One rule of a label selector."""

    key: LabelKey = Field(description="The label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="What must be so.")
    values: list[LabelValue] = Field(
        default_factory=list, description="The values, for In and NotIn only.", max_length=64
    )

    @model_validator(mode="after")
    def _values(self) -> Self:
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise InvalidObject("values", f"operator {self.operator} takes {'none' if self.values else 'some'}")
        return self

    def holds(self, labels: Mapping[str, str]) -> bool:
        """As Kubernetes reads it: NotIn holds where there is no such label, too."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
        return self.key not in labels


class NamespaceSelector(Model):
    """Namespaces by their labels; all rules must hold, and one there must be."""

    match_labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels that a namespace must carry.", max_length=64
    )
    match_expressions: list[LabelRule] = Field(default_factory=list, description="Rules that must hold.", max_length=64)

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.match_labels and not self.match_expressions:
            raise InvalidObject("", "an empty selector would match every namespace")
        return self

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Does a namespace with these labels belong to it?"""
        same = all(labels.get(key) == value for key, value in self.match_labels.items())
        return same and all(rule.holds(labels) for rule in self.match_expressions)


class TenantDefaults(Model):
    """What a tenant's job gets that does not say; where absent, `jobs.defaults` rules."""

    cpus_per_gpu: int | None = Field(default=None, description="CPUs for each GPU of a replica.", ge=1, le=1024)
    memory_per_node: Quantity | None = Field(default=None, description="Memory on each node.")
    time: SlurmTime | None = Field(default=None, description="Time limit.")


class Tenant(Model):
    """Who submits from which namespaces, and what they may ask for."""

    namespaces: list[str] = Field(
        default_factory=list, description="Namespaces whose jobs run as this user.", max_length=256
    )
    namespace_selector: NamespaceSelector | None = Field(
        default=None, description="The same by labels. Whoever can label a namespace can then put it here."
    )
    user: User = Field(description="The Slurm user that they run as.")
    partitions: list[SlurmName] = Field(
        description="Partitions that they may use; the first is the default.", min_length=1, max_length=64
    )
    accounts: list[AccountName] = Field(
        default_factory=list, description="Accounts that they may use; the first is the default.", max_length=64
    )
    qos: list[AccountName] = Field(
        default_factory=list, description="QOS that they may use; the first is the default.", max_length=64
    )
    shares: int = Field(
        default=1, description="Fair share of the user in an account into which the operator puts it.", ge=0, le=65534
    )
    defaults: TenantDefaults = Field(default=TenantDefaults(), description="What a job gets that does not say.")

    @field_validator("namespaces")
    @classmethod
    def _labels(cls, value: list[str]) -> list[str]:
        for name in value:
            if not is_label(name):
                raise ValueError(f"{name[:64]!r} is no namespace")
        return value

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.namespaces and self.namespace_selector is None:
            raise InvalidObject("namespaces", "missing, and so is namespaceSelector")
        return self
