"""Translated jobs of every shape on a real Slurm: differing roles, small replicas on shared nodes, elastic, whole nodes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kubeslurm import ranks
from kubeslurm.descriptions import components
from kubeslurm.layout import plan_pool
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.rendering import render
from kubeslurm.scripts import write_script
from slurmrest import Job, SignedTokens, Slurm
from slurmrest.hostlists import expand
from tests.cluster.slurm import BareSlurm
from tests.unit import examples
from tests.unit.examples import Change, Raw, container

pytestmark = pytest.mark.slurm

NODES = 4
LOGS = "/var/log/jobs"


def pool_cluster(raw: Raw) -> None:
    """Heterogeneous jobs start with a turn of backfill; a replica without a word on CPUs has its node for itself."""
    raw["spec"]["config"]["SchedulerParameters"] = ["bf_continue", "bf_interval=1"]
    raw["spec"]["jobs"]["defaults"].update(exclusive=True)
    del raw["spec"]["jobs"]["defaults"]["cpusPerGpu"], raw["spec"]["jobs"]["defaults"]["memoryPerNode"]


def small(raw: Raw) -> None:
    """The example NodeSet with few nodes."""
    raw["spec"]["replicas"] = NODES


@pytest.fixture(scope="module")
def pool() -> Iterator[BareSlurm]:
    """Slurm on the rendered files of the example pool with four nodes."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    rendered = render(plan_pool(examples.cluster(pool_cluster), [examples.nodeset(small)]))
    with BareSlurm(conf_files=rendered.files, slurmd_options=["-b"]) as running:
        yield running


@pytest.fixture(scope="module")
def rest(pool: BareSlurm) -> Iterator[Slurm]:
    """Its REST API, as root."""
    with Slurm(pool.url, SignedTokens(pool.jwt_key)) as client:
        yield client


TELL = (
    'echo "$RANK $WORLD_SIZE $PET_NNODES $MASTER_ADDR [$CUDA_VISIBLE_DEVICES] $POD $IP $PET_NODE_RANK $PET_RDZV_CONF"'
)
FACTS = [
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
]


def plan(roles: dict[str, tuple[int, Raw]], command: str = TELL, change: Change | None = None) -> JobPlan:
    """A job with so many replicas of each role, that ask for these resources and run the command in a shell."""

    def make(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"shapes-{time.monotonic_ns()}"
        specs = raw["spec"]["pytorchReplicaSpecs"]
        for role in set(specs) - set(roles):
            del specs[role]
        for role, (replicas, limits) in roles.items():
            specs[role]["replicas"] = replicas
            container(raw, role).update(
                command=["bash", "-c", command], workingDir="/tmp", env=FACTS, resources={"limits": limits}
            )
        if change:
            change(raw)

    return read_pytorchjob(examples.training(make), examples.cluster(pool_cluster), [examples.nodeset(small)])


def submit(rest: Slurm, made: JobPlan) -> int:
    """As alice."""
    return rest.submit(components(made), write_script(made), key=made.key, user="alice").job_id


def finished(rest: Slurm, job_id: int) -> Job:
    """The job at its end."""
    end = time.monotonic() + 90
    while not (job := rest.job(job_id)).states.finished:
        assert time.monotonic() < end, f"job {job_id} is {job.states} {job.state_reason}"
        time.sleep(0.2)
    return job


def output(pool: BareSlurm, *jobs: int) -> list[list[str]]:
    """The words of what all ranks wrote."""
    files = " ".join(f"{LOGS}/{job}/[0-9]*.out" for job in jobs)
    return [line.split(" ") for line in sorted(pool.run("sh", "-c", f"cat {files}").stdout.splitlines())]


def test_a_heterogeneous_job_is_one_world(pool: BareSlurm, rest: Slurm) -> None:
    """Scenario 8: a Master without GPUs and two Workers with eight, ranks 0 to 2, each in its own pod's name."""
    made = plan({"Master": (1, {"cpu": 4, "memory": "1Gi"}), "Worker": (2, {"nvidia.com/gpu": 8, "cpu": 16})})
    job = finished(rest, submit(rest, made))
    assert job.states.base == "COMPLETED", job
    parts = sorted(rest.job_parts(job.job_id), key=lambda part: part.het_job_offset or 0)
    seen = output(pool, *(part.job_id for part in parts))
    assert [(one[0], one[1], one[2]) for one in seen] == [("0", "3", "3"), ("1", "3", "3"), ("2", "3", "3")]
    assert [one[5] for one in seen] == ["ai-training-master-0", "ai-training-worker-0", "ai-training-worker-1"]
    assert [one[4] for one in seen] == ["[]", "[0,1,2,3,4,5,6,7]", "[0,1,2,3,4,5,6,7]"]
    assert len({one[3] for one in seen}) == 1
    assert len({one[6] for one in seen}) == 3
    assert seen[0][3] == seen[0][6]


def test_a_worker_of_a_heterogeneous_job_that_fails_ends_all_of_it(pool: BareSlurm, rest: Slurm) -> None:
    """With the Worker's exit code, and no component is left."""
    command = "[ $RANK = 2 ] && exit 7; sleep 300"
    made = plan({"Master": (1, {"cpu": 4}), "Worker": (2, {"nvidia.com/gpu": 8, "cpu": 16})}, command)
    job = finished(rest, submit(rest, made))
    assert (job.states.base, job.exit_code.return_code) == ("FAILED", 7)
    parts = sorted(rest.job_parts(job.job_id), key=lambda part: part.het_job_offset or 0)
    hosts = [host for part in parts for host in expand(part.nodes)]
    said = pool.run("cat", f"{LOGS}/{job.job_id}/srun.err").stdout
    ends = ranks.read(said, made.tasks, made.first_ranks(hosts))
    assert {rank: (end.code, end.ended) for rank, end in ends.items()} == {
        2: (7, False),
        0: (143, True),
        1: (143, True),
    }
    end = time.monotonic() + 30
    while not all(part.states.finished for part in rest.job_parts(job.job_id)):
        assert time.monotonic() < end
        time.sleep(0.2)


def test_small_replicas_on_one_node_have_gpus_of_their_own(pool: BareSlurm, rest: Slurm) -> None:
    """Scenario 9: five replicas of three GPUs on three nodes, two on each but the last, each with three to itself."""
    made = plan({"Worker": (5, {"nvidia.com/gpu": 3, "cpu": 4, "memory": "1Gi"})})
    job = finished(rest, submit(rest, made))
    assert job.states.base == "COMPLETED", job
    seen = output(pool, job.job_id)
    assert [(one[0], one[4]) for one in seen] == [
        ("0", "[0,1,2]"),
        ("1", "[3,4,5]"),
        ("2", "[0,1,2]"),
        ("3", "[3,4,5]"),
        ("4", "[0,1,2]"),
    ]
    nodes = [one[6] for one in seen]
    assert [nodes.index(one) for one in nodes] == [0, 0, 2, 2, 4]
    assert [made.node_of(place) for place in range(5)] == [0, 0, 1, 1, 2]


def test_the_ranks_of_uneven_nodes_know_their_number(pool: BareSlurm, rest: Slurm) -> None:
    """Three replicas of four ranks on two nodes: eight here, four there."""
    pool.run("sh", "-c", "echo 'import os; print(os.environ[\"LOCAL_WORLD_SIZE\"])' > /tmp/local.py")

    def command(raw: Raw) -> None:
        container(raw, "Worker").update(command=["python3", "local.py"])

    made = plan({"Worker": (3, {"nvidia.com/gpu": 4, "cpu": 4, "memory": "1Gi"})}, change=command)
    job = finished(rest, submit(rest, made))
    assert job.states.base == "COMPLETED", job
    assert sorted(output(pool, job.job_id)) == [["4"]] * 4 + [["8"]] * 8


def test_a_replica_without_a_word_on_cpus_has_its_node_for_itself(pool: BareSlurm, rest: Slurm) -> None:
    """Scenario 7: all 32 CPUs, not Slurm's one."""
    job = finished(rest, submit(rest, plan({"Master": (1, {"nvidia.com/gpu": 8})})))
    assert job.states.base == "COMPLETED", (job, pool.run("sh", "-c", f"cat {LOGS}/{job.job_id}/*").stdout)
    assert job.cpus == 32


def elastic(raw: Raw) -> None:
    """Two replicas are enough."""
    raw["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 4}


def test_an_elastic_job_starts_on_the_nodes_that_are_free(pool: BareSlurm, rest: Slurm) -> None:
    """Scenario 4: with one node taken, three of four replicas meet on the first of theirs."""
    other = submit(rest, plan({"Master": (1, {"nvidia.com/gpu": 8, "cpu": 32})}, "sleep 300"))
    end = time.monotonic() + 30
    while rest.job(other).states.base != "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.2)
    try:
        job = finished(rest, submit(rest, plan({"Worker": (4, {"nvidia.com/gpu": 8, "cpu": 32})}, change=elastic)))
    finally:
        rest.cancel(other)
    assert job.states.base == "COMPLETED", job
    seen = output(pool, job.job_id)
    assert [one[0] for one in seen] == ["", "", ""]
    assert {one[2] for one in seen} == {"2:3"}
    hosts = {one[8]: one[6] for one in seen}
    assert sorted(one[8] for one in seen) == ["is_host=0", "is_host=0", "is_host=1"]
    assert hosts["is_host=1"] == seen[0][3]


def test_an_elastic_job_goes_on_without_a_node(pool: BareSlurm, rest: Slurm) -> None:
    """The other replicas end well, and so does the job."""
    job_id = submit(rest, plan({"Worker": (3, {"nvidia.com/gpu": 8, "cpu": 32})}, "sleep 8; echo done", elastic))
    end = time.monotonic() + 30
    while rest.job(job_id).states.base != "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.2)
    time.sleep(1)
    last = sorted(pool.run("scontrol", "show", "hostnames", rest.job(job_id).nodes).stdout.split())[-1]
    pool.run("scontrol", "update", f"NodeName={last}", "State=DOWN", "Reason=test")
    try:
        job = finished(rest, job_id)
    finally:
        pool.run("scontrol", "update", f"NodeName={last}", "State=RESUME")
    assert job.states.base == "COMPLETED", (job, pool.run("cat", f"{LOGS}/{job_id}/srun.err").stdout)
    assert [one for one in output(pool, job_id) if one == ["done"]] == [["done"]] * 2
