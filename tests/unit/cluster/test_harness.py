"""The parts of the harness that need no cluster: choices, configuration, volumes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Cluster, ForeignClusterError, engine, packages, rootfs, volumes
from tests.cluster.cluster import all_ready, kind_config
from tests.cluster.shell import CommandError, run


def test_error_of_a_failed_program_shows_its_output() -> None:
    """What the program said is in the message."""
    with pytest.raises(CommandError, match="no such thing"):
        run(["sh", "-c", "echo no such thing >&2; exit 3"], timeout=5)


def test_program_that_hangs_is_ended() -> None:
    """A timeout ends the program and is an error even without `check`."""
    with pytest.raises(CommandError, match=r"not done after 0\.2 s"):
        run(["sleep", "60"], timeout=0.2, check=False)


def test_kube_variable_selects_that_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """$KUBE stands for a cluster that is not ours."""
    monkeypatch.setenv("KUBE", str(tmp_path / "config"))
    assert Cluster.at_hand().foreign


def test_foreign_cluster_runs_commands_as_they_are(tmp_path: Path) -> None:
    """Commands on a foreign cluster run in the machine's own network, with its kubeconfig."""
    command = Cluster("foreign", tmp_path / "config").command(["kubectl", "version"])
    assert command[:2] == ["env", f"KUBECONFIG={tmp_path / 'config'}"]


@pytest.mark.parametrize("fault", ["crash", "cut", "heal"])
def test_foreign_cluster_is_never_broken(tmp_path: Path, fault: str) -> None:
    """Faults are for our own nodes only."""
    with pytest.raises(ForeignClusterError, match="no engine of ours"):
        getattr(Cluster("foreign", tmp_path / "config"), fault)("node")


def test_foreign_cluster_is_never_taken_down(tmp_path: Path) -> None:
    """`down` on a foreign cluster is an error."""
    with pytest.raises(ForeignClusterError, match="not ours"):
        Cluster("foreign", tmp_path / "config").down()


def test_kind_config_has_the_workers_asked_for() -> None:
    """One control plane and as many workers as asked."""
    roles = [node["role"] for node in kind_config(3, own=True)["nodes"]]
    assert roles == ["control-plane", "worker", "worker", "worker"]


def test_old_cgroups_are_allowed_on_the_own_engine_only() -> None:
    """Stock kind keeps the kubelet's refusal of cgroup v1."""
    patches = {own: yaml.safe_load(kind_config(1, own=own)["kubeadmConfigPatches"][0]) for own in (True, False)}
    assert (patches[True].get("failCgroupV1"), patches[False].get("failCgroupV1")) == (False, None)


def test_volumes_are_tied_to_their_node() -> None:
    """A pod that comes back finds its volume: on the node that has it."""
    terms = volumes.volume("w1", 3)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["w1"]


def test_only_volumes_given_back_are_renewed() -> None:
    """A bound volume, and one that isn't ours, stay."""
    phases = ["Released", "Bound", "Released"]
    items = [{**volumes.volume("w1", i), "status": {"phase": phase}} for i, phase in enumerate(phases)]
    items[2]["metadata"]["labels"] = {}
    assert volumes.released(items) == [("w1", 0)]


def test_mirror_is_read_from_the_sources_of_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Debian archive is the one that the machine uses, in either format of apt's sources."""
    (tmp_path / "debian.sources").write_text("Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\n")
    monkeypatch.setattr(rootfs, "_SOURCES", (tmp_path,))
    assert rootfs.mirror() == "http://mirror.test/debian"


def test_installed_programs_are_not_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """apt is left alone when nothing is missing."""
    monkeypatch.setattr(shutil, "which", lambda name, path: f"/usr/bin/{name}")
    monkeypatch.setattr(packages, "run", lambda *args, **kwargs: pytest.fail("ran a program"))
    packages.ensure()


@pytest.mark.parametrize(
    ("answers", "registries", "own"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_stock_engine_needs_engine_and_registry(
    monkeypatch: pytest.MonkeyPatch, answers: bool, registries: bool, own: bool
) -> None:
    """Stock kind where an engine and its registries answer, else an engine of our own."""
    monkeypatch.setattr(engine.OwnEngine, "first_process", lambda self: None)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/docker")
    monkeypatch.setattr(engine, "_answers", lambda env: answers)
    monkeypatch.setattr(engine, "_registries_answer", lambda: registries)
    assert engine.choose().own is own


def test_version_of_go_is_compared_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """go1.9 is older than go1.26."""
    monkeypatch.setattr(
        packages, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, "go version go1.9 linux/amd64")
    )
    assert not packages._usable_go("go")


def _node(name: str, *, gpus: str = "256", ready: str = "True", real: bool = True) -> dict[str, Any]:
    labels = {"kubernetes.io/os": "linux"} if real else {}
    status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"nvidia.com/gpu": gpus}}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _daemons(ready: int) -> dict[str, Any]:
    metadata = {"name": "fakegpu", "namespace": "kube-system"}
    return {"kind": "DaemonSet", "metadata": metadata, "status": {"desiredNumberScheduled": 2, "numberReady": ready}}


@pytest.mark.parametrize(
    ("items", "ready"),
    [
        ([_node("w"), _daemons(2)], True),
        ([_node("w"), _daemons(2), _node("virtual", ready="False", real=False)], True),
        ([_node("w", ready="Unknown"), _daemons(2)], False),
        ([_node("w", gpus="0"), _daemons(2)], False),
        ([_node("w"), _daemons(1)], False),
        ([_node("w")], False),
        ([_daemons(2)], False),
    ],
)
def test_cluster_is_ready_when_all_its_parts_are(items: list[dict[str, Any]], ready: bool) -> None:
    """Real nodes, GPUs and daemons count; virtual nodes of the product don't; nothing at all is not ready."""
    assert all_ready(items) is ready
