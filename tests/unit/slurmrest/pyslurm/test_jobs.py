"""Jobs of pyslurm's face: what recorded answers read as, and what is sent."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.pyslurm import Job, Jobs, JobStep, JobSteps, PyslurmError, RPCError, _job_forms
from slurmrest.pyslurm.utils import expand_range_str
from tests.unit.slurmrest.pyslurm.recorded import Recorded


def of(state: str = "RUNNING", version: str = "v0.0.45", **raw: Any) -> Job:
    """A job that an answer could hold."""
    return Job._of({"job_id": 7, "job_state": [state], **raw}, version)


def number(value: int) -> dict[str, Any]:
    """As the API writes it."""
    return {"set": True, "infinite": False, "number": value}


def test_a_job_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """One that runs, and one that failed."""
    jobs = Jobs.load()
    running = next(job for job in jobs.values() if job.name == "running")
    failed = next(job for job in jobs.values() if job.state == "FAILED")
    assert (running.state, running.partition, running.user_id) == ("RUNNING", "main", running.user_id)
    assert running.memory == (running.memory_per_node or 0) * running.num_nodes > 0
    assert running.gpus["gpu"].count == sum(running.gres_per_node.values()) * running.num_nodes
    assert (failed.exit_code, failed.exit_code_signal, failed.run_time_remaining) == (3, None, None)
    assert 0 <= failed.run_time < 3600
    assert (running.is_batch_job, running.is_cronjob, running.cluster) == (True, False, running._raw["cluster"])
    assert (failed.array_task_id is None) == (failed.array_id is None)


def test_every_attribute_of_a_job_can_be_read(recorded: Recorded) -> None:
    """None of them raises, in any version."""
    for job in Jobs.load().values():
        assert set(job.to_dict(recursive=True)) == set(Job._fields)


def test_sums_are_over_all_jobs(newest: Recorded) -> None:
    """Each sum is that of its attribute."""
    jobs = Jobs.load()
    for name in ("memory", "cpus", "ntasks"):
        assert getattr(jobs, name) == sum(getattr(job, name) for job in jobs.values())
    assert jobs.elapsed_cpu_time >= 0


def test_one_job_is_loaded_by_its_id(newest: Recorded) -> None:
    """And an answer about others isn't taken for it."""
    one = next(iter(Jobs.load()))
    assert Job.load(one).id == one
    newest.answers["job/999"] = newest.answers["jobs/"]
    with pytest.raises(RPCError, match="without job 999") as caught:
        Job.load(999)
    assert caught.value.errno == 2017


@pytest.mark.parametrize("job_id", ["7/../../x", "7?x=y", "", None])
def test_what_is_no_id_is_not_asked_for(newest: Recorded, job_id: Any) -> None:
    """Nothing of it reaches a path."""
    with pytest.raises((TypeError, ValueError)):
        Job.load(job_id)
    assert newest.requests == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["RUNNING"], "RUNNING"),
        (["COMPLETED", "COMPLETING"], "COMPLETING"),
        (["RUNNING", "CONFIGURING"], "CONFIGURING"),
        (["PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT"], "REQUEUE_HOLD"),
        (["RUNNING", "STOPPED"], "STOPPED"),
        (["NEWER_THAN_WE_KNOW"], "UNKNOWN"),
        ([], "UNKNOWN"),
    ],
)
def test_a_state_is_one_word(words: list[str], shown: str) -> None:
    """As squeue shows it; a word of a newer Slurm doesn't raise."""
    assert Job._of({"job_id": 1, "job_state": words}).state == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("afterok:1(unfulfilled),afterok:2(unfulfilled)", {"afterok": [1, 2]}),
        ("afterany:3_1(unfulfilled)?afternotok:4(failed)", {"afterany": ["3_1"], "afternotok": [4], "satisfy": "any"}),
        ("singleton(unfulfilled)", {"singleton": True}),
        ("", {}),
        ("someday:1", {}),
    ],
)
def test_dependencies_are_read_by_kind(text: str, expected: dict[str, Any]) -> None:
    """What they wait for is not part of them."""
    told = of(dependency=text).dependencies
    assert {name: value for name, value in told.items() if value and value != "all"} == expected


def test_times_are_counted_as_squeue_counts_them() -> None:
    """Without the time of suspension; a job that waits has not run."""
    now = int(time.time())
    started: dict[str, Any] = {"start_time": number(now - 100), "time_limit": number(5), "cpus": number(4)}
    assert of(**started).run_time == pytest.approx(100, abs=2)
    assert of(**started).run_time_remaining == pytest.approx(200, abs=2)
    assert of(**started).elapsed_cpu_time == pytest.approx(400, abs=8)
    resumed: dict[str, Any] = {**started, "suspend_time": number(now - 10), "pre_sus_time": number(30)}
    assert of(**resumed).run_time == pytest.approx(40, abs=2)
    assert of("SUSPENDED", **resumed).run_time == 30
    ended: dict[str, Any] = {**started, "end_time": number(now - 40)}
    assert (of("COMPLETED", **ended).run_time, of("COMPLETED", **ended).run_time_remaining) == (60, None)
    assert of("PENDING", **started).run_time == 0
    endless: dict[str, Any] = {**started, "time_limit": {"set": False, "infinite": True, "number": 0}}
    assert (of(**endless).time_limit, of(**endless).run_time_remaining) == ("UNLIMITED", "UNLIMITED")


@pytest.mark.parametrize(
    ("raw", "attribute", "value"),
    [
        ({"cpu_frequency_governor": number(0x80800000)}, "cpu_frequency_governor", "UserSpace"),
        ({"cpu_frequency_maximum": number(1000)}, "cpu_frequency_max", 1000),
        ({"thread_spec": 32766, "core_spec": 0}, "threads_reserved_for_system", None),
        ({"core_spec": 3}, "cores_reserved_for_system", 3),
        ({"memory_per_tres": "gres/gpu:100"}, "memory_per_gpu", 100),
        ({"cpus_per_tres": "gres/gpu:2"}, "cpus_per_gpu", 2),
        ({"mail_type": ["END", "TIME=80%"]}, "mail_types", ["END", "TIME_LIMIT_80"]),
        ({"profile": ["NOT_SET"]}, "profile_types", []),
        ({"profile": ["ENERGY", "TASK"]}, "profile_types", ["energy", "task"]),
        ({"shared": ["none"]}, "resource_sharing", "no"),
        ({"shared": []}, "resource_sharing", None),
        ({"flags": ["GRES_BINDING_DISABLED"]}, "gres_binding", "disable-binding"),
        ({"flags": ["SPREAD_JOB"]}, "spreads_over_nodes", True),
        ({"het_job_id": number(7), "het_job_offset": number(0)}, "heterogeneous_offset", 0),
        ({"het_job_id": number(0), "het_job_offset": number(0)}, "heterogeneous_offset", None),
        ({"minimum_switches": 2}, "required_switches", 2),
        ({"stdout_expanded": "/w/o-7", "standard_output": "o-%j"}, "standard_output", "/w/o-7"),
        ({"tres_per_node": "gres/gpu:h100:4,gres/shard"}, "gres_per_node", {"gpu:h100": 4, "shard": 1}),
        ({"licenses": "a:1,b"}, "licenses", ["a:1", "b"]),
        ({"tasks_per_core": {"set": False, "infinite": True, "number": 0}}, "ntasks_per_core", None),
    ],
)
def test_values_have_pyslurms_forms(raw: dict[str, Any], attribute: str, value: Any) -> None:
    """Words for Slurm's numbers, and nothing for its signs for nothing."""
    assert getattr(of(**raw), attribute) == value


def test_resources_are_those_held_or_else_those_asked_for() -> None:
    """GPUs that the sum leaves out, as without slurmdbd, are counted from what each node gives."""
    asked: dict[str, Any] = {"tres_req_str": "cpu=4,mem=2G,node=2,billing=4"}
    assert (of("PENDING", **asked).memory, of("PENDING", **asked).gpus) == (2048, {})
    held: dict[str, Any] = {
        **asked,
        "tres_alloc_str": "cpu=4,mem=1G",
        "gres_detail": ["gpu:h100:1(IDX:0)", "gpu:h100:2(IDX:0-1)"],
    }
    assert (of(**held).memory, of(**held).gpus["h100"].count, of(**held).gres["gpu"].count) == (1024, 3, 3)
    tracked: dict[str, Any] = {**held, "tres_alloc_str": "cpu=4,mem=1G,gres/gpu=3"}
    assert of(**tracked).gpus["gpu"].count == 3


LAYOUT: dict[str, Any] = {
    "gres_detail": ["gpu:h100:1(IDX:0)", "gpu:h100:2(IDX:0-1)"],
    "job_resources": {
        "nodes": {
            "allocation": [
                {
                    "name": "n0",
                    "cpus": {"count": 3},
                    "memory": {"allocated": 100},
                    "sockets": [
                        {"cores": [{"status": ["ALLOCATED"]}, {"status": ["UNALLOCATED"]}]},
                        {"cores": [{"status": ["ALLOCATED"]}, {"status": ["ALLOCATED"]}]},
                    ],
                },
                {"name": "n1", "cpus": {"count": 2}, "sockets": [{"cores": [{"status": ["ALLOCATED"]}]}]},
            ]
        }
    },
}


def test_a_layout_has_cpus_memory_and_gres_of_each_node() -> None:
    """CPUs in Slurm's order over the sockets, the threads of a core together."""
    layout = of(**LAYOUT).get_resource_layout_per_node()
    assert [(one["cpu_ids"], one["memory"], str(one["gres"]["gpu:h100"])) for one in layout.values()] == [
        ("0,2-3", 100, "gpu:h100:1(IDX:0)"),
        ("0-1", 0, "gpu:h100:2(IDX:0-1)"),
    ]
    assert of("PENDING").get_resource_layout_per_node() == {}


def test_a_layout_needs_a_version_that_tells_all_cores(oldest: Recorded) -> None:
    """v0.0.40 leaves out the cores that a job doesn't hold, and so the number of each."""
    job = next(iter(Jobs.load().values()))
    with pytest.raises(PyslurmError, match=r"needs API v0\.0\.41 or newer"):
        job.get_resource_layout_per_node()


@given(st.sets(st.integers(0, 500)))
def test_ranges_read_back_as_the_numbers(numbers: set[int]) -> None:
    """Whatever they are."""
    assert expand_range_str(_job_forms.ranges(sorted(numbers))) == sorted(numbers)


@pytest.mark.parametrize(
    ("call", "method", "tail", "body"),
    [
        (lambda job: job.release(), "POST", "job/7", {"hold": False}),
        (lambda job: job.hold(), "POST", "job/7", {"hold": True}),
        (lambda job: job.cancel(), "DELETE", "job/7", None),
        (lambda job: job.send_signal("SIGUSR1", steps="batch", hurry=True), "DELETE", "job/7", None),
        (lambda job: job.requeue(hold=True), "POST", "jobs/requeue", {"jobs": ["7"], "flags": ["Hold"]}),
    ],
)
def test_a_call_sends_one_request(newest: Recorded, call: Any, method: str, tail: str, body: Any) -> None:
    """As the client has it."""
    call(Job(7))
    assert newest.changes() == [(method, tail, body)]


@pytest.mark.parametrize("call", ["suspend", "unsuspend", "load_stats"])
def test_what_rest_can_not_do_sends_nothing(newest: Recorded, call: str) -> None:
    """And says what can."""
    with pytest.raises(PyslurmError, match=rf"Job\.{call}: no version of the REST API .*(scontrol|slurmdbd)"):
        getattr(Job(7), call)()
    assert newest.requests == []


def test_requeueing_names_the_version_that_can(oldest: Recorded) -> None:
    """And sends nothing."""
    with pytest.raises(PyslurmError, match=r"Job\.requeue needs API v0\.0\.45 or newer"):
        Job(7).requeue()
    assert oldest.changes() == []


def test_steps_are_read_from_slurmdbd(recorded: Recorded) -> None:
    """Each with the id of its job; its attributes can all be read."""
    every = JobSteps.load_all([1])
    assert every
    for job_id, steps in every.items():
        for key, step in steps.items():
            assert (step.id, step.job_id) == (key, job_id)
            assert set(step.to_dict(recursive=True)) == set(JobStep._fields)
            assert step.user_name
            assert step.cluster


def test_no_job_has_no_steps(newest: Recorded) -> None:
    """Nothing is asked for: an empty filter would be all jobs."""
    assert JobSteps.load_all([]) == {}
    assert newest.requests == []
    assert JobSteps([JobStep(1, 0), JobStep(1, "batch")]).keys() == {0, "batch"}
