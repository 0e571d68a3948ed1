"""Which tenant a namespace belongs to. Pure; the admin's word on the SlurmCluster is the only source."""

from __future__ import annotations

from kubeslurm.api.slurmcluster import SlurmCluster, Tenant
from kubeslurm.errors import InvalidObject


def find(cluster: SlurmCluster, namespace: str) -> Tenant | None:
    """The tenant that names the namespace."""
    return next((one for one in cluster.spec.tenants if namespace in one.namespaces), None)


def tenant_for(cluster: SlurmCluster, namespace: str) -> Tenant:
    """The same; InvalidObject where there is none."""
    tenant = find(cluster, namespace)
    if tenant is None:
        meta = cluster.metadata
        raise InvalidObject(
            "metadata.namespace",
            f"no tenant of SlurmCluster {meta.namespace}/{meta.name} names namespace {namespace!r}",
        )
    return tenant
