"""Getting an image archive into a node's containerd. Called by Cluster.load.

An archive of the cache is read by the node itself, from the cache's folders that kind mounts into every node, and only if
the node hasn't that very one: the node remembers which key of each name it took last. Any other archive is piped in, always.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cluster import cache
from tests.cluster.engine import Engine
from tests.cluster.shell import CommandError

_INSIDE = "/kubeslurm-cache"
_IMPORT = 'ctr -n k8s.io images import --snapshotter overlayfs "$1" > /dev/null'
_ONCE = f"""
mkdir -p /kind/loaded
test "$(cat "/kind/loaded/$2" 2> /dev/null)" = "$3" && exit 0
{_IMPORT} && echo "$3" > "/kind/loaded/$2"
"""
_SECONDS = 300


def mounts(names: Iterable[str]) -> list[dict[str, Any]]:
    """kind's `extraMounts` of a node: the cache's folders of these images, to read, and no more of it."""
    folders = [cache.root() / f"image-{name}" for name in names]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return [{"hostPath": str(f), "containerPath": f"{_INSIDE}/{f.name}", "readOnly": True} for f in folders]


def load(engine: Engine, node: str, archive: Path) -> None:
    """Import an archive into a node's containerd; CommandError says what containerd said."""
    if archive.is_relative_to(cache.root()):
        name, key = archive.parent.name, archive.name
        path = f"{_INSIDE}/{archive.relative_to(cache.root())}"
        script = ["sh", "-c", _ONCE, "load", path, name, key]
        if engine.docker("exec", node, *script, check=False, timeout=_SECONDS).returncode == 0:
            return  # else: a cluster that was made with another cache
    _pipe(engine, node, archive)


def _pipe(engine: Engine, node: str, archive: Path) -> None:
    with archive.open("rb") as file:
        done = subprocess.run(
            ["docker", "exec", "-i", node, "sh", "-c", _IMPORT, "load", "-"],
            stdin=file,
            capture_output=True,
            env={**os.environ, **engine.environment()},
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise CommandError(["docker", "exec", node, "ctr import"], f"exit {done.returncode}", done.stderr.decode())
