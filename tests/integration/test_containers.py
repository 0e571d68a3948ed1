"""Scenario 24 on a real Slurm: a job in its own image, by charliecloud, as an unprivileged user.

The image is a root file system of the tests, with an environment as `ch-image` writes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeslurm import materials
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.descriptions import write_description
from kubeslurm.layout import plan_pool
from kubeslurm.materials import Source
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.rendering import render
from kubeslurm.scripts import write_script
from slurmrest import Job, SignedTokens, Slurm
from slurmrest.hostlists import expand
from tests.cluster import images, rootfs
from tests.cluster.slurm import BareSlurm
from tests.unit import examples
from tests.unit.examples import Raw, only_master

pytestmark = pytest.mark.slurm

IMAGE = "registry.example/train:1"
FOUND = {Source("Secret", "hub"): {"token": b"t0k3n"}}


def settings(raw: Raw) -> None:
    """The example cluster with charliecloud."""
    raw["spec"]["jobs"] |= {"containerRuntime": "charliecloud", "imageRoot": "/images"}


def small(raw: Raw) -> None:
    """The example NodeSet with one node."""
    raw["spec"]["replicas"] = 1


@pytest.fixture(scope="module")
def pool() -> Iterator[BareSlurm]:
    """A Slurm whose node has charliecloud and one image."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    there: dict[str, Path] = {"/images/registry.example%train+1": rootfs.folder(images.PYTHON)}
    rendered = render(plan_pool(cluster(), [examples.nodeset(small)]))
    with BareSlurm(conf_files=rendered.files, slurmd_options=["-b"], container_images=there) as running:
        yield running


@pytest.fixture(scope="module")
def rest(pool: BareSlurm) -> Iterator[Slurm]:
    """Its REST API, as root."""
    with Slurm(pool.url, SignedTokens(pool.jwt_key)) as client:
        yield client


def cluster() -> SlurmCluster:
    """The example's, changed."""
    return examples.cluster(settings)


def plan(command: list[str], **container: object) -> JobPlan:
    """A job of one Master in the image, with a Secret's variable and file, and a scratch folder."""

    def change(raw: Raw) -> None:
        raw["metadata"]["uid"] = f"test-{time.monotonic_ns()}"
        mounts = [{"name": "hub", "mountPath": "/etc/hub"}, {"name": "new", "mountPath": "/scratch/deep"}]
        token = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
        only_master(raw).update(
            {
                "image": IMAGE,
                "command": command,
                "workingDir": "/usr",
                "volumeMounts": mounts,
                "env": [token],
                **container,
            }
        )
        pod = raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
        pod["volumes"] = [{"name": "hub", "secret": {"secretName": "hub"}}, {"name": "new", "emptyDir": {}}]

    return read_pytorchjob(examples.training(change), cluster(), [examples.nodeset(small)])


def ended(pool: BareSlurm, rest: Slurm, made: JobPlan) -> Job:
    """Submitted as alice, its materials brought, and at its end."""
    job_id = rest.submit(write_description(made), write_script(made), key=made.key, user="alice").job_id
    end, brought = time.monotonic() + 60, False
    while not (job := rest.job(job_id)).states.finished:
        assert time.monotonic() < end, f"job {job_id} is {job.states} {job.state_reason}"
        if job.states.base == "RUNNING" and not brought:
            tar = materials.bundle(made.materials, FOUND).tar
            command = materials.unpack_command(1000, 1000, job_id, 0, len(tar))
            pool.on_node(expand(job.nodes)[0], *command, stdin=tar)
            brought = True
        time.sleep(0.2)
    return job


def output(pool: BareSlurm, job: Job) -> list[str]:
    """What the ranks wrote."""
    return pool.run("sh", "-c", f"cat /var/log/jobs/{job.job_id}/[0-9]*.out").stdout.splitlines()


LOOK = """
import os, shutil
assert shutil.which("slurmd") is None, "not in the image"
assert os.getuid() == 1000 and os.getcwd() == "/usr"
assert open("/etc/hub/token").read() == os.environ["TOKEN"] == "t0k3n"
open("/scratch/deep/file", "w").write("x")
print(os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["MODE"], os.environ["CUDA_VISIBLE_DEVICES"])
"""


def test_a_job_runs_in_its_own_image(pool: BareSlurm, rest: Slurm) -> None:
    """Its files and not the node's, its directory, as the tenant's user; variables, a Secret's file, a scratch folder."""
    hub = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    job = ended(pool, rest, plan(["python3", "-c", LOOK], env=[hub, {"name": "MODE", "value": "a b$(RANK)"}]))
    lines = output(pool, job)
    assert job.states.base == "COMPLETED", lines
    assert lines == ["0 1 a b0 0,1,2,3,4,5,6,7"]


@pytest.mark.parametrize("mount", [{"mountPath": "/tmp/hub/deep"}, {"mountPath": "/etc/hostname", "subPath": "token"}])
def test_mounts_in_tmp_and_over_a_file_of_the_image(pool: BareSlurm, rest: Slurm, mount: Raw) -> None:
    """/tmp is the node's; a single file can be mounted where the image has one."""
    path = mount["mountPath"] if "subPath" in mount else f"{mount['mountPath']}/token"
    job = ended(pool, rest, plan(["cat", path], volumeMounts=[{"name": "hub", **mount}]))
    assert output(pool, job) == ["t0k3n"]


def test_the_programs_exit_code_is_the_jobs(pool: BareSlurm, rest: Slurm) -> None:
    """Through the runtime."""
    job = ended(pool, rest, plan(["sh", "-c", "exit 7"]))
    assert (job.states.base, job.exit_code.return_code) == ("FAILED", 7), output(pool, job)


def test_an_image_that_is_not_there_is_told(pool: BareSlurm, rest: Slurm) -> None:
    """By its path and the node's name."""
    job = ended(pool, rest, plan(["true"], image="registry.example/other:2"))
    assert job.exit_code.return_code == 125
    assert "kubeslurm: no image /images/registry.example%other+2 on gpu-node-0" in output(pool, job)
