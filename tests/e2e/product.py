"""The product on the test cluster, for the end-to-end tests: the chart's operator, one pool, jobs, and waits with an end.

`Product` wraps a `Cluster`; the session's fixture `product` has the operator installed and the example pool applied with
EIGHT nodes. Tests leave the pool as they found it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurmrest.hostlists import expand
from tests.cluster import Cluster
from tests.demo.screen import Screen
from tests.demo.steps import EXAMPLES, SYSTEM, Demo, documents

Raw = dict[str, Any]

POOL = "slurm"
TENANT = "research"
CLUSTER = "ai-cluster"
NODESET = "gpu-node"
EIGHT = 8
CONTROLLER = f"{CLUSTER}-controller-0"
JOB_LOGS = "/var/log/jobs"


class Product:
    """The operator and its objects."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.demo = Demo(cluster, Screen())

    # -- set-up

    def install(self) -> None:
        """Operator and example pool, with eight nodes registered."""
        self.demo.install(lambda _: None)
        self.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": POOL}}])
        self.cluster.apply([self.program()])
        self.cluster.apply([*self.pool(EIGHT)])
        self.wait_registered(EIGHT)

    def program(self) -> Raw:
        """The ConfigMap with train.py."""
        data = {"train.py": (EXAMPLES / "train.py").read_text()}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "program", "namespace": POOL},
            "data": data,
        }

    def pool(self, replicas: int) -> list[Raw]:
        """The objects of examples/pool.yaml, with so many nodes."""
        found = list(documents(EXAMPLES / "pool.yaml"))
        for raw in found:
            if raw["kind"] == "NodeSet":
                raw["spec"]["replicas"] = replicas
        return found

    # -- objects

    def get(self, kind: str, name: str, namespace: str = TENANT) -> Raw | None:
        """The object, or None."""
        found = self.cluster.kubectl("get", "-n", namespace, kind, name, "-o", "json", "--ignore-not-found")
        return dict(json.loads(found.stdout)) if found.stdout.strip() else None

    def job(self, name: str) -> Raw:
        """A PyTorchJob of the tenant's; empty when it is gone."""
        return self.get("pytorchjob", name) or {}

    def submit(self, raw: Raw) -> Raw:
        """Apply a job and return it as the server has it."""
        self.cluster.apply([raw])
        return self.job(raw["metadata"]["name"])

    def remove(self, name: str) -> None:
        """Delete a job and wait until it is gone."""
        self.cluster.kubectl(
            "delete", "-n", TENANT, "pytorchjob", name, "--ignore-not-found", "--timeout=90s", timeout=100
        )

    def tidy(self) -> None:
        """No job of the tenant's, as many nodes as ever: what a test that failed may have left is put right."""
        self.cluster.kubectl("delete", "-n", TENANT, "pytorchjobs", "--all", "--timeout=90s", timeout=100)
        if (self.get("nodeset", NODESET, POOL) or {})["spec"]["replicas"] != EIGHT:
            self.scale(EIGHT)
            self.wait_registered(EIGHT)

    def events(self, kind: str, name: str, namespace: str = TENANT) -> list[str]:
        """`reason: message` of the object's events."""
        found = self.cluster.kubectl_json("get", "-n", namespace, "events")["items"]
        about = [one for one in found if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, name)]
        return [f"{one['reason']}: {one['message']}" for one in about]

    def mirror_pods(self, job: str) -> list[Raw]:
        """The job's mirror pods."""
        label = f"training.kubeflow.org/job-name={job}"
        items: list[Raw] = self.cluster.kubectl_json("get", "-n", TENANT, "pods", "-l", label)["items"]
        return items

    # -- Slurm

    def in_controller(self, *command: str, check: bool = True) -> str:
        """A command in slurmctld's pod, as user slurm."""
        return self.cluster.kubectl(
            "exec", "-n", POOL, CONTROLLER, "-c", "slurmctld", "--", *command, check=check
        ).stdout

    def on_node(self, node: str, command: str) -> str:
        """A shell command in a pod of the pool, as root."""
        return self.cluster.kubectl("exec", "-n", POOL, node, "-c", "slurmd", "--", "bash", "-c", command).stdout

    def slurm_jobs(self) -> list[Mapping[str, str]]:
        """All jobs that slurmctld remembers, as `scontrol -o show job` has them."""
        text = self.in_controller("scontrol", "-o", "show", "job")
        return [_fields(line) for line in text.splitlines() if line.startswith("JobId=")]

    def slurm_job(self, raw: Raw) -> Mapping[str, str]:
        """The Slurm job of a PyTorchJob, by its key; exactly one there must be."""
        key = f"kubeslurm:{raw['metadata']['uid']}/"
        found = [one for one in self.slurm_jobs() if one.get("Comment", "").startswith(key)]
        assert len(found) == 1, f"{len(found)} Slurm jobs of {raw['metadata']['name']}"
        return found[0]

    def last_host(self, raw: Raw) -> str:
        """The last of the nodes that a running job has: not the one of its batch script."""
        return expand(self.slurm_job(raw)["NodeList"])[-1]

    def node_states(self) -> dict[str, str]:
        """State by node."""
        lines = self.in_controller("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return dict(line.split() for line in lines)

    # -- waits

    def wait(self, what: str, check: Callable[[], Any], seconds: float = 60, every: float = 0.3) -> Any:
        """Until `check` says something true; fails with what it said last."""
        end = time.monotonic() + seconds
        while True:
            said = check()
            if said:
                return said
            assert time.monotonic() < end, f"not within {seconds:g} s: {what}; last: {said!r}"
            time.sleep(every)

    def wait_condition(self, name: str, condition: str, seconds: float = 60) -> Raw:
        """Until the job's newest condition is this one."""
        return dict(self.wait(f"{name} {condition}", lambda: self._with_condition(name, condition), seconds))

    def _with_condition(self, name: str, condition: str) -> Raw | None:
        raw = self.job(name)
        if newest(raw) in ("Failed", "Succeeded") and newest(raw) != condition:
            raise AssertionError(f"{name} is {newest(raw)}: {message(raw)}")
        return raw if newest(raw) == condition else None

    def wait_registered(self, count: int, seconds: float = 120) -> None:
        """Until the NodeSet is Ready with so many nodes, and has no more pods than that."""

        def there() -> bool:
            status = (self.get("nodeset", NODESET, POOL) or {}).get("status") or {}
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
            return bool(ready and status.get("readyReplicas") == count == status.get("replicas"))

        self.wait(f"{count} nodes registered", there, seconds, every=0.5)

    def scale(self, replicas: int) -> None:
        """kubectl scale."""
        self.cluster.kubectl("scale", "-n", POOL, f"nodeset/{NODESET}", f"--replicas={replicas}")

    def kill_operator(self) -> None:
        """kill -9 of the operator's process, in its container; Kubernetes starts it again."""
        self.cluster.kubectl(
            "delete", "-n", SYSTEM, "pod", "-l", "app.kubernetes.io/name=kubeslurm", "--grace-period=0", "--force"
        )


def newest(raw: Raw) -> str:
    """The last condition's type, as `kubectl get` shows it."""
    conditions = (raw.get("status") or {}).get("conditions") or [{"type": ""}]
    return str(conditions[-1]["type"])


def message(raw: Raw) -> str:
    """The last condition's message."""
    conditions = (raw.get("status") or {}).get("conditions") or [{}]
    return str(conditions[-1].get("message", ""))


def training_job(
    name: str,
    *,
    workers: int = 0,
    hold: float = 0,
    policy: str = "Never",
    namespace: str = TENANT,
    command: Sequence[str] = ("python3", "train.py"),
    gpus: int = 8,
) -> Raw:
    """A PyTorchJob of 1 Master and so many Workers; `hold`: how long each rank stays after it has met the others."""
    container = {
        "name": "pytorch",
        "image": "registry.example/train:1",
        "workingDir": "/workspace",
        "command": list(command),
        "env": [{"name": "HOLD_SECONDS", "value": str(hold)}],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    template = {"spec": {"containers": [container]}}
    roles: Raw = {"Master": {"replicas": 1, "restartPolicy": policy, "template": template}}
    if workers:
        roles["Worker"] = {"replicas": workers, "restartPolicy": policy, "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"pytorchReplicaSpecs": roles},
    }


def _fields(line: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
