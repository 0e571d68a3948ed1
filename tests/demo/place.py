"""What the demo leaves in the tree: `.demo/env` and `.demo/bin`, by which a shell gets the demo's commands.

After `. .demo/env` in a shell: kubectl and helm speak to the demo's Kubernetes, and sinfo, squeue, sbatch, srun, scontrol
run in a pod of the pool (see `client`).
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from kubeslurm import names
from tests.cluster import Cluster
from tests.demo import client

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".demo"
SLURM_COMMANDS = ("sinfo", "squeue", "sbatch", "srun", "scontrol", "scancel")


def login(cluster: Cluster, namespace: str, nodeset: str, user: str) -> client.Login:
    """Where Slurm's commands run."""
    return client.Login(cluster.kubectl_command([]), namespace, f"{names.LABEL_NODESET}={nodeset}", "slurmd", user)


def write(cluster: Cluster, where: client.Login) -> None:
    """Make `.demo` anew."""
    binaries = FOLDER / "bin"
    shutil.rmtree(FOLDER, ignore_errors=True)
    binaries.mkdir(parents=True)
    (FOLDER / "login.json").write_text(json.dumps(asdict(where), indent=1) + "\n")
    (FOLDER / "env").write_text(_environment(cluster))
    _program(binaries / "kubectl", cluster.kubectl_command([]))
    _program(binaries / "helm", cluster.command(["helm"]))
    for name in SLURM_COMMANDS:
        words = [sys.executable, "-S", str(Path(client.__file__)), str(FOLDER / "login.json"), name]
        _program(binaries / name, words)


def remove(cluster: Cluster) -> None:
    """Take it away, if it is of this cluster."""
    environment = FOLDER / "env"
    if environment.exists() and _kubeconfig(cluster) in environment.read_text().splitlines():
        shutil.rmtree(FOLDER)


def _program(path: Path, words: list[str]) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)


def _environment(cluster: Cluster) -> str:
    folder = shlex.quote(str(FOLDER / "bin"))
    return (
        "# For a shell: . .demo/env\n"
        f"{_kubeconfig(cluster)}\n"
        f'case ":$PATH:" in *:{folder}:*) ;; *) export PATH={folder}:"$PATH" ;; esac\n'
        "hash -r\n"
    )


def _kubeconfig(cluster: Cluster) -> str:
    return f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}"
