"""Container runtimes: the exact command lines around a program, by golden files, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kubeslurm import containers, manifests
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.unit import examples
from tests.unit.examples import Raw, only_master

GOLDEN = Path(__file__).parent / "golden"
MASTER = "spec.pytorchReplicaSpecs.Master.template.spec"
COMMAND = {"command": ["python3", "train.py"], "workingDir": "/workspace"}
ARGS = {"command": None, "args": ["--backend", "nccl"], "workingDir": None}


def plan(jobs: Raw, **container: Any) -> JobPlan:
    """A job with a variable, one of a Secret, a Secret's files and a scratch folder, in a container."""

    def change(raw: Raw) -> None:
        wanted = only_master(raw)
        wanted |= {
            "image": "registry.example/team/train:1",
            "env": [
                {"name": "MODE", "value": "it's"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            ],
            "volumeMounts": [
                {"name": "hub", "mountPath": "/etc/hub", "readOnly": True},
                {"name": "scratch", "mountPath": "/scratch"},
                {"name": "shm", "mountPath": "/dev/shm"},
            ],
        }
        wanted |= container
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["volumes"] = [
            {"name": "hub", "secret": {"secretName": "hub"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ]
        for field in [key for key, value in wanted.items() if value is None]:
            del wanted[field]

    def settings(raw: Raw) -> None:
        raw["spec"]["jobs"] |= jobs

    return read_pytorchjob(examples.training(change), examples.cluster(settings), [examples.nodeset()])


CASES: dict[str, tuple[Raw, Raw]] = {
    "pyxis-command": ({"containerRuntime": "pyxis"}, COMMAND),
    "pyxis-args": ({"containerRuntime": "pyxis"}, ARGS),
    "apptainer-command": ({"containerRuntime": "apptainer", "imageRoot": "/images"}, COMMAND),
    "apptainer-args": ({"containerRuntime": "apptainer"}, ARGS),
    "charliecloud-command": ({"containerRuntime": "charliecloud", "imageRoot": "/images"}, COMMAND),
}


@pytest.mark.parametrize("case", CASES)
def test_the_lines_of_each_runtime(case: str) -> None:
    """Byte for byte those of golden/; UPDATE_GOLDEN=1 writes them anew."""
    jobs, container = CASES[case]
    script = write_script(plan(jobs, **container))
    text = re.sub(r"TASK_[0-9a-f]{24}", "TASK", script.split("export MASTER_ADDR MASTER_PORT\n", 1)[1])
    text = text.split(' 2> "$messages" &', 1)[0] + "\n"
    file = GOLDEN / f"{case}.sh"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    subprocess.run(["bash", "-n"], input=script.encode(), check=True, timeout=10)


@pytest.mark.parametrize("runtime", ["pyxis", "apptainer", "charliecloud"])
def test_the_image_counts_only_with_a_runtime(runtime: str) -> None:
    """Then it is no longer among the ignored fields."""
    field = f"{MASTER}.containers[0].image"
    assert field not in plan({"containerRuntime": runtime, "imageRoot": "/images"}, **COMMAND).ignored
    assert field in examples_plan().ignored


def examples_plan() -> JobPlan:
    """The example job, in the pool's own image."""
    return read_pytorchjob(examples.training(), examples.cluster(), [examples.nodeset()])


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io#nvidia/pytorch:24.01-py3"),
        ("localhost:5000/train", "localhost:5000#train"),
        ("pytorch/pytorch:2.5", "pytorch/pytorch:2.5"),
        ("train:1", "train:1"),
    ],
)
def test_pyxis_parts_the_registry_from_the_name(image: str, name: str) -> None:
    """As enroot reads it; quoted in the script, where # would begin a comment."""
    assert containers.pyxis_name(image) == name


def test_an_image_may_lie_where_the_admin_says() -> None:
    """Before imageRoot."""
    there = [{"image": "registry.example/team/train:1", "path": "/shared/train"}]
    made = plan({"containerRuntime": "charliecloud", "imageRoot": "/images", "images": there}, **COMMAND)
    assert made.container is not None
    assert made.container.image == "/shared/train"


@pytest.mark.parametrize(
    ("jobs", "container", "where"),
    [
        ({"containerRuntime": "none"}, ARGS, "containers[0].command"),
        ({"containerRuntime": "charliecloud", "imageRoot": "/images"}, ARGS, "containers[0].command"),
        ({"containerRuntime": "pyxis"}, {"command": None, "args": None}, "containers[0].command"),
        ({"containerRuntime": "charliecloud"}, COMMAND, "containers[0].image"),
        ({"containerRuntime": "pyxis"}, {**COMMAND, "image": "x\n#SBATCH --uid=0"}, "containers[0].image"),
        ({"containerRuntime": "apptainer"}, {**COMMAND, "image": "--fakeroot"}, "containers[0].image"),
        ({"containerRuntime": "apptainer"}, {**COMMAND, "image": None}, "containers[0].image"),
    ],
)
def test_what_a_runtime_can_not_start_is_refused_by_its_path(jobs: Raw, container: Raw, where: str) -> None:
    """Scenario 24: no entrypoint where the runtime knows none; and hostile images."""
    with pytest.raises(InvalidObject) as caught:
        plan(jobs, volumeMounts=[], **container)
    assert caught.value.path == f"{MASTER}.{where}"


@pytest.mark.parametrize(("runtime", "profile"), [("none", "RuntimeDefault"), ("charliecloud", "Unconfined")])
def test_pods_may_make_user_namespaces_only_for_a_runtime(runtime: str, profile: str) -> None:
    """By their seccomp profile; capabilities are the same."""
    cluster = examples.cluster(lambda raw: raw["spec"]["jobs"].update(containerRuntime=runtime))
    pod = manifests.slurmd_pod(cluster, examples.nodeset(), 0, owner={})
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["seccompProfile"] == {"type": profile}
    assert security["capabilities"]["add"] == list(manifests.CAPABILITIES)


@pytest.mark.parametrize(("runtime", "loads"), [("none", False), ("apptainer", False), ("pyxis", True)])
def test_only_pyxis_is_loaded_into_slurm(runtime: str, loads: bool) -> None:
    """By plugstack.conf, the same at slurmctld and at slurmd."""
    cluster = examples.cluster(lambda raw: raw["spec"]["jobs"].update(containerRuntime=runtime))
    pod = manifests.slurmd_pod(cluster, examples.nodeset(), 0, owner={})
    stateful = next(one for one in manifests.controller_objects(cluster) if one["kind"] == "StatefulSet")
    for container in (pod["spec"]["containers"][0], stateful["spec"]["template"]["spec"]["initContainers"][0]):
        assert ("required spank_pyxis.so" in container["command"][-1]) == loads


def test_a_secrets_variable_is_no_argument_of_a_runtime() -> None:
    """It is exported; only the plain variables stand in a command line."""
    script = write_script(plan({"containerRuntime": "apptainer", "imageRoot": "/images"}, **COMMAND))
    assert "APPTAINERENV_MODE=" in script
    assert "TOKEN" not in script
