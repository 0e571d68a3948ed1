"""What the machine's kernel allows, looked at before a cluster is made: a shortage shows much later, and as something else.

A kind node takes about 19 inotify instances (systemd, containerd, the kubelet, kube-proxy; the control plane's more), and
the kernel counts them per user over all namespaces. With Debian's limit of 128, six nodes fit.
"""

from __future__ import annotations

import os
from pathlib import Path

PER_NODE = 19
_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


class MachineLimitError(RuntimeError):
    """The machine has no room for the cluster asked for."""


def inotify_in_use(proc: Path = Path("/proc")) -> int:
    """The inotify instances open in all processes."""
    return sum(_open_in(folder / "fd") for folder in proc.iterdir() if folder.name.isdigit())


def _open_in(folder: Path) -> int:
    try:
        return sum(os.readlink(file) == "anon_inode:inotify" for file in folder.iterdir())
    except OSError:  # the process ended, or is not ours to look into
        return 0


def need_inotify(nodes: int, in_use: int, limit: int) -> None:
    """MachineLimitError when `nodes` more kind nodes would run out of inotify instances."""
    if in_use + nodes * PER_NODE > limit:
        raise MachineLimitError(
            f"{nodes} nodes need about {nodes * PER_NODE} inotify instances; {in_use} of the {limit} of this machine are in"
            " use (fs.inotify.max_user_instances). Take down another cluster, or take fewer workers."
        )


def check(nodes: int) -> None:
    """MachineLimitError when this machine has no room for `nodes` more kind nodes."""
    need_inotify(nodes, inotify_in_use(), int(_LIMIT.read_text()))
