"""PersistentVolumes for a cluster that has no dynamic provisioner: folders on the workers, made beforehand.

The default StorageClass `standard` binds a claim when its first pod is scheduled (WaitForFirstConsumer), so any StatefulSet
with a claim template works. A volume given back stays Released until `renew` empties it and offers it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

PER_WORKER = 16
FOLDER = "/var/local/kubeslurm"


def volume(node: str, index: int) -> dict[str, Any]:
    """The PersistentVolume number `index` of a node: 20 GiB in name, as much as the disk has in truth."""
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{node}-{index}", "labels": {"kubeslurm.test/node": node}},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "standard",
            "local": {"path": f"{FOLDER}/{index}"},  # unlike hostPath, the kubelet gives it to the pod's fsGroup
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
        },
    }


def folders() -> list[str]:
    """The folders that a worker must have before its volumes are used."""
    return [f"{FOLDER}/{index}" for index in range(PER_WORKER)]


def volumes(workers: Sequence[str]) -> list[dict[str, Any]]:
    """All volumes of a new cluster."""
    return [volume(node, index) for node in workers for index in range(PER_WORKER)]


def released(items: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """(node, index) of the volumes of ours that were given back."""
    ours = [pv for pv in items if "kubeslurm.test/node" in pv["metadata"].get("labels", {})]
    names = [
        (pv["metadata"]["labels"]["kubeslurm.test/node"], pv) for pv in ours if pv["status"]["phase"] == "Released"
    ]
    return [(node, int(pv["metadata"]["name"].removeprefix(f"{node}-"))) for node, pv in names]


def renew(
    given_back: Sequence[tuple[str, int]],
    delete: Callable[[Sequence[str]], object],
    empty: Callable[[str, str], object],
    apply: Callable[[list[dict[str, Any]]], object],
) -> None:
    """Offer the volumes given back again: delete(names), empty(node, folder) of each, apply(manifests)."""
    if not given_back:
        return
    delete([f"{node}-{index}" for node, index in given_back])
    for node, index in given_back:
        empty(node, f"{FOLDER}/{index}")
    apply([volume(node, index) for node, index in given_back])
