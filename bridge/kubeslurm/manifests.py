"""The Kubernetes objects that a SlurmCluster and its NodeSets consist of, as plain dicts.

Pure builders; the operator adds the owner and applies them. What always holds: slurmctld and slurmrestd run without root
and without a capability, keys reach a pod only as files of mode 0600 that its own user owns, and a slurmd pod has the few
capabilities that Slurm needs to run jobs as their users.
"""

from __future__ import annotations

import base64
import hashlib
import json
from copy import deepcopy
from typing import Any, Final

from kubeslurm import containers, materials, names, users
from kubeslurm import manifest_parts as parts
from kubeslurm.api.nodeset import CONTAINER, NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.api.tenants import NOBODY, SLURM_UID
from kubeslurm.layout import node_shape
from kubeslurm.rendering import CONTROLLER_PORT, RenderedConfig, accounting_service, controller_pod, controller_service

Raw = dict[str, Any]

CONTROLLER: Final = "controller"
RESTD: Final = "restd"
SLURMD: Final = "slurmd"
CONTROLLER_CONTAINER: Final = "slurmctld"
SLURM_KEY: Final = "slurm.key"
JWT_KEY: Final = "jwt_hs256.key"
RESTD_PORT: Final = 6820
SLURMD_PORT: Final = 6818
CONFIG_DIR: Final = "/config"
DIGEST_PATH: Final = f"{CONFIG_DIR}/digest"
USERS_DIR: Final = "/var/lib/extrausers"
USERS_DIGEST: Final = "digest"
"""A file beside the lists of users, by which it is seen that a pod has them."""

CAPABILITIES: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")

_PREPARE_CONTROLLER: Final = """
set -eu
install -m 0600 /keys/slurm.key /keys/jwt_hs256.key /etc/slurm/
for file in slurm.conf gres.conf cgroup.conf prolog.sh epilog.sh; do ln -sfn "/config/$file" "/etc/slurm/$file"; done
: > /etc/slurm/plugstack.conf
mkdir -p -m 0755 /run/slurmctld /run/slurm
"""
_WAIT_FOR_SLURMDBD: Final = """
for _ in {1..20}; do
  timeout 2 bash -c 'exec 3<>"$SLURMDBD"' 2>/dev/null && exit 0
  sleep 0.5
done
echo "slurmdbd does not answer" >&2
[ -s /var/spool/slurmctld/assoc_mgr_state ]
"""
_START_SLURMD: Final = """
set -eu
install -o slurm -g slurm -m 0600 /keys/slurm.key /etc/slurm/slurm.key
: > /etc/slurm/plugstack.conf
mkdir -p /run/slurm /var/spool/slurmd
mkdir -p -m 0711 /var/log/jobs
rm -rf /run/kubeslurm/* # of jobs that ended with this container's last life
chown root /run/slurm
# slurmd waits ten seconds before it tries again: start it when the controller answers
until (exec 3<>"/dev/tcp/$SLURMCTLD_HOST/$SLURMCTLD_PORT") 2>/dev/null; do sleep 0.5; done
exec slurmd -D -b -N "$SLURM_NODE_NAME" --conf-server "$SLURMCTLD_HOST:$SLURMCTLD_PORT"
"""


def keys_name(cluster: str) -> str:
    """The Secret with the cluster's keys."""
    return f"{cluster}-keys"


def config_name(cluster: str) -> str:
    """The ConfigMap with the rendered files."""
    return f"{cluster}-config"


def users_name(cluster: str) -> str:
    """The ConfigMap with the tenants' users."""
    return f"{cluster}-users"


def restd_name(cluster: str) -> str:
    """Deployment and Service of slurmrestd."""
    return f"{cluster}-restd"


def controller_pod_name(cluster: str) -> str:
    """slurmctld's pod."""
    return controller_pod(cluster)


def users_digest(cluster: SlurmCluster) -> str:
    """Changes when a tenant's user does."""
    return users.digest(cluster.spec.tenants)


def keys_secret(cluster: SlurmCluster, slurm_key: bytes, jwt_key: bytes) -> Raw:
    """The keys, made once."""
    data = {SLURM_KEY: slurm_key, JWT_KEY: jwt_key}
    encoded = {name: base64.b64encode(key).decode() for name, key in data.items()}
    name = keys_name(cluster.metadata.name)
    return parts.build(cluster, "v1", "Secret", name, CONTROLLER, type="Opaque", data=encoded)


def config_map(cluster: SlurmCluster, rendered: RenderedConfig) -> Raw:
    """The rendered files, and their digest beside them, by which it is seen that a pod has them."""
    body = parts.build(cluster, "v1", "ConfigMap", config_name(cluster.metadata.name), CONTROLLER)
    body["data"] = {**rendered.files, "digest": rendered.digest + "\n"}
    body["metadata"]["annotations"] = {names.ANNOTATION_CONFIG_DIGEST: rendered.digest}
    return body


def users_map(cluster: SlurmCluster) -> Raw:
    """The tenants' users."""
    body = parts.build(cluster, "v1", "ConfigMap", users_name(cluster.metadata.name), CONTROLLER)
    body["data"] = {**users.files(cluster.spec.tenants), USERS_DIGEST: users_digest(cluster) + "\n"}
    return body


def controller_objects(cluster: SlurmCluster) -> list[Raw]:
    """slurmctld and slurmrestd with their Services."""
    return [
        parts.service(cluster, controller_service(cluster.metadata.name), CONTROLLER, CONTROLLER_PORT, early=True),
        parts.service(cluster, restd_name(cluster.metadata.name), RESTD, RESTD_PORT, early=False),
        _stateful_set(cluster),
        _deployment(cluster),
    ]


def _stateful_set(cluster: SlurmCluster) -> Raw:
    managed = cluster.spec.controller.managed
    name = controller_service(cluster.metadata.name)
    claim: Raw = {
        "metadata": {"name": "state"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": managed.storage}}},
    }
    if managed.storage_class_name is not None:
        claim["spec"]["storageClassName"] = managed.storage_class_name
    spec = {
        "serviceName": name,
        "replicas": 1,
        "selector": {"matchLabels": parts.labels(cluster, CONTROLLER)},
        "template": parts.pod_template(cluster, CONTROLLER, _controller_pod_spec(cluster)),
        "volumeClaimTemplates": [claim],
    }
    return parts.build(cluster, "apps/v1", "StatefulSet", name, CONTROLLER, spec=spec)


def _controller_pod_spec(cluster: SlurmCluster) -> Raw:
    image = cluster.spec.controller.managed.image
    shared = [{"name": "etc", "mountPath": "/etc/slurm"}, {"name": "run", "mountPath": "/run"}]
    config = {"name": "config", "mountPath": CONFIG_DIR}
    return {
        "terminationGracePeriodSeconds": 10,
        "securityContext": parts.as_user(SLURM_UID),
        "initContainers": [
            {
                "name": "prepare",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "-c", _with_plugins(cluster, _PREPARE_CONTROLLER)],
                "volumeMounts": [*shared, {"name": "keys", "mountPath": "/keys"}],
                "securityContext": parts.LOCKED_DOWN,
            },
            *_wait_for_accounting(cluster),
        ],
        "containers": [
            {
                "name": CONTROLLER_CONTAINER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["slurmctld", "-D"],
                "ports": [{"name": "slurmctld", "containerPort": CONTROLLER_PORT}],
                "readinessProbe": parts.tcp_probe(CONTROLLER_PORT),
                # slurmctld can hang with its port open (24.11 does when it refuses a cancel): ask what takes its locks
                "livenessProbe": {
                    "exec": {"command": ["timeout", "10", "sinfo", "-h", "-o", "%D"]},
                    "initialDelaySeconds": 30,
                    "periodSeconds": 30,
                    "timeoutSeconds": 12,
                    "failureThreshold": 3,
                },
                "volumeMounts": [
                    *shared,
                    config,
                    {"name": "state", "mountPath": "/var/spool/slurmctld"},
                    {"name": "users", "mountPath": USERS_DIR},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
                "securityContext": parts.LOCKED_DOWN,
            }
        ],
        "volumes": _controller_volumes(cluster.metadata.name),
    }


def _wait_for_accounting(cluster: SlurmCluster) -> list[Raw]:
    """slurmctld ends at its first start where it must ask slurmdbd and can't; later it goes by what it remembers.

    What it is told to enforce stands here so that a change starts it anew: it reads that only when it starts.
    """
    if cluster.spec.accounting is None:
        return []
    environment = {
        "SLURMDBD": f"/dev/tcp/{accounting_service(cluster.metadata.name)}/6819",
        "ENFORCED": ",".join(cluster.spec.accounting.enforce),
    }
    return [
        {
            "name": "wait-for-slurmdbd",
            "image": cluster.spec.controller.managed.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/bash", "-c", _WAIT_FOR_SLURMDBD],
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "volumeMounts": [{"name": "state", "mountPath": "/var/spool/slurmctld"}],
            "securityContext": parts.LOCKED_DOWN,
        }
    ]


def _controller_volumes(cluster: str) -> list[Raw]:
    return [
        {"name": "etc", "emptyDir": {"medium": "Memory"}},
        {"name": "run", "emptyDir": {"medium": "Memory"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "config", "configMap": {"name": config_name(cluster), "defaultMode": 0o555}},
        {"name": "users", "configMap": {"name": users_name(cluster)}},
        {"name": "keys", "secret": {"secretName": keys_name(cluster), "defaultMode": 0o440}},
    ]


def _served(cluster: SlurmCluster) -> str:
    """slurmrestd does not start with slurmdbd's part where slurm.conf names no slurmdbd."""
    return "slurmctld,slurmdbd" if cluster.spec.accounting else "slurmctld"


def _deployment(cluster: SlurmCluster) -> Raw:
    name = cluster.metadata.name
    pod = {
        "terminationGracePeriodSeconds": 5,
        "securityContext": parts.as_user(NOBODY),
        "containers": [
            {
                "name": "slurmrestd",
                "image": cluster.spec.controller.managed.image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["slurmrestd", "-s", _served(cluster), "-a", "rest_auth/jwt", f"0.0.0.0:{RESTD_PORT}"],
                "env": [
                    # without it slurmrestd would speak to slurmctld with a key that it does not have
                    {"name": "SLURM_JWT", "value": "daemon"},
                    # a namespace of its own takes a capability, and the pod is one already
                    {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_sysv,disable_unshare_files"},
                ],
                "ports": [{"name": "slurmrestd", "containerPort": RESTD_PORT}],
                "readinessProbe": parts.tcp_probe(RESTD_PORT),
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/slurm"},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
                "securityContext": parts.LOCKED_DOWN,
            }
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": config_name(name)}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": parts.labels(cluster, RESTD)},
        "template": parts.pod_template(cluster, RESTD, pod),
    }
    return parts.build(cluster, "apps/v1", "Deployment", restd_name(name), RESTD, spec=spec)


def slurmd_pod(cluster: SlurmCluster, nodeset: NodeSet, ordinal: int, *, owner: Raw) -> Raw:
    """The pod of one Slurm node: the NodeSet's template, and in it what makes it a slurmd."""
    name = node_shape(nodeset).node_name(ordinal)
    template = nodeset.spec.template
    metadata = deepcopy(template.metadata)
    labels = {**(metadata.get("labels") or {}), **parts.labels(cluster, SLURMD)}
    labels |= {names.LABEL_NODESET: nodeset.metadata.name, names.LABEL_ORDINAL: str(ordinal)}
    annotations = {**(metadata.get("annotations") or {}), names.ANNOTATION_TEMPLATE_DIGEST: template_digest(nodeset)}
    annotations[names.ANNOTATION_USERS_DIGEST] = users_digest(cluster)
    spec = deepcopy(template.spec)
    spec["containers"] = [_slurmd_container(cluster, name, spec["containers"][0])]
    spec["volumes"] = [*(spec.get("volumes") or []), *_slurmd_volumes(cluster)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": nodeset.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": _slurmd_defaults(nodeset) | spec | {"hostname": name, "restartPolicy": "Always"},
    }


def template_digest(nodeset: NodeSet) -> str:
    """Changes when a new pod would differ from one made before."""
    template = nodeset.spec.template
    text = json.dumps([template.metadata, template.spec], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _slurmd_defaults(nodeset: NodeSet) -> Raw:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {names.LABEL_NODESET: nodeset.metadata.name}},
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "topologySpreadConstraints": [spread],
    }


def _slurmd_container(cluster: SlurmCluster, name: str, container: Raw) -> Raw:
    environment = [
        {"name": "SLURM_NODE_NAME", "value": name},
        {"name": "SLURMCTLD_HOST", "value": controller_service(cluster.metadata.name)},
        {"name": "SLURMCTLD_PORT", "value": str(CONTROLLER_PORT)},
    ]
    mounts = [
        {"name": "kubeslurm-keys", "mountPath": "/keys", "readOnly": True},
        {"name": "kubeslurm-users", "mountPath": USERS_DIR, "readOnly": True},
        {"name": "kubeslurm-materials", "mountPath": materials.ROOT},
    ]
    return {
        "imagePullPolicy": "IfNotPresent",
        **container,
        "name": CONTAINER,
        "command": ["/bin/bash", "-c", _with_plugins(cluster, _START_SLURMD)],
        "env": [*(container.get("env") or []), *environment],
        "volumeMounts": [*(container.get("volumeMounts") or []), *mounts],
        "ports": [*(container.get("ports") or []), {"name": "slurmd", "containerPort": SLURMD_PORT}],
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": list(CAPABILITIES)},
            "seccompProfile": {"type": _seccomp(cluster)},
        },
    }


def _with_plugins(cluster: SlurmCluster, script: str) -> str:
    """slurmctld hands its plugstack.conf to all: empty, but for pyxis."""
    line = "echo 'required spank_pyxis.so'" if cluster.spec.jobs.container_runtime == containers.PYXIS else ":"
    return script.replace(": > /etc/slurm/plugstack.conf", f"{line} > /etc/slurm/plugstack.conf")


def _seccomp(cluster: SlurmCluster) -> str:
    """Container runtimes make user namespaces, which the default profile forbids to whom has no privilege."""
    return "RuntimeDefault" if cluster.spec.jobs.container_runtime == "none" else "Unconfined"


def _slurmd_volumes(cluster: SlurmCluster) -> list[Raw]:
    name = cluster.metadata.name
    key = {"secretName": keys_name(name), "items": [{"key": SLURM_KEY, "path": SLURM_KEY}], "defaultMode": 0o400}
    return [
        {"name": "kubeslurm-keys", "secret": key},
        {"name": "kubeslurm-users", "configMap": {"name": users_name(name)}},
        {"name": "kubeslurm-materials", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
    ]
