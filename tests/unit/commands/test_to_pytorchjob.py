"""From sbatch scripts of real life to PyTorchJobs, and from our own scripts back to what they were made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.from_sbatch.found import NoJob
from kubeslurm.from_sbatch.manifest import read_script
from kubeslurm.from_sbatch.written import written
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.unit.commands.test_commands import kubeslurm
from tests.unit.jobs import tasks
from tests.unit.jobs.tasks import SHOW

SCRIPTS = Path(__file__).with_name("scripts")
GOOD = sorted(path for path in SCRIPTS.glob("*.sh") if path.with_suffix(".yaml").exists())
BAD = {
    "array.sh": "array.sh:2: --array=0-9: an array is many jobs, a PyTorchJob is one",
    "bad_value.sh": "bad_value.sh:3: --mem=lots: an amount such as 120G is wanted",
    "hetjob.sh": "hetjob.sh: a heterogeneous job: ",
    "nothing_to_start.sh": "nothing_to_start.sh: no command starts a program",
    "unclosed.sh": "unclosed.sh:3: a quote ' is not closed",
}


def golden(path: Path) -> str:
    """What is kept beside a script: the object, and each line that was left out as a comment behind it."""
    made, left = read_script(path.read_text())
    return yaml.safe_dump(made, sort_keys=False) + "".join(f"# {one}\n" for one in left)


def test_all_scripts_are_tried() -> None:
    """Those that become a job, at least fifteen, and those that can't."""
    assert len(GOOD) >= 15
    assert {path.name for path in SCRIPTS.glob("*.sh")} == {path.name for path in GOOD} | BAD.keys()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_script_of_real_life_becomes_this_job(path: Path) -> None:
    """The object and what was left out, line by line."""
    assert golden(path) == path.with_suffix(".yaml").read_text()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_each_of_them_can_be_translated_again(path: Path) -> None:
    """What comes out is accepted by the other direction."""
    made, _ = read_script(path.read_text(), namespace="research")
    assert write_script(read_pytorchjob(PyTorchJob.parse(made))).startswith("#!/bin/bash\n")


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_script_without_a_job_is_refused_by_its_line(name: str) -> None:
    """Exit status 2, one line, nothing on stdout."""
    done = kubeslurm("translate", "--to", "pytorchjob", str(SCRIPTS / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert BAD[name] in done.stderr


def test_several_scripts_make_several_documents() -> None:
    """One that can't be read hides no other."""
    names = ("one_gpu.sh", "array.sh", "pyxis.sh")
    done = kubeslurm("translate", "--to", "pytorchjob", *(str(SCRIPTS / name) for name in names))
    assert done.returncode == 2
    assert len(list(yaml.safe_load_all(done.stdout))) == 2
    assert "array.sh:2: " in done.stderr


def test_a_script_comes_from_stdin_with_an_image_and_a_namespace() -> None:
    """As kubectl's options are called."""
    text = (SCRIPTS / "one_gpu.sh").read_text()
    done = kubeslurm("translate", "--to", "pytorchjob", "--image", "me/x:1", "-n", "ml", "-", stdin=text)
    made = yaml.safe_load(done.stdout)
    assert made["metadata"]["namespace"] == "ml"
    assert made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["image"] == "me/x:1"


def test_options_of_the_other_direction_are_refused() -> None:
    """A usage error, as click has it."""
    assert kubeslurm("translate", "--to", "pytorchjob", "--json", "-").returncode == 2
    assert kubeslurm("translate", "--image", "x", "-f", "-").returncode == 2


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab $(){}'\"\\`\n#!;&|<>=-*~SBATCHsrunpython0123 "), max_size=120))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever stands in a script, there is a job or a refusal."""
    try:
        made, left = read_script(f"#!/bin/bash\n#SBATCH -N1\n{text}")
    except NoJob:
        return
    assert made["kind"] == "PyTorchJob"
    assert all(str(one) for one in left)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
WORDS = st.one_of(
    TEXT,
    st.sampled_from(["$(RANK", "$$", "$$(A)", "a$", "$(id)", "`x`", "\\", "'", '"', "#", "-e\n", "a\x85b", "\u2028"]),
)
NAMES = st.from_regex(r"\A[A-Z][A-Z0-9_]{0,8}\Z").filter(
    lambda name: not name.startswith(("PET_", "PMI", "SLURM", "S"))
)


@st.composite
def training(draw: st.DrawFn) -> dict[str, Any]:
    """A PyTorchJob of what both can say."""
    gpus = draw(st.sampled_from([0, 1, 2, 8]))
    limits = {"cpu": 8 * draw(st.integers(1, 12)), "memory": f"{draw(st.integers(1, 900))}Gi"}
    limits |= {"nvidia.com/gpu": gpus} if gpus else {}
    escaped = [word.replace("$", "$$") for word in draw(st.lists(WORDS, max_size=5))]
    container = {
        "name": "pytorch",
        "image": "registry.example/train:latest",
        "command": draw(st.sampled_from([["torchrun"], ["python3", "train.py"], SHOW, ["sh", "-c"]])) + escaped,
        "env": [{"name": name, "value": draw(WORDS).replace("$", "$$")} for name in draw(st.sets(NAMES, max_size=3))],
        "workingDir": draw(st.sampled_from(["/work", "/tmp/a.b+c"])),
        "resources": {"limits": limits},
    }
    template = {"spec": {"containers": [container]}}
    policy = draw(st.sampled_from(["Never", "OnFailure"]))
    roles = {"Master": {"replicas": 1, "restartPolicy": policy, "template": template}}
    if workers := draw(st.integers(0, 63)):
        roles["Worker"] = {"replicas": workers, "restartPolicy": policy, "template": template}
    spec = {
        "pytorchReplicaSpecs": roles,
        "runPolicy": {"activeDeadlineSeconds": 60 * draw(st.integers(1, 9999))},
    }
    chosen = draw(st.sets(st.sampled_from(["partition", "account", "qos", "reservation", "constraint"])))
    annotations = {f"slurm.bridge/{name}": f"x-{name}" for name in chosen}
    annotations |= draw(st.sampled_from([{}, {"slurm.bridge/launcher": "pod"}, {"slurm.bridge/exclusive": "true"}]))
    metadata = {"name": draw(st.sampled_from(["a", "my-job-1"])), "namespace": "default", "annotations": annotations}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec}


def essence(plan: JobPlan) -> tuple[Any, ...]:
    """What a job is in Slurm; how its launcher came to be chosen does not count."""
    return (plan.name, plan.shapes, plan.programs, plan.time_minutes, plan.launcher, plan.request, plan.restart_policy)


@settings(max_examples=150)
@given(training())
def test_there_and_back_is_the_same_job(raw: dict[str, Any]) -> None:
    """YAML to sbatch to YAML, for what both can say; nothing is left out on the way."""
    first = read_pytorchjob(PyTorchJob.parse(raw))
    made, left = read_script(write_script(first), image="registry.example/train:latest", namespace="default")
    assert not left
    assert essence(read_pytorchjob(PyTorchJob.parse(yaml.safe_load(written(made))))) == essence(first)


def test_the_words_of_a_script_reach_the_program() -> None:
    """Quoting by the shell in, by YAML and the kubelet out."""
    made, _ = read_script((SCRIPTS / "quotes.sh").read_text())
    for role in made["spec"]["pytorchReplicaSpecs"].values():
        container = role["template"]["spec"]["containers"][0]
        container["command"] = [*SHOW, *container["command"][2:]]
    argv, environment = tasks.run(read_pytorchjob(PyTorchJob.parse(made)))
    assert argv == ["a$(id)b", "c$$d", "e\tf", "g h", ""]
    assert environment["GREETING"] == 'say "$HOME"'
