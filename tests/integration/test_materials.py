"""Scenario 13 on a real Slurm: variables and files of ConfigMaps and Secrets in a job, brought as the operator brings them.

The operator's part is played here by the same command on the same bundle, run beside each slurmd.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kubeslurm import materials
from kubeslurm.descriptions import write_description
from kubeslurm.layout import plan_pool
from kubeslurm.materials import Source
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.rendering import render
from kubeslurm.scripts import write_script
from slurmrest import Job, SignedTokens, Slurm
from slurmrest.hostlists import expand
from tests.cluster.slurm import BareSlurm
from tests.unit import examples
from tests.unit.examples import Raw, container, only_master

pytestmark = pytest.mark.slurm

NODES = 2
VALUE = b"s3cr3t 'value'\n$(with) `all`\xff\xc3"
FOUND = {Source("Secret", "database"): {"password": VALUE, "cert": b"\xff\0cert"}}


def small(raw: Raw) -> None:
    """The example NodeSet with few nodes."""
    raw["spec"]["replicas"] = NODES


@pytest.fixture(scope="module")
def pool() -> Iterator[BareSlurm]:
    """Slurm on the rendered files of the example pool, its Prolog and Epilog among them."""
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


def plan(command: str) -> JobPlan:
    """Two replicas with a variable and a volume of the Secret."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"test-{time.monotonic_ns()}"
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = NODES - 1
        for role in ("Master", "Worker"):
            reference = {"secretKeyRef": {"name": "database", "key": "password"}}
            container(raw, role).update(
                command=["sh", "-c", command],
                workingDir="/tmp",
                env=[{"name": "PASSWORD", "valueFrom": reference}],
                volumeMounts=[{"name": "db", "mountPath": "/tmp/secrets/db"}, {"name": "new", "mountPath": "/tmp/new"}],
            )
            raw["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["volumes"] = [
                {"name": "db", "secret": {"secretName": "database"}},
                {"name": "new", "emptyDir": {}},
            ]

    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset(small)])


def submitted(rest: Slurm, made: JobPlan) -> int:
    """As alice."""
    return rest.submit(write_description(made), write_script(made), key=made.key, user="alice").job_id


def reached(rest: Slurm, job_id: int, state: str) -> Job:
    """The job in that state."""
    end = time.monotonic() + 60
    while (job := rest.job(job_id)).states.base != state:
        assert time.monotonic() < end, f"job {job_id} is {job.states} {job.state_reason}"
        assert not job.states.finished, job
        time.sleep(0.1)
    return job


def bring(pool: BareSlurm, made: JobPlan, job: Job) -> None:
    """As the operator does, to each of the job's nodes."""
    tar = materials.bundle(made.materials, FOUND).tar
    command = materials.unpack_command(1000, 1000, job.job_id, job.restart_count, len(tar))
    for node in expand(job.nodes):
        pool.on_node(node, *command, stdin=tar)


SHOW = """
printf %s "$PASSWORD" | od -An -tx1 | tr -d ' \\n'; echo
od -An -tx1 /tmp/secrets/db/cert | tr -d ' \\n'; echo
stat -c '%a %U' /tmp/secrets/db/cert
stat -Lc '%a %U' /tmp/secrets/db /tmp/new
touch /tmp/new/file
"""


def test_a_secret_reaches_all_ranks_and_nothing_else(pool: BareSlurm, rest: Slurm) -> None:
    """Byte for byte in the environment and in a file of mode 0600; not in what Slurm keeps; gone after the job."""
    made = plan(SHOW + "sleep 2")
    job_id = submitted(rest, made)
    bring(pool, made, reached(rest, job_id, "RUNNING"))
    told = pool.run("sh", "-c", f"scontrol show job {job_id}; scontrol write batch_script {job_id} -; squeue -o '%all'")
    assert "s3cr3t" not in told.stdout
    reached(rest, job_id, "COMPLETED")
    for rank in range(NODES):
        said = pool.run("cat", f"/var/log/jobs/{job_id}/{rank}.out").stdout.split("\n")
        assert bytes.fromhex(said[0]) == VALUE
        assert bytes.fromhex(said[1]) == b"\xff\0cert"
        assert said[2:5] == ["600 alice", "700 alice", "755 alice"]
    left = ["sh", "-c", f"ls -d /run/kubeslurm/{job_id} /var/spool/kubeslurm/{job_id} /tmp/secrets /tmp/new; true"]
    for node in pool.nodes:
        wait_empty(pool, node, left)


def wait_empty(pool: BareSlurm, node: str, command: list[str]) -> None:
    """Until the command says nothing: the Epilog runs after the job's end."""
    end = time.monotonic() + 10
    while said := pool.on_node(node, *command):
        assert time.monotonic() < end, said
        time.sleep(0.1)


def test_a_requeued_job_waits_for_its_new_start(pool: BareSlurm, rest: Slurm) -> None:
    """What was brought for the first start is gone; a late delivery for it does not count."""
    made = plan("sleep 3")
    job_id = submitted(rest, made)
    first = reached(rest, job_id, "RUNNING")
    bring(pool, made, first)
    pool.run("scontrol", "requeue", str(job_id))
    end = time.monotonic() + 60
    while (job := rest.job(job_id)).restart_count == 0 or job.states.base != "RUNNING":
        assert time.monotonic() < end, job.states
        pool.run("scontrol", "update", f"jobid={job_id}", "StartTime=now", check=False)
        time.sleep(0.5)
    assert job.restart_count == 1
    bring(pool, made, job)
    reached(rest, job_id, "COMPLETED")


def test_another_users_folder_can_not_be_written(pool: BareSlurm, rest: Slurm) -> None:
    """A job that poses as somebody else's gets nothing: what is brought is written as the tenant's user."""
    job_id = int(pool.run("sbatch", "--parsable", "--wrap", "sleep 5", user="bob").stdout)
    job = reached(rest, job_id, "RUNNING")
    with pytest.raises(Exception, match="exit status 1"):
        bring(pool, plan("true"), job)
    assert pool.on_node(expand(job.nodes)[0], "ls", f"/run/kubeslurm/{job_id}") == b""
    pool.run("scancel", str(job_id))


def test_a_folder_that_somebody_else_made_is_not_used(pool: BareSlurm, rest: Slurm) -> None:
    """Who owns /tmp/secrets could put his own files where the job looks for its Secret's."""
    pool.run("sh", "-c", "rm -rf /tmp/secrets; mkdir -m 777 /tmp/secrets; chown bob /tmp/secrets")
    made = plan("true")
    job_id = submitted(rest, made)
    bring(pool, made, reached(rest, job_id, "RUNNING"))
    reached(rest, job_id, "FAILED")
    said = pool.run("sh", "-c", f"cat /var/log/jobs/{job_id}/[0-9]*.out").stdout
    assert "kubeslurm: /tmp/secrets/db on gpu-node-" in said
    pool.run("rmdir", "/tmp/secrets")


def test_what_a_job_of_the_same_number_left_is_taken_away_first(pool: BareSlurm, rest: Slurm) -> None:
    """Where an Epilog did not run: nothing of it may come to another user."""
    number = int(pool.run("sbatch", "--parsable", "--wrap", "true", user="alice").stdout) + 1
    left = f"mkdir -p -m 700 /run/kubeslurm/{number}/0 && echo alices > /run/kubeslurm/{number}/0/env"
    for node in pool.nodes:
        pool.on_node(node, "sh", "-c", left)
    job_id = int(pool.run("sbatch", "--parsable", "--wrap", "sleep 5", user="bob").stdout)
    job = reached(rest, job_id, "RUNNING")
    assert job_id == number
    end = time.monotonic() + 10
    look = ("sh", "-c", f"ls -lA /run/kubeslurm/{number} 2>&1; true")
    while (said := pool.on_node(expand(job.nodes)[0], *look)) != b"total 0\n":
        assert time.monotonic() < end, said
        time.sleep(0.1)
    pool.run("scancel", str(job_id))


def claim_plan(command: str) -> JobPlan:
    """A job that has a folder of the nodes as a link."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"test-{time.monotonic_ns()}"
        volume = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
        only_master(raw).update(
            command=["sh", "-c", command],
            workingDir="/tmp",
            resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "1", "memory": "1Gi"}},
            volumeMounts=[{"name": "home", "mountPath": "/tmp/claims/home"}],
        )
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["volumes"] = [volume]

    claim = {"namespace": "research", "name": "home", "path": "/var/tmp"}
    cluster = examples.cluster(lambda raw: raw["spec"]["jobs"].update(mounts={"claims": [claim]}))
    return read_pytorchjob(examples.training(change), cluster, [examples.nodeset(small)])


def test_a_link_that_two_jobs_have_goes_with_the_last(pool: BareSlurm, rest: Slurm) -> None:
    """Both on one node."""
    long, short = (claim_plan(f"ls -d /tmp/claims/home/. && sleep {seconds}") for seconds in (8, 2))
    first, second = submitted(rest, long), submitted(rest, short)
    node = expand(reached(rest, first, "RUNNING").nodes)[0]
    assert expand(reached(rest, second, "COMPLETED").nodes) == [node]
    time.sleep(1)
    assert pool.on_node(node, "readlink", "/tmp/claims/home") == b"/var/tmp\n"
    reached(rest, first, "COMPLETED")
    wait_empty(pool, node, ["sh", "-c", "ls -d /tmp/claims; true"])
