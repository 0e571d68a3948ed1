"""The batch script of a plan: header, rendezvous, one srun.

Pure. What always holds: no user's text stands before the first command or outside quotes; user variables reach only the
tasks, never the batch shell or srun; the script fails with a clear message where it can't do what it says.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kubeslurm import containers, material_scripts, task_facts
from kubeslurm.directives import LOG_DIR, options
from kubeslurm.errors import InvalidObject
from kubeslurm.expansion import Word, shell
from kubeslurm.material_scripts import late
from kubeslurm.plans import JobPlan, Launcher, Program, Shape, is_gpu

MAX_TASK_BYTES: Final = 120_000
"""Linux takes no single argument of more than 128 KiB."""

_RENDEZVOUS: Final = """\
set -u
fail() { echo "kubeslurm: $1" >&2; exit 1; }

# Where the ranks meet: the first node, by the address that Slurm knows. Its name may mean nothing on the other nodes.
addresses() { scontrol getaddrs "$1" | sed -n 's/^[^:]*: \\[\\{0,1\\}\\([^]]*\\)\\]\\{0,1\\}:[0-9]*$/\\1/p'; }
first=$(scontrol show hostnames "$%(nodes)s" | head -n 1)
[ -n "$first" ] || fail "no first node in %(nodes)s=$%(nodes)s"
MASTER_ADDR=$(addresses "$first" | head -n 1)
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
"""

_WITHOUT_LOST: Final = """\
# The others go on without a lost node, and it is they who say how the job ends.
lost=$(sed -n 's/^srun: error: Node failure on //p' "$messages" | xargs -r -n 1 scontrol show hostnames)
own=$(grep '^srun: error: [^ ]*: tasks\\{0,1\\} ' "$messages")
for node in $lost; do own=$(grep -v "^srun: error: $node: " <<< "$own"); done
[ -z "$lost" ] || [ -n "$own" ] || code=0
"""

_END: Final = """\
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
    many = len(plan.shapes) > 1
    headers = ["\n".join(option.line for option in options(plan, shape)) for shape in plan.shapes]
    tasks = [_heredoc(plan, number) for number in range(len(plan.shapes))]
    meet = _RENDEZVOUS % {"nodes": "SLURM_JOB_NODELIST" + ("_HET_GROUP_0" if many else "")}
    return "\n".join(
        [
            "#!/bin/bash",
            "\n#SBATCH hetjob\n".join(headers),
            "",
            meet + _port(plan) + _addresses(plan),
            *tasks,
            "",
            _srun(plan),
            _WAIT + (_WITHOUT_LOST if plan.elastic else "") + _END,
        ]
    )


def _heredoc(plan: JobPlan, number: int) -> str:
    task = _task(plan, number)
    if len(task.encode()) > MAX_TASK_BYTES:
        role = plan.shapes[number].roles[0]
        path = f"spec.pytorchReplicaSpecs.{role}.template.spec.containers[0]"
        raise InvalidObject(path, f"command, args and env are larger than {MAX_TASK_BYTES} bytes together")
    # a delimiter made of the text's own hash can't stand in the text
    end = f"TASK_{hashlib.sha256(task.encode()).hexdigest()[:24]}"
    return f"IFS= read -r -d '' {_variable(plan, number)} <<'{end}' || true\n{task}{end}"


def _variable(plan: JobPlan, number: int) -> str:
    return "task" if len(plan.shapes) == 1 else f"task{number}"


def _port(plan: JobPlan) -> str:
    # below the ports that Linux gives to outgoing connections, and Kubernetes to node ports
    port = str(plan.port) if plan.port else "$((20000 + SLURM_JOB_ID % 10000))"
    return f"MASTER_PORT={port}\nexport MASTER_ADDR MASTER_PORT\n"


def _addresses(plan: JobPlan) -> str:
    """Of all nodes, where a task asks for its own: it has no scontrol in a container."""
    if task_facts.ADDRESS not in task_facts.used(word for one in plan.programs for word in one.words):
        return ""
    lists = [f"SLURM_JOB_NODELIST_HET_GROUP_{number}" for number in range(len(plan.shapes))]
    names = lists if len(lists) > 1 else ["SLURM_JOB_NODELIST"]
    found = "; ".join(f'addresses "${name}"' for name in names)
    return f"{task_facts.ADDRESSES}=$({{ {found}; }} | tr '\\n' ' ')\nexport {task_facts.ADDRESSES}\n"


def _srun(plan: JobPlan) -> str:
    steps = [
        f'{" ".join(_flags(plan, number))} \\\n  /bin/bash -c "${_variable(plan, number)}"'
        for number in range(len(plan.shapes))
    ]
    messages = f"messages={LOG_DIR.replace('%j', '$SLURM_JOB_ID')}/srun.err"
    first = containers.before_step(plan.container, plan.materials)
    return f'{_count_cpus(plan)}{first}{messages}\nsrun {" : ".join(steps)} 2> "$messages" &'


def _flags(plan: JobPlan, number: int) -> list[str]:
    shape, many = plan.shapes[number], len(plan.shapes) > 1
    elastic = plan.elastic is not None
    nodes = '"$SLURM_JOB_NUM_NODES"' if elastic else str(shape.nodes)
    return [
        *([f"--het-group={number}"] if many else []),
        f"--nodes={nodes}",
        f"--ntasks={nodes if elastic else shape.tasks}",
        f"--ntasks-per-node={shape.tasks_per_node}",
        f"--cpus-per-task={_cpus(shape, number)}",
        *_gres(plan, shape),
        # Slurm would level tasks out over the nodes, and part a replica's
        f"--distribution={'block' if shape.even else 'block,Pack'}",
        *(["--no-kill", "--kill-on-bad-exit=0"] if elastic else ["--kill-on-bad-exit=1"]),
        f"--mpi={plan.mpi}",
        f"--output={'none' if many else f'{LOG_DIR}/%t.out'}",
        *containers.srun_flags(plan.container, plan.materials),
    ]


def _cpus(shape: Shape, number: int) -> str:
    if shape.cpus_per_task is not None:
        return str(shape.cpus_per_task)
    return f'"$((cpus{number} / {shape.tasks_per_node}))"'


def _count_cpus(plan: JobPlan) -> str:
    """Of nodes that the job has for itself, as `32(x4)` or `32,16`: srun would give each task one of them."""
    lines = []
    for number, shape in enumerate(plan.shapes):
        if shape.cpus_per_task is None:
            group = f"_HET_GROUP_{number}" if len(plan.shapes) > 1 else ""
            lines.append(f"cpus{number}=${{SLURM_JOB_CPUS_PER_NODE{group}%%[(,]*}}\n")
    return "".join(lines)


def _gres(plan: JobPlan, shape: Shape) -> list[str]:
    """Replicas that share a node see their own GPUs only; the ranks of one see all of it."""
    apart = shape.replicas_per_node > 1 and plan.launcher is Launcher.POD
    gpus = [(name, count) for name, count in shape.gres if is_gpu(name)]
    rest = [(name, count) for name, count in shape.gres if not (apart and is_gpu(name))]
    listed = ",".join(f"{name}:{count * shape.replicas_per_node}" for name, count in rest)
    found = [f"--gres={listed}"] if listed else []
    if apart:
        return found + [f"--gpus-per-task={f'{name}:{count}'.partition(':')[2]}" for name, count in gpus]
    return [*found, "--gpu-bind=none"] if gpus else found


def _task(plan: JobPlan, number: int) -> str:
    """What each task runs: its place in the gang, and then its role's program."""
    shape, many = plan.shapes[number], len(plan.shapes) > 1
    programs = [one for one in plan.programs if set(one.roles) & set(shape.roles)]
    words = [word for one in programs for word in one.words]
    facts = task_facts.lines(plan, shape, task_facts.used(words), place=len(programs) > 1)
    lines = [*_own_output(number, many=many), *_materials(plan, words), *_place(plan, shape), *facts]
    lines += _SCRUB if plan.launcher is Launcher.POD else []
    for one in programs[:-1]:
        most = sum(role.replicas for role in plan.roles if role.name in one.roles)
        lines += [f'if [ "${task_facts.PLACE}" -lt {most} ]; then', *_program(plan, shape, one), "fi"]
    return "\n".join([*lines, *_program(plan, shape, programs[-1]), ""])


def _own_output(number: int, *, many: bool) -> list[str]:
    """srun numbers the files of a second component's tasks otherwise than it numbers the tasks."""
    if not many:
        return []
    folder = LOG_DIR.replace("%j", f"$SLURM_JOB_ID_HET_GROUP_{number}")
    return [f'exec > "{folder}/$SLURM_PROCID.out" 2>&1']


def _program(plan: JobPlan, shape: Shape, program: Program) -> list[str]:
    """Its directory, its variables, and itself."""
    image_env, prefix = containers.environment(plan.container)
    assignments = [f"{prefix}{name}={shell(value)}" for name, value in program.environment if not late(value)]
    words = containers.wrap(plan.container, [shell(word) for word in program.argv])
    threads = [] if any(name == "OMP_NUM_THREADS" for name, _ in program.environment) else _threads(plan, shape)
    exports = [*image_env, *material_scripts.exports(plan.materials, program.environment, prefix)]
    start = "exec /usr/bin/env" if exports else "exec env"  # PATH may be one of them
    return [*_directory(plan, program), *threads, *exports, " \\\n  ".join([start, *assignments, *words])]


def _materials(plan: JobPlan, words: list[Word]) -> list[str]:
    """What was brought, and the mounts; for pyxis a step before this one has waited for it."""
    inside = plan.container is not None and plan.container.runtime == containers.PYXIS
    waiting = material_scripts.ready(plan.materials, folders=not inside)
    found = material_scripts.lines(plan.materials, words)
    return [*waiting, *found, *containers.prepare(plan.container, plan.materials)]


_SCRUB: Final = ['for name in ${!SLURM_@} ${!SRUN_@} ${!PMI_@} ${!PMIX_@}; do unset "$name"; done']
"""Programs that start their own processes must not take themselves for a Slurm task."""


def _place(plan: JobPlan, shape: Shape) -> list[str]:
    if plan.launcher is Launcher.RANK:
        return [
            "export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID",
            *_counted(shape),
            f"export LOCAL_WORLD_SIZE={_local_size(shape)} NODE_RANK=$SLURM_NODEID GROUP_RANK=$SLURM_NODEID",
        ]
    # RANK is the replica's and WORLD_SIZE counts processes: as the training operator has it
    size = f"$((SLURM_NTASKS * {plan.processes_per_task}))" if plan.elastic else plan.tasks * plan.processes_per_task
    return [
        *([f"export RANK=$SLURM_PROCID WORLD_SIZE={size} PET_NODE_RANK=$SLURM_PROCID"] if plan.ranked else []),
        "export PET_MASTER_ADDR=$MASTER_ADDR PET_MASTER_PORT=$MASTER_PORT",
    ]


def _counted(shape: Shape) -> list[str]:
    """The last node may have fewer tasks than the others."""
    return [] if shape.even else ['IFS=, read -ra KUBESLURM_HERE <<< "$SLURM_GTIDS"']


def _local_size(shape: Shape) -> str:
    return str(shape.tasks_per_node) if shape.even else "${#KUBESLURM_HERE[@]}"


def _threads(plan: JobPlan, shape: Shape) -> list[str]:
    if plan.launcher is not Launcher.RANK:
        return []
    return [f"export OMP_NUM_THREADS={shape.cpus_per_task or '$SLURM_CPUS_PER_TASK'}"]


def _directory(plan: JobPlan, program: Program) -> list[str]:
    if program.workdir is None or plan.container is not None:
        return []
    where = shell((program.workdir,))
    say = f'echo "kubeslurm: no directory {program.workdir} on $SLURMD_NODENAME" >&2'
    return [f"cd -- {where} || {{ {say}; exit 126; }}"]
