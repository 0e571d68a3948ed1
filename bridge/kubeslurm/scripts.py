"""The batch script of a plan: header, rendezvous, one srun.

Pure. What always holds: no user's text stands before the first command or outside quotes; user variables reach only the
tasks, never the batch shell or srun; the script fails with a clear message where it can't do what it says.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kubeslurm import containers, material_scripts
from kubeslurm.directives import LOG_DIR, options
from kubeslurm.errors import InvalidObject
from kubeslurm.expansion import Word, shell
from kubeslurm.material_scripts import late
from kubeslurm.plans import JobPlan, Launcher

MAX_TASK_BYTES: Final = 120_000
"""Linux takes no single argument of more than 128 KiB."""

_RENDEZVOUS: Final = """\
set -u
fail() { echo "kubeslurm: $1" >&2; exit 1; }

# Where the ranks meet: the first node, by the address that Slurm knows. Its name may mean nothing on the other nodes.
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
[ -n "$first" ] || fail "no first node in SLURM_JOB_NODELIST=$SLURM_JOB_NODELIST"
MASTER_ADDR=$(scontrol getaddrs "$first" | sed -n 's/^[^:]*: \\[\\{0,1\\}\\([^]]*\\)\\]\\{0,1\\}:[0-9]*$/\\1/p' | head -n 1)
[ -n "$MASTER_ADDR" ] || fail "no address of node $first"
"""


_WAIT: Final = """\
srun=$!
trap 'kill -TERM "$srun"' TERM
# When a rank fails while others are still starting, srun's signal can miss those: they would stay until the time limit.
(
  until grep -q '^srun: Terminating StepId' "$messages"; do sleep 2; done
  sleep 35 # KillWait, and some
  kill -KILL "$srun"
) 2>/dev/null &
while wait "$srun"; code=$?; kill -0 "$srun" 2>/dev/null; do :; done
kill "$!" 2>/dev/null
cat "$messages" >&2
# srun ends with the highest code, so with that of the ranks which it ends because one failed: the first one counts.
first=$(sed -n 's/^srun: error: [^ ]*: tasks\\{0,1\\} [0-9,-]*: //p' "$messages" | head -n 1)
[ "$code" -eq 0 ] || case $first in
  *"exit code "*) code=${first##*exit code } ;;
  Aborted*) code=134 ;;
  Killed*) code=137 ;;
  Segmentation*) code=139 ;;
esac
exit "$code"
"""


def write_script(plan: JobPlan) -> str:
    """The whole script."""
    header = "\n".join(["#!/bin/bash", *(option.line for option in options(plan))])
    task = _task(plan)
    if len(task.encode()) > MAX_TASK_BYTES:
        role = plan.roles[0].name
        path = f"spec.pytorchReplicaSpecs.{role}.template.spec.containers[0]"
        raise InvalidObject(path, f"command, args and env are larger than {MAX_TASK_BYTES} bytes together")
    # a delimiter made of the text's own hash can't stand in the text
    end = f"TASK_{hashlib.sha256(task.encode()).hexdigest()[:24]}"
    heredoc = f"IFS= read -r -d '' task <<'{end}' || true\n{task}{end}"
    return "\n".join([header, "", _RENDEZVOUS + _port(plan), heredoc, "", _srun(plan), _WAIT])


def _port(plan: JobPlan) -> str:
    # below the ports that Linux gives to outgoing connections, and Kubernetes to node ports
    port = str(plan.port) if plan.port else "$((20000 + SLURM_JOB_ID % 10000))"
    return f"MASTER_PORT={port}\nexport MASTER_ADDR MASTER_PORT\n"


def _srun(plan: JobPlan) -> str:
    flags = [
        f"--nodes={plan.nodes}",
        f"--ntasks={plan.tasks}",
        f"--ntasks-per-node={plan.tasks_per_node}",
        *([f"--cpus-per-task={plan.cpus_per_task}"] if plan.cpus_per_task is not None else []),
        *([f"--gres=gpu:{plan.gpus_per_node}", "--gpu-bind=none"] if plan.gpus_per_node else []),
        "--distribution=block",
        "--kill-on-bad-exit=1",
        f"--mpi={plan.mpi}",
        f"--output={LOG_DIR}/%t.out",
        *containers.srun_flags(plan.container, plan.materials),
    ]
    messages = f"messages={LOG_DIR.replace('%j', '$SLURM_JOB_ID')}/srun.err"
    first = containers.before_step(plan.container, plan.materials)
    return f'{first}{messages}\nsrun {" ".join(flags)} \\\n  /bin/bash -c "$task" 2> "$messages" &'


def _task(plan: JobPlan) -> str:
    """What each task runs: its place in the gang, its directory, its program."""
    used = [*plan.argv, *(value for _, value in plan.environment)]
    lines = [*_materials(plan, used), *_place(plan), *_directory(plan)]
    image_env, prefix = containers.environment(plan.container)
    assignments = [f"{prefix}{name}={shell(value)}" for name, value in plan.environment if not late(value)]
    words = containers.wrap(plan.container, [shell(word) for word in plan.argv])
    scrub = _SCRUB if plan.launcher is Launcher.POD else []
    threads = [] if any(name == "OMP_NUM_THREADS" for name, _ in plan.environment) else _threads(plan)
    exports = [*image_env, *material_scripts.exports(plan.materials, plan.environment, prefix)]
    start = "exec /usr/bin/env" if exports else "exec env"  # PATH may be one of them
    return "\n".join([*lines, *threads, *scrub, *exports, " \\\n  ".join([start, *assignments, *words]), ""])


def _materials(plan: JobPlan, words: list[Word]) -> list[str]:
    """What was brought, and the mounts; for pyxis a step before this one has waited for it."""
    inside = plan.container is not None and plan.container.runtime == containers.PYXIS
    waiting = material_scripts.ready(plan.materials, folders=not inside)
    found = material_scripts.lines(plan.materials, words)
    return [*waiting, *found, *containers.prepare(plan.container, plan.materials)]


_SCRUB: Final = ['for name in ${!SLURM_@} ${!SRUN_@} ${!PMI_@} ${!PMIX_@}; do unset "$name"; done']
"""Programs that start their own processes must not take themselves for a Slurm task."""


def _place(plan: JobPlan) -> list[str]:
    if plan.launcher is Launcher.RANK:
        return [
            "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID",
            f"export LOCAL_WORLD_SIZE={plan.tasks_per_node} NODE_RANK=$SLURM_NODEID GROUP_RANK=$SLURM_NODEID",
        ]
    # RANK is the replica's and WORLD_SIZE counts processes: as the training operator has it
    return [
        f"export RANK=$SLURM_PROCID WORLD_SIZE={plan.tasks * plan.processes_per_task} PET_NODE_RANK=$SLURM_PROCID",
        "export PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT",
    ]


def _threads(plan: JobPlan) -> list[str]:
    if plan.launcher is not Launcher.RANK:
        return []
    return [f"export OMP_NUM_THREADS={plan.cpus_per_task or 1}"]


def _directory(plan: JobPlan) -> list[str]:
    if plan.workdir is None or plan.container is not None:
        return []
    where = shell((plan.workdir,))
    return [f'cd -- {where} || {{ echo "kubeslurm: no directory {plan.workdir} on $SLURMD_NODENAME" >&2; exit 126; }}']
