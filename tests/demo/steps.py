"""The demo's walk: Kubernetes, operator, pool, job; each step a phase on the screen, each wait with an end.

Called by `python -m tests.demo` and by the benches (for the times). Every step may run again on what is there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import Cluster, images
from tests.demo.screen import Say, Screen

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CHART = ROOT / "helm" / "kubeslurm"
SYSTEM = "kubeslurm-system"
RELEASE = "kubeslurm"
OPERATOR = f"deployment/{RELEASE}"
IMAGE_TAG = "dev"
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.5

Raw = dict[str, Any]


class DemoError(Exception):
    """A step did not come to its end; the message says what was waited for and what was seen last."""


@dataclass(frozen=True)
class Named:
    """An object's kind (as kubectl takes it), namespace and name."""

    kind: str
    namespace: str
    name: str


@dataclass
class Demo:
    """One run of the demo on `cluster`."""

    cluster: Cluster
    screen: Screen
    examples: Path = EXAMPLES
    patience: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        pool = list(documents(self.examples / "pool.yaml"))
        self.nodeset = named(next(one for one in pool if one["kind"] == "NodeSet"))
        self.replicas = int(next(one for one in pool if one["kind"] == "NodeSet")["spec"]["replicas"])
        cluster = next(one for one in pool if one["kind"] == "SlurmCluster")
        self.slurm = named(cluster)
        self.user = str(cluster["spec"]["tenants"][0]["user"]["name"])
        self.job = named(next(documents(self.examples / "pytorchjob.yaml")))

    def run(self) -> None:
        """All steps, up to the job's end."""
        with self.screen.phase("cluster", "Kubernetes (kind), images") as say:
            self.cluster.up(say, load=("slurm", "operator"))
        with self.screen.phase("operator", "Operator (helm install)") as say:
            self.install(say)
        with self.screen.phase("pool", f"Pool of {self.replicas} Slurm nodes") as say:
            self.make_pool(say)
        with self.screen.phase("job", f"PyTorchJob {self.job.name}") as say:
            self.run_job(say)

    def install(self, say: Say) -> None:
        """The chart, from the tree; a release that is there is upgraded, its CRDs too (helm leaves them)."""
        say("helm upgrade --install")
        release = ("upgrade", "--install", RELEASE, str(CHART), "-n", SYSTEM, "--create-namespace")
        # the digest makes a new pod of a new build, whose tag is the same
        digest = f"podAnnotations.kubeslurm/image={images.archive('operator').name}"
        self.cluster.helm(*release, "--set", f"image.tag={IMAGE_TAG}", "--set-string", digest)
        for crd in sorted((CHART / "crds").glob("*.yaml")):
            self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(crd))
        say("waiting for its pod")
        self.cluster.kubectl("-n", SYSTEM, "rollout", "status", OPERATOR, "--timeout=120s", timeout=130)

    def make_pool(self, say: Say) -> None:
        """The program as a ConfigMap, then examples/pool.yaml; ends when every node has registered."""
        namespaces = [one for one in documents(self.examples / "pool.yaml") if one["kind"] == "Namespace"]
        program = {"train.py": (self.examples / "train.py").read_text()}
        meta = {"name": "program", "namespace": self.nodeset.namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": program}
        self.cluster.apply([*namespaces, body])
        self.cluster.apply((self.examples / "pool.yaml").read_text())

        def registered(raw: Raw) -> bool:
            status = raw.get("status") or {}
            ready = int(status.get("readyReplicas") or 0)
            say(f"{ready} of {self.replicas} registered" if ready else message(raw, "Ready"))
            return ready == self.replicas and is_true(raw, "Ready")

        self._wait(self.nodeset, "Ready with every node registered", registered)

    def run_job(self, say: Say) -> None:
        """The job, from its start; one of an earlier run is deleted first."""
        say("deleting the one before")
        where = ("-n", self.job.namespace, self.job.kind, self.job.name)
        self.cluster.kubectl("delete", *where, "--ignore-not-found", "--timeout=120s", timeout=130)
        say("applied")
        self.cluster.apply((self.examples / "pytorchjob.yaml").read_text())

        def ended(raw: Raw) -> bool:
            say(", ".join(true_conditions(raw)) or "seen by nobody yet")
            if is_true(raw, "Failed"):
                raise DemoError(f"the job failed: {message(raw, 'Failed')}")
            return is_true(raw, "Succeeded")

        self._wait(self.job, "Succeeded", ended)

    def _wait(self, what: Named, wanted: str, done: Callable[[Raw], bool]) -> Raw:
        end = time.monotonic() + self.patience
        while True:
            raw = self.get(what)
            if raw is not None and done(raw):
                return raw
            if time.monotonic() > end:
                raise DemoError(self._gave_up(what, wanted, raw))
            time.sleep(POLL_SECONDS)

    def get(self, what: Named) -> Raw | None:
        """The object, or None."""
        found = self.cluster.kubectl(
            "get", "-n", what.namespace, what.kind, what.name, "-o", "json", "--ignore-not-found"
        )
        return dict(json.loads(found.stdout)) if found.stdout.strip() else None

    def _gave_up(self, what: Named, wanted: str, raw: Raw | None) -> str:
        conditions = [f"{one['type']}={one['status']} {one.get('message', '')}" for one in _conditions(raw or {})]
        seen = "; ".join(conditions) or "no condition"
        return f"{what.kind} {what.namespace}/{what.name} is not {wanted} after {self.patience:.0f} s: {seen}"


def documents(path: Path) -> Iterator[Raw]:
    """The objects of a YAML file."""
    yield from (one for one in yaml.safe_load_all(path.read_text()) if one)


def named(raw: Mapping[str, Any]) -> Named:
    """Which object it is."""
    return Named(raw["kind"].lower(), raw["metadata"]["namespace"], raw["metadata"]["name"])


def _conditions(raw: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (raw.get("status") or {}).get("conditions") or ()


def is_true(raw: Mapping[str, Any], condition: str) -> bool:
    """Does the condition hold?"""
    return condition in true_conditions(raw)


def true_conditions(raw: Mapping[str, Any]) -> list[str]:
    """The types of the conditions that hold."""
    return [one["type"] for one in _conditions(raw) if one["status"] == "True"]


def message(raw: Mapping[str, Any], condition: str) -> str:
    """The condition's message."""
    return next((str(one.get("message")) for one in _conditions(raw) if one["type"] == condition), "")
