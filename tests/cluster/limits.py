"""What the machine's kernel allows, looked at before a cluster is made: a shortage shows much later, and as something else.

Every kind node takes inotify instances (systemd, containerd, the kubelet, kube-proxy, on the control plane the API server
and the controllers), and the kernel counts them per user over all namespaces. Debian's limit of 128 is two clusters.
"""

from __future__ import annotations

import os
from pathlib import Path

CONTROL_PLANE = 26
WORKER = 13
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


def need_inotify(workers: int, in_use: int, limit: int) -> None:
    """MachineLimitError when a cluster with `workers` workers would run out of inotify instances."""
    needed = CONTROL_PLANE + workers * WORKER
    if in_use + needed > limit:
        raise MachineLimitError(
            f"a cluster with {workers} workers takes {needed} inotify instances; {in_use} of the {limit} of this machine"
            " are in use (fs.inotify.max_user_instances). Take down another cluster, or take fewer workers."
        )


def check(workers: int) -> None:
    """MachineLimitError when this machine has no room for one more cluster with `workers` workers."""
    need_inotify(workers, inotify_in_use(), int(_LIMIT.read_text()))
