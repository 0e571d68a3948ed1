"""Jobs of pyslurm's face on a real Slurm: what is told of them, and what is done with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmrest.pyslurm import Job, Jobs, JobStep, JobSubmitDescription, PyslurmError, RPCError
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.reached import acting, refused, shown, until
from tests.integration.pyslurm.releases import VERSIONS, available, connected

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nexec sleep 300\n"


@pytest.fixture(scope="module", params=sorted(VERSIONS, reverse=True))
def slurm(request: pytest.FixtureRequest) -> Iterator[BareSlurm]:
    """Two nodes of two GPUs, of each release; without slurmdbd. As root."""
    available(request.param)
    with BareSlurm(nodes=2, gpus=2, config_lines=["Licenses=lic:5"], suite=request.param) as running, acting(running):
        yield running
        running.run("scancel", "--full", "-u", "root,alice", check=False)


def submitted(**fields: Any) -> Job:
    """A job of a second of CPU, of root's unless `fields` say otherwise."""
    wanted: dict[str, Any] = {"script": SLEEP, "working_directory": "/tmp", "standard_output": "/dev/null"}
    return Job.load(JobSubmitDescription(**{**wanted, **fields}).submit())


def running(**fields: Any) -> Job:
    """The same, once it runs."""
    job = submitted(**fields)
    until(lambda: Job.load(job.id).state == "RUNNING")
    return Job.load(job.id)


def test_a_running_job_tells_what_scontrol_shows(slurm: BareSlurm) -> None:
    """By pyslurm's names, in pyslurm's units."""
    fields: dict[str, Any] = {"name": "train", "nodes": 2, "ntasks": 4, "cpus_per_task": 2, "memory_per_node": "2G"}
    job = running(**fields, gres_per_node="gpu:h100:1", time_limit=90, comment="c", licenses="lic:2", user_id="alice")
    truth = shown(slurm, "job", str(job.id))
    assert (job.name, job.user_name, job.user_id, job.state) == ("train", "alice", 1000, truth["JobState"])
    assert (job.num_nodes, job.ntasks, job.cpus_per_task) == (2, 4, 2)
    assert (job.cpus, job.allocated_nodes) == (int(truth["NumCPUs"]), truth["NodeList"])
    assert (job.time_limit, job.memory_per_node, job.memory) == (90, 2048, 4096)
    assert job.allocated_tres.memory == 4096
    assert (job.gres_per_node, job.gpus["h100"].count) == ({"gpu:h100": 1}, 2)
    assert (job.comment, job.licenses, job.partition) == ("c", ["lic:2"], "main")
    assert 0 <= job.run_time <= 10
    assert job.elapsed_cpu_time == pytest.approx(job.cpus * job.run_time, abs=job.cpus)
    assert job.run_time_remaining == pytest.approx(90 * 60, abs=10)
    assert (job.cluster, job.batch_host, job.is_batch_job) == ("bare", truth["BatchHost"], True)
    assert abs((job.start_time or 0) - (job.submit_time or 0)) < 10
    job.cancel()


def test_the_layout_is_that_of_scontrol(slurm: BareSlurm) -> None:
    """CPUs, memory and GPUs on each node."""
    job = running(nodes=2, ntasks=5, gres_per_node="gpu:1", memory_per_node=100)
    said = slurm.run("scontrol", "-d", "show", "job", str(job.id)).stdout
    lines = re.findall(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=\S*?\(IDX:(\S+)\)", said)
    layout = job.get_resource_layout_per_node()
    told = {(node, one["cpu_ids"], str(one["memory"]), one["gres"]["gpu:h100"].indexes) for node, one in layout.items()}
    assert told == set(lines)
    job.cancel()
    assert submitted(priority=0).get_resource_layout_per_node() == {}


def test_every_attribute_can_be_read(slurm: BareSlurm) -> None:
    """Of jobs in several states; what can't be had says so."""
    fields: dict[str, Any] = {"name": "ends", "array": "0-1", "nodes": "1-2", "cpu_frequency": "low"}
    ended = submitted(script="#!/bin/sh\nexit 7\n", dependencies="singleton", **fields)
    until(lambda: Job.load(ended.id).state == "FAILED")
    for job in Jobs.load().values():
        assert set(job.to_dict(recursive=True)) == set(Job._fields)
    assert (Job.load(ended.id).exit_code, Job.load(ended.id).exit_code_signal) == (7, None)
    with pytest.raises(PyslurmError, match=r"Job\.pids can't be had from the REST API"):
        _ = ended.pids


def test_states_and_reasons_are_those_of_squeue(slurm: BareSlurm) -> None:
    """One word each."""
    submitted(priority=0)
    submitted(begin_time="now+1hour")
    until(lambda: "None" not in slurm.run("squeue", "-h", "-t", "PD", "-o", "%r").stdout)
    said = slurm.run("squeue", "-h", "-a", "-r", "-t", "PD", "-o", "%i %T %r").stdout.split("\n")
    truth = {tuple(line.split(" ", 2)) for line in said if line and "_" not in line}
    told = {(str(job.id), job.state, job.state_reason) for job in Jobs.load().values() if job.state == "PENDING"}
    assert truth <= told


def test_a_pending_job_is_changed(slurm: BareSlurm) -> None:
    """Every field that scontrol can change."""
    job = submitted(priority=0, nodes=1)
    changes = JobSubmitDescription(name="other", time_limit="2:00:00", comment="new", nodes="1-2", ntasks=2)
    changes.memory_per_node, changes.excluded_nodes, changes.nice = "3G", ["n1"], 7
    changes.dependencies, changes.is_requeueable, changes.admin_comment = {"afterany": [job.id + 1]}, False, "mine"
    changes.standard_output, changes.licenses, changes.partitions = "/tmp/new-%j", {"lic": 1}, ["main"]
    job.modify(changes)
    now, truth = Job.load(job.id), shown(slurm, "job", str(job.id))
    assert (now.name, now.time_limit, now.comment, now.memory_per_node) == ("other", 120, "new", 3072)
    assert (now.excluded_nodes, now.nice, now.is_requeueable, now.admin_comment) == ("n1", 7, False, "mine")
    assert (truth["NumNodes"], truth["NumTasks"], truth["TimeLimit"]) == ("1-2", "2", "02:00:00")
    assert (now.licenses, now.standard_output) == (["lic:1"], f"/tmp/new-{job.id}")
    assert now.dependencies["afterany"] == [job.id + 1] or truth["Dependency"] == "(null)"


def test_what_can_not_be_changed_is_refused(slurm: BareSlurm) -> None:
    """By us with the field's name, or by Slurm with its number."""
    job = submitted(priority=0)
    with pytest.raises(PyslurmError, match=r"JobSubmitDescription\.script can't be changed"):
        job.modify(JobSubmitDescription(script=SLEEP))
    with pytest.raises(ValueError, match="holds no change"):
        job.modify(JobSubmitDescription())
    refused(2000, job.modify, JobSubmitDescription(partitions="nosuch"))


def test_a_job_is_held_and_released(slurm: BareSlurm) -> None:
    """By an administrator for good, or so that its user may release it."""
    job = submitted(user_id="alice", begin_time="now+1hour")
    job.hold()
    assert (Job.load(job.id).priority, Job.load(job.id).state_reason) == (0, "JobHeldAdmin")
    with acting(slurm, "alice"), pytest.raises(RPCError):
        job.release()
    job.release()
    assert Job.load(job.id).priority
    job.hold("user")
    assert Job.load(job.id).state_reason == "JobHeldUser"
    with acting(slurm, "alice"):
        job.release()
    assert Job.load(job.id).priority
    with pytest.raises(ValueError, match="neither"):
        job.hold("nobody")


def test_jobs_are_cancelled_by_their_owner_only(slurm: BareSlurm) -> None:
    """Another user is refused, and slurmctld goes on answering."""
    job = running(user_id="alice")
    with acting(slurm, "bob"):
        refused(2002, job.cancel)
        refused(2002, job.send_signal, "SIGKILL")
    assert Job.load(job.id).state == "RUNNING"
    with acting(slurm, "alice"):
        job.cancel()
        until(lambda: Job.load(job.id).state == "CANCELLED")
        job.cancel()
    refused(2017, Job(999999).cancel)
    refused(2017, Job.load, 999999)


HEARD = """#!/bin/sh
trap 'echo script' USR1
srun -n1 sh -c 'trap "echo step" USR1; echo ready; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done
"""


@pytest.mark.parametrize(
    ("steps", "signal", "heard"),
    [("batch", 10, {"script"}), ("children", "USR1", {"step"}), ("all", "SIGUSR1", {"script", "step"})],
)
def test_a_signal_reaches_the_chosen_processes(
    slurm: BareSlurm, steps: str, signal: str | int, heard: set[str]
) -> None:
    """The script, its steps, or both."""
    path = f"/tmp/heard-{steps}"

    def said() -> set[str]:
        return set(slurm.run("cat", path, check=False).stdout.split()) & {"ready", "script", "step"}

    job = running(script=HEARD, standard_output=path, memory_per_node=10)
    until(lambda: said() == {"ready"})
    job.send_signal(signal, steps=steps)
    until(lambda: said() >= heard)
    assert said() == heard | {"ready"}
    job.cancel()


def test_only_known_processes_are_signalled() -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match="none of all, batch, children"):
        Job(1).send_signal(10, steps="some")


def test_requeueing_needs_a_newer_release(slurm: BareSlurm) -> None:
    """24.11 has no call for it, and says which API has."""
    job = running()
    if slurm.suite == "trixie":
        with pytest.raises(PyslurmError, match=r"Job\.requeue needs API v0\.0\.45 or newer"):
            job.requeue()
    else:
        job.requeue(hold=True)
        until(lambda: Job.load(job.id).state == "PENDING")
        assert (Job.load(job.id).requeue_count, Job.load(job.id).priority) == (1, 0)
    job.cancel()


@pytest.mark.parametrize(
    ("call", "arguments"),
    [("suspend", ()), ("unsuspend", ()), ("notify", ("hello",)), ("load_stats", ())],
)
def test_what_rest_can_not_do_says_so(slurm: BareSlurm, call: str, arguments: tuple[str, ...]) -> None:
    """Naming what does it."""
    with pytest.raises(PyslurmError, match=rf"Job\.{call}: no version of the REST API"):
        getattr(Job(1), call)(*arguments)


def test_steps_and_scripts_need_slurmdbd(slurm: BareSlurm) -> None:
    """Without one the error says so."""
    job = submitted(priority=0)
    for call in (job.get_batch_script, Jobs([job]).load_steps, lambda: JobStep.load(job.id, 0), lambda: job.steps):
        with pytest.raises(PyslurmError, match="slurmdb"):
            call()
    with pytest.raises(PyslurmError, match="not loaded"):
        _ = Jobs.load()[job.id].steps


def test_a_collection_of_jobs_keeps_what_it_is_told(slurm: BareSlurm) -> None:
    """Sums over all; a frozen one neither grows nor shrinks."""
    job = running(ntasks=2, memory_per_node=100)
    frozen = Jobs([job.id], frozen=True).reload()
    assert (list(frozen), frozen.memory, frozen.ntasks, frozen.cpus) == ([job.id], 100, 2, Job.load(job.id).cpus)
    other = submitted(priority=0)
    every = Jobs.load()
    assert {job.id, other.id} <= set(every)
    assert every.memory == sum(one.memory for one in every.values())
    assert list(frozen.reload()) == [job.id]
    assert other.id in Jobs([job.id]).reload()
    job.cancel()


def test_every_version_tells_the_same(slurm: BareSlurm, tmp_path: Path) -> None:
    """What all versions have."""
    fields: dict[str, Any] = {"gpus": 1, "mail_types": "TIME_LIMIT_80", "spreads_over_nodes": True}
    job = submitted(priority=0, name="same", ntasks=2, **fields)
    for version in VERSIONS[slurm.suite]:
        with connected(slurm, tmp_path, version):
            told = Job.load(job.id)
            assert (told.name, told.ntasks, told.mail_types) == ("same", 2, ["TIME_LIMIT_80"])
            assert (told.spreads_over_nodes, told.tres_per_job.gpus["gpu"].count) == (True, 1)
            assert set(told.to_dict()) == set(Job._fields)
            assert Jobs.load()[job.id].name == "same"
    with acting(slurm):  # `connected` has closed the connection; leaving this one makes it anew
        pass
