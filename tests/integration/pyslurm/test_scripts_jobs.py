"""Scripts for pyslurm that submit, watch and change jobs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.pyslurm.running import Scripts


def test_a_small_squeue(scripts: Scripts) -> None:
    """Pending and running jobs, as squeue has them."""
    scripts.in_state(scripts.job("--job-name=one", "--nodes=2"), "RUNNING")
    scripts.job("--job-name=held", "--hold", user="bob")
    truth = scripts.lines("squeue", "-h", "-o", "%i %P %j %u %T %D")
    assert sorted(scripts.run("squeue")) == sorted(truth)
    assert len(truth) == 2


def test_jobs_are_filtered_by_user_and_state(scripts: Scripts) -> None:
    """Only those."""
    mine = [scripts.job("--hold") for _ in range(3)]
    scripts.in_state(scripts.job(), "RUNNING")
    scripts.job("--hold", user="bob")
    assert scripts.run("filter_jobs", "alice", "PENDING") == [" ".join(map(str, mine))]
    assert scripts.lines("squeue", "-h", "-u", "alice", "-t", "PENDING", "-o", "%i", "-S", "i") == list(map(str, mine))


def test_a_job_is_submitted(scripts: Scripts) -> None:
    """With all that the description says, as the user of the token."""
    (job_id,) = scripts.run("submit_job", user="alice")
    job = scripts.shown("job", job_id)
    assert job["UserId"] == "alice(1000)"
    assert (job["JobName"], job["NumNodes"].split("-")[0], job["NumTasks"]) == ("from-pyslurm", "2", "4")
    assert (job["CPUs/Task"], job["MinMemoryNode"], job["TimeLimit"]) == ("3", "2G", "1-12:00:00")
    assert job["TresPerNode"] == "gres/gpu:h100:4"
    assert (job["WorkDir"], job["StdOut"]) == ("/tmp", f"/tmp/from-pyslurm-{job_id}.out")


def test_a_batch_files_own_options_are_read(scripts: Scripts, tmp_path: Path) -> None:
    """As sbatch reads them; what the script itself set stays."""
    batch = tmp_path / "job.sh"
    batch.write_text(
        "#!/bin/bash\n#SBATCH --job-name='my job'\n#SBATCH -n6 -c 2\n#SBATCH --mem 4G --time=1-0\n#SBATCH --hold\n\n"
        "echo $PATH\n#SBATCH --job-name=late\n"
    )
    (job_id,) = scripts.run("submit_options", str(batch), user="alice")
    name = scripts.lines("squeue", "-h", "-j", job_id, "-o", "%j")
    job = scripts.shown("job", job_id)
    assert name == ["my job"]
    assert (job["NumTasks"], job["CPUs/Task"], job["MinMemoryNode"]) == ("6", "2", "4G")
    assert (job["TimeLimit"], job["Priority"]) == ("00:07:00", "0")


def test_the_environment_describes_a_job(scripts: Scripts) -> None:
    """PYSLURM_JOBDESC_* variables."""
    variables = {
        "PYSLURM_JOBDESC_NAME": "by-environment",
        "PYSLURM_JOBDESC_ACCOUNT": "chemistry",
        "PYSLURM_JOBDESC_NTASKS": "3",
        "PYSLURM_JOBDESC_COMMENT": "hello",
    }
    (job_id,) = scripts.run("submit_environment", user="alice", environment=variables)
    job = scripts.shown("job", job_id)
    assert (job["JobName"], job["Account"], job["NumTasks"], job["Comment"]) == (
        "by-environment",
        "chemistry",
        "3",
        "hello",
    )


def test_an_array_is_submitted(scripts: Scripts) -> None:
    """Eight tasks, of which two run."""
    (job_id,) = scripts.run("submit_array", user="alice")
    scripts.until("two tasks run", lambda: len(scripts.lines("squeue", "-h", "-j", job_id, "-t", "R")) == 2)
    assert len(scripts.lines("squeue", "-h", "-r", "-j", job_id)) == 8
    assert scripts.lines("squeue", "-h", "-r", "-j", job_id, "-t", "PD", "-o", "%r") == ["JobArrayTaskLimit"] * 6


def test_jobs_wait_for_each_other(scripts: Scripts) -> None:
    """Each for the one before it."""
    first, second, third = scripts.run("submit_chain", user="alice")
    waiting = [scripts.lines("squeue", "-h", "-j", one, "-o", "%E") for one in (first, second, third)]
    assert waiting == [["(null)"], [f"afterok:{first}(unfulfilled)"], [f"afterok:{second}(unfulfilled)"]]


def test_a_job_is_held_and_released(scripts: Scripts) -> None:
    """A held job has priority 0; a released one starts."""
    job_id = scripts.job("--begin=now+1hour")
    assert scripts.run("hold_job", job_id) == ["0"]
    assert scripts.shown("job", job_id)["Priority"] == "0"
    assert scripts.run("release_job", job_id) == []
    assert scripts.shown("job", job_id)["Priority"] != "0"


def test_the_jobs_of_a_user_are_cancelled(scripts: Scripts) -> None:
    """And nobody else's."""
    mine = [scripts.in_state(scripts.job(), "RUNNING"), scripts.job("--hold")]
    other = scripts.in_state(scripts.job(user="bob"), "RUNNING")
    assert sorted(scripts.run("cancel_jobs", "alice")) == sorted(map(str, mine))
    for job_id in mine:
        scripts.in_state(job_id, "CANCELLED")
    assert scripts.shown("job", other)["JobState"] == "RUNNING"


def test_a_job_gets_a_signal(scripts: Scripts) -> None:
    """Its batch script sees it."""
    trap = "trap 'exit 9' USR1; touch /tmp/trapped; while :; do sleep 0.1; done"
    job_id = scripts.in_state(scripts.job(script=trap), "RUNNING")
    trapped = ("test", "-e", "/tmp/trapped")
    scripts.until("the job waits for the signal", lambda: scripts.slurm.run(*trapped, check=False).returncode == 0)
    assert scripts.run("signal_job", job_id, "USR1") == []
    assert scripts.in_state(job_id, "FAILED") == job_id
    assert scripts.shown("job", job_id)["ExitCode"] == "9:0"


def test_requeueing_needs_a_newer_api(scripts: Scripts) -> None:
    """The error says which."""
    job_id = scripts.in_state(scripts.job(), "RUNNING")
    (said,) = scripts.run("requeue_job", job_id)
    assert "v0.0.45" in said
    assert scripts.shown("job", job_id)["JobState"] == "RUNNING"


def test_a_job_gets_more_time(scripts: Scripts) -> None:
    """And a comment."""
    job_id = scripts.in_state(scripts.job("--time=10"), "RUNNING")
    assert scripts.run("extend_job", job_id, "02:00:00") == ["120 more time"]
    assert scripts.shown("job", job_id)["TimeLimit"] == "02:00:00"
    assert scripts.lines("squeue", "-h", "-j", str(job_id), "-o", "%k") == ["more time"]


def test_a_script_waits_for_its_job(scripts: Scripts) -> None:
    """And ends with the job's exit code."""
    (said,) = scripts.run("wait_for_job", user="alice", code=7)
    job_id, state, code = said.split()
    assert (state, code) == ("FAILED", "7")
    assert scripts.shown("job", job_id)["ExitCode"] == "7:0"


def test_memory_and_cpus_are_summed_by_user(scripts: Scripts) -> None:
    """Of running jobs, as their resources say."""
    for user, memory, cpus in (("alice", 1000, 2), ("alice", 500, 4), ("bob", 2000, 6)):
        job_id = scripts.job(f"--mem={memory}", f"--cpus-per-task={cpus}", user=user)
        scripts.in_state(job_id, "RUNNING")
    scripts.job("--hold", "--mem=9000")
    assert scripts.run("job_memory") == ["alice 1500 6", "bob 2000 6"]
    held = [scripts.shown("node", f"n{number}") for number in range(4)]
    assert (sum(int(node["AllocMem"]) for node in held), sum(int(node["CPUAlloc"]) for node in held)) == (3500, 12)


def test_gpus_of_jobs_are_listed(scripts: Scripts) -> None:
    """As squeue's column of resources per node."""
    job_id = scripts.in_state(scripts.job("--nodes=2", "--gres=gpu:h100:4"), "RUNNING")
    scripts.in_state(scripts.job(), "RUNNING")
    assert scripts.run("job_gpus") == [f"{job_id} 2 {{'gpu:h100': 4}}"]
    assert scripts.lines("squeue", "-h", "-j", str(job_id), "-o", "%b") == ["gres/gpu:h100:4"]


def test_the_reasons_of_waiting_are_told(scripts: Scripts) -> None:
    """As squeue's."""
    scripts.job("--hold")
    scripts.job("--begin=now+1hour")
    scripts.until("both reasons are known", lambda: "None" not in scripts.lines("squeue", "-h", "-t", "PD", "-o", "%r"))
    truth = scripts.lines("squeue", "-h", "-t", "PD", "-o", "%i %r")
    assert sorted(scripts.run("pending_reasons")) == sorted(truth)
    assert {line.split()[1] for line in truth} == {"JobHeldUser", "BeginTime"}


def test_a_job_is_written_as_json(scripts: Scripts) -> None:
    """Its attributes by pyslurm's names."""
    job_id = scripts.in_state(scripts.job("--job-name=written", "--time=30", "--nodes=2"), "RUNNING")
    told = json.loads("\n".join(scripts.run("job_json", job_id)))
    job = scripts.shown("job", job_id)
    assert (told["id"], told["name"], told["user_name"]) == (job_id, job["JobName"], "alice")
    assert (told["time_limit"], told["num_nodes"], told["allocated_nodes"]) == (30, 2, job["NodeList"])
