"""The Docker engine that kind runs on: the machine's own, or one in namespaces of its own.

`choose` picks: where an engine and its registries answer, that one (`StockEngine`); else `OwnEngine`, a dockerd unpacked
from Debian's package (not installed) into its own network, mount and pid namespaces.

Always holds for the own engine: one process (the pid namespace's first) holds everything; when it dies, the engine, every
container, every mount and the whole network die with it. It is found by its command line, so nothing written down can be
stale. What dockerd writes outside its folder (/etc/docker, /opt/containerd, /run, /lib/modules) lands on overlays that only
it sees; its cgroups hang under one of its own, which `stop` removes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import binaries, cache, packages, versions
from tests.cluster.shell import CommandError, run

_CGROUPS = Path("/sys/fs/cgroup")
_START_SECONDS = 60.0
_SETUP = """
set -e
ip link set lo up
mkdir -p "$1/hidden" && mount -t tmpfs -o mode=755 tmpfs "$1/hidden"
for folder in $3; do
  layer=$1/hidden/${folder//\\//_}; mkdir -p "$layer/upper" "$layer/work"
  mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" "$folder"
done
mount -t tmpfs -o mode=755 tmpfs /run
exec "$2" "engine=$1"
"""


class StockEngine:
    """The machine's Docker engine: kind as everybody uses it, with kind's own node image."""

    own = False

    def start(self) -> None:
        """Nothing to start."""

    def revive(self) -> None:
        """Nothing to revive."""

    def stop(self) -> None:
        """The machine's engine is not ours to stop."""

    def running(self) -> bool:
        """Whether the engine answers."""
        return _answers(self.environment())

    def environment(self) -> dict[str, str]:
        """The environment of kind and docker."""
        return {"PATH": f"{binaries.upstream('kind').parent}:{packages.search_path()}"}

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The engine's network is the machine's: `argv` as it is."""
        return list(argv)

    def docker(self, *args: str, timeout: float = 60, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the docker command."""
        return run(["docker", *args], timeout=timeout, check=check, env=self.environment())


def _answers(env: Mapping[str, str]) -> bool:
    try:
        return run(["docker", "version"], timeout=5, check=False, env=env).returncode == 0
    except (CommandError, FileNotFoundError):
        return False


def _argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _find(program: str, args: list[str]) -> int | None:
    """The pid of the process of a program (wherever it lies) with these arguments, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        argv = _argv(int(pid))
        if argv and Path(argv[0]).name == program and argv[1:] == args:
            return int(pid)
    return None


def _download_debs(path: Path) -> None:
    packages.ensure("containerd", "runc", "iptables", "jq", "nsenter", "ip")
    debs = path.with_name(f"{path.name}-debs")
    cache.remove(debs)
    debs.mkdir()
    debs.chmod(0o755)
    run(["apt-get", "update", "-qq"], timeout=300)
    run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "docker.io", "tini"], timeout=300, cwd=debs)
    path.mkdir()
    for deb in debs.glob("*.deb"):
        run(["dpkg", "-x", deb, path], timeout=60)
    cache.remove(debs)


class OwnEngine:
    """dockerd in its own namespaces; all state below `folder`."""

    own = True

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache.root() / "engine"
        self.socket = self.folder / "docker.sock"
        self.cgroup = f"kubeslurm-{cache.key_of(str(self.folder))}"

    def first_process(self) -> int | None:
        """The pid of the process that holds the namespaces, or None when the engine is down."""
        return _find("pause", [f"engine={self.folder}"])

    def _daemon(self) -> int | None:
        """The pid of dockerd, or None."""
        return _find("dockerd", ["--config-file", str(self.folder / "daemon.json")])

    def environment(self) -> dict[str, str]:
        """The environment of kind and docker."""
        debs = cache.artefact("engine-debs", cache.key_of("docker.io tini"), _download_debs)
        folders = [binaries.upstream("kind").parent, debs / "usr/bin", debs / "usr/sbin"]
        path = ":".join([*map(str, folders), packages.search_path()])
        return {"PATH": path, "DOCKER_HOST": f"unix://{self.socket}"}

    def inside(self, argv: Sequence[str]) -> list[str]:
        """`argv` wrapped so that it runs in the engine's network, where the API servers listen."""
        pid = self.first_process()
        if pid is None:
            raise RuntimeError("the test cluster's engine is down: python -m tests.cluster up")
        return ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *argv]

    def docker(self, *args: str, timeout: float = 60, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the docker command."""
        return run(["docker", *args], timeout=timeout, check=check, env=self.environment())

    def running(self) -> bool:
        """Whether dockerd is there. (It may be too busy to answer soon: that is no reason to start another.)"""
        return self.first_process() is not None and self._daemon() is not None

    def start(self) -> None:
        """Start what isn't up; a dockerd that was killed finds its containers again."""
        with cache.locked("engine"):
            pid = self.first_process() or self._make_namespaces()
            if not self.running():
                self._start_dockerd(pid)
            self._wait_for_dockerd()

    def revive(self) -> None:
        """Start dockerd again where it alone died."""
        if self.first_process() is not None:
            self.start()

    def _make_namespaces(self) -> int:
        """Start the first process: everything else lives in its namespaces."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._in_order.unlink(missing_ok=True)
        shadowed = ["/etc", "/opt"] + ([] if Path("/lib/modules").exists() else [os.path.realpath("/lib")])
        setup = ["bash", "-c", _SETUP, "setup", str(self.folder), str(binaries.pause()), " ".join(shadowed)]
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private"]
        _detach([*spaces, *setup], self.folder / "setup.log", {})
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            if pid := self.first_process():
                return pid
            time.sleep(0.05)
        raise RuntimeError(f"the engine's namespaces did not come up: {(self.folder / 'setup.log').read_text()}")

    def _daemon_config(self) -> Path:
        runtime = self.folder / "runc-nosr"  # a copy: the engine may outlive this source tree
        shutil.copy(cache.FILES / "runc-nosr", runtime)
        config = {
            "data-root": str(self.folder / "data"),
            "exec-root": "/run/docker",
            "pidfile": "/run/docker.pid",
            "hosts": [f"unix://{self.socket}"],
            "storage-driver": "overlay2",
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "cgroup-parent": f"/{self.cgroup}",
            "default-runtime": "nosr",
            "runtimes": {"nosr": {"path": str(runtime)}},
            "oom-score-adjust": 0,
            "live-restore": True,
        }
        path = self.folder / "daemon.json"
        path.write_text(json.dumps(config, indent=1))
        return path

    def _start_dockerd(self, pid: int) -> None:
        # A dockerd that was killed leaves its pid file behind, and refuses to start on it if another process has that pid.
        enter = ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--"]
        script = 'rm -f /run/docker.pid; exec dockerd --config-file "$1"'
        argv = [*enter, "bash", "-c", script, "dockerd", str(self._daemon_config())]
        _detach(argv, self.folder / "dockerd.log", self.environment())

    def _wait_for_dockerd(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            if _answers(self.environment()):
                return
            time.sleep(0.1)
        raise RuntimeError(f"dockerd did not come up: {(self.folder / 'dockerd.log').read_text()[-2000:]}")

    def stop(self) -> None:
        """End everything and leave nothing: also after any part of it was killed."""
        with cache.locked("engine"):
            if self.first_process() is None and self._in_order.exists():
                return
            clean = self.first_process() is not None and self._remove_containers()
            self._kill()
            self._remove_cgroups()
            if clean:
                self._in_order.touch()
            else:  # containers and volumes of a dead engine: the store goes, and the node image is loaded anew
                cache.remove(self.folder)

    @property
    def _in_order(self) -> Path:
        """Exists while the engine is stopped, and was in order."""
        return self.folder / "in-order"

    def _remove_containers(self) -> bool:
        """Remove all containers with their volumes, and end dockerd in order; whether that worked."""
        try:
            if names := self.docker("ps", "-aq", timeout=20).stdout.split():
                self.docker("rm", "-fv", *names, timeout=120)
            run([*self._enter(), "bash", "-c", "kill $(cat /run/docker.pid)"], timeout=10)
        except (CommandError, FileNotFoundError):
            return False
        end = time.monotonic() + 10
        while _answers(self.environment()) and time.monotonic() < end:
            time.sleep(0.1)
        return True

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.first_process()}", "--mount", "--net", "--pid", "--"]

    def _kill(self) -> None:
        end = time.monotonic() + 20
        while pid := self.first_process():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                raise RuntimeError(f"the engine's first process {pid} does not end")
            time.sleep(0.05)

    def _remove_cgroups(self) -> None:
        end = time.monotonic() + 20
        while left := [path for path in _CGROUPS.glob(f"*/{self.cgroup}") if not _remove_tree(path)]:
            if time.monotonic() > end:
                raise RuntimeError(f"cgroups in use: {left}")
            time.sleep(0.1)

    def destroy(self) -> None:
        """`stop`, and forget the engine's store."""
        self.stop()
        cache.remove(self.folder)


def _detach(argv: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
    """Start a program that outlives us, in a session of its own, its output in `log`."""
    with log.open("w") as file:
        subprocess.run(
            ["setsid", "--fork", *argv],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **env},
            timeout=10,
            check=True,
        )


def _remove_tree(cgroup: Path) -> bool:
    """Remove a cgroup with those below it (rmdir, deepest first); whether it is gone."""
    try:
        for path, _, _ in os.walk(cgroup, topdown=False):
            os.rmdir(path)
    except OSError:
        return False
    return True


Engine = StockEngine | OwnEngine


def _registries_answer() -> bool:
    """Whether the machine's engine has kind's node image, or can get it."""
    image = node_image_of_kind()
    try:
        if run(["docker", "image", "inspect", image], timeout=10, check=False).returncode == 0:
            return True
        return run(["docker", "pull", "-q", image], timeout=600, check=False).returncode == 0
    except CommandError:
        return False


def node_image_of_kind() -> str:
    """The node image that the pinned kind takes when it is told none."""
    module = binaries.go_module_folder(f"sigs.k8s.io/kind@{versions.KIND}")
    text = (module / "pkg/apis/config/defaults/image.go").read_text()
    return text.split('Image = "')[1].split('"')[0]


def choose() -> Engine:
    """The engine to use here. An own engine that is up stays the choice."""
    own = OwnEngine()
    if not shutil.which("docker") or own.first_process() is not None or not _answers(os.environ):
        return own
    return StockEngine() if _registries_answer() else own
