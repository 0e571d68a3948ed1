"""A rendered pool on a real slurmctld and slurmd, and a translated job on that pool."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kubeslurm.descriptions import write_description
from kubeslurm.layout import plan_pool
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.rendering import render
from kubeslurm.scripts import write_script
from slurmrest import Job, SignedTokens, Slurm
from tests.cluster.slurm import BareSlurm
from tests.unit import examples
from tests.unit.examples import Raw, container

pytestmark = pytest.mark.slurm

NODES = 4
LOGS = "/var/log/jobs"


def small(raw: Raw) -> None:
    """The example NodeSet with few nodes."""
    raw["spec"]["replicas"] = NODES


@pytest.fixture(scope="module")
def pool() -> Iterator[BareSlurm]:
    """Slurm on the rendered files of the example pool with four nodes."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    rendered = render(plan_pool(examples.cluster(), [examples.nodeset(small)]))
    with BareSlurm(conf_files=rendered.files, slurmd_options=["-b"]) as running:
        yield running


@pytest.fixture(scope="module")
def rest(pool: BareSlurm) -> Iterator[Slurm]:
    """Its REST API, as root."""
    with Slurm(pool.url, SignedTokens(pool.jwt_key)) as client:
        yield client


def test_every_rendered_node_registers(rest: Slurm) -> None:
    """slurmd takes its line of slurm.conf and of gres.conf: CPUs, memory, 8 GPUs, idle."""
    nodes = {node.name: node for node in rest.nodes()}
    assert sorted(nodes) == [f"gpu-node-{index}" for index in range(NODES)]
    for node in nodes.values():
        assert node.states.base == "IDLE"
        assert not node.states.flags & {"INVALID_REG", "DRAIN", "NOT_RESPONDING", "POWERED_DOWN"}, str(node.states)
        assert (node.cpus, node.real_memory, node.gres) == (32, 128000, "gpu:h100:8")


def test_the_partition_is_the_rendered_one(rest: Slurm) -> None:
    """Its name and its nodes."""
    assert [(one.name, one.node_count) for one in rest.partitions()] == [("gpu_partition", NODES)]


def plan(command: list[str], **fields: object) -> JobPlan:
    """A job of one Master and three Workers that runs the command in /tmp."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"test-{time.monotonic_ns()}"
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = NODES - 1
        for role in ("Master", "Worker"):
            container(raw, role).update({"command": command, "workingDir": "/tmp", **fields})

    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset(small)])


def ended(rest: Slurm, made: JobPlan) -> Job:
    """Submit the plan as alice and wait for its end."""
    return finished(rest, rest.submit(write_description(made), write_script(made), key=made.key, user="alice").job_id)


def finished(rest: Slurm, job_id: int) -> Job:
    """The job at its end."""
    end = time.monotonic() + 60
    while not (job := rest.job(job_id)).states.finished:
        assert time.monotonic() < end, f"job {job_id} is {job.states} {job.state_reason}"
        time.sleep(0.2)
    return job


def output(pool: BareSlurm, job: Job) -> list[str]:
    """What all ranks wrote."""
    return pool.run("sh", "-c", f"cat {LOGS}/{job.job_id}/[0-9]*.out").stdout.splitlines()


SHOW = """
import os
print(*(os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES")))
"""


def test_a_translated_job_gives_each_rank_its_place(pool: BareSlurm, rest: Slurm) -> None:
    """RANK, WORLD_SIZE, LOCAL_RANK, the first node's address and eight GPUs, for each of the 32 ranks."""
    pool.run("sh", "-c", f"cat > /tmp/show.py <<'END'{SHOW}END")
    job = ended(rest, plan(["python3", "show.py"]))
    assert job.states.base == "COMPLETED", job
    assert job.user_name == "alice"
    first = next(node.address for node in rest.nodes() if node.name == "gpu-node-0")
    wanted = [f"{rank} {NODES * 8} {rank % 8} {first} 0,1,2,3,4,5,6,7" for rank in range(NODES * 8)]
    assert sorted(output(pool, job)) == sorted(wanted)


@pytest.mark.parametrize(
    ("failing", "code"), [("exit 7", 7), ("exit 1", 1), ("kill -SEGV $$$$", 139), ("kill -ABRT $$$$", 134)]
)
def test_the_first_failure_gives_the_jobs_exit_code(rest: Slurm, failing: str, code: int) -> None:
    """Not the ranks that are ended because one failed, though srun ends with the highest code of all."""
    job = ended(rest, plan(["sh", "-c", f'[ "$RANK" != 2 ] || {{ {failing}; }}; sleep 60']))
    assert (job.states.base, job.exit_code.return_code) == ("FAILED", code)


def test_all_failing_at_once_is_one_failure(rest: Slurm) -> None:
    """The usual way that a program fails: every rank with the same code."""
    job = ended(rest, plan(["sh", "-c", "exit 7"]))
    assert (job.states.base, job.exit_code.return_code) == ("FAILED", 7)


def test_a_missing_directory_fails_with_a_clear_line(pool: BareSlurm, rest: Slurm) -> None:
    """Nothing runs in another directory than the one asked for."""
    job = ended(rest, plan(["true"], workingDir="/no/such/place"))
    assert job.states.base == "FAILED"
    assert any("kubeslurm: no directory /no/such/place on" in line for line in output(pool, job))


def test_the_jobs_directory_is_its_users_alone(pool: BareSlurm, rest: Slurm) -> None:
    """0700, owned by alice: no other tenant reads the output."""
    job = ended(rest, plan(["true"]))
    assert pool.run("stat", "-c", "%a %U", f"{LOGS}/{job.job_id}").stdout.strip() == "700 alice"


def asked(job: Job) -> tuple[object, ...]:
    """What slurmctld took a job to ask for."""
    return (
        job.name,
        job.partition,
        job.node_count,
        job.tasks,
        job.cpus_per_task,
        job.tres_per_node,
        job.memory_per_node,
        job.time_limit,
        job.current_working_directory,
        job.standard_output.replace(str(job.job_id), "%j"),
        job.user_name,
    )


def test_sbatch_takes_the_script_for_the_job_that_rest_takes_the_description_for(pool: BareSlurm, rest: Slurm) -> None:
    """The header and the JSON are one job to slurmctld, and both run to the same end."""
    made = plan(["python3", "show.py"])
    pool.run("sh", "-c", f"cat > /tmp/show.py <<'END'{SHOW}END")
    by_rest = ended(rest, made)
    line = pool.run("sbatch", "--parsable", user="alice", input=write_script(made)).stdout
    by_hand = finished(rest, int(line))
    assert asked(by_hand) == asked(by_rest)
    assert by_hand.states == by_rest.states
    assert sorted(output(pool, by_hand)) == sorted(output(pool, by_rest))


def test_a_program_with_its_own_launcher_runs_once_for_each_replica(pool: BareSlurm, rest: Slurm) -> None:
    """With the training operator's variables, all eight GPUs, and nothing by which it could take itself for a Slurm task."""
    words = "$RANK $WORLD_SIZE $PET_NODE_RANK $PET_NNODES $PET_MASTER_ADDR:$PET_MASTER_PORT $CUDA_VISIBLE_DEVICES"
    job = ended(rest, plan(["sh", "-c", f'echo "{words}" $(env | grep -c ^SLURM_)']))
    assert job.states.base == "COMPLETED", job
    first = next(node.address for node in rest.nodes() if node.name == "gpu-node-0")
    meet = f"{first}:{20000 + job.job_id % 10000}"
    wanted = [f"{rank} {NODES} {rank} {NODES} {meet} 0,1,2,3,4,5,6,7 0" for rank in range(NODES)]
    assert sorted(output(pool, job)) == wanted


def test_cancelling_lets_the_program_end_in_order(pool: BareSlurm, rest: Slurm) -> None:
    """SIGTERM reaches every replica through the batch script and srun, before SIGKILL does."""
    script = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    made = plan(["sh", "-c", script])
    job_id = rest.submit(write_description(made), write_script(made), key=made.key, user="alice").job_id
    end = time.monotonic() + 60
    log = f"cat {LOGS}/{job_id}/[0-9]*.out 2>/dev/null || true"
    while pool.run("sh", "-c", log).stdout.count("up") < NODES:
        assert time.monotonic() < end, rest.job(job_id)
        time.sleep(0.2)
    rest.cancel(job_id)
    job = finished(rest, job_id)
    assert job.states.base == "CANCELLED"
    assert output(pool, job).count("asked") == NODES
