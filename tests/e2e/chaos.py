"""Many jobs of many policies while everything that can break is broken again and again; what became of each is counted.

Used by test_chaos. A job's `Kind` says how it must end and how many attempts that takes; the faults are: the operator
killed, slurmrestd and slurmctld killed, some of slurmrestd's answers wrong (files/liar.py behind its Service).
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster.shell import CommandError
from tests.demo.steps import SYSTEM
from tests.e2e.product import CLUSTER, CONTROLLER, POOL, TENANT, Product, newest, training_job

Raw = dict[str, Any]

LIAR: Final = "liar"
DIRECT: Final = "restd-direct"
LABEL: Final = "chaos"
_ENDS: Final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED")
_ATTEMPT: Final = (
    "until c=$(scontrol -o show job $SLURM_JOB_ID | grep -o 'Comment=[^ ]*'); do sleep 1; done; n=${c##*/}; "
)
"""Shell that puts the attempt into `n`, also while slurmctld is away."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A job of some policy. `attempts`: how many Slurm jobs it may make, least and most."""

    name: str
    program: str
    end: str
    attempts: tuple[int, int] = (1, 1)
    policy: str = "Never"
    run_policy: dict[str, Any] = field(default_factory=dict)


KINDS: Final = (
    Kind("ends", "sleep 5", "Succeeded"),
    Kind("fails", "sleep 3; exit 3", "Failed"),
    Kind("second", _ATTEMPT + "[ $n -ge 2 ]", "Succeeded", (2, 2), "OnFailure"),
    Kind("limit", "sleep 2; exit 1", "Failed", (2, 2), "OnFailure", {"backoffLimit": 1}),
    Kind("low", "exit 3", "Failed", (1, 1), "ExitCode"),
    Kind("high", _ATTEMPT + "[ $n -ge 2 ] || exit 130", "Succeeded", (2, 2), "ExitCode", {"backoffLimit": 1}),
    Kind("refused", "true", "Failed", (0, 0), "Never", {"backoffLimit": 0}),
    Kind("deleted", "sleep 600", "", (0, 1)),
)


@dataclass
class Outcome:
    """What was seen of one job."""

    kind: Kind
    name: str
    uid: str = ""
    end: str = ""
    keys: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def right(self) -> bool:
        """Did it end as its policy says, with the attempts that it says?"""
        least, most = self.kind.attempts
        return self.end == self.kind.end and least <= len(self.keys) <= most and not self.doubled

    @property
    def doubled(self) -> bool:
        """More than one Slurm job of one attempt."""
        return any(len(jobs) > 1 for jobs in self.keys.values())


def objects(count: int) -> list[tuple[Kind, Raw]]:
    """So many jobs, of all kinds in turn."""
    return [(kind, _object(kind, index)) for index in range(count) for kind in [KINDS[index % len(KINDS)]]]


def _object(kind: Kind, index: int) -> Raw:
    raw = training_job(f"chaos-{kind.name}-{index}", policy=kind.policy, command=("sh", "-c", kind.program), gpus=1)
    raw["metadata"] |= {"labels": {LABEL: "true"}, "annotations": {"slurm.bridge/launcher": "rank"}}
    raw["spec"]["runPolicy"] = dict(kind.run_policy)
    container = raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 1, "cpu": "1", "memory": "256Mi"}}
    if kind.name == "refused":
        container["stdin"] = True
    return raw


class Chaos:
    """A run."""

    def __init__(self, product: Product, seed: int) -> None:
        self.product = product
        self.random = random.Random(seed)  # noqa: S311 - a schedule of faults
        self.faults: Counter[str] = Counter()
        self.outcomes: dict[str, Outcome] = {}
        self._over = threading.Event()

    def run(self, count: int, seconds: float) -> None:
        """Apply the jobs, break things for so long, wait until all is quiet."""
        made = objects(count)
        self.outcomes = {raw["metadata"]["name"]: Outcome(kind, raw["metadata"]["name"]) for kind, raw in made}
        with self._lies():
            threads = [threading.Thread(target=work) for work in (self._kill_operator, self._kill_slurm)]
            for thread in threads:
                thread.start()
            try:
                self.product.cluster.apply([raw for _, raw in made])
                self._watch(seconds)
            finally:
                self._over.set()
                for thread in threads:
                    thread.join()
        self._settle()

    # -- looking

    def _watch(self, seconds: float) -> None:
        """Note what is there; the jobs that are to be deleted are, one after the other."""
        doomed = [one.name for one in self.outcomes.values() if one.kind.name == "deleted"]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._note()
            if doomed and self.random.random() < 0.4:
                self._quietly("delete", "-n", TENANT, "pytorchjob", doomed.pop(), "--wait=false")
            time.sleep(2)
        for name in doomed:
            self.product.cluster.kubectl("delete", "-n", TENANT, "pytorchjob", name, "--wait=false")

    def _note(self) -> None:
        """The objects' states, and the Slurm jobs of each of their attempts."""
        try:
            found = self.product.cluster.kubectl_json("get", "-n", TENANT, "pytorchjobs", "-l", LABEL)["items"]
            jobs = self.product.slurm_jobs()
        except CommandError:
            return  # slurmctld is down just now
        for raw in found:
            one = self.outcomes[raw["metadata"]["name"]]
            one.uid, one.end = raw["metadata"]["uid"], newest(raw)
        for gone in self.outcomes.keys() - {raw["metadata"]["name"] for raw in found}:
            self.outcomes[gone].end = ""
        uids = {one.uid: one for one in self.outcomes.values()}
        for job in jobs:
            uid, _, attempt = job.get("Comment", "").removeprefix("kubeslurm:").partition("/")
            if uid in uids:
                uids[uid].keys[attempt].add(job["JobId"])

    def _settle(self) -> None:
        """Nothing is broken any more: all jobs come to their end."""

        def settled() -> bool:
            self._note()
            return all(one.end == one.kind.end for one in self.outcomes.values())

        end = time.monotonic() + 240
        while not settled() and time.monotonic() < end:
            time.sleep(2)

    def orphans(self) -> list[str]:
        """Slurm jobs that have not ended, of objects that have, or that are gone."""
        over = {one.uid for one in self.outcomes.values() if one.end in ("Succeeded", "Failed", "")}
        jobs = [job for job in self.product.slurm_jobs() if job["JobState"] not in _ENDS]
        return [job["JobId"] for job in jobs if _uid(job) in over]

    def table(self) -> str:
        """Kinds against outcomes."""
        lines = [f"faults: {', '.join(f'{count} x {what}' for what, count in sorted(self.faults.items()))}"]
        lines.append(f"{'kind':10} {'jobs':>5} {'right':>6} {'lost':>5} {'doubled':>8}  ends and attempts")
        for kind in KINDS:
            those = [one for one in self.outcomes.values() if one.kind is kind]
            ends = Counter(f"{one.end or 'deleted'}/{len(one.keys)}" for one in those)
            seen = ", ".join(f"{end} x{count}" for end, count in sorted(ends.items()))
            lost = sum(one.end != kind.end for one in those)
            doubled = sum(one.doubled for one in those)
            right = sum(one.right for one in those)
            lines.append(f"{kind.name:10} {len(those):5} {right:6} {lost:5} {doubled:8}  {seen}")
        return "\n".join([*lines, f"orphans in squeue: {len(self.orphans())}"])

    # -- breaking

    def _kill_operator(self) -> None:
        while not self._over.wait(self.random.uniform(5, 14)):
            self._kill(SYSTEM, "app.kubernetes.io/name=kubeslurm", "operator killed")

    def _kill_slurm(self) -> None:
        while not self._over.wait(self.random.uniform(12, 25)):
            if self.random.random() < 0.5:
                self._kill(POOL, "app.kubernetes.io/component=restd,app.kubernetes.io/managed-by", "slurmrestd killed")
            else:
                self._kill(POOL, f"statefulset.kubernetes.io/pod-name={CONTROLLER}", "slurmctld killed")

    def _kill(self, namespace: str, labels: str, what: str) -> None:
        if self._quietly("delete", "-n", namespace, "pod", "-l", labels, "--grace-period=0", "--force", "--wait=false"):
            self.faults[what] += 1

    def _quietly(self, *arguments: str) -> bool:
        return self.product.cluster.kubectl(*arguments, check=False).returncode == 0

    @contextmanager
    def _lies(self) -> Iterator[None]:
        """Half of the connections to slurmrestd go by way of the liar, who lies in a fifth of its answers."""
        cluster = self.product.cluster
        image = cluster.kubectl_json("get", "-n", SYSTEM, "deployments")["items"][0]
        cluster.apply(list(_liar(image["spec"]["template"]["spec"]["containers"][0]["image"])))
        cluster.kubectl("wait", "-n", POOL, f"pod/{LIAR}", "--for=condition=Ready", "--timeout=60s", timeout=70)
        try:
            yield
        finally:
            cluster.kubectl("exec", "-n", POOL, LIAR, "--", "python3", "-c", "import os; os.kill(1, 15)", check=False)
            time.sleep(1)
            said = cluster.kubectl("logs", "-n", POOL, LIAR, check=False).stdout.strip().splitlines()
            self.faults[f"liar: {said[-1] if said else 'said nothing'}"] += 1
            cluster.kubectl("delete", "-n", POOL, f"pod/{LIAR}", f"service/{DIRECT}", f"configmap/{LIAR}", "--now")


def _uid(job: Any) -> str:
    return str(job.get("Comment", "")).removeprefix("kubeslurm:").partition("/")[0]


def _liar(image: str) -> Iterator[Raw]:
    """A Service of the real slurmrestd alone, and a pod that the cluster's own Service takes for a second one."""
    meta = {"namespace": POOL}
    restd = {"slurm.bridge/cluster": CLUSTER, "app.kubernetes.io/component": "restd"}
    selector = restd | {"app.kubernetes.io/managed-by": "kubeslurm"}
    port = {"port": 6820, "targetPort": 6820}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta | {"name": DIRECT},
        "spec": {"selector": selector, "ports": [port]},
    }
    program = (Path(__file__).parent / "files" / "liar.py").read_text()
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta | {"name": LIAR}, "data": {"liar.py": program}}
    container = {
        "name": LIAR,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/liar/liar.py"],
        "env": [{"name": "UPSTREAM", "value": f"{DIRECT}:6820"}, {"name": "WRONG", "value": "0.2"}],
        "readinessProbe": {"tcpSocket": {"port": 6820}, "periodSeconds": 1},
        "volumeMounts": [{"name": "liar", "mountPath": "/liar"}],
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "liar", "configMap": {"name": LIAR}}],
    }
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta | {"name": LIAR, "labels": restd}, "spec": spec}
