"""What pyslurm's face tells of steps and scripts, where a slurmdbd keeps them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurmrest.pyslurm import Job, Jobs, JobStep, JobSteps, PyslurmError, RPCError
from tests.integration.pyslurm.reached import acting, until
from tests.integration.pyslurm.running import Scripts

pytestmark = pytest.mark.slurm

BATCH = "srun --job-name=first -n2 true; srun --job-name=second sleep 300"


@pytest.fixture
def job(scripts: Scripts) -> Iterator[Job]:
    """A job of alice's with a step that has ended and one that runs. As root."""
    with acting(scripts.slurm):
        found = scripts.job("-n2", "--mem=100", "--time=10", "--gres=gpu:1", script=BATCH)
        until(lambda: any(step.name == "second" for step in _steps(found).values()))
        yield Job.load(found)


def _steps(job_id: int) -> JobSteps:
    """None yet, as long as slurmdbd has not heard of the job."""
    return JobSteps.load_all([job_id]).get(job_id, JobSteps())


def test_steps_are_those_of_slurmdbd(scripts: Scripts, job: Job) -> None:
    """By id, with names, states and resources."""
    steps = JobSteps.load(job)
    said = scripts.lines("sacct", "-n", "-P", "-o", "JobID,JobName,State,NTasks,AllocCPUS", "-j", str(job.id))
    truth = {tuple(line.split("|")) for line in said if "." in line}
    told = {
        (f"{job.id}.{step.id}", str(step.name), str(step.state), str(step.ntasks), str(step.cpus))
        for step in steps.values()
    }
    assert told == truth
    second = JobStep.load(job.id, 1)
    assert (second.name, second.job_id, second.user_name, second.partition) == ("second", job.id, "alice", "main")
    assert isinstance(second.run_time_remaining, int)
    assert 0 < second.run_time_remaining <= 600
    assert second.gpus["gpu"].count == 1
    assert JobSteps.load_all()[job.id].keys() == steps.keys() == job.steps.keys()


def test_every_attribute_of_a_step_can_be_read(job: Job) -> None:
    """What can't be had says so."""
    step = JobStep.load(job.id, 0)
    assert set(step.to_dict(recursive=True)) == set(JobStep._fields)
    with pytest.raises(PyslurmError, match="no call about steps"):
        _ = step.network


def test_jobs_load_their_steps(job: Job) -> None:
    """All at once; a job that slurmdbd doesn't know has none."""
    jobs = Jobs([Job(job.id), Job(999999)])
    jobs.load_steps()
    assert set(jobs[job.id].steps) >= {0, 1, "batch"}
    assert jobs[999999].steps == {}
    with pytest.raises(RPCError, match="knows no step 77"):
        JobStep.load(job.id, 77)
    with pytest.raises(RPCError, match="knows no job 999999"):
        JobSteps.load(999999)


def test_the_script_is_that_of_slurmdbd(scripts: Scripts, job: Job) -> None:
    """With AccountingStoreFlags=job_script."""
    assert BATCH in job.get_batch_script()


@pytest.mark.parametrize("call", ["cancel", "load_stats"])
def test_steps_can_not_be_acted_on(call: str) -> None:
    """The errors name what can."""
    with pytest.raises(PyslurmError, match=rf"JobStep\.{call}: no version of the REST API"):
        getattr(JobStep(1, 0), call)()
    with pytest.raises(PyslurmError, match=r"JobStep\.send_signal: no version"):
        JobStep(1, 0).send_signal(10)
    with pytest.raises(PyslurmError, match=r"JobStep\.modify: no version"):
        JobStep(1, 0).modify(JobStep(time_limit=10))
