"""What the manifests of all parts have in common: labels, Services, and pods that run without root or a capability.

Pure; called by `manifests` and `accounting_manifests` only.
"""

from __future__ import annotations

from typing import Any, Final

from kubeslurm import names
from kubeslurm.api.slurmcluster import SlurmCluster

Raw = dict[str, Any]

LOCKED_DOWN: Final[Raw] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def labels(cluster: SlurmCluster, component: str) -> dict[str, str]:
    """The labels of the part's objects and pods."""
    return {
        names.LABEL_MANAGED_BY: names.MANAGER,
        names.LABEL_COMPONENT: component,
        names.LABEL_CLUSTER: cluster.metadata.name,
    }


def build(cluster: SlurmCluster, api: str, kind: str, name: str, component: str, **rest: Any) -> Raw:
    """An object in the cluster's namespace."""
    meta = {"name": name, "namespace": cluster.metadata.namespace, "labels": labels(cluster, component)}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **rest}


def service(cluster: SlurmCluster, name: str, component: str, port: int, *, early: bool) -> Raw:
    """`early`: it names pods that are not ready yet, too."""
    selector = {names.LABEL_CLUSTER: cluster.metadata.name, names.LABEL_COMPONENT: component}
    spec = {"selector": selector, "ports": [{"name": "slurm", "port": port, "targetPort": port, "protocol": "TCP"}]}
    return build(cluster, "v1", "Service", name, component, spec=spec | {"publishNotReadyAddresses": early})


def pod_template(cluster: SlurmCluster, component: str, spec: Raw) -> Raw:
    """Without the API server's token, on the nodes that the spec chooses."""
    common = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": cluster.spec.controller.managed.node_selector,
    }
    return {"metadata": {"labels": labels(cluster, component)}, "spec": common | spec}


def as_user(uid: int) -> Raw:
    """A pod whose processes are all of this user, and its files of the group."""
    return {
        "runAsNonRoot": True,
        "runAsUser": uid,
        "runAsGroup": uid,
        "fsGroup": uid,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def tcp_probe(port: int) -> Raw:
    """Ready when it listens."""
    return {"tcpSocket": {"port": port}, "periodSeconds": 2, "failureThreshold": 3}
