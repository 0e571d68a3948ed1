"""The virtual node: a Node object that stands for a Slurm cluster, on which the mirror pods of its jobs sit.

Pure builders, called by the operator's `virtual_nodes`. What always holds: no label `kubernetes.io/os`, so that
DaemonSets which select it stay away; a taint, so that the scheduler puts nothing there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kubeslurm import names
from kubeslurm.conditions import rfc3339

Raw = dict[str, Any]

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
MAX_PODS: Final = 100_000
MAX_LABEL: Final = 63


def node_name(namespace: str, cluster: str) -> str:
    """The name of the cluster's virtual node: `slurm-<namespace>-<cluster>`, shortened by a hash where too long."""
    name = f"slurm-{namespace}-{cluster}"
    if len(name) <= MAX_LABEL:
        return name
    return f"{name[: MAX_LABEL - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def node(namespace: str, cluster: str) -> Raw:
    """The Node object, without its status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(namespace, cluster),
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGER,
                names.LABEL_VIRTUAL: "true",
                "type": "virtual-kubelet",
                "node.kubernetes.io/exclude-from-external-load-balancers": "true",
            },
            "annotations": {names.ANNOTATION_CLUSTER: f"{namespace}/{cluster}"},
        },
        "spec": {"taints": [{"key": names.TAINT_VIRTUAL, "value": "true", "effect": "NoSchedule"}]},
    }


def status(
    *,
    ready: bool,
    message: str,
    resources: Mapping[str, int],
    version: str,
    now: datetime,
    endpoint: tuple[str, int] | None = None,
) -> Raw:
    """The Node's status: capacity of the whole Slurm cluster, and Ready while slurmctld answers.

    `endpoint`: address and port of the kubelet endpoint; None where there is none.
    """
    capacity = {"pods": str(MAX_PODS)} | {name: str(amount) for name, amount in sorted(resources.items())}
    return {
        # no host name: API servers would ask their DNS for it
        "addresses": [{"type": "InternalIP", "address": endpoint[0]}] if endpoint else [],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint[1] if endpoint else 0}},
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            {
                "type": "Ready",
                "status": "True" if ready else "False",
                "reason": "SlurmReachable" if ready else "SlurmUnreachable",
                "message": message,
                "lastHeartbeatTime": rfc3339(now),
                "lastTransitionTime": rfc3339(now),
            }
        ],
        "nodeInfo": {
            "architecture": "",
            "bootID": "",
            "containerRuntimeVersion": "slurm://",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": version,
            "machineID": "",
            "operatingSystem": "",
            "osImage": "Slurm",
            "systemUUID": "",
        },
    }


def lease(name: str, uid: str, now: datetime) -> Raw:
    """The node's heartbeat, as a kubelet would keep it."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
