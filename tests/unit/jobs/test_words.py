"""What the tasks are told of themselves: the downward API, the first replica's address, torchrun's rendezvous, signals."""

from __future__ import annotations

from typing import Any

import pytest

from kubeslurm.descriptions import write_description
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import number as wire
from tests.unit import examples
from tests.unit.examples import Change, Raw, container
from tests.unit.jobs import tasks
from tests.unit.jobs.tasks import SHOW

WORKER = "spec.pytorchReplicaSpecs.Worker.template.spec"


def plan(change: Change) -> JobPlan:
    """The changed example job's plan."""
    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset()])


def gang(**more: Any) -> Change:
    """A Master and three Workers that show what they are given, with these fields of the container."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = "1f2e"
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 3
        for role in ("Master", "Worker"):
            container(raw, role).update(command=SHOW, workingDir="", **more)
            template = raw["spec"]["pytorchReplicaSpecs"][role]["template"]
            template["metadata"] = {"labels": {"team": "a'b"}, "annotations": {"note": "$(id)"}}

    return change


def field(path: str) -> Raw:
    """An entry of env that takes a field of the pod."""
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("metadata.name", "ai-training-worker-1"),
        ("metadata.namespace", "research"),
        ("metadata.labels['team']", "a'b"),
        ("metadata.labels['absent']", ""),
        ("metadata.labels['training.kubeflow.org/replica-index']", "1"),
        ("metadata.labels['training.kubeflow.org/replica-type']", "worker"),
        ("metadata.labels['training.kubeflow.org/job-name']", "ai-training"),
        ("metadata.annotations['note']", "$(id)"),
        ("spec.nodeName", "gpu-node-0"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "10.0.0.3"),
        ("status.hostIP", "10.0.0.3"),
    ],
)
def test_a_task_knows_its_pod(path: str, seen: str) -> None:
    """fieldRef, as the second Worker sees it."""
    made = plan(gang(env=[field(path)]))
    found = tasks.run(made, 2, KUBESLURM_ADDRESSES="10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 ")[1]
    assert found["X"] == seen


def test_the_master_is_told_that_it_is_one() -> None:
    """Names count in each role from 0."""
    assert tasks.run(plan(gang(env=[field("metadata.name")])), 0)[1]["X"] == "ai-training-master-0"


def test_a_field_of_the_pod_can_stand_in_other_words() -> None:
    """The kubelet's `$(NAME)` of a variable that only the running task knows."""
    made = plan(gang(env=[field("metadata.name")], args=["--out=/data/$(X)/1"]))
    assert tasks.run(made, 3)[0] == ["--out=/data/ai-training-worker-2/1"]


@pytest.mark.parametrize("path", ["metadata.uid", "status.phase", "spec.nodeName\n"])
def test_a_field_that_no_task_can_know_is_refused(path: str) -> None:
    """The mirror pod is made after the job has been submitted."""
    with pytest.raises(InvalidObject, match=r"fieldRef\.fieldPath"):
        plan(gang(env=[field(path)]))


@pytest.mark.parametrize(
    ("resource", "divisor", "seen"),
    [("limits.cpu", None, "2"), ("limits.memory", "1Mi", "954"), ("requests.memory", None, "1000000000")],
)
def test_a_task_knows_its_resources(resource: str, divisor: str | None, seen: str) -> None:
    """resourceFieldRef divides and rounds up, as the kubelet does."""
    reference = {"resource": resource, **({"divisor": divisor} if divisor else {})}
    entry = {"name": "X", "valueFrom": {"resourceFieldRef": reference}}
    made = plan(gang(env=[entry], resources={"limits": {"cpu": "1500m", "memory": "1e9"}}))
    assert tasks.run(made)[1]["X"] == seen


def test_a_resource_that_the_container_has_no_limit_of_is_refused() -> None:
    """The kubelet would tell what the node has; Slurm has not chosen one yet."""
    entry = {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}
    with pytest.raises(InvalidObject, match=r"resourceFieldRef\.resource"):
        plan(gang(env=[entry], resources={"limits": {"cpu": 1}}))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("ai-training-master-0", "10.0.0.1"),
        ("tcp://ai-training-master-0.research.svc:29500", "tcp://10.0.0.1:29500"),
        ("a=ai-training-master-0.research.svc.cluster.local,b", "a=10.0.0.1,b"),
        ("/data/ai-training-master-0/x", "/data/ai-training-master-0/x"),
        ("my-ai-training-master-0", "my-ai-training-master-0"),
        ("ai-training-master-01", "ai-training-master-01"),
        ("ai-training-master-0.log", "ai-training-master-0.log"),
    ],
)
def test_the_first_replicas_name_becomes_its_address(text: str, seen: str) -> None:
    """As a whole word: Kubernetes' DNS is not Slurm's. In a path it is a name like any other."""
    if text.endswith("-01"):
        with pytest.raises(InvalidObject):
            plan(gang(args=[text]))
        return
    made = plan(gang(args=[text], env=[{"name": "X", "value": text}]))
    argv, found = tasks.run(made, 1)
    assert (argv, found["X"]) == ([seen], seen)


def test_another_replicas_name_is_refused() -> None:
    """Nothing in the batch script would tell its address."""
    with pytest.raises(InvalidObject, match="ai-training-worker-1"):
        plan(gang(args=["--peer=ai-training-worker-1"]))


def test_cuda_visible_devices_is_slurms_to_set() -> None:
    """The user's is left out, and listed."""
    made = plan(gang(env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}]))
    assert "CUDA_VISIBLE_DEVICES" not in tasks.run(made)[1]
    assert any(path.endswith(".env[0]") for path in made.ignored)


def test_a_signal_before_the_time_limit() -> None:
    """slurm.bridge/signal, as sbatch's --signal."""
    made = plan(lambda raw: raw["metadata"].update(annotations={"slurm.bridge/signal": "SIGUSR1@300"}))
    description = write_description(made)
    assert (description["kill_warning_signal"], description["kill_warning_delay"]) == ("USR1", wire(300))
    assert "#SBATCH --signal=USR1@300" in write_script(made)


@pytest.mark.parametrize("text", ["B:USR1@300", "USR1", "KILL@9", "USR1@300\n", "USR1@99999", ""])
def test_no_other_signal(text: str) -> None:
    """Not to the batch script, which is ours; not one that can't be caught; no second line."""
    with pytest.raises(InvalidObject, match="signal"):
        plan(lambda raw: raw["metadata"].update(annotations={"slurm.bridge/signal": text}))


def elastic(policy: Raw, replicas: int = 8, annotations: Raw | None = None) -> Change:
    """Workers only, elastic."""

    def change(raw: Raw) -> None:
        raw["metadata"].update(uid="1f2e", annotations=annotations or {})
        del raw["spec"]["pytorchReplicaSpecs"]["Master"]
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = replicas
        raw["spec"]["elasticPolicy"] = policy
        container(raw, "Worker").update(command=SHOW, workingDir="")

    return change


ETCD = {"rdzvBackend": "etcd", "rdzvHost": "etcd", "rdzvPort": 2379, "minReplicas": 2, "maxReplicas": 8}


def test_an_elastic_job_starts_with_what_there_is() -> None:
    """Scenario 4: two to eight nodes, and the loss of one ends nothing."""
    made = plan(elastic(ETCD | {"maxRestarts": 3}))
    description = write_description(made)
    assert (description["nodes"], description["minimum_nodes"], description["maximum_nodes"]) == ("2-8", 2, 8)
    assert description["kill_on_node_fail"] is False
    assert "tasks" not in description
    assert "--no-kill --kill-on-bad-exit=0" in write_script(made)
    assert made.notes == ("etcd replaced: agents meet by c10d on the job's first node",)


def test_agents_meet_on_the_first_node() -> None:
    """Scenario 4: c10d's variables, and neither RANK nor WORLD_SIZE: the agents agree on those."""
    made = plan(elastic(ETCD | {"maxRestarts": 3, "rdzvConf": [{"key": "read_timeout", "value": "600"}]}))
    told = {"KUBESLURM_ADDRESSES": "10.0.0.1 10.0.0.2 ", "SLURM_JOB_NUM_NODES": "5"}
    seen = tasks.run(made, 1, 0, **told)[1]
    wanted = {
        "PET_NNODES": "2:5",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "10.0.0.1:20001",
        "PET_RDZV_CONF": "is_host=0,read_timeout=600",
        "PET_RDZV_ID": "1f2e-1",
        "PET_LOCAL_ADDR": "10.0.0.2",
        "PET_MAX_RESTARTS": "3",
    }
    assert {name: seen[name] for name in wanted} == wanted
    assert not seen.keys() & {"RANK", "WORLD_SIZE", "PET_NODE_RANK", "PET_STANDALONE"}
    assert tasks.run(made, 0, 0, **told)[1]["PET_RDZV_CONF"].startswith("is_host=1")


@pytest.mark.parametrize(
    ("policy", "replicas", "path"),
    [
        ({"rdzvBackend": "zeus"}, 8, "rdzvBackend"),
        ({"minReplicas": 9, "maxReplicas": 8}, 8, "minReplicas"),
        ({"minReplicas": 9}, 8, "minReplicas"),
        ({"minReplicas": 0}, 8, "minReplicas"),
        ({"rdzvConf": [{"key": "a", "value": "$(id)"}]}, 8, "rdzvConf[0]"),
        ({"rdzvConf": [1]}, 8, "rdzvConf[0]"),
        ({"maxRestarts": "3"}, 8, "maxRestarts"),
        ({"standalone": "yes"}, 8, "standalone"),
        ({"surprise": 1}, 8, "surprise"),
    ],
)
def test_an_elastic_policy_that_can_not_be_is_refused_by_its_path(policy: Raw, replicas: int, path: str) -> None:
    """The field, below spec.elasticPolicy."""
    with pytest.raises(InvalidObject) as caught:
        plan(elastic(policy, replicas))
    assert caught.value.path == f"spec.elasticPolicy.{path}"


def test_whoever_insists_on_their_rendezvous_is_refused() -> None:
    """Scenario 4: slurm.bridge/strict-rendezvous."""
    with pytest.raises(InvalidObject) as caught:
        plan(elastic(ETCD, annotations={"slurm.bridge/strict-rendezvous": "true"}))
    assert caught.value.path == "spec.elasticPolicy.rdzvHost"


def test_standalone_is_a_number() -> None:
    """Upstream's empty text is one that torchrun can't read."""
    assert tasks.run(plan(elastic({"standalone": True})))[1]["PET_STANDALONE"] == "1"


@pytest.mark.parametrize(("nproc", "gpus", "seen"), [("cpu", 8, "4"), ("auto", 0, "4"), ("auto", 8, "auto")])
def test_processes_for_each_cpu_are_those_of_the_task(nproc: str, gpus: int, seen: str) -> None:
    """torchrun would count the node's CPUs."""

    def change(raw: Raw) -> None:
        raw["spec"]["nprocPerNode"] = nproc
        limits = {"cpu": 4, **({"nvidia.com/gpu": gpus} if gpus else {})}
        gang(resources={"limits": limits})(raw)

    assert tasks.run(plan(change))[1]["PET_NPROC_PER_NODE"] == seen


def test_another_user_is_refused() -> None:
    """A job runs as the tenant's; what else a security context asks for is listed."""
    made = plan(gang(securityContext={"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}}))
    assert any(path.endswith("securityContext.capabilities") for path in made.ignored)
    with pytest.raises(InvalidObject, match=r"securityContext\.runAsUser"):
        plan(gang(securityContext={"runAsUser": 0}))
