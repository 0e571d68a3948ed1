"""Which tenant a namespace belongs to. Pure; the admin's word on the SlurmCluster is the only source.

What always holds: a namespace that two tenants claim has none; and one whose labels are not known matches no selector, not
even one that asks for a label's absence.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.api.tenants import Tenant
from kubeslurm.errors import InvalidObject

Labels = Mapping[str, str]


def claims(cluster: SlurmCluster, namespace: str, labels: Labels | None = None) -> tuple[int, ...]:
    """The numbers of the tenants that claim the namespace; `labels` are the namespace's, None where not known."""
    return tuple(index for index, tenant in enumerate(cluster.spec.tenants) if _is_claimed(tenant, namespace, labels))


def _is_claimed(tenant: Tenant, namespace: str, labels: Labels | None) -> bool:
    if namespace in tenant.namespaces:
        return True
    selector = tenant.namespace_selector
    return selector is not None and labels is not None and selector.matches(labels)


def tenant_for(cluster: SlurmCluster, namespace: str, labels: Labels | None = None) -> Tenant:
    """The tenant of the namespace; InvalidObject where there is none, or more than one."""
    found = claims(cluster, namespace, labels)
    if len(found) == 1:
        return cluster.spec.tenants[found[0]]
    meta = cluster.metadata
    where = f"SlurmCluster {meta.namespace}/{meta.name}"
    if not found:
        raise InvalidObject("metadata.namespace", f"no tenant of {where} names namespace {namespace!r}")
    several = " and ".join(f"tenants[{index}]" for index in found)
    raise InvalidObject("metadata.namespace", f"{several} of {where} claim namespace {namespace!r}: whose is it?")


def disputes(cluster: SlurmCluster, namespaces: Mapping[str, Labels]) -> str:
    """The namespaces that more than one tenant claims, in a sentence; empty where there is none."""
    if not any(tenant.namespace_selector for tenant in cluster.spec.tenants):
        return ""  # names are given once: the model sees to it
    found = {name: claims(cluster, name, labels) for name, labels in sorted(namespaces.items())}
    told = [f"{name} by {_numbers(several)}" for name, several in found.items() if len(several) > 1]
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    return f"namespaces claimed twice: {', '.join(told[:3])}{more}" if told else ""


def _numbers(several: tuple[int, ...]) -> str:
    return " and ".join(f"tenants[{index}]" for index in several)
