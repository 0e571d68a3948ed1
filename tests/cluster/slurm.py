"""A real Slurm without Kubernetes, in namespaces of its own, for the tests of the REST client and of the rendered files.

    with BareSlurm(nodes=4, gpus=8) as slurm:
        slurm.run("sinfo")

Up in about a second. slurmctld, slurmrestd and every slurmd run in own network, mount, pid and uts namespaces over a root
file system in memory; each slurmd has a network of its own, as a pod has. Nothing listens in the machine's network. All of
it ends when `close` is called, or when this process dies, however it dies.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

import jwt

from tests.cluster import cache, images, rootfs, slurmconf
from tests.cluster.shell import CommandError, run

_SPACES = ("--net", "--mount", "--pid", "--uts", "--ipc")
USERS = {"alice": 1000, "bob": 1001}
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_READY_SECONDS = 30.0
_IDLE = {"IDLE", "IDLE+CLOUD", "IDLE+DYNAMIC_NORM"}  # idle, and up


def _as_user(user: str, argv: Sequence[str]) -> list[str]:
    """`argv` as a user of the root file system."""
    if user == "root":
        return list(argv)
    home = ["env", f"USER={user}", "HOME=/tmp"]
    return [
        "setpriv",
        f"--reuid={user}",
        f"--regid={user if user != 'nobody' else 'nogroup'}",
        "--init-groups",
        *home,
        *argv,
    ]


_MARIADB = "/run/mysqld /run/mariadbd"  # Debian 13's, and the next one's
_IN_ITS_FOLDER = 'install -d -o "$(stat -c %U "$2")" $1 && shift 2 && exec "$@"'
_OWN_ROOT = (  # ROOT SOURCE TARGET... -- COMMAND...: folders of this machine in the root, which then is no chroot any more
    'root=$1; shift; while [ "$1" != -- ]; do mkdir -p "$root$2"; mount --bind -o ro "$1" "$root$2"; shift 2; done; shift;'
    ' cd "$root"; pivot_root . .; umount -l .; exec "$@"'
)
_ACCOUNTING_DAEMONS = {  # the folder in /run that a daemon wants is its user's, who is told by a file of the root
    "mariadb": ["sh", "-c", _IN_ITS_FOLDER, "start", _MARIADB, "/var/lib/slurm-database", "mariadbd"],
    "slurmdbd": [
        *("sh", "-c", _IN_ITS_FOLDER, "start", "/run/slurmdbd", "/etc/slurm/slurmdbd.conf"),
        *_as_user("slurm", ["slurmdbd", "-D"]),
    ],
}


class BareSlurm:
    """One Slurm. Daemons are called by name: `slurmctld`, `slurmrestd`, and each slurmd by its node's name.

    With `accounting` there are `mariadb` and `slurmdbd`, too: accounts physics (alice's) and chemistry (bob's), each with
    both users in it, and slurmrestd answers for slurmdbd as well.

    With `conf_files` (name -> content of the files in /etc/slurm, slurm.conf among them) Slurm runs on those; else on a
    small configuration with nodes n0... and the `config_lines`. `start` names the nodes whose slurmd is started (all by
    default). `suite` is the Debian suite that Slurm comes from: trixie has 24.11, sid a newer one.

    With `container_images` (path on the nodes -> folder of this machine) the nodes have charliecloud and these images.
    """

    def __init__(
        self,
        nodes: int = 4,
        gpus: int = 8,
        config_lines: Sequence[str] = (),
        conf_files: Mapping[str, str] | None = None,
        *,
        start: Sequence[str] | None = None,
        slurmd_options: Sequence[str] = (),
        users: Mapping[str, int] | None = None,
        suite: str = "trixie",
        wait: bool = True,
        accounting: bool = False,
        container_images: Mapping[str, Path] | None = None,
    ) -> None:
        if accounting and conf_files:
            raise ValueError("accounting goes with the harness's own configuration only")
        default = slurmconf.default_files(nodes, gpus, config_lines, accounting=accounting)
        self.accounting, self.suite = accounting, suite
        self.container_images = container_images
        self.conf_files = dict(conf_files or default)
        self.conf = self.conf_files["slurm.conf"]
        self.nodes = slurmconf.node_names(self.conf)
        self.jwt_key = secrets.token_bytes(32)
        self._start_nodes = list(self.nodes if start is None else start)
        self._slurmd_options = list(slurmd_options)
        self._users = {**USERS, **(users or {})}
        self._gpus, self._wait = max(gpus, 8), wait
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, IO[bytes]] = {}
        self._started: dict[str, float] = {}
        self._init: subprocess.Popen[bytes] | None = None

    # -- life

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Start everything; with `wait`, return when slurmrestd listens and every started node is idle."""
        if os.geteuid() != 0:
            raise PermissionError("a bare Slurm needs root: it makes namespaces")
        self.folder = Path(tempfile.mkdtemp(prefix="ks-", dir="/tmp"))
        for name in ("memory", "rest", "files", "logs"):
            (self.folder / name).mkdir()
        (self.folder / "rest").chmod(0o777)
        self.folder.chmod(0o755)
        self._write_files()
        self._start_machine()
        self._own_files()
        if self.accounting:
            self._start_accounting()
        self.start("slurmctld")
        # It listens before it takes registrations, and a slurmd that is refused tries again only after many seconds.
        self._until("slurmctld is up", lambda: "Running as primary controller" in self.log("slurmctld"))
        for node in self._start_nodes:
            self.start(node)
        self.start("slurmrestd")
        if self._wait:
            self.wait_ready()

    def _start_accounting(self) -> None:
        """MariaDB first: a slurmdbd that doesn't find it asks again only after seconds, and so does slurmctld with it."""
        for name, up in (("mariadb", "ready for connections"), ("slurmdbd", "started")):
            self.start(name)
            self._until(f"{name} is up", lambda name=name, up=up: up in self.log(name))  # type: ignore[misc]

    def close(self) -> None:
        """End every process and forget everything."""
        if self._init is not None:
            if self._init.stdin:
                self._init.stdin.close()
            try:
                self._init.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.kill(self._pid, signal.SIGKILL)
                self._init.wait(timeout=10)
            if self._init.stdout:
                self._init.stdout.close()
            self._init = None
        for daemon in self._daemons.values():
            daemon.wait(timeout=10)
        self._daemons.clear()
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write_files(self) -> None:
        """The files laid over the root file system."""
        files = {f"etc/slurm/{name}": text for name, text in self.conf_files.items()}
        files |= {f"var/lib/extrausers/{name}": text for name, text in slurmconf.users_files(self._users).items()}
        files |= {"etc/hosts": slurmconf.hosts_file(self.conf, self.nodes), "etc/resolv.conf": ""}
        for name, text in files.items():
            path = self.folder / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
        for key, content in (("/etc/slurm/slurm.key", secrets.token_bytes(1024)), (self.jwt_key_path, self.jwt_key)):
            path = self.folder / "files" / key.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        shutil.copy(cache.FILES / "slurm-node.sh", self.folder / "files/slurm-node.sh")

    @property
    def jwt_key_path(self) -> str:
        """Where the configuration has the key of the tokens."""
        return slurmconf.jwt_key_path(self.conf)

    def _start_machine(self) -> None:
        """Make the namespaces and their root; the first process lives as long as we hold its standard input."""
        recipe = images.bare_recipe(self.suite, accounting=self.accounting)
        root = rootfs.folder(images.contained_recipe() if self.container_images else recipe)
        host, _ = slurmconf.controller_host(self.conf)
        setup = [cache.FILES / "slurm-machine.sh", root, self.folder, host, str(len(self.nodes)), str(self._gpus)]
        argv = ["unshare", *_SPACES, "--fork", "--kill-child", "--propagation", "private", *map(str, setup)]
        self._logs["machine"] = (self.folder / "logs" / "machine").open("wb")
        pipe = subprocess.PIPE
        self._init = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=self._logs["machine"])
        if self._init.stdout is None or self._init.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the namespaces did not come up: {self.log('machine')}")
        self._pid = _child(self._init.pid)

    def _own_files(self) -> None:
        """Give slurmctld's user what it must own."""
        user = slurmconf.value(self.conf, "SlurmUser", "root")
        folders = slurmconf.state_folders(self.conf)
        keys = ["/etc/slurm/slurm.key", self.jwt_key_path]
        script = 'user=$1 keys=$2; shift 2; chmod 600 $keys; mkdir -p "$@"; chown "$user" $keys "$@"'
        self.run("sh", "-c", script, "own", user, " ".join(keys), *folders)

    # -- daemons

    def start(self, name: str) -> None:
        """Start a daemon that isn't running."""
        if name in self._daemons and self._daemons[name].poll() is None:
            raise RuntimeError(f"{name} is running")
        if name not in self._logs:
            self._logs[name] = (self.folder / "logs" / name).open("ab")
        if name == "slurmrestd":  # the socket of its last life would look like one that listens
            (self.folder / "rest" / "socket").unlink(missing_ok=True)
        argv = [*self._enter(), *self._daemon_command(name)]
        if self.container_images and name in self.nodes:
            argv = self._in_own_root(self._daemon_command(name))
        log = self._logs[name]
        self._started[name] = time.time()
        self._daemons[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _daemon_command(self, name: str) -> list[str]:
        if name == "slurmctld":
            user = slurmconf.value(self.conf, "SlurmUser", "root")
            return _as_user(user, ["slurmctld", "-D"])
        if name == "slurmrestd":
            # As the daemon itself it answers by token only: without SLURM_JWT it wants a user of its own first.
            listen = ["unix:/srv/rest/socket", "0.0.0.0:6820"]
            parts = "slurmctld,slurmdbd" if self.accounting else "slurmctld"
            rest = ["env", "SLURM_JWT=daemon", "slurmrestd", "-s", parts, "-a", "rest_auth/jwt", *listen]
            return _as_user("nobody", rest)
        if name in _ACCOUNTING_DAEMONS:
            return _ACCOUNTING_DAEMONS[name]
        number = self.nodes.index(name)
        configless = "enable_configless" in self.conf
        server = ["--conf-server", f"{slurmconf.ADDRESS}:{slurmconf.value(self.conf, 'SlurmctldPort', '6817')}"]
        options = [*(server if configless else []), *self._slurmd_options]
        spaces = ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "--"]
        flag = "yes" if configless else "no"
        return [*spaces, "/slurm-node.sh", name, slurmconf.node_address(number), str(number), flag, *options]

    def stop(self, name: str) -> None:
        """End a daemon in order (SIGTERM); steps that run on a node run on."""
        self._signal(name, signal.SIGTERM)
        try:
            self._daemons[name].wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill(name)

    def kill(self, name: str, *, whole: bool = False) -> None:
        """End a daemon at once (SIGKILL); `whole`: with everything that runs on that node, as when a machine dies."""
        pid = _child(self._daemons[name].pid)
        mates = [other for other in _all_pids() if _network(other) == _network(pid)] if whole else []
        for one in [pid, *mates]:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._daemons[name].wait(timeout=15)

    def _signal(self, name: str, number: signal.Signals) -> None:
        os.kill(_child(self._daemons[name].pid), number)

    def log(self, name: str) -> str:
        """What a daemon printed so far."""
        path = self.folder / "logs" / name
        return path.read_text(errors="replace") if path.exists() else ""

    # -- use

    @property
    def url(self) -> str:
        """slurmrestd's address, to be reached from anywhere on this machine: unix:///path."""
        return f"unix://{self.folder}/rest/socket"

    def token(self, user: str = "alice", lifespan: float = 3600) -> str:
        """A token for a user (claim `sun`), signed with Slurm's key."""
        now = int(time.time())
        return jwt.encode({"iat": now, "exp": now + int(lifespan), "sun": user}, self.jwt_key, algorithm="HS256")

    def run(
        self,
        *argv: str,
        user: str = "root",
        check: bool = True,
        timeout: float = 30,
        input: str | None = None,  # noqa: A002 (as in subprocess)
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in there, in /tmp, as a user."""
        there = ["sh", "-c", 'cd /tmp && exec "$@"', "run", *argv]
        command = there if user == "root" else _as_user(user, there)
        return run([*self._enter(), *command], timeout=timeout, check=check, input=input)

    def on_node(self, node: str, *argv: str, stdin: bytes = b"", timeout: float = 30) -> bytes:
        """Run a program as root beside a node's slurmd, where it has files of its own; what it wrote."""
        spaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd"]
        there = ["nsenter", f"--target={_child(self._daemons[node].pid)}", *spaces, "env", "-i", _PATH]
        return subprocess.run([*there, *argv], input=stdin, capture_output=True, check=True, timeout=timeout).stdout

    def _in_own_root(self, command: list[str]) -> list[str]:
        """Where the root is the mount namespace's own: Linux lets nobody make a user namespace in a chroot."""
        binds = [word for target, source in (self.container_images or {}).items() for word in (str(source), target)]
        enter = ["nsenter", f"--target={self._pid}", *_SPACES, "unshare", "--mount", "--propagation", "private", "--"]
        pivot = ["sh", "-euc", _OWN_ROOT, "pivot", f"{self.folder}/memory/root", *binds, "--"]
        return [*enter, *pivot, "env", "-i", _PATH, *command]

    def _enter(self) -> list[str]:
        """The words that put a command into the namespaces and their root."""
        return [
            "nsenter",
            f"--target={self._pid}",
            *_SPACES,
            "chroot",
            f"{self.folder}/memory/root",
            "env",
            "-i",
            _PATH,
        ]

    def wait_ready(self, timeout: float = _READY_SECONDS) -> None:
        """Wait until slurmrestd listens and every started node is idle."""
        self._until("slurmrestd listens", (self.folder / "rest" / "socket").exists, timeout)
        if self._start_nodes:
            self._until("all nodes are idle", self._all_idle, timeout)

    def _all_idle(self) -> bool:
        """Whether Slurm calls every started node idle, with no mark of a node that is only expected."""
        said = self.run("scontrol", "-o", "show", "node", ",".join(self._start_nodes), check=False).stdout
        found = re.findall(r"(?m)^NodeName=(\S+) .*? State=(\S+) .*? SlurmdStartTime=(\S+)", said)
        return len(found) == len(self._start_nodes) and all(self._is_up(*node) for node in found)

    def _is_up(self, name: str, state: str, since: str) -> bool:
        """Whether a node is idle, and registered since we last started it (a node just killed still looks idle)."""
        if state not in _IDLE or since == "None":
            return False
        registered = datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()
        return registered >= int(self._started.get(name, 0))

    def _until(self, what: str, done: Callable[[], bool], timeout: float = _READY_SECONDS) -> None:
        end = time.monotonic() + timeout
        while not done():
            dead = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                reason = f"{', '.join(dead)} ended" if dead else f"not after {timeout:g} s"
                said = "\n".join(f"--- {name}\n{self.log(name)[-1500:]}" for name in dead or list(self._daemons)[:3])
                raise CommandError([f"bare Slurm: {what}"], reason, said)
            time.sleep(0.03)


def _child(pid: int) -> int:
    """The process that nsenter or unshare forked for the new pid namespace."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if words := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(words[0])
        time.sleep(0.01)
    raise ProcessLookupError(f"process {pid} has no child")


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _network(pid: int) -> str | None:
    """The network namespace of a process; None if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None
