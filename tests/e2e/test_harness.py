"""The harness itself: an engine that leaves nothing behind, faults that are noticed and heal, GPUs, volumes, names.

Everything that all other tests stand on is held here, on the real parts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, archives, binaries
from tests.cluster.engine import OwnEngine
from tests.cluster.shell import CommandError, run

pytestmark = pytest.mark.cluster
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an engine of its own needs root")
_VOLATILE = (
    "random",
    "nr",
    "state",
    "usage",
    "tainted",
    "last_pid",
    "count",
    "lb_cost",
    "neigh",
    "uuid",
    "entropy",
    "quota",
)


def wait_for(what: str, done: Callable[[], bool], seconds: float) -> float:
    """Ask until `done`; how long it took. Fails after `seconds`."""
    start = time.monotonic()
    while not done():
        assert time.monotonic() - start < seconds, f"not after {seconds:g} s: {what}"
        time.sleep(0.2)
    return time.monotonic() - start


# -- the engine


def _machine(engine: OwnEngine) -> dict[str, set[str]]:
    """What of the machine an engine could change: sysctls, interfaces, rules, mounts, cgroups, folders."""
    sysctls = run(["sysctl", "-a"], timeout=30, check=False).stdout.splitlines()
    return {
        "sysctls": {line for line in sysctls if not any(word in line for word in _VOLATILE)},
        "links": {line.split(": ")[1] for line in run(["ip", "-o", "link"], timeout=10).stdout.splitlines()},
        "rules": set(run(["iptables-save"], timeout=10, check=False).stdout.splitlines()[1:-1]),
        "mounts": {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()},
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{engine.cgroup}")},
        "folders": {
            str(path) for base in ("/etc", "/opt", "/run", "/var/lib", "/usr/lib") for path in Path(base).iterdir()
        },
    }


@pytest.fixture
def engine() -> Iterator[OwnEngine]:
    """An engine besides the one of the clusters, with a container `sleeper`."""
    folder = Path(tempfile.mkdtemp(prefix="ks-engine-", dir="/var/tmp"))
    own = OwnEngine(folder / "e")
    before = _machine(own)
    try:
        own.start()
        archives.layer_of_files(folder / "layer.tar", {"/pause": binaries.pause()})
        archives.write(
            folder / "pause.tar", archives.Image("localhost/p:1", entrypoint=["/pause"]), [folder / "layer.tar"]
        )
        own.docker("load", "-i", str(folder / "pause.tar"))
        own.docker("run", "-d", "--name=sleeper", "--privileged", "-v=/lib/modules:/lib/modules:ro", "localhost/p:1")
        yield own
    finally:
        own.stop()
        shutil.rmtree(folder)
    changed = {what: now ^ before[what] for what, now in _machine(own).items() if now != before[what]}
    assert changed == {}


def _running(engine: OwnEngine) -> list[str]:
    return engine.docker("ps", "--format", "{{.Names}}").stdout.split()


@needs_root
def test_containers_outlive_an_engine_that_is_killed(engine: OwnEngine) -> None:
    """dockerd killed with -9 and started again finds its containers running; nothing of the machine changes."""
    first = engine.first_process()
    run(["nsenter", f"--target={first}", "--mount", "--pid", "sh", "-c", "kill -9 $(cat /run/docker.pid)"], timeout=10)
    engine.revive()
    assert _running(engine) == ["sleeper"]


@needs_root
def test_stop_leaves_nothing_of_a_dead_engine(engine: OwnEngine) -> None:
    """After a kill -9 of the process that holds everything, `stop` takes away its store and its cgroups as well."""
    first = engine.first_process()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_for("the namespaces are gone", lambda: engine.first_process() is None, 10)
    engine.stop()
    assert (engine.folder.exists(), list(Path("/sys/fs/cgroup").glob(f"*/{engine.cgroup}"))) == (False, [])


@needs_root
def test_engine_that_died_whole_starts_again(engine: OwnEngine) -> None:
    """After a kill -9 of everything, `start` gives an engine in order: the dead container can be taken away."""
    first = engine.first_process()
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_for("the namespaces are gone", lambda: engine.first_process() is None, 10)
    engine.start()
    assert _running(engine) == []
    engine.docker("rm", "-fv", "sleeper")
    engine.docker("run", "-d", "--name=sleeper", "--privileged", "localhost/p:1")
    assert _running(engine) == ["sleeper"]


@needs_root
def test_stop_keeps_the_images_of_an_engine_in_order(engine: OwnEngine) -> None:
    """The next start is warm: images stay, containers don't; to stop twice changes nothing."""
    engine.stop()
    engine.stop()
    engine.start()
    images = engine.docker("images", "--format", "{{.Repository}}").stdout.split()
    assert (images, engine.docker("ps", "-aq").stdout) == (["localhost/p"], "")


# -- the cluster


def test_nodes_are_ready_and_full_of_gpus(own_cluster: Cluster) -> None:
    """Each worker offers 256 GPUs and carries the product's label."""
    label = "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"
    nodes = own_cluster.kubectl_json("get", "nodes", "-l", label)["items"]
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {"256"}
    assert sorted(node["metadata"]["name"] for node in nodes) == own_cluster.workers()


@pytest.fixture
def namespace(own_cluster: Cluster) -> Iterator[str]:
    """A namespace for one test."""
    name = f"harness-{os.getpid()}"
    own_cluster.kubectl("create", "namespace", name)
    yield name
    own_cluster.kubectl("delete", "namespace", name, timeout=120)


def _pod(name: str, namespace: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "localhost/slurm:24.11",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        **spec.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def _output(cluster: Cluster, pod: dict[str, Any]) -> str:
    """What a pod prints, once it has ended well."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    cluster.apply([pod])
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    cluster.kubectl("-n", namespace, "wait", ended, f"pod/{name}", "--timeout=60s", timeout=70)
    return cluster.kubectl("-n", namespace, "logs", name).stdout


def test_container_sees_its_gpus_as_the_first_ones(own_cluster: Cluster, namespace: str) -> None:
    """k GPUs are /dev/nvidia0 to /dev/nvidia(k-1), whichever the node's are; any user may open them."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": 3}}}
    pod = _pod("gpus", namespace, "stat -c '%n %F %a' /dev/nvidia*", container=limits)
    kind = "character special file 666"
    assert _output(own_cluster, pod).splitlines() == [f"/dev/nvidia{i} {kind}" for i in range(3)]


def test_unknown_names_are_denied_at_once(own_cluster: Cluster, namespace: str) -> None:
    """No name, forward or reverse, is waited for: that would stall slurmctld. The cluster's own are found."""
    script = """
getent hosts kubernetes.default.svc.cluster.local > /dev/null || exit 1
start=$(date +%s); getent hosts nowhere.example. 10.99.99.99; end=$(date +%s); echo $((end - start))"""
    assert int(_output(own_cluster, _pod("names", namespace, script))) <= 1


def test_claim_binds_and_is_the_groups_to_write(own_cluster: Cluster, namespace: str) -> None:
    """A claim without a class gets a volume; a pod that is not root writes to it by its fsGroup."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "state", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    own_cluster.apply([claim])
    user = {"runAsUser": 64030, "fsGroup": 64030}
    disk = {"name": "d", "persistentVolumeClaim": {"claimName": "state"}}
    mount = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    pod = _pod("volume", namespace, "touch /d/x && ls /d", securityContext=user, volumes=[disk], container=mount)
    assert _output(own_cluster, pod) == "x\n"


def _gpus(cluster: Cluster, node: str) -> int:
    return int(cluster.kubectl_json("get", "node", node)["status"]["allocatable"]["nvidia.com/gpu"])


def test_unhealthy_gpu_leaves_the_nodes_capacity(own_cluster: Cluster) -> None:
    """A GPU that fails is taken off the node, and comes back when it is healthy."""
    node = own_cluster.workers()[0]
    own_cluster.gpu(node, 200, healthy=False)
    try:
        wait_for("one GPU less", lambda: _gpus(own_cluster, node) == 255, 30)
    finally:
        own_cluster.gpu(node, 200, healthy=True)
    wait_for("all GPUs", lambda: _gpus(own_cluster, node) == 256, 30)


def _ready(cluster: Cluster, node: str) -> str:
    conditions = cluster.kubectl_json("get", "node", node)["status"]["conditions"]
    return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")


@pytest.mark.parametrize("fault", ["crash", "cut"])
def test_lost_node_is_noticed_and_heals(own_cluster: Cluster, fault: str) -> None:
    """A node that is killed, or cut off, is NotReady soon after the grace period of 16 s; healed it is Ready again."""
    node = own_cluster.workers()[-1]
    getattr(own_cluster, fault)(node)
    try:
        wait_for("NotReady", lambda: _ready(own_cluster, node) == "Unknown", 45)
    finally:
        own_cluster.heal(node)
    wait_for("Ready", lambda: _ready(own_cluster, node) == "True", 60)
    wait_for("all GPUs", lambda: _gpus(own_cluster, node) == 256, 60)


def test_kubectl_passes_input_and_exit_code(cluster: Cluster) -> None:
    """`python -m tests.cluster kubectl` is kubectl: standard input in, exit code out."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.cluster",
            "kubectl",
            "--name",
            cluster.name,
            "create",
            "--dry-run=client",
            "-f",
            "-",
        ],
        input="kind: Nonsense",
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Nonsense" in done.stderr or "apiVersion" in done.stderr) == (1, True)


def test_archive_that_is_none_is_refused(own_cluster: Cluster, tmp_path: Path) -> None:
    """Loading nonsense is an error that says which node refused it."""
    (tmp_path / "x.tar").write_text("no archive")
    with pytest.raises(CommandError, match="ctr import"):
        own_cluster.load(str(tmp_path / "x.tar"))
