"""The programs that the harness builds out of Go modules, and the pause program out of C.

Each is a static binary in the cache under a key of its sources; a version of a plain upstream program is its key.
"""

from __future__ import annotations

from pathlib import Path

from tests.cluster import cache, packages, versions
from tests.cluster.shell import run

_UPSTREAM = {
    "kind": f"sigs.k8s.io/kind@{versions.KIND}",
    "crictl": f"sigs.k8s.io/cri-tools/cmd/crictl@{versions.CRICTL}",
    "helm": f"helm.sh/helm/v3/cmd/helm@{versions.HELM}",
    "kueue": f"{versions.KUEUE[0]}/cmd/kueue@{versions.KUEUE[1]}",
    "training-operator.v1": f"{versions.TRAINING_OPERATOR[0]}/cmd/training-operator.v1@{versions.TRAINING_OPERATOR[1]}",
}
_STAMPS = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_BUILD_SECONDS = 1800


def _kubernetes_flags() -> str:
    """Linker flags that tell Kubernetes its version: without them a kubelet says v0.0.0 and kubeadm refuses it."""
    _, minor, _ = versions.KUBERNETES.split(".")
    values = {"gitVersion": versions.KUBERNETES, "gitMajor": "1", "gitMinor": minor}
    return " ".join(f"-X {package}.{name}={value}" for package in _STAMPS for name, value in values.items())


def upstream(name: str) -> Path:
    """An upstream program of the pinned version: the path of its binary."""
    module = _UPSTREAM[name]

    def build(path: Path) -> None:
        go = packages.go()
        run([go, "install", module], timeout=_BUILD_SECONDS, env={"CGO_ENABLED": "0", "GOBIN": str(path)})

    return cache.artefact(f"bin-{name}", cache.key_of(module), build) / name


def own(name: str) -> Path:
    """One of the harness's own Go programs (kubelite, coredns, fakegpu): the path of its binary."""
    source = cache.HERE / name
    flags = "-s -w" + (f" {_kubernetes_flags()}" if name == "kubelite" else "")

    def build(path: Path) -> None:
        command: list[str | Path] = [packages.go(), "build", "-trimpath", "-ldflags", flags, "-o", path / name, "."]
        run(command, timeout=_BUILD_SECONDS, env={"CGO_ENABLED": "0"}, cwd=source)

    return cache.artefact(f"bin-{name}", cache.key_of(source, flags), build) / name


def pause() -> Path:
    """The pause program, static: 13 KB."""
    source = cache.FILES / "pause.c"

    def build(path: Path) -> None:
        packages.ensure("musl-gcc")
        path.mkdir()
        run(["musl-gcc", "-Os", "-static", "-s", "-o", path / "pause", source], timeout=60)

    return cache.artefact("bin-pause", cache.key_of(source), build) / "pause"


def go_module_folder(module: str) -> Path:
    """Where Go keeps the sources of `module@version` (downloaded by the build that needed it, or now)."""
    go = packages.go()
    run([go, "mod", "download", module], timeout=600, cwd=Path("/"))
    return Path(run([go, "env", "GOMODCACHE"], timeout=30).stdout.strip()) / module
