"""Scenario 13 end to end: a Secret's variable and file reach every rank, and stand nowhere else."""

from __future__ import annotations

import base64

import pytest

from slurmrest.hostlists import expand
from tests.demo.steps import SYSTEM
from tests.e2e.product import CONTROLLER, POOL, TENANT, Product, Raw, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]

BIG = 150 * 1024
VALUE = "pA55w0rd-of-the-test"
REFERENCE = {"secretKeyRef": {"name": "database", "key": "password"}}
LOOK = """
[ "$PASSWORD" = "$(cat /tmp/db/password)" ] && [ "$FROM_MAP" = here ] && printf %s "$PASSWORD" | sha256sum
stat -c '%a' /tmp/db/password
stat -c '%s' /tmp/db/big
sleep 4
"""


def secret(name: str = "database") -> Raw:
    """The tenant's Secret."""
    meta = {"name": name, "namespace": TENANT}
    big = base64.b64encode(bytes(BIG)).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "data": {"big": big},
        "stringData": {"password": VALUE},
    }


def config_map() -> Raw:
    """The tenant's ConfigMap."""
    meta = {"name": "settings", "namespace": TENANT}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"MAP": "here"}}


def job(name: str) -> Raw:
    """Two replicas that use both."""
    raw = training_job(name, workers=1, command=("bash", "-c", LOOK))
    for role in raw["spec"]["pytorchReplicaSpecs"].values():
        pod = role["template"]["spec"]
        pod["volumes"] = [{"name": "db", "secret": {"secretName": "database"}}]
        pod["containers"][0] |= {
            "env": [{"name": "PASSWORD", "valueFrom": REFERENCE}],
            "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "FROM_"}],
            "volumeMounts": [{"name": "db", "mountPath": "/tmp/db"}],
        }
    return raw


def test_a_secret_reaches_all_ranks_and_stands_nowhere_else(product: Product) -> None:
    """The job waits for the Secret; then script, job record, objects, events and the operator's log are searched for it."""
    product.submit(job("secretive"))
    product.wait("an event", lambda: _missing(product, "secretive"), 30)
    assert not [one for one in product.slurm_jobs() if one["JobName"] == "secretive"]
    product.cluster.apply([secret(), config_map()])
    running = product.wait_condition("secretive", "Running")
    job_id, hosts = product.slurm_job(running)["JobId"], product.slurm_job(running)["NodeList"]
    told = product.in_controller(
        *("sh", "-c", f"scontrol show job {job_id}; scontrol write batch_script {job_id} -; squeue -o %all")
    )
    done = product.wait_condition("secretive", "Succeeded")
    assert hosts
    said = _outputs(product, done)
    assert len(said) == 2
    assert all(
        len(lines) == 3 and len(lines[0].split()[0]) == 64 and lines[1:] == ["600", str(BIG)] for lines in said
    ), said
    told += product.cluster.kubectl("get", "-n", TENANT, "pytorchjobs,pods,events", "-o", "yaml").stdout
    told += product.cluster.kubectl("logs", "-n", SYSTEM, "-l", "app.kubernetes.io/name=kubeslurm", "--tail=-1").stdout
    told += product.cluster.kubectl("logs", "-n", POOL, CONTROLLER, "-c", "slurmctld").stdout
    assert VALUE not in told
    assert "secretive" in told
    for node in _hosts(product, done):
        _wait_bare(product, node)
    product.remove("secretive")
    product.cluster.kubectl("delete", "-n", TENANT, "secret/database", "configmap/settings")


def _wait_bare(product: Product, node: str) -> None:
    product.wait("no materials", lambda: not product.on_node(node, "ls /run/kubeslurm").strip(), 15)


def _missing(product: Product, name: str) -> bool:
    return any(
        "MaterialsMissing" in event and "Secret database" in event for event in product.events("PyTorchJob", name)
    )


def _hosts(product: Product, raw: Raw) -> list[str]:
    return list(expand(product.slurm_job(raw)["NodeList"]))


def _outputs(product: Product, raw: Raw) -> list[list[str]]:
    """Each rank's lines."""
    job_id = product.slurm_job(raw)["JobId"]
    return [
        product.on_node(node, f"cat /var/log/jobs/{job_id}/[0-9]*.out").splitlines() for node in _hosts(product, raw)
    ]


def test_an_operator_killed_meanwhile_brings_it_still(product: Product) -> None:
    """Delivery is repeatable, and each start of the operator looks at running jobs again."""
    product.cluster.apply([secret(), config_map()])
    product.submit(job("interrupted"))
    product.wait("submission", lambda: [one for one in product.slurm_jobs() if one["JobName"] == "interrupted"], 30)
    product.kill_operator()
    done = product.wait_condition("interrupted", "Succeeded", 90)
    assert [lines[1] for lines in _outputs(product, done)] == ["600", "600"]
    product.remove("interrupted")
    product.cluster.kubectl("delete", "-n", TENANT, "secret/database", "configmap/settings")
