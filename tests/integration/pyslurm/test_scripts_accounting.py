"""Scripts for pyslurm that read slurmdbd."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.running import Scripts

pytestmark = pytest.mark.usefixtures("past")
_DONE = {"COMPLETED", "FAILED", "CANCELLED"}


@pytest.fixture(scope="module")
def past(accounted: BareSlurm) -> list[int]:
    """Jobs that have ended and are in the database: of alice and bob, good and failed ones, some with GPUs."""
    made = Scripts(accounted)
    jobs = [
        made.job("--job-name=good", "--gres=gpu:2", "--nodes=2", script="srun sleep 2"),
        made.job("--job-name=bad", "--cpus-per-task=4", script="sleep 1; exit 3"),
        made.job("--job-name=other", "--gres=gpu:3", script="sleep 1", user="bob"),
        made.job("--job-name=killed", script="kill -9 $$", user="bob"),
    ]
    made.until("all jobs have ended", lambda: not made.lines("squeue", "-h"))
    made.until("all jobs are in the database", lambda: _ended(made) >= set(map(str, jobs)))
    return jobs


def _ended(scripts: Scripts) -> set[str]:
    told = (line.split("|") for line in scripts.lines("sacct", "-aXnP", "-o", "JobID,State,End"))
    return {job for job, state, end in told if state.split()[0] in _DONE and end != "Unknown"}


def sacct(scripts: Scripts, fields: str, *more: str) -> list[list[str]]:
    """What sacct has, a list of values per job."""
    return [line.split("|") for line in scripts.lines("sacct", "-aXnP", "-o", fields, *more)]


def test_a_small_sacct(scripts: Scripts) -> None:
    """All jobs of today."""
    truth = [
        " ".join([*rest, state.split()[0], code.split(":")[0]])
        for *rest, state, code in sacct(scripts, "JobIDRaw,JobName,User,Account,State,ExitCode")
    ]
    assert sorted(scripts.run("sacct")) == sorted(truth)
    assert len(truth) >= 4


def test_jobs_of_a_user_since_a_time(scripts: Scripts) -> None:
    """slurmdbd filters, as sacct does."""
    truth = sorted(int(job) for (job,) in sacct(scripts, "JobIDRaw", "-u", "bob", "-S", "today"))
    assert scripts.run("jobs_of_user", "bob", "2020-01-01") == [" ".join(map(str, truth))]
    assert scripts.run("jobs_of_user", "bob", "now+1hour") == [""]


def test_cpu_seconds_are_summed_by_user(scripts: Scripts) -> None:
    """CPUs times seconds, as sacct's CPUTimeRAW."""
    truth: Counter[str] = Counter()
    for user, seconds in sacct(scripts, "User,CPUTimeRAW"):
        truth[user] += int(seconds)
    assert dict(line.split() for line in scripts.run("usage_by_user")) == {user: str(n) for user, n in truth.items()}


def test_gpus_are_summed_by_account(scripts: Scripts) -> None:
    """As the allocated resources say."""
    truth: Counter[str] = Counter()
    for account, tres in sacct(scripts, "Account,AllocTRES"):
        truth[account] += sum(map(int, re.findall(r"gres/gpu=(\d+)", tres)))
    assert dict(line.split() for line in scripts.run("gpus_by_account")) == {name: str(n) for name, n in truth.items()}
    assert truth["physics"] >= 4


def test_failed_jobs_are_listed(scripts: Scripts) -> None:
    """With exit code and signal."""
    truth = []
    for job, code in sacct(scripts, "JobIDRaw,ExitCode", "-s", "F", "-E", "now", "-S", "today"):
        status, signal = code.split(":")
        truth.append(f"{job} {status} {None if signal == '0' else signal}")
    assert sorted(scripts.run("failed_jobs")) == sorted(truth)
    assert len(truth) >= 1


def test_steps_are_listed(scripts: Scripts, past: list[int]) -> None:
    """Of a job that started a program on its nodes."""
    told = scripts.run("job_steps", past[0])
    truth = []
    for job, name, state, code in (
        line.split("|")
        for line in scripts.lines("sacct", "-anP", "-j", str(past[0]), "-o", "JobID,JobName,State,ExitCode")
    ):
        if "." in job:
            truth.append(f"{job.split('.')[1]} {name} {state} {code.split(':')[0]}")
    assert sorted(told) == sorted(truth)
    assert {line.split()[0] for line in told} >= {"batch", "0"}


def test_jobs_are_written_as_json(scripts: Scripts, past: list[int]) -> None:
    """Those asked for, with resources as numbers."""
    told = json.loads("\n".join(scripts.run("jobs_json", *past[:2])))
    truth = dict(sacct(scripts, "JobIDRaw,JobName", "-j", ",".join(map(str, past[:2]))))
    assert {job: one["name"] for job, one in told.items()} == truth
    assert told[str(past[0])]["allocated_tres"]["gres"]["gpu"]["count"] == 4


def test_qualities_of_service_are_listed(scripts: Scripts) -> None:
    """As sacctmgr has them."""
    scripts.slurm.run("sacctmgr", "-iQ", "add", "qos", "urgent", "Description=first of all")
    truth = [line.split("|") for line in scripts.lines("sacctmgr", "-nP", "show", "qos", "format=id,name,description")]
    assert sorted(scripts.run("qos")) == sorted(" ".join(entry) for entry in truth)
    assert len(truth) >= 2


def test_associations_are_listed_by_user(scripts: Scripts) -> None:
    """slurmdbd filters."""
    show = ["sacctmgr", "-nP", "show", "association", "format=id,cluster,account,user,share", "where", "user=alice"]
    truth = [" ".join(line.split("|")) for line in scripts.lines(*show)]
    assert sorted(scripts.run("associations", "alice")) == sorted(truth)
    assert len(truth) == 2


def test_a_user_gets_limits(scripts: Scripts) -> None:
    """All associations of the user, and what else they say stays."""
    show = ["sacctmgr", "-nP", "show", "association", "where", "user=bob"]
    before = scripts.lines(*show, "format=account,share,qos,defaultqos,priority,maxwall")
    assert scripts.run("limit_user", "bob", 5, 4) == []
    assert scripts.lines(*show, "format=maxjobs,maxtresperjob") == ["5|gres/gpu=4"] * 2
    assert scripts.lines(*show, "format=account,share,qos,defaultqos,priority,maxwall") == before
    scripts.slurm.run("sacctmgr", "-iQ", "modify", "user", "bob", "set", "MaxJobs=-1", "MaxTRESPerJob=gres/gpu=-1")


def test_trackable_resources_are_listed(scripts: Scripts) -> None:
    """With their ids."""
    truth = []
    for kind, name, number in (line.split("|") for line in scripts.lines("sacctmgr", "-nP", "show", "tres")):
        truth.append(f"{number} {kind}/{name}" if name else f"{number} {kind}")
    assert sorted(scripts.run("tres")) == sorted(truth)


def test_a_comment_in_the_database_needs_a_newer_api(scripts: Scripts, past: list[int]) -> None:
    """The error says which."""
    (said,) = scripts.run("comment_job", past[0], "checked")
    assert "v0.0.44" in said
