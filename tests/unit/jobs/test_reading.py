"""PyTorchJob to plan, script and description: the reference, the rules, the refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeslurm import directives
from kubeslurm.descriptions import write_description
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan, Launcher
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import INFINITE
from slurmrest import number as wire
from tests.unit import examples
from tests.unit.examples import EXAMPLES, Change, Raw, only_master
from tests.unit.jobs import tasks
from tests.unit.jobs.tasks import SHOW

EXPECTED = (EXAMPLES / "expected-directives.txt").read_text().splitlines()


def plan(change: Change | None = None) -> JobPlan:
    """The example job's plan on the example pool."""
    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset()])


def test_the_reference_directives() -> None:
    """The script's header has every line that the reference has."""
    lines = write_script(plan()).split("\n")
    assert set(EXPECTED) <= set(lines)


def test_the_description_says_what_the_header_says() -> None:
    """Field by field: what sbatch would make of a line is what REST is sent."""
    made = plan()
    description = write_description(made)
    header = {
        line.split("=")[0]: line.partition("=")[2] for line in write_script(made).splitlines() if "#SBATCH" in line
    }
    reading: dict[str, Any] = {
        "#SBATCH --job-name": description["name"],
        "#SBATCH --partition": description["partition"],
        "#SBATCH --nodes": description["nodes"],
        "#SBATCH --ntasks": str(description["tasks"]),
        "#SBATCH --ntasks-per-node": str(description["tasks_per_node"]),
        "#SBATCH --gres": description["tres_per_node"].removeprefix("gres/"),
        "#SBATCH --cpus-per-task": str(description["cpus_per_task"]),
        "#SBATCH --mem": directives.memory(description["memory_per_node"]["number"]),
        "#SBATCH --time": f"{description['time_limit']['number'] // 60:02d}:00:00",
        "#SBATCH --chdir": description["current_working_directory"],
        "#SBATCH --output": description["standard_output"],
        "#SBATCH --requeue": "" if description["requeue"] else None,
    }
    assert header == reading
    assert description["minimum_nodes"] == description["maximum_nodes"] == 64


def test_no_limit_is_no_limit() -> None:
    """UNLIMITED in the header, infinite in REST."""
    cluster = examples.cluster(lambda raw: raw["spec"]["jobs"]["defaults"].pop("time"))
    made = read_pytorchjob(examples.training(), cluster, [examples.nodeset()])
    assert "#SBATCH --time=UNLIMITED" in write_script(made)
    assert write_description(made)["time_limit"] == wire(INFINITE)


def test_a_deadline_is_the_time_limit_rounded_up_to_minutes() -> None:
    """48 hours and a second are 2881 minutes."""
    made = plan(lambda raw: raw["spec"].update(runPolicy={"activeDeadlineSeconds": 172801}))
    assert made.time_minutes == 2881


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        (["python3", "train.py"], Launcher.RANK),
        (["/usr/bin/python", "train.py", "--x"], Launcher.RANK),
        (["python3", "-u", "-OO", "train.py"], Launcher.RANK),
        (["python3", "-c", "train.py"], Launcher.POD),
        (["torchrun", "train.py"], Launcher.POD),
        (["python3", "-m", "torch.distributed.run", "train.py"], Launcher.POD),
        (["sh", "-c", "python3 train.py"], Launcher.POD),
        (["accelerate", "launch", "x.py"], Launcher.POD),
    ],
)
def test_the_launch_shape_follows_a_visible_rule(command: list[str], launcher: Launcher) -> None:
    """And the plan says why."""
    made = plan(lambda raw: only_master(raw).update(command=command))
    assert made.launcher is launcher
    assert made.launcher_reason
    assert made.shapes[0].tasks_per_node == (8 if launcher is Launcher.RANK else 1)


def test_the_annotation_wins() -> None:
    """slurm.bridge/launcher: pod."""
    made = plan(wish("pod"))
    assert (made.launcher, made.shapes[0].cpus_per_task) == (Launcher.POD, 32)


def template(**fields: object) -> Change:
    """Change the pod of a job with a Master only."""

    def change(raw: Raw) -> None:
        only_master(raw)
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"] |= fields

    return change


def one(**fields: object) -> Change:
    """Change the container of a job with a Master only."""
    return lambda raw: only_master(raw).update(fields)


def wish(launcher: str, nproc: str | None = None) -> Change:
    """Ask for a launcher by the annotation."""

    def change(raw: Raw) -> None:
        raw["metadata"]["annotations"] = {"slurm.bridge/launcher": launcher}
        raw["spec"]["nprocPerNode"] = nproc

    return change


MASTER = "spec.pytorchReplicaSpecs.Master.template.spec"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (one(resources={"limits": {"nvidia.com/gpu": 16}}), f"{MASTER}.containers[0].resources.limits[nvidia.com/gpu]"),
        (
            one(resources={"limits": {"example.com/fpga": 1}}),
            f"{MASTER}.containers[0].resources.limits[example.com/fpga]",
        ),
        (one(resources={"limits": {"memory": "12x"}}), f"{MASTER}.containers[0].resources.limits.memory"),
        (one(command=None), f"{MASTER}.containers[0].command"),
        (one(command=["a=b"]), f"{MASTER}.containers[0].command[0]"),
        (one(env=[{"name": "SLURM_JOB_ID", "value": "1"}]), f"{MASTER}.containers[0].env[0].name"),
        (one(env=[{"name": "A", "valueFrom": {}}, {"name": "", "value": "1"}]), f"{MASTER}.containers[0].env[1].name"),
        (
            one(env=[{"name": "A", "valueFrom": {"secretKeyRef": {}}}]),
            f"{MASTER}.containers[0].env[0].valueFrom.secretKeyRef.key",
        ),
        (one(workingDir="relative"), f"{MASTER}.containers[0].workingDir"),
        (one(command="python3 train.py"), f"{MASTER}.containers[0].command"),
        (one(args=[1]), f"{MASTER}.containers[0].args[0]"),
        (one(env={"A": "b"}), f"{MASTER}.containers[0].env"),
        (one(env=[{"name": "A", "value": 0}]), f"{MASTER}.containers[0].env[0].value"),
        (one(ports=[{"name": "pytorchjob-port"}]), f"{MASTER}.containers[0].ports[0].containerPort"),
        (one(ports=[{"containerPort": 70000}]), f"{MASTER}.containers[0].ports[0].containerPort"),
        (one(resources=[1]), f"{MASTER}.containers[0].resources"),
        (one(resources={"claims": [{"name": "gpu"}]}), f"{MASTER}.containers[0].resources.claims"),
        (template(containers=[]), f"{MASTER}.containers"),
        (template(containers="x"), f"{MASTER}.containers"),
        (one(workingDir="/x$(id)"), f"{MASTER}.containers[0].workingDir"),
        (one(volumeMounts=[{"name": "x"}]), f"{MASTER}.containers[0].volumeMounts[0].name"),
        (one(args=["\0"]), f"{MASTER}.containers[0].args[0]"),
        (template(volumes="x"), f"{MASTER}.volumes"),
        (template(initContainers=[{"name": "x"}]), f"{MASTER}.initContainers"),
        (template(nodeSelector={"a": "b"}), f"{MASTER}.nodeSelector[a]"),
        (
            one(resources={"limits": {"nvidia.com/gpu": 8}, "requests": {"nvidia.com/gpu": 4}}),
            f"{MASTER}.containers[0].resources.requests[nvidia.com/gpu]",
        ),
        (lambda raw: raw["spec"].update(nprocPerNode="0"), "spec.nprocPerNode"),
        (wish("rank", nproc="4"), "spec.nprocPerNode"),
        (wish("both"), "metadata.annotations[slurm.bridge/launcher]"),
        (lambda raw: raw["spec"].update(runPolicy={"suspend": "yes"}), "spec.runPolicy.suspend"),
        (lambda raw: raw["spec"].update(runPolicy={"cleanPodPolicy": "Some"}), "spec.runPolicy.cleanPodPolicy"),
        (
            lambda raw: raw["spec"].update(runPolicy={"ttlSecondsAfterFinished": -1}),
            "spec.runPolicy.ttlSecondsAfterFinished",
        ),
        (lambda raw: raw["spec"].update(runPolicy={"retries": 1}), "spec.runPolicy.retries"),
        (lambda raw: raw["metadata"].update(namespace="elsewhere"), "metadata.namespace"),
        (
            lambda raw: raw["metadata"].update(annotations={"slurm.bridge/uid": "0"}),
            "metadata.annotations[slurm.bridge/uid]",
        ),
    ],
)
def test_what_is_not_translated_is_refused_by_its_path(change: Change, path: str) -> None:
    """Never dropped in silence."""
    with pytest.raises(InvalidObject) as caught:
        plan(change)
    assert caught.value.path == path


def test_what_has_no_meaning_in_slurm_is_listed() -> None:
    """The image, with runtime none, and the kubelet's settings."""
    made = plan(template(hostNetwork=True))
    assert made.ignored == (f"{MASTER}.hostNetwork", f"{MASTER}.containers[0].image")
    made = plan(one(image="", ports=[{"name": "pytorchjob-port", "containerPort": 29500}, {"containerPort": 80}]))
    assert (made.port, made.ignored) == (29500, (f"{MASTER}.containers[0].ports[1]",))


def show(args: list[str], env: list[Raw] | None = None) -> JobPlan:
    """A plan whose program tells what it was given."""
    return plan(lambda raw: only_master(raw).update(command=SHOW, args=args, env=env or [], workingDir=""))


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NASTY = [
    "; rm -rf /",
    "$(touch /tmp/p)",
    "`id`",
    "a'b\"c\\",
    "-e\n#SBATCH --uid=0",
    "*",
    "~root",
    "",
    "\t",
    "hé ☃",
    "TASK_0",
]


def test_hostile_arguments_arrive_as_they_are() -> None:
    """No shell on the way touches them, and no header line comes of them."""
    made = show(NASTY)
    assert tasks.run(made, 3)[0] == NASTY
    header = [line for line in write_script(made).split("\n") if line.startswith("#SBATCH")]
    assert header == [option.line for option in directives.options(made, made.shapes[0])]


@settings(max_examples=40)
@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=3))
def test_any_text_arrives_as_it_is(args: list[str], values: list[str]) -> None:
    """argv and environment, byte for byte."""
    escaped = [text.replace("$", "$$") for text in args]
    env = [{"name": f"V{index}", "value": value.replace("$", "$$")} for index, value in enumerate(values)]
    argv, seen = tasks.run(show(escaped, env), 3)
    assert argv == args
    assert [seen[one["name"]] for one in env] == values


def test_references_are_expanded_as_the_kubelet_does() -> None:
    """Known names by value or at run time, unknown ones verbatim, `$$` for one dollar."""
    args = ["--n=$(WORLD_SIZE)", "--r=$(RANK)", "--x=$(NOPE)", "--y=$$(RANK)", "--z=$$", "$(A)", "$(seq 1 3)"]
    argv, seen = tasks.run(show(args, [{"name": "A", "value": "a$(RANK)"}, {"name": "B", "value": "$(A)$(C)"}]), 3)
    assert argv == ["--n=1", "--r=3", "--x=$(NOPE)", "--y=$(RANK)", "--z=$", "a3", "$(seq 1 3)"]
    assert seen["B"] == "a3$(C)"


def test_pod_mode_hides_slurm_from_the_program() -> None:
    """A program that starts its own ranks must not take itself for one; rank mode keeps SLURM_*."""
    made = show([])
    assert made.launcher is Launcher.POD
    seen = tasks.run(made, 3, SLURM_JOB_ID="5", PMI_RANK="1")[1]
    assert not [name for name in seen if name.startswith(("SLURM_", "PMI_"))]
    assert (seen["RANK"], seen["PET_NODE_RANK"], seen["PET_NNODES"]) == ("3", "3", "1")


def test_pod_mode_counts_processes_as_the_training_operator_does() -> None:
    """WORLD_SIZE is replicas times nprocPerNode, RANK is the replica's; both can stand in arguments."""

    def change(raw: Raw) -> None:
        raw["spec"]["nprocPerNode"] = "8"
        args = ["$(WORLD_SIZE)", "$(PET_NNODES)", "$(PET_NPROC_PER_NODE)"]
        only_master(raw).update(command=SHOW, args=args, workingDir="")
        raw["spec"]["pytorchReplicaSpecs"]["Worker"] = raw["spec"]["pytorchReplicaSpecs"]["Master"] | {"replicas": 7}

    argv, seen = tasks.run(plan(change), 3)
    assert argv == ["64", "8", "8"]
    assert (seen["WORLD_SIZE"], seen["RANK"], seen["PET_NPROC_PER_NODE"]) == ("64", "3", "8")
