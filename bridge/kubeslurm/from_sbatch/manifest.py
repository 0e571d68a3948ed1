"""From an sbatch script to a PyTorchJob: `read_script(text) -> (manifest, what was left out)`.

Pure; called by `kubeslurm translate --to pytorchjob`. What always holds: what comes out can be read back by
`readers.pytorch`; no line of the script is run; whatever has no counterpart is in the list, by its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubeslurm import launch, names
from kubeslurm.from_sbatch import body as body_reader
from kubeslurm.from_sbatch import launch_line, options
from kubeslurm.from_sbatch.body import Body, Values
from kubeslurm.from_sbatch.found import Asked, LeftOut, NoJob, Run
from kubeslurm.plans import Launcher
from kubeslurm.shell_words import BadShell, commands
from slurmrest.sbatch import BadScript, Complaint, Options
from slurmrest.sbatch import read_script as read_options

Raw = dict[str, Any]

MAX_BYTES: Final = 4 << 20
IMAGE: Final = "registry.example/train:latest"
_LINE: Final = re.compile(r"line (\d+)")


def read_script(text: str, *, image: str | None = None, namespace: str | None = None) -> tuple[Raw, list[LeftOut]]:
    """The PyTorchJob, and what was left out, by lines. Raises NoJob where there is no job in it."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise NoJob("the script is larger than sbatch takes")
    left: list[LeftOut] = []
    asked = _options(text, left)
    header = len(left)
    try:
        body = body_reader.read(commands(text), left)
    except BadShell as error:
        raise NoJob(str(error), error.line) from None
    run, ranked = _run(body, asked, left, header)
    made = _manifest(asked, run, image or asked.image or IMAGE, namespace, left, ranked=ranked)
    if not (image or asked.image):
        left.append(LeftOut(0, "image", f"no word of one: {IMAGE} stands for it, see --image"))
    unique = {str(one): one for one in left}
    return made, sorted(unique.values(), key=lambda one: one.line)


def _options(text: str, left: list[LeftOut]) -> Asked:
    try:
        script = read_options(text)
    except BadScript as error:
        raise NoJob(str(error).removeprefix(f"line {error.line}: "), error.line) from None
    if len(script.components) > 1:
        raise NoJob("a heterogeneous job: only one whose Master is a component of its own would be a PyTorchJob")
    asked, found = Asked(), script.components[0]
    _pyxis(found, asked, left)
    options.apply(found, asked, left)
    left += (LeftOut(number, line, "another scheduler's") for number, line in script.foreign)
    return asked


def _pyxis(found: Options, asked: Asked, left: list[LeftOut]) -> None:
    """Options that sbatch knows from a plugin only."""
    for one in found.complaints:
        word = one.word if one.word.startswith("-") else f"--{one.word}"
        if word.startswith("--container-image="):
            asked.image = word.partition("=")[2].replace("#", "/")
        else:
            left.append(LeftOut(_line(one), word, one.reason))


def _line(complaint: Complaint) -> int:
    match = _LINE.match(complaint.origin)
    return int(match.group(1)) if match else 0


def _run(body: Body, asked: Asked, left: list[LeftOut], header: int) -> tuple[Run, bool]:
    """The program, and is it started once for each rank? Of a script of our own, all but the task is our own, too."""
    command = body.launch
    if command is None:
        raise NoJob("no command starts a program")
    words, before = launch_line.read(command, body, asked)
    text = launch_line.own_task(words, body)
    if text is not None:
        del left[header:]
        return launch_line.run_own(text, command.line, left), launch_line.launched_by_rank(text)
    _settle(asked)
    values = Values(body.variables, _slurm(asked), left, command.line)
    environment = tuple(launch_line.environment(body, values, before))
    argv = tuple(values.text(word) for word in words)
    workdir = values.text(body.workdir) if body.workdir is not None else None
    return Run(command.line, argv, environment, workdir), (asked.tasks_per_node or 1) > 1


def _slurm(asked: Asked) -> Mapping[str, str]:
    """What Slurm's own variables are in Kubernetes: numbers that are known here, or the rank's variables."""
    nodes, each = asked.nodes or 1, asked.tasks_per_node or 1
    known = {
        **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), str(nodes)),
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(nodes * each)),
        "SLURM_NTASKS_PER_NODE": str(each),
        **dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID") if each == 1 else ("SLURM_PROCID",), "$(RANK)"),
        "SLURM_JOB_NAME": asked.name,
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID", "RANDOM"), asked.name or "job"),
    }
    if each > 1:
        known |= {"SLURM_LOCALID": "$(LOCAL_RANK)", "SLURM_NODEID": "$(NODE_RANK)"}
    if asked.cpus_per_task:
        known["SLURM_CPUS_PER_TASK"] = str(asked.cpus_per_task)
    if asked.gpus_per_node:
        known |= dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), str(asked.gpus_per_node))
    return known


def _settle(asked: Asked) -> None:
    """Nodes, tasks and GPUs, each from the others where only some are given."""
    each = asked.tasks_per_node
    if asked.nodes is None:
        asked.nodes = -(-asked.tasks // each) if asked.tasks and each else 1
    if each is None:
        asked.tasks_per_node = -(-asked.tasks // asked.nodes) if asked.tasks else 1
    if asked.gpus and not asked.gpus_per_node:
        asked.gpus_per_node = -(-asked.gpus // asked.nodes)
    if asked.gpus_per_task and not asked.gpus_per_node:
        asked.gpus_per_node = asked.gpus_per_task * (asked.tasks_per_node or 1)
    if asked.cpus_per_gpu and asked.gpus_per_node and not asked.cpus_per_task:
        asked.cpus_per_task = -(-asked.cpus_per_gpu * asked.gpus_per_node // (asked.tasks_per_node or 1))


def _manifest(asked: Asked, run: Run, image: str, namespace: str | None, left: list[LeftOut], *, ranked: bool) -> Raw:
    _settle(asked)
    nodes, each, gpus = asked.nodes or 1, asked.tasks_per_node or 1, asked.gpus_per_node or 0
    replicas, share = _replicas(asked, run, nodes, each, gpus, ranked=ranked)
    annotations = dict(asked.annotations)
    if asked.unlimited:
        annotations[names.ANNOTATION_TIME] = "UNLIMITED"
    if asked.exclusive:
        annotations[names.ANNOTATION_EXCLUSIVE] = "true"
    if share > 1:
        annotations[names.ANNOTATION_NODES] = str(nodes)
    launcher = Launcher.RANK if ranked and share == 1 else Launcher.POD
    if launch.choose(run.argv, gpus // share, None, {})[0] is not launcher:
        annotations[names.ANNOTATION_LAUNCHER] = str(launcher)
    template = {"spec": {"containers": [_container(asked, run, each, gpus, share, image)]}}
    policy = "OnFailure" if asked.requeue else "Never"
    roles = {"Master": {"replicas": 1, "restartPolicy": policy, "template": template}}
    if replicas > 1:
        roles["Worker"] = {"replicas": replicas - 1, "restartPolicy": policy, "template": template}
    metadata: Raw = {"name": _name(asked, left), **({"namespace": namespace} if namespace else {})}
    if annotations:
        metadata["annotations"] = dict(sorted(annotations.items()))
    spec: Raw = {"pytorchReplicaSpecs": roles}
    if asked.minutes:
        spec["runPolicy"] = {"activeDeadlineSeconds": asked.minutes * 60}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec}


def _replicas(asked: Asked, run: Run, nodes: int, each: int, gpus: int, *, ranked: bool) -> tuple[int, int]:
    """How many, and how many of them share a node: a replica is a node, or a task where no GPU is to each task."""
    if each == 1 or (ranked and gpus == each):
        return nodes, 1
    if gpus % each:
        raise NoJob(f"{gpus} GPUs can't be shared by {each} tasks on a node", run.line)
    return (asked.tasks or nodes * each), each


def _container(asked: Asked, run: Run, each: int, gpus: int, share: int, image: str) -> Raw:
    limits: Raw = {}
    if gpus:
        limits["nvidia.com/gpu"] = gpus // share
    if asked.cpus_per_task:
        limits["cpu"] = asked.cpus_per_task * (each // share)
    memory = _memory(asked, each, gpus)
    if memory:
        limits["memory"] = f"{-(-memory // share)}Mi" if memory % (1024 * share) else f"{memory // 1024 // share}Gi"
    container: Raw = {"name": "pytorch", "image": image, "command": list(run.argv)}
    if run.environment:
        container["env"] = [{"name": name, "value": value} for name, value in run.environment]
    workdir = run.workdir or asked.chdir
    if workdir and workdir != "/":
        container["workingDir"] = workdir
    if limits:
        container["resources"] = {"limits": limits}
    return container


def _memory(asked: Asked, each: int, gpus: int) -> int | None:
    if asked.memory_mib:
        return asked.memory_mib
    if asked.memory_per_cpu:
        return asked.memory_per_cpu * (asked.cpus_per_task or 1) * each
    return asked.memory_per_gpu * gpus if asked.memory_per_gpu and gpus else None


def _name(asked: Asked, left: list[LeftOut]) -> str:
    """A DNS label."""
    name = re.sub(r"[^a-z0-9]+", "-", asked.name.lower()).strip("-")[:63].strip("-") or "job"
    name = name if name[0].isalpha() else f"job-{name}"[:63].strip("-")
    if asked.name and name != asked.name:
        left.append(LeftOut(0, asked.name, f"no name in Kubernetes; {name} stands for it"))
    return name
