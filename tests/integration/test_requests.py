"""What annotations ask for, on a real slurmctld: by REST and by the script's header the same job; a QOS that preempts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kubeslurm import users
from kubeslurm.descriptions import write_description
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import Job, SignedTokens, Slurm, number
from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system
from tests.unit import examples
from tests.unit.examples import Raw, only_master

pytestmark = pytest.mark.slurm

CONFIG = (
    "PreemptType=preempt/qos",
    "PreemptMode=REQUEUE",
    "JobRequeue=1",
    'PartitionName=spare Nodes=ALL MaxTime=INFINITE TRESBillingWeights="CPU=1.0,GRES/gpu=4.0" State=UP',
    "PartitionName=closed Nodes=ALL AllowAccounts=chemistry State=UP",
    "PriorityFlags=MAX_TRES",
)


@pytest.fixture(scope="module")
def bare() -> Iterator[BareSlurm]:
    """A Slurm with slurmdbd, one node, and QOS urgent that preempts QOS low."""
    need_root_file_system("trixie", accounting=True)
    with BareSlurm(nodes=1, gpus=8, config_lines=CONFIG, accounting=True) as running:
        for words in ("low", "urgent Preempt=low Priority=100"):
            running.run("sacctmgr", "-iQ", "add", "qos", *words.split())
        for name, text in users.files(examples.cluster(cluster).spec.tenants).items():
            running.run("sh", "-c", f"cat > /var/lib/extrausers/{name}", input=text)
        running.run("sacctmgr", "-iQ", "modify", "user", "where", "name=alice", "set", "qos+=low,urgent")
        # the pool's Prolog makes a folder for each job; there is none here
        running.run("sh", "-c", "for job in $(seq 60); do mkdir -p /var/log/jobs/$job; done; chmod 777 /var/log/jobs/*")
        yield running


@pytest.fixture(scope="module")
def rest(bare: BareSlurm) -> Iterator[Slurm]:
    """Its REST API, as root."""
    with Slurm(bare.url, SignedTokens(bare.jwt_key)) as client:
        yield client


def cluster(raw: Raw) -> None:
    """The example SlurmCluster as this Slurm is."""
    raw["spec"]["partitions"] = [{"name": name, "nodeSets": ["gpu-node"]} for name in ("main", "spare")]
    raw["spec"]["jobs"] = {"priorityClasses": {"high": "urgent"}}
    bounds = {"partitions": ["main", "spare"], "accounts": ["physics", "chemistry"], "qos": ["low", "urgent"]}
    raw["spec"]["tenants"][0] |= bounds
    raw["spec"]["tenants"][0]["user"]["groups"] = [{"name": "lab", "gid": 2000}, {"name": "night", "gid": 2001}]


def plan(annotations: dict[str, str], command: list[str] | None = None, **pod: Any) -> JobPlan:
    """A job of one replica with all GPUs of the node."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"test-{time.monotonic_ns()}"
        raw["metadata"]["annotations"] = {f"slurm.bridge/{key}": text for key, text in annotations.items()}
        limits = {"nvidia.com/gpu": 8, "cpu": 1}
        only_master(raw).update(command=command or ["true"], workingDir="/tmp", resources={"limits": limits})
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"] |= pod

    return read_pytorchjob(examples.training(change), examples.cluster(cluster), [examples.nodeset()])


def submit(rest: Slurm, made: JobPlan, **hold: Any) -> int:
    """As alice; the job's id."""
    body = write_description(made) | hold
    return rest.submit(body, write_script(made), key=made.key, user="alice").job_id


ASKED = ("partition", "account", "qos", "time_limit", "features", "shared", "resv_name")


@pytest.mark.parametrize(
    ("annotations", "field", "text"),
    [
        ({}, "qos", "low"),
        ({"partition": "spare"}, "partition", "spare"),
        ({"partition": "spare,main"}, "partition", "spare,main"),
        ({"account": "chemistry"}, "account", "chemistry"),
        ({"qos": "urgent"}, "qos", "urgent"),
        ({"time": "1:30:00"}, "time_limit", number(90)),
        ({}, "shared", []),
        ({"exclusive": "true"}, "shared", ["none"]),
    ],
)
def test_rest_and_header_ask_for_the_same(
    bare: BareSlurm, rest: Slurm, annotations: dict[str, str], field: str, text: Any
) -> None:
    """Held jobs, so that both are as they were submitted."""
    made = plan(annotations)
    by_rest = rest.job(submit(rest, made, hold=True))
    line = bare.run("sbatch", "--hold", "--parsable", user="alice", input=write_script(made)).stdout
    by_hand = rest.job(int(line))
    found = [{key: one.raw[key] for key in ASKED} for one in (by_rest, by_hand)]
    try:
        assert found[0] == found[1]
        assert by_rest.raw[field] == text
    finally:
        for one in (by_rest, by_hand):
            rest.cancel(one.job_id)


def until(rest: Slurm, job_id: int, *states: str) -> Job:
    """The job once its state is one of these."""
    end = time.monotonic() + 60
    while (job := rest.job(job_id)).states.base not in states:
        missed = time.monotonic() > end or job.states.finished
        assert not missed, f"job {job_id} is {job.states} {job.state_reason}"
        time.sleep(0.2)
    return job


def test_a_priority_class_whose_qos_preempts_takes_the_nodes(rest: Slurm) -> None:
    """The job of the other QOS goes back to the queue, and runs again after it."""
    low = submit(rest, plan({}, ["sh", "-c", "sleep 300"]))
    until(rest, low, "RUNNING")
    urgent = submit(rest, plan({}, ["sleep", "1"], priorityClassName="high"))
    assert until(rest, urgent, "COMPLETED").qos == "urgent"
    assert until(rest, low, "PENDING", "RUNNING").restart_count >= 1
    rest.cancel(low)


@pytest.mark.parametrize(("cpus", "gpus", "price"), [(2, 8, 32), (32, 1, 32), (16, 2, 16), (2, 1, 4)])
def test_a_job_costs_the_larger_part_of_its_node(
    bare: BareSlurm, rest: Slurm, cpus: int, gpus: int, price: int
) -> None:
    """By the weights as they are rendered: CPUs or GPUs, whichever is more of the node."""
    body = {"partition": "spare", "tres_per_node": f"gres/gpu:{gpus}", "cpus_per_task": cpus, "tasks": 1}
    whole = write_description(plan({"partition": "spare"})) | body | {"tasks_per_node": 1}
    job_id = rest.submit(whole, "#!/bin/sh\nsleep 60\n", user="alice").job_id
    until(rest, job_id, "RUNNING")
    assert f"billing={price}," in bare.run("scontrol", "show", "job", str(job_id)).stdout
    rest.cancel(job_id)
    until(rest, job_id, "CANCELLED")


def test_a_dependency_waits_for_the_other_job(rest: Slurm) -> None:
    """Whatever its end."""
    first = submit(rest, plan({}, ["false"]), hold=True)
    second = submit(rest, plan({"dependency": f"afterany:{first}"}))
    assert until(rest, second, "PENDING").state_reason == "Dependency"
    rest.cancel(first)
    assert until(rest, second, "COMPLETED").states.finished


def test_a_job_is_in_the_groups_of_its_tenants_user(bare: BareSlurm, rest: Slurm) -> None:
    """As the files say that the operator brings to slurmctld's pod: files shared by a group can be read."""
    job_id = submit(rest, plan({}, ["id", "-G"]))
    assert until(rest, job_id, "COMPLETED", "FAILED").states.base == "COMPLETED"
    assert bare.run("sh", "-c", f"cat /var/log/jobs/{job_id}/0.out").stdout.split() == ["1000", "2000", "2001"]


def test_a_job_that_its_partition_does_not_take_waits_for_ever(rest: Slurm) -> None:
    """Slurm takes it and says nothing: why it is refused before that."""
    whole = write_description(plan({"account": "physics"})) | {"partition": "closed"}
    job_id = rest.submit(whole, "#!/bin/sh\ntrue\n", user="alice").job_id
    end = time.monotonic() + 20
    while rest.job(job_id).state_reason in ("None", "Priority", "Resources", "Dependency"):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert rest.job(job_id).states.base == "PENDING"
    rest.cancel(job_id)
