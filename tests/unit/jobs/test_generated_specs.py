"""Generated specs: whatever a user writes, there is a script that bash takes and that gives exactly that, or a refusal.

`make test` tries 1,000 of them, `make soak` (KUBESLURM_SOAK) 10,000. One bash looks at many scripts: to start it takes time.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any, NoReturn

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubeslurm import directives
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.descriptions import write_description
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.unit import examples
from tests.unit.jobs import tasks

SPECS = 10_000 if os.environ.get("KUBESLURM_SOAK") else 1_000
TOGETHER = 20

SHELL = 'argv() { printf \'%s\\0\' "$#" "$@"; }\n'
"""Tells how many arguments it has, and each, with a NUL behind it."""

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
EVIL = st.sampled_from(
    [
        "; id",
        "$(id)",
        "`id`",
        "a'b\"c\\",
        "-e\n#SBATCH --uid=0",
        "\n#SBATCH --account=root\n",
        "*",
        "~root",
        "",
        "$$",
        "$(RANK)",
        "$$(RANK)",
        "$(X)",
        "$(A)$(",
        "\x01",
        "\x7f",
        "TASK_0",
        "'; exit 3; '",
        "ai-training-worker-0",
        "é☃\u202e",
    ]
)
WORDS = st.one_of(EVIL, TEXT)
NAMES = st.sampled_from(
    ["A", "X", "PATH", "LD_PRELOAD", "BASH_ENV", "IFS", "a.b-c", "1abc", "RANK", "HOME", "BASH_FUNC_x"]
)
SOURCES = st.sampled_from(
    [
        {"fieldRef": {"fieldPath": "metadata.name"}},
        {"fieldRef": {"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}},
        {"fieldRef": {"fieldPath": "status.podIP"}},
        {"fieldRef": {"fieldPath": "spec.nodeName"}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
    ]
)
LIMITS = st.fixed_dictionaries(
    {"cpu": st.sampled_from([1, "500m", "1500m", 30, 32])},
    optional={
        "memory": st.sampled_from(["1Gi", "120G", "1e9"]),
        "nvidia.com/gpu": st.sampled_from([0, 1, 2, 3, 8]),
        "rdma/hca": st.just(1),
    },
)


@st.composite
def container(draw: st.DrawFn) -> dict[str, Any]:
    """A container that is well made, with words that are not well meant."""
    env: list[dict[str, Any]] = []
    for name in draw(st.lists(NAMES, max_size=4)):
        plain = draw(st.integers(0, 3))
        env.append({"name": name, "value": draw(WORDS)} if plain else {"name": name, "valueFrom": draw(SOURCES)})
    return {
        "name": "pytorch",
        "image": "registry.example/train:1",
        "command": draw(st.sampled_from([["torchrun"], ["sh", "-c"], ["/opt/x y/run"]])),
        "args": draw(st.lists(WORDS, max_size=4)),
        "env": env,
        "workingDir": draw(st.sampled_from(["", "/work", "/a/../b"])),
        "resources": {"limits": draw(LIMITS)},
    }


def wrong(pod: dict[str, Any], flaw: int) -> None:
    """Spoil a pod in one of many ways."""
    one = pod["containers"][0]
    (
        lambda: one.update(name="other"),
        lambda: one.update(args=["\0"]),
        lambda: one.update(args=["\ud800"]),
        lambda: one.update(command=["a=b"]),
        lambda: one.update(command=[]),
        lambda: one.update(workingDir="rel"),
        lambda: one.update(workingDir="/x$(id)"),
        lambda: one["env"].append({"name": "SLURM_JOB_ID", "value": "1"}),
        lambda: one["env"].append({"name": "A\nB", "value": "1"}),
        lambda: one["env"].append({"name": "KUBESLURM_POD", "value": "1"}),
        lambda: one["env"].append({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}),
        lambda: one["env"].append({"name": "A", "valueFrom": {"resourceFieldRef": {}}}),
        lambda: one["resources"]["limits"].update(memory="-1Gi"),
        lambda: one["resources"]["limits"].update({"nvidia.com/gpu": "500m"}),
        lambda: one["resources"]["limits"].update({"example.com/fpga": 1}),
        lambda: pod.update(nodeSelector={"a": "b"}),
        lambda: pod.update(initContainers=[{}]),
        lambda: pod.update(securityContext={"runAsUser": 0}),
    )[flaw]()


FLAWS = 18
ANNOTATIONS: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    st.just({}),
    st.just({"slurm.bridge/time": "10", "slurm.bridge/signal": "USR1@60"}),
    st.just({"slurm.bridge/constraint": "a|b", "slurm.bridge/exclusive": "true"}),
    st.dictionaries(
        st.sampled_from(
            [f"slurm.bridge/{name}" for name in ("partition", "account", "qos", "constraint", "uid", "nodes")]
        ),
        EVIL,
        max_size=1,
    ),
)


@st.composite
def spec(draw: st.DrawFn) -> dict[str, Any]:
    """A PyTorchJob of the example's tenant; one in four is spoiled."""
    roles: dict[str, Any] = {}
    one = draw(container())
    wanted = draw(st.sampled_from([["Master"], ["Master", "Worker"], ["Master", "Worker"], ["Worker"]]))
    alike = draw(st.booleans())
    for role in wanted:
        pod: dict[str, Any] = {"containers": [one if alike else draw(container())]}
        count = 1 if role == "Master" else draw(st.integers(1, 40))
        roles[role] = {"replicas": count, "restartPolicy": "Never", "template": {"spec": pod}}
    if draw(st.integers(0, 3)) == 0:
        wrong(roles[wanted[0]]["template"]["spec"], draw(st.integers(0, FLAWS - 1)))
    elastic = draw(st.sampled_from([None] * 5 + [{}, {"minReplicas": 1, "rdzvBackend": "etcd"}]))
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "ai-training",
            "namespace": "research",
            "uid": "1f2e",
            "annotations": draw(ANNOTATIONS),
        },
        "spec": {
            "pytorchReplicaSpecs": roles,
            "nprocPerNode": draw(st.sampled_from([None, "auto", "gpu", "cpu", "8"])),
            "elasticPolicy": elastic if "Worker" in roles else None,
        },
    }


def translated(raw: dict[str, Any]) -> tuple[JobPlan, str] | None:
    """The plan and its script; None where the job is refused by a path."""
    try:
        plan = read_pytorchjob(PyTorchJob.parse(raw), examples.cluster(roomy), [examples.nodeset()])
        return plan, write_script(plan)
    except InvalidObject as error:
        return None if error.path else refused_without_a_path()


def refused_without_a_path() -> NoReturn:
    """A user could not tell what to change."""
    raise AssertionError("a refusal that names no field")


def roomy(raw: dict[str, Any]) -> None:
    """So that fewer jobs are refused for want of CPUs."""
    raw["spec"]["jobs"]["defaults"]["exclusive"] = True


def check_header(plan: JobPlan, script: str) -> None:
    """No line that Slurm would read but those which the table of options writes, and nobody else's account or user."""
    wanted = [option.line for shape in plan.shapes for option in directives.options(plan, shape)]
    found = [line for line in script.split("\n") if line.startswith(("#SBATCH", "#PBS", "#BSUB", "#SLURM"))]
    assert [line for line in found if line != "#SBATCH hetjob"] == wanted
    for number in range(len(plan.shapes)):
        assert not write_description(plan, number).keys() & {"user_id", "group_id", "priority", "admin_comment", "nice"}
    assert plan.user is not None
    assert plan.user.name == "alice"
    assert set((plan.partition or "").split(",")) <= {"gpu_partition"}


def words_of(plan: JobPlan, number: int) -> tuple[str, list[str]]:
    """A shell text that tells the program's words and variables, and what it has to tell."""
    text = tasks.texts(plan)[number]
    program = next(one for one in reversed(plan.programs) if set(one.roles) & set(plan.shapes[number].roles))
    start = text.rindex("exec env")
    given = [f"{name}={value_of(value)}" for name, value in program.environment]
    return f"argv {text[start + len('exec env') :]}", [*given, *(value_of(word) for word in program.argv)]


def value_of(word: Any) -> str:
    """What a word is where each variable of the running task has its own name as its value."""
    return "".join(piece if isinstance(piece, str) else f"<{piece.name}>" for piece in word)


REFERRED = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURMD_NODENAME")


def told(texts: list[str]) -> list[list[str]]:
    """What bash makes of each, in one process; variables of the running task hold their own names."""
    names = sorted({*REFERRED, *(name for text in texts for name in names_in(text))})
    known = "".join(f"{name}='<{name}>'\n" for name in names)
    done = subprocess.run(["bash", "-c", SHELL + known + "\n".join(texts)], capture_output=True, check=True, timeout=60)
    row = iter(done.stdout.decode().split("\0")[:-1])
    return [[next(row) for _ in range(int(count))] for count in row]


def names_in(text: str) -> set[str]:
    """The variables of ours that a text refers to."""
    return {part.split("}")[0] for part in text.split("${")[1:] if part.startswith(("KUBESLURM_", *REFERRED))}


TOO_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=SPECS // TOGETHER, suppress_health_check=TOO_SLOW)
@given(st.lists(spec(), min_size=TOGETHER, max_size=TOGETHER))
def test_whatever_is_written_arrives_as_it_is_or_is_refused(specs: list[dict[str, Any]]) -> None:
    """No uncaught exception, no unquoted byte, no line of the user's, nobody else's field."""
    made = [one for one in map(translated, specs) if one is not None]
    wanted, texts = [], []
    for plan, script in made:
        check_header(plan, script)
        for number in range(len(plan.shapes)):
            if not plan.materials.brought:
                text, words = words_of(plan, number)
                texts.append(text)
                wanted.append(words)
    # a subshell reads a function's body without running it: one bash checks the syntax of all scripts
    bodies = "\n".join(f"check() {{\n{script}\n}}" for _, script in made)
    subprocess.run(["bash", "-n"], input=bodies.encode(), check=True, capture_output=True, timeout=60)
    assert told(texts) == wanted
