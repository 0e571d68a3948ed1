"""The kindest/node image made of Debian packages and Go modules, for machines without an image registry.

As kind's own Dockerfile and `kind build node-image` do it, with one image (kubelite) for all components. Every deviation
is one that a machine without CAP_SYS_RESOURCE, on cgroup v1, needs, or keeps machine-wide sysctls as they are.
`archive()` gives a docker-archive; its tag is `tag()`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cluster import archives, binaries, cache, packages, rootfs, versions
from tests.cluster.shell import run

_NODE_PACKAGES = (
    "systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod libseccomp2 bash ca-certificates curl jq"
    " procps containerd runc containernetworking-plugins"
)
_NODE = rootfs.Recipe("node", "bookworm", _NODE_PACKAGES.split())
_POD = rootfs.Recipe("pod", "bookworm", ["iptables", "conntrack", "iproute2", "kmod"])
RECIPES = (_NODE, _POD)
PROGRAMS = ("kubelite", "coredns", "fakegpu")
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubectl")
# Machine-wide sysctls that systemd (the first) and the kubelet would write: the node sees files with these values instead.
_SHOWN = {"fs/file-max": None, "vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
_IMPORT = """
set -e
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
containerd --log-level error &
until ctr version > /dev/null 2>&1; do sleep 0.1; done
for tar in /images/*.tar; do ctr -n k8s.io images import --all-platforms --no-unpack "$tar" > /dev/null; done
for tag in $TAGS; do ctr -n k8s.io images tag "${tag%=*}" "${tag#*=}" > /dev/null; done
kill %1; wait %1 || true
"""


def key() -> str:
    """The key of the node image: all that goes into it."""
    own = [cache.key_of(cache.HERE / name) for name in PROGRAMS]
    sources = [Path(__file__), cache.HERE / "versions.py", *(cache.FILES / f for f in _OWN_FILES)]
    return cache.key_of("node-1", _NODE.key, _POD.key, *own, *sources)


_OWN_FILES = ("pause.c", "podnet.sh", "podnet.yaml", "storage.yaml")


def tag() -> str:
    """The node image's name, by which the engine knows whether it has this one."""
    return f"{versions.NODE_IMAGE}:{key()}"


def archive() -> Path:
    """The node image as a docker-archive (0.9 GB)."""
    return cache.artefact("node-image", key(), _build, keep=1)


def _build(path: Path) -> None:
    work = path.with_name(f"{path.name}.work")
    cache.remove(work)
    node, images = work / "node", work / "images"
    for folder in (node, images):
        folder.mkdir(parents=True)
    rootfs.unpack(rootfs.archive(_NODE), node)
    _add_kind_files(node)
    _add_kubernetes(node)
    _adapt_to_machine(node)
    _write_images(images)
    _import_images(node, images)
    layer = work / "node.tar"
    run(
        ["tar", "-C", node, "--numeric-owner", "--xattrs", "--one-file-system", "--sort=name", "-cf", layer, "."],
        timeout=300,
    )
    start = ["/usr/local/bin/entrypoint", "/sbin/init"]
    image = archives.Image(tag(), entrypoint=start, environment={"container": "docker"})
    archives.write(path, image, [layer])
    cache.remove(work)


def _install(source: Path, target: Path, mode: int = 0o755) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _add_kind_files(node: Path) -> None:
    """What kind's base image has: its scripts, its units, and few services."""
    base = binaries.go_module_folder(f"sigs.k8s.io/kind@{versions.KIND}") / "images/base/files"
    for folder, mode in (("usr/local/bin", 0o755), ("kind/bin", 0o755), ("etc", 0o644)):
        for source in (p for p in (base / folder).rglob("*") if p.is_file()):
            _install(source, node / source.relative_to(base), mode)
    _drop_services(node)
    _link(node / "sbin/init", "/usr/lib/systemd/systemd")
    enable = ["kubelet.service", "containerd.service", "undo-mount-hacks.service"]
    run(["chroot", node, "systemctl", "-q", "enable", *enable], timeout=60)
    run(["chroot", node, "systemctl", "-q", "mask", "systemd-binfmt.service"], timeout=60)
    for program in ("containerd", "ctr", "containerd-shim-runc-v2"):
        _link(node / "usr/local/bin" / program, f"/usr/bin/{program}")
    (node / "opt/cni").mkdir(parents=True, exist_ok=True)
    _link(node / "opt/cni/bin", "/usr/lib/cni")


def _drop_services(node: Path) -> None:
    units = node / "lib/systemd/system"
    patterns = ["sysinit.target.wants/systemd-tmpfiles-setup.service", "multi-user.target.wants/*"]
    patterns += ["local-fs.target.wants/*", "sockets.target.wants/*udev*", "sockets.target.wants/*initctl*"]
    patterns += ["basic.target.wants/*"]
    unwanted = [file for pattern in patterns for file in units.glob(pattern)]
    for file in [*unwanted, *(node / "etc/systemd/system").glob("*.wants/*")]:
        file.unlink()
    with (node / "etc/systemd/journald.conf").open("a") as config:
        config.write("ReadKMsg=no\n")


def _add_kubernetes(node: Path) -> None:
    """kubelet, kubeadm, kubectl, crictl, and the manifests that kind applies."""
    _install(binaries.upstream("crictl"), node / "usr/local/bin/crictl")
    _install(binaries.own("kubelite"), node / "usr/bin/kubelite")
    for component in ("kubeadm", "kubelet", "kubectl"):
        _link(node / "usr/bin" / component, "kubelite")
    (node / "kind/version").write_text(versions.KUBERNETES)
    _install(cache.FILES / "podnet.yaml", node / "kind/manifests/default-cni.yaml", 0o644)
    _install(cache.FILES / "storage.yaml", node / "kind/manifests/default-storage.yaml", 0o644)
    for folder in ("etc/kubernetes/manifests", "etc/systemd/system/kubelet.service.d"):
        (node / folder).mkdir(parents=True, exist_ok=True)
    packages.ensure("ctr")
    spec = json.loads(run(["ctr", "oci", "spec"], timeout=30).stdout)
    spec["process"].pop("rlimits", None)
    hooks = spec.setdefault("hooks", {}).setdefault("createContainer", [])
    hooks.append({"path": "/kind/bin/mount-product-files.sh"})
    (node / "etc/containerd/cri-base.json").write_text(json.dumps(spec))


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise RuntimeError(f"{path} has no {old!r}: another version of kind?")
    path.write_text(text.replace(old, new, 1))


def _adapt_to_machine(node: Path) -> None:
    """No CAP_SYS_RESOURCE, and the machine's sysctls stay as they are."""
    _replace(node / "etc/containerd/config.toml", "restrict_oom_score_adj = false", "restrict_oom_score_adj = true")
    for file in [
        *(node / "usr/lib/sysctl.d").glob("*"),
        node / "etc/sysctl.d/99-sysctl.conf",
        node / "etc/sysctl.conf",
    ]:
        file.unlink(missing_ok=True)
    with (node / "etc/sysctl.d/10-network-magic.conf").open("a") as config:
        config.write("net.ipv4.ip_forward=1\n")
    shown = node / "kind/shown"
    shown.mkdir(parents=True)
    for sysctl, value in _SHOWN.items():
        if value is not None:
            (shown / sysctl.split("/")[1]).write_text(f"{value}\n")
    bind = "for s in " + " ".join(_SHOWN) + "; do mount --bind /kind/shown/${s#*/} /proc/sys/$s; done\n"
    marker = "# validate state"
    text = f"cat /proc/sys/fs/file-max > /kind/shown/file-max\n{bind}{marker}"
    _replace(node / "usr/local/bin/entrypoint", marker, text)


def _write_images(images: Path) -> None:
    """The images that a node brings: kubelite with the pods' network script, coredns, pause, the fake GPU plugin."""
    layer = images / "layer"
    links = {f"/usr/local/bin/{component}": "kubelite" for component in _COMPONENTS}
    files = {"/usr/local/bin/kubelite": binaries.own("kubelite"), "/usr/local/bin/podnet.sh": cache.FILES / "podnet.sh"}
    archives.layer_of_files(layer, files, links)
    image = archives.Image(versions.KUBELITE_IMAGE)
    archives.write(images / "kubelite.tar", image, [rootfs.archive(_POD), layer])
    single = {
        "coredns": (versions.COREDNS_IMAGE, binaries.own("coredns")),
        "pause": (versions.PAUSE_IMAGES[0], binaries.pause()),
        "fakegpu": (versions.FAKEGPU_IMAGE, binaries.own("fakegpu")),
    }
    for name, (reference, program) in single.items():
        archives.layer_of_files(layer, {f"/{name}": program})
        archives.write(images / f"{name}.tar", archives.Image(reference, entrypoint=[f"/{name}"]), [layer])
    layer.unlink()


def _tags() -> list[str]:
    """The names under which kubeadm and containerd ask for what is there, as OLD=NEW."""
    components = [name for name in _COMPONENTS if name.startswith("kube-")]
    wanted = [f"registry.k8s.io/{name}:{versions.KUBERNETES}" for name in components] + [versions.ETCD_IMAGE]
    tags = [f"{versions.KUBELITE_IMAGE}={name}" for name in wanted]
    return tags + [f"{versions.PAUSE_IMAGES[0]}={name}" for name in versions.PAUSE_IMAGES[1:]]


def _import_images(node: Path, images: Path) -> None:
    """Put the images into the node's containerd, run for that in namespaces of its own."""
    inside = node / "images"
    images.rename(inside)
    spaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    run([*spaces, "chroot", node, "bash", "-c", _IMPORT], timeout=300, env={"TAGS": " ".join(_tags())})
    cache.remove(inside)
