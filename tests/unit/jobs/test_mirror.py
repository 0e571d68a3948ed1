"""Mirror pods: what their objects and their statuses say of a job in Slurm."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubeslurm import log_places, mirror, names
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import ExitCode, Job, JobStates
from tests.unit import examples
from tests.unit.examples import Change, Raw, container

OWNER: Raw = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "name": "ai-training",
    "uid": "u",
    "controller": True,
}
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z")
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


def plan(change: Change | None = None) -> JobPlan:
    """The example job's plan on the example pool."""
    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset()])


def pods(made: JobPlan) -> list[Raw]:
    """All mirror pods of a plan."""
    return [mirror.pod(made, one, owner=OWNER, virtual_node="virtual", job_id=7) for one in mirror.replicas(made)]


def test_pods_are_named_and_labelled_as_the_training_operators() -> None:
    """Dashboards and the SDK find them by these."""
    made = pods(plan())
    assert [one["metadata"]["name"] for one in made[:2]] == ["ai-training-master-0", "ai-training-worker-0"]
    upstream = {key: value for key, value in made[1]["metadata"]["labels"].items() if "kubeflow" in key}
    assert upstream == {
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/job-name": "ai-training",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    }
    assert [one["metadata"]["labels"].get(names.LABEL_JOB_ROLE) for one in made] == ["master"] + [None] * 63


def test_no_kubelet_ever_starts_a_pod_and_quotas_count_it() -> None:
    """Bound to the virtual node, owned by the job, with the replica's resources and nobody's token."""
    made = pods(plan())[0]
    assert made["spec"]["nodeName"] == "virtual"
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert (made["spec"]["restartPolicy"], made["spec"]["automountServiceAccountToken"]) == ("Never", False)
    assert made["metadata"]["ownerReferences"] == [OWNER]


def test_a_users_labels_stay_and_ours_win() -> None:
    """Nobody can make a pod look like another job's."""

    def change(raw: Raw) -> None:
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["metadata"] = {
            "labels": {"team": "a", names.LABEL_JOB_NAME: "other"}
        }

    labels = pods(plan(change))[0]["metadata"]["labels"]
    assert (labels["team"], labels[names.LABEL_JOB_NAME]) == ("a", "ai-training")


@pytest.mark.parametrize("name", ["x" * 253, "a." * 126 + "b", "y" * 63, "z" * 242])
def test_a_long_name_gives_valid_names_and_labels(name: str) -> None:
    """Pods of different replicas stay apart; Slurm gets the whole name."""
    made = plan(lambda raw: raw["metadata"].update(name=name))
    found = [one["metadata"] for one in pods(made)]
    assert len({one["name"] for one in found}) == 64
    assert all(NAME.match(one["name"]) for one in found)
    assert all(LABEL.match(value) for one in found for value in one["labels"].values())
    assert f"#SBATCH --job-name={name}\n" in write_script(made)


def job(state: str, **fields: Any) -> Job:
    """Slurm job 7 in a state."""
    return Job(job_id=7, states=JobStates.parse(state), start_time=1000, end_time=2000, **fields)


@pytest.mark.parametrize(
    ("slurm", "phase", "code", "reason"),
    [
        (job("COMPLETED"), "Succeeded", 0, "Completed"),
        (job("FAILED", exit_code=ExitCode("ERROR", 3)), "Failed", 3, "Error"),
        (job("FAILED", exit_code=ExitCode("SIGNALED", 0, 9)), "Failed", 137, "Error"),
        (job("OUT_OF_MEMORY"), "Failed", 137, "OOMKilled"),
        (job("TIMEOUT"), "Failed", 124, "DeadlineExceeded"),
        (job("NODE_FAIL", exit_code=ExitCode("SUCCESS", 0)), "Failed", 143, "NodeLost"),
        (job("CANCELLED"), "Failed", 143, "Cancelled"),
    ],
)
def test_an_ended_jobs_pods_tell_how(slurm: Job, phase: str, code: int, reason: str) -> None:
    """Phase, exit code and reason; what did not complete never has code 0."""
    made = plan()
    status = mirror.status(made, next(mirror.replicas(made)), slurm, "gpu-node-0")
    assert status is not None
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], ended["exitCode"], ended["reason"]) == (phase, code, reason)
    assert (ended["startedAt"], ended["finishedAt"]) == ("1970-01-01T00:16:40Z", "1970-01-01T00:33:20Z")


@pytest.mark.parametrize(
    ("slurm", "phase", "state"),
    [
        (job("PENDING", state_reason="Resources"), "Pending", "waiting"),
        (job("RUNNING+CONFIGURING"), "Pending", "waiting"),
        (job("RUNNING"), "Running", "running"),
        (job("COMPLETED+COMPLETING"), "Running", "running"),
    ],
)
def test_a_live_jobs_pods_follow_it(slurm: Job, phase: str, state: str) -> None:
    """A job that is still being cleaned up has not ended."""
    made = plan()
    status = mirror.status(made, next(mirror.replicas(made)), slurm, "gpu-node-0")
    assert status is not None
    assert (status["phase"], list(status["containerStatuses"][0]["state"])) == (phase, [state])
    assert "Slurm job 7 on gpu-node-0" in status["message"]


def test_a_started_pod_says_where_its_output_is() -> None:
    """By its tasks on its node; one that waits has none yet."""
    made = plan()
    worker = list(mirror.replicas(made))[1]
    running, waiting = (mirror.status(made, worker, job(state), "gpu-node-1") for state in ("RUNNING", "PENDING"))
    assert running is not None
    assert waiting is not None
    assert running["containerStatuses"][0]["containerID"] == "slurm://7/gpu-node-1/8-15"
    assert "containerID" not in waiting["containerStatuses"][0]


def test_a_seal_makes_no_other_status() -> None:
    """Else each turn would write it anew; another node does, and so does a pod that does not say yet."""
    made = plan()
    first = next(mirror.replicas(made))
    here, there = (mirror.status(made, first, job("RUNNING"), host) for host in ("gpu-node-0", "gpu-node-1"))
    assert here is not None
    assert there is not None
    sealed = log_places.with_seal(here, b"key", "u", first.pod)
    silent = {**here, "containerStatuses": [{**here["containerStatuses"][0], "containerID": ""}]}
    assert mirror.same(here, sealed)
    assert not mirror.same({**there, "message": here["message"]}, sealed)
    assert not mirror.same(here, silent)


def test_an_unknown_word_changes_no_pod() -> None:
    """It may mean anything."""
    made = plan()
    assert mirror.status(made, next(mirror.replicas(made)), job("RUNNING+QUANTUM"), "") is None


def test_a_template_is_not_changed_by_its_pods() -> None:
    """Pods are copies: the plan stays what was read."""
    made = plan()
    before = container(examples.raw("PyTorchJob"))
    pods(made)
    assert made.roles[0].template["spec"] == {"containers": [before]}
