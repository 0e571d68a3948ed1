"""The Kubernetes objects of slurmdbd, as plain dicts: Service, ConfigMap and Deployment.

Pure builders; the operator's pool loop adds the owner and applies them. What always holds: slurmdbd runs without root and
without a capability on a read-only root; the database's password goes from the admin's Secret into a file of mode 0600 in
memory, and through nothing else; a password that could be read as another line of slurmdbd.conf is refused.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from kubeslurm import manifest_parts as parts
from kubeslurm import manifests, names
from kubeslurm.api.accounting import Accounting
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.api.tenants import SLURM_UID
from kubeslurm.rendering import accounting_service

Raw = dict[str, Any]

DBD: Final = "dbd"
DBD_PORT: Final = 6819
_KEY: Final = "slurmdbd.conf"
_PREPARE: Final = """
set -eu
umask 077
install -m 0600 /keys/slurm.key /keys/jwt_hs256.key /etc/slurm/
password=$(cat /password/password)
case "$password" in
  ''|*[!A-Za-z0-9._@%+=:,/~^*?-]*)
    echo "the database's password is empty or has a character other than A-Z a-z 0-9 . _ @ % + = : , / ~ ^ * ? -" >&2
    exit 1;;
esac
{ cat /config/slurmdbd.conf; printf 'StoragePass=%s\\n' "$password"; } > /etc/slurm/slurmdbd.conf
mkdir -p -m 0755 /run/slurmdbd
"""


def objects(cluster: SlurmCluster) -> list[Raw]:
    """All of them; none without accounting."""
    accounting = cluster.spec.accounting
    if accounting is None:
        return []
    name, text = accounting_service(cluster.metadata.name), conf(cluster.metadata.name, accounting)
    return [
        parts.service(cluster, name, DBD, DBD_PORT, early=False),
        parts.build(cluster, "v1", "ConfigMap", f"{name}-config", DBD, data={_KEY: text}),
        _deployment(cluster, accounting, name, text),
    ]


def names_of(cluster: str) -> list[tuple[str, str, str]]:
    """apiVersion, kind and name of all of them."""
    name = accounting_service(cluster)
    return [("apps/v1", "Deployment", name), ("v1", "ConfigMap", f"{name}-config"), ("v1", "Service", name)]


def conf(cluster: str, accounting: Accounting) -> str:
    """slurmdbd.conf without the password."""
    database = accounting.database
    lines = {
        "DbdHost": accounting_service(cluster),
        "DbdPort": str(DBD_PORT),
        "SlurmUser": "slurm",
        "AuthType": "auth/slurm",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": "jwt_key=/etc/slurm/jwt_hs256.key",
        "PidFile": "/run/slurmdbd/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": database.host,
        "StoragePort": str(database.port),
        "StorageUser": database.user,
        "StorageLoc": database.name,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _deployment(cluster: SlurmCluster, accounting: Accounting, name: str, text: str) -> Raw:
    template = parts.pod_template(cluster, DBD, _pod(cluster, accounting, name))
    template["metadata"]["annotations"] = {
        names.ANNOTATION_CONFIG_DIGEST: hashlib.sha256(text.encode()).hexdigest()[:16]
    }
    spec = {
        "replicas": 1,
        # two slurmdbd on one database is a matter of its own (DbdBackupHost)
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": parts.labels(cluster, DBD)},
        "template": template,
    }
    return parts.build(cluster, "apps/v1", "Deployment", name, DBD, spec=spec)


def _pod(cluster: SlurmCluster, accounting: Accounting, name: str) -> Raw:
    image = accounting.image or cluster.spec.controller.managed.image
    shared = [{"name": "etc", "mountPath": "/etc/slurm"}, {"name": "run", "mountPath": "/run"}]
    given = [{"name": one, "mountPath": f"/{one}"} for one in ("keys", "config", "password")]
    common = {"image": image, "imagePullPolicy": "IfNotPresent", "securityContext": parts.LOCKED_DOWN}
    start: Raw = {
        "name": "slurmdbd",
        "command": ["slurmdbd", "-D"],
        "ports": [{"name": "slurmdbd", "containerPort": DBD_PORT}],
        "readinessProbe": parts.tcp_probe(DBD_PORT),
        "volumeMounts": [
            *shared,
            {"name": "users", "mountPath": manifests.USERS_DIR},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    prepare = {"name": "prepare", "command": ["/bin/sh", "-c", _PREPARE], "volumeMounts": [*shared, *given]}
    return {
        "hostname": name,  # slurmdbd starts only on the host that DbdHost names
        "terminationGracePeriodSeconds": 10,
        "securityContext": parts.as_user(SLURM_UID),
        "initContainers": [common | prepare],
        "containers": [common | start],
        "volumes": _volumes(cluster.metadata.name, accounting, name),
    }


def _volumes(cluster: str, accounting: Accounting, name: str) -> list[Raw]:
    secret = accounting.database.password_secret
    password = {"secretName": secret.name, "items": [{"key": secret.key, "path": "password"}], "defaultMode": 0o440}
    return [
        {"name": "etc", "emptyDir": {"medium": "Memory"}},
        {"name": "run", "emptyDir": {"medium": "Memory"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "config", "configMap": {"name": f"{name}-config"}},
        {"name": "users", "configMap": {"name": manifests.users_name(cluster)}},
        {"name": "keys", "secret": {"secretName": manifests.keys_name(cluster), "defaultMode": 0o440}},
        {"name": "password", "secret": password},
    ]
