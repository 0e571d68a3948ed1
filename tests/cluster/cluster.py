"""A Kubernetes cluster for tests, the demo and the benches: kind on the engine at hand, or any cluster by its kubeconfig.

`Cluster(name)` is a kind cluster that may be up or not; `Cluster.at_hand(name)` is the cluster of $KUBE if that is set.
Commands run inside the engine's network namespace, where the API server listens. Every command has a timeout.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster import (
    binaries,
    cache,
    engine,
    faults,
    images,
    limits,
    loading,
    node_image,
    packages,
    rootfs,
    versions,
    volumes,
)
from tests.cluster.shell import run

Progress = Callable[[str], object]
NAME = "kubeslurm"
_READY_SECONDS = 180
_IN_USE = "engine-in-use"  # the lock held, shared, while a cluster is being made


class ForeignClusterError(RuntimeError):
    """Asked of a cluster that is not ours ($KUBE): nodes are made, broken and loaded only in our own."""


def _silent(_: str) -> None:
    """Progress that nobody wants to see."""


class Cluster:
    """One cluster, by name. Making the object starts nothing."""

    def __init__(self, name: str = NAME, kubeconfig: Path | None = None) -> None:
        self.name = name
        self.foreign = kubeconfig is not None
        self.kubeconfig = kubeconfig or cache.root() / "clusters" / name / "kubeconfig"
        self._engine: engine.Engine | None = None

    @classmethod
    def at_hand(cls, name: str = NAME) -> Self:
        """The cluster of the kubeconfig $KUBE if that is set, else the kind cluster `name`."""
        kube = os.environ.get("KUBE")
        return cls("foreign", Path(kube).resolve()) if kube else cls(name)

    @property
    def engine(self) -> engine.Engine:
        """The engine of this cluster's nodes."""
        self._need_own("has no engine of ours")
        if self._engine is None:
            self._engine = engine.choose()
        return self._engine

    def _need_own(self, what: str) -> None:
        if self.foreign:
            raise ForeignClusterError(f"the cluster of {self.kubeconfig} {what}")

    # -- up and down

    def is_up(self) -> bool:
        """Whether the cluster is there and its API server answers."""
        return self.exists() and self._answers()

    def _answers(self) -> bool:
        return self.kubectl("get", "--raw", "/readyz", check=False, timeout=30).returncode == 0

    @property
    def _made(self) -> Path:
        """Exists once kind has made the cluster whole."""
        return self.kubeconfig.with_name("made")

    def exists(self) -> bool:
        """Whether kind made the cluster, and its control plane runs (it may be too busy to answer)."""
        if self.foreign:
            return True
        return self._made.exists() and self.engine.running() and bool(self._containers("control-plane"))

    def up(
        self, progress: Progress = _silent, *, workers: int = 2, load: Sequence[str] = (), wait: float = _READY_SECONDS
    ) -> None:
        """Bring the cluster up with the images `load` on its workers; what is up already stays as it is."""
        if self.foreign:
            return
        with cache.locked(_IN_USE, shared=True):
            self.engine.revive()
            if not self.exists():
                self._make(progress, workers)
        with ThreadPoolExecutor() as pool:
            loading = [pool.submit(self.load, name) for name in load]
            self._settle(progress, wait)
            for task in loading:
                task.result()
        progress("ready")

    def _make(self, progress: Progress, workers: int) -> None:
        """Build what is missing, start the engine, let kind make the cluster."""
        progress("build what is missing")
        packages.ensure()
        limits.check(workers)
        build_parts()
        image = ["--image", node_image.tag()] if self.engine.own else []
        archive = node_image.archive() if self.engine.own else None
        progress("start the engine")
        self.engine.start()
        if archive:
            self._load_node_image(progress, archive)
        self._delete()  # what an interrupted `up` left
        progress("kind create cluster")
        config = self.kubeconfig.with_name("kind.yaml")
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(yaml.safe_dump(kind_config(workers, own=self.engine.own)))
        self._kind("create", "cluster", "--config", str(config), *image, timeout=600)
        self._made.touch()

    def _load_node_image(self, progress: Progress, archive: Path) -> None:
        """Give the engine our node image, and take older ones away (those in use stay)."""
        form = ("--format", "{{.Repository}}:{{.Tag}}")
        there = self.engine.docker("images", *form, versions.NODE_IMAGE).stdout.split()
        if node_image.tag() in there:
            return
        progress("load the node image")
        self.engine.docker("load", "-q", "-i", str(archive), timeout=300)
        for old in there:
            self.engine.docker("rmi", old, check=False)

    def _kind(self, *args: str, timeout: float) -> None:
        command = ["kind", *args, "--name", self.name, "--kubeconfig", str(self.kubeconfig)]
        argv = self.engine.inside([str(binaries.upstream("kind")), *command[1:]])
        run(argv, timeout=timeout, env=self.engine.environment())

    def _settle(self, progress: Progress, wait: float) -> None:
        """Fake GPUs and volumes into the cluster, and wait until everything is ready."""
        self._until("the API server answers", self._answers, wait)
        if self._settled.exists():
            self.renew_volumes()
        else:
            progress("fake GPUs, volumes")
            self._add_parts()
            self._settled.touch()
        progress("wait for nodes, DNS, GPUs")
        self._until("nodes, DNS and fake GPUs are ready", self._all_ready, wait)

    @property
    def _settled(self) -> Path:
        """Exists once the cluster has what we add to kind's."""
        return self.kubeconfig.with_name("settled")

    def _add_parts(self) -> None:
        if not self.engine.own:
            self.load("fakegpu")
        workers = self._worker_containers()
        for node in workers:
            self.engine.docker("exec", node, "mkdir", "-p", *volumes.folders())
        parts = [(cache.FILES / "fakegpu.yaml").read_text(), yaml.safe_dump_all(volumes.volumes(workers))]
        # No validation: it would fetch the whole OpenAPI document, for manifests that are our own.
        self.kubectl("apply", "--validate=false", "-f", "-", input="\n---\n".join(parts), timeout=120)

    def _all_ready(self) -> bool:
        """Whether all real nodes are Ready, the workers offer GPUs, and DNS answers."""
        kinds = "nodes,deployments,daemonsets"
        listing = self.kubectl("get", kinds, "-A", "-o", "json", check=False)
        return listing.returncode == 0 and all_ready(json.loads(listing.stdout)["items"])

    @staticmethod
    def _until(what: str, done: Callable[[], bool], wait: float) -> None:
        """Ask until `done`; TimeoutError after `wait` seconds."""
        end = time.monotonic() + wait
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"not after {wait:g} s: {what}")
            time.sleep(0.2)

    def renew_volumes(self) -> None:
        """Empty the volumes that were given back and offer them again."""
        volumes.renew(
            volumes.released(self.kubectl_json("get", "pv")["items"]),
            lambda names: self.kubectl("delete", "pv", *names),
            lambda node, folder: self.engine.docker("exec", node, "sh", "-c", 'rm -rf "$0" && mkdir "$0"', folder),
            self.apply,
        )

    def down(self) -> None:
        """Delete the cluster, and stop our engine if it was the last. Works on what is half there, too."""
        self._need_own("is not ours to take down")
        if self.engine.own and not self.engine.running():
            self.engine.stop()  # it died: nothing of its clusters is left
        else:
            self._delete()
            self._stop_idle_engine()
        cache.remove(self.kubeconfig.parent)

    def _stop_idle_engine(self) -> None:
        """Leave nothing running: unless another cluster is there, or is just being made."""
        with cache.locked_if_free(_IN_USE) as alone:
            if alone and self.engine.own and not self.engine.docker("ps", "-aq").stdout.strip():
                self.engine.stop()

    def _delete(self) -> None:
        self._kind("delete", "cluster", timeout=120)

    # -- use

    def command(self, argv: Sequence[str]) -> list[str]:
        """`argv` wrapped so that it runs where the API server can be reached, with KUBECONFIG set."""
        tools = [str(binaries.upstream("helm").parent)] if not self.foreign else []
        path = ":".join([*tools, packages.search_path()])
        wrapped = ["env", f"KUBECONFIG={self.kubeconfig}", f"PATH={path}", *argv]
        return wrapped if self.foreign else self.engine.inside(wrapped)

    def kubectl_command(self, args: Sequence[str]) -> list[str]:
        """A whole kubectl command line."""
        return self.command([str(binaries.own("kubelite")), "kubectl", *args])

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 (as in subprocess)
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; CommandError when it fails (if `check`) or takes longer than `timeout` seconds."""
        return run(self.kubectl_command(args), input=input, check=check, timeout=timeout)

    def kubectl_json(self, *args: str, timeout: float = 60) -> Any:
        """Run kubectl with `-o json` and return what it says."""
        return json.loads(self.kubectl(*args, "-o", "json", timeout=timeout).stdout)

    def apply(self, manifests: str | Sequence[Mapping[str, Any]]) -> None:
        """`kubectl apply` of YAML text or of objects."""
        text = manifests if isinstance(manifests, str) else yaml.safe_dump_all(manifests)
        self.kubectl("apply", "-f", "-", input=text, timeout=120)

    def helm(self, *args: str, check: bool = True, timeout: float = 180) -> subprocess.CompletedProcess[str]:
        """Run helm."""
        return run(self.command([str(binaries.upstream("helm")), *args]), check=check, timeout=timeout)

    def nodes(self) -> list[str]:
        """The names of the real nodes: what the product's virtual nodes lack is the label kubernetes.io/os."""
        return [node["metadata"]["name"] for node in self._node_objects()]

    def workers(self) -> list[str]:
        """The names of the nodes that pods of tests run on."""
        return [node["metadata"]["name"] for node in self._worker_objects()]

    def _node_objects(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.kubectl_json("get", "nodes", "-l", "kubernetes.io/os=linux")["items"]
        return items

    def _worker_objects(self) -> list[dict[str, Any]]:
        label = "node-role.kubernetes.io/control-plane"
        nodes = self._node_objects()
        return [node for node in nodes if label not in node["metadata"]["labels"]] or nodes

    # -- images

    def load(self, image: str) -> None:
        """Load an image into the workers: `slurm`, `operator`, `fakegpu`, or the path of a docker-archive."""
        self._need_own("takes no images from here")
        archive = images.archive(image)
        self._wait_for_containers()
        workers = self._worker_containers()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: loading.load(self.engine, node, archive), workers))

    def _wait_for_containers(self) -> None:
        if not self._containers(""):
            raise RuntimeError(f"cluster {self.name} is down: python -m tests.cluster up --name {self.name}")

    def _containers(self, role: str) -> list[str]:
        labels = [f"label=io.x-k8s.kind.cluster={self.name}"] + ([f"label=io.x-k8s.kind.role={role}"] if role else [])
        filters = [word for label in labels for word in ("--filter", label)]
        return sorted(self.engine.docker("ps", *filters, "--format", "{{.Names}}").stdout.split())

    def _worker_containers(self) -> list[str]:
        return self._containers("worker") or self._containers("control-plane")

    # -- faults

    def crash(self, node: str) -> None:
        """Kill a node as a power cut would: everything on it is gone at once."""
        faults.crash(self.engine, node)

    def cut(self, node: str) -> None:
        """Cut a node off the network; what runs on it runs on."""
        faults.cut(self.engine, node)

    def heal(self, node: str) -> None:
        """Undo `crash` and `cut`."""
        faults.heal(self.engine, node)

    def gpu(self, node: str, index: int, *, healthy: bool) -> None:
        """Make GPU `index` of a node unhealthy, or healthy again."""
        faults.gpu(self.engine, node, index, healthy=healthy)


def _ready(item: Mapping[str, Any]) -> bool:
    """Whether a node, or what a controller keeps, is as it shall be."""
    status = item["status"]
    match item["kind"]:
        case "Node":
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
            control = "node-role.kubernetes.io/control-plane" in item["metadata"]["labels"]
            return ready and (control or int(status["allocatable"].get("nvidia.com/gpu", 0)) > 0)
        case "DaemonSet":
            return 0 < int(status["desiredNumberScheduled"]) == int(status.get("numberReady", 0))
    return int(item["spec"]["replicas"]) == int(status.get("readyReplicas", 0))


def all_ready(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the real nodes and everything in kube-system are ready, fake GPUs among them."""
    nodes = [item for item in items if "kubernetes.io/os" in item["metadata"].get("labels", {})]
    system = [item for item in items if item["metadata"].get("namespace") == "kube-system"]
    there = "fakegpu" in {item["metadata"]["name"] for item in system}
    return there and bool(nodes) and all(_ready(item) for item in [*nodes, *system])


def kind_config(workers: int, *, own: bool) -> dict[str, Any]:
    """kind's configuration: one control plane, `workers` workers of 250 pods, lost nodes noticed after 16 s."""
    kubelet: dict[str, Any] = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    kubelet |= {"maxPods": 250, "registryPullQPS": 0} | ({"failCgroupV1": False} if own else {})
    grace = {"name": "node-monitor-grace-period", "value": "16s"}
    control = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "controllerManager": {"extraArgs": [grace]},
    }
    roles = ["control-plane", *["worker"] * workers]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": role, "extraMounts": loading.mounts(images.BUILDERS)} for role in roles],
        "kubeadmConfigPatches": [yaml.safe_dump(kubelet), yaml.safe_dump(control)],
    }


def stop(progress: Progress = _silent) -> None:
    """Take down all clusters and the engine that is ours; leave nothing."""
    progress("stop the engine")
    own = engine.OwnEngine()
    own.stop()
    if not engine.choose().own:
        for folder in sorted((cache.root() / "clusters").glob("*")):
            Cluster(folder.name).down()
    cache.remove(cache.root() / "clusters")


def build_parts(recipes: Sequence[rootfs.Recipe] = node_image.RECIPES) -> None:
    """Build what the node image is made of. Root file systems wait for the network, Go for the processors: both at once."""
    with ThreadPoolExecutor() as pool:
        roots = [pool.submit(rootfs.archive, recipe) for recipe in recipes]
        for own in node_image.PROGRAMS:
            binaries.own(own)
        for upstream in ("kind", "crictl", "helm"):
            binaries.upstream(upstream)
        for root in roots:
            root.result()


def build(progress: Progress = _silent) -> None:
    """Build everything that any command needs, cold."""
    packages.ensure()
    progress("programs, root file systems")
    build_parts([*node_image.RECIPES, *images.RECIPES])
    progress(f"node image of Kubernetes {versions.KUBERNETES}")
    node_image.archive()
    progress("images")
    images.build_all()
