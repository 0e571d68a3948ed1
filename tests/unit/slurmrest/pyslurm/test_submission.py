"""Descriptions of jobs: what is sent for each value, and what is refused before."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.numbers import INFINITE, number
from slurmrest.pyslurm import Job, JobSubmitDescription, PyslurmError, TaskDistribution
from slurmrest.pyslurm._description import WRITERS, dependencies
from tests.unit.slurmrest.pyslurm.recorded import Recorded

SCRIPT = "#!/bin/sh\n"
LATER = datetime(2030, 1, 1)


def sent(version: str = "v0.0.45", **fields: Any) -> dict[str, Any]:
    """The job description in the request for these fields."""
    job: dict[str, Any] = JobSubmitDescription(script=SCRIPT, working_directory="/w", **fields)._request(version)["job"]
    return job


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nodes": 3}, {"nodes": "3"}),
        ({"nodes": "1-5"}, {"nodes": "1-5"}),
        ({"nodes": {"min": 3, "max": 6}}, {"nodes": "3-6"}),
        ({"nodes": {"max": 6}}, {"nodes": "1-6"}),
        ({"nodes": {"min": 3}}, {"minimum_nodes": 3}),
        ({"memory_per_node": "3G"}, {"memory_per_node": number(3072)}),
        ({"memory_per_cpu": 1024}, {"memory_per_cpu": number(1024)}),
        ({"memory_per_gpu": "1T"}, {"memory_per_tres": "gres/gpu:1048576"}),
        ({"temporary_disk_per_node": "2048M"}, {"temporary_disk_per_node": 2048}),
        ({"time_limit": "1-12:00:00"}, {"time_limit": number(36 * 60)}),
        ({"time_limit": "00:00:30"}, {"time_limit": number(1)}),
        ({"time_limit": 0}, {"time_limit": number(INFINITE)}),
        ({"time_limit": "unlimited"}, {"time_limit": number(INFINITE)}),
        ({"memory_per_node": "unlimited"}, {"memory_per_node": number(0)}),
        ({"time_limit_min": 5}, {"time_minimum": number(5)}),
        ({"begin_time": LATER}, {"begin_time": number(int(LATER.timestamp()))}),
        ({"deadline": "2030-01-01"}, {"deadline": int(LATER.timestamp())}),
        ({"delay_boot_time": 2}, {"delay_boot": 120}),
        ({"gpus": {"tesla": 1, "volta": 5}}, {"tres_per_job": "gres/gpu:tesla:1,gres/gpu:volta:5"}),
        ({"gpus": "tesla:1,volta:5"}, {"tres_per_job": "gres/gpu:tesla:1,gres/gpu:volta:5"}),
        ({"gpus": "6"}, {"tres_per_job": "gres/gpu:6"}),
        ({"gpus": "tesla"}, {"tres_per_job": "gres/gpu:tesla:1"}),
        ({"gres_per_node": {"gpu:tesla": 1, "shard": 2}}, {"tres_per_node": "gres/gpu:tesla:1,gres/shard:2"}),
        ({"gres_per_node": ["gpu:2", "gres/shard"]}, {"tres_per_node": "gres/gpu:2,gres/shard"}),
        ({"cpu_frequency": {"min": "Low", "governor": "OnDemand"}}, {"cpu_frequency": "Low:OnDemand"}),
        ({"switches": 2}, {"required_switches": number(2)}),
        ({"switches": "5@00:10:00"}, {"required_switches": number(5), "wait_for_switch": 600}),
        ({"signal": "SIGKILL@120"}, {"kill_warning_signal": "SIGKILL", "kill_warning_delay": number(120)}),
        ({"signal": 10}, {"kill_warning_signal": "10", "kill_warning_delay": number(60)}),
        ({"signal": {"signal": "USR1", "batch_only": True}}, {"kill_warning_flags": ["BATCH_JOB"]}),
        ({"mail_types": "NONE"}, {"mail_type": []}),
        ({"mail_types": ["end", "TIME_LIMIT"]}, {"mail_type": ["END", "TIME=100%"]}),
        ({"profile_types": "all"}, {"profile": ["ENERGY", "LUSTRE", "NETWORK", "TASK"]}),
        (
            {"accounting_gather_frequency": {"energy": 60, "network": 20}},
            {"account_gather_frequency": "energy=60,network=20"},
        ),
        ({"resource_sharing": "no"}, {"shared": ["none"]}),
        ({"licenses": {"matlab": 2}}, {"licenses": "matlab:2"}),
        ({"array": [1, "3-5"]}, {"array": "1,3-5"}),
        ({"user_id": 1000}, {"user_id": "1000"}),
        ({"group_id": "root"}, {"group_id": "0"}),
        ({"nice": -5}, {"nice": -5}),
        ({"comment": "two\nlines"}, {"comment": "two\nlines"}),
        ({"excluded_nodes": "n[1,3],m"}, {"excluded_nodes": ["n[1,3]", "m"]}),
        ({"distribution": TaskDistribution("cyclic")}, {"distribution": "cyclic:cyclic:cyclic"}),
        ({"standard_output": "o-%j"}, {"standard_output": "/w/o-%j"}),
        ({"standard_error": "none"}, {"standard_error": "/dev/null"}),
        ({}, {"name": "sbatch", "standard_input": "/dev/null", "current_working_directory": "/w"}),
        (
            {"gpus_per_task": "h100:2", "ntasks": 2, "cpus_per_task": 3},
            {"tres_per_task": "cpu=3,gres/gpu:h100=2", "tres_bind": "gres/gpu:per_task:2"},
        ),
        (
            {"spreads_over_nodes": True, "kill_on_invalid_dependency": False, "use_min_nodes": False},
            {"flags": ["NO_KILL_INVALID_DEPENDENCY", "SPREAD_JOB"]},
        ),
    ],
)
def test_a_value_is_sent_in_the_forms_of_the_api(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Whatever form it has: numbers, text with units, dicts, lists, ranges."""
    job = sent(**fields)
    assert {name: job.get(name) for name in expected} == expected


def test_what_is_not_set_is_not_sent() -> None:
    """But for the four that a job must have, or that sbatch would give it."""
    assert set(sent()) == {"name", "current_working_directory", "standard_input", "environment"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodes", 0),
        ("nodes", "x"),
        ("nodes", {"min": 3, "max": 2}),
        ("nodes", {"most": 3}),
        ("nodes", True),
        ("ntasks", 0),
        ("ntasks", "many"),
        ("ntasks", 2**33),
        ("ntasks_per_node", 2**16),
        ("cpus_per_task", 70000),
        ("memory_per_node", 2**63),
        ("time_limit", 2**40),
        ("time_limit", -2),
        ("priority", 2**40),
        ("priority", "UNLIMITED"),
        ("nice", -(2**40)),
        ("delay_boot_time", 2**31),
        ("ntasks", 1.5),
        ("time_limit", "soon"),
        ("begin_time", "someday"),
        ("memory_per_node", "10X"),
        ("memory_per_node", -1),
        ("gpus", {"h100": 0}),
        ("gpus", "h100:x"),
        ("gpus", []),
        ("gres_per_node", "gpu:h100:1:2"),
        ("gres_per_node", "gpu 1"),
        ("dependencies", {"before": [1]}),
        ("dependencies", {"afterok": ["x"]}),
        ("dependencies", {}),
        ("signal", "USR1@soon"),
        ("signal", "USR1@70000"),
        ("switches", {"max_wait_time": 1}),
        ("mail_types", "SOMETIMES"),
        ("profile_types", "sleep"),
        ("resource_sharing", "maybe"),
        ("distribution", "nonsense"),
        ("cpu_frequency", "a b"),
        ("is_requeueable", "yes"),
        ("group_id", "no such group"),
        ("excluded_nodes", "n0 n1"),
        ("required_nodes", ["n0", "n1\n#"]),
        ("log_files_open_mode", "w"),
        ("gres_binding", "loose"),
        ("name", "a\nb"),
        ("name", "a\0b"),
        ("account", 3),
        ("standard_output", "a\nb"),
        ("working_directory", ""),
        ("partitions", ["a", "b\nc"]),
        ("environment", {"A=B": "c"}),
        ("environment", {"A": "b\0c"}),
        ("environment", {"A": None}),
        ("environment", "=b"),
        ("environment", 3),
    ],
)
def test_an_impossible_value_is_refused_with_its_field(newest: Recorded, field: str, value: Any) -> None:
    """Before anything is sent."""
    wanted = JobSubmitDescription(**{"script": SCRIPT, field: value})
    with pytest.raises((ValueError, TypeError), match=rf"^JobSubmitDescription\.{field}: "):
        wanted.submit()
    assert newest.changes() == []


def test_an_unknown_field_is_refused() -> None:
    """At once, in both ways of setting it."""
    with pytest.raises(TypeError, match="nodez"):
        JobSubmitDescription(nodez=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="nodez"):
        JobSubmitDescription().nodez = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory_per_cpu": 1, "memory_per_node": 1}, "memory_per_cpu and memory_per_node exclude each other"),
        ({"cpus_per_task": 1, "cpus_per_gpu": 1}, "cpus_per_task and cpus_per_gpu exclude each other"),
        ({"gpus_per_socket": 1}, "gpus_per_socket needs sockets_per_node too"),
        ({"gpus_per_task": 1}, "gpus_per_task needs ntasks or gpus too"),
        ({"script_args": "x"}, "only a script that is given as a path may have arguments"),
        ({"site_factor": 1}, "site_factor is for changes of a job only"),
        ({"script": None}, "script isn't set"),
        ({"script": "echo\n"}, "script: line 1: a batch script begins with #!"),
        ({"script": "/nowhere/at/all"}, "script: '/nowhere/at/all' can't be read"),
        ({"script": 3}, "script: expected text or a path"),
        ({"script": ""}, "script: the script is empty"),
    ],
)
def test_what_does_not_go_together_is_refused(newest: Recorded, fields: dict[str, Any], message: str) -> None:
    """Before anything is sent."""
    with pytest.raises((ValueError, TypeError), match=message):
        JobSubmitDescription(**{"script": SCRIPT, **fields}).submit()
    assert newest.changes() == []


@pytest.mark.parametrize(
    ("field", "value", "version", "since"),
    [
        ("cores_per_socket", 2, "v0.0.42", "v0.0.45"),
        ("segment_size", 2, "v0.0.40", "v0.0.41"),
        ("distribution", "block", "v0.0.40", "v0.0.41"),
    ],
)
def test_a_field_that_the_version_lacks_is_refused(field: str, value: Any, version: str, since: str) -> None:
    """Naming the first version that has it; slurmrestd would drop it with a warning."""
    with pytest.raises(PyslurmError, match=rf"{field} needs API {since}.*speaks {version}"):
        sent(version, **{field: value})


def test_a_job_is_submitted_once_and_its_id_returned(recorded: Recorded) -> None:
    """With one request, whatever the version."""
    recorded.effects["job/submit"] = {"job_id": 7}
    assert JobSubmitDescription(script=SCRIPT, name="x").submit() == 7
    ((method, tail, body),) = recorded.changes()
    assert (method, tail, body["script"], body["job"]["name"]) == ("POST", "job/submit", SCRIPT, "x")


def test_an_answer_without_a_job_is_an_error(newest: Recorded) -> None:
    """What Slurm can't read it drops, and the job with it."""
    with pytest.raises(PyslurmError, match="made no job of it"):
        JobSubmitDescription(script=SCRIPT).submit()


def test_the_process_environment_goes_along_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with sbatch; bytes that are no UTF-8 don't stop a submission."""
    monkeypatch.setenv("SLURM_JWT", "secret")
    monkeypatch.setenv("MINE", "a=b c")
    monkeypatch.setenv("BROKEN", os.fsdecode(b"\xff"))
    environment = sent()["environment"]
    assert {"MINE=a=b c", "BROKEN=\ufffd", f"SLURM_SUBMIT_DIR={os.getcwd()}"} <= set(environment)
    assert "secret" not in json.dumps(environment)


@pytest.mark.parametrize(
    ("asked", "there", "away"),
    [
        ("NONE", {"SLURM_GET_USER_ENV=1", "SLURM_EXPORT_ENV=NONE"}, "MINE=1"),
        ("NIL", {"SLURM_EXPORT_ENV=NIL"}, "SLURM_GET_USER_ENV=1"),
        ("MINE,A=b=c,NOT_SET", {"MINE=1", "A=b=c", "SLURM_GET_USER_ENV=1"}, "OTHER=2"),
        ("ALL,MINE=3", {"MINE=3", "OTHER=2"}, "MINE=1"),
        ("ALL", {"MINE=1", "OTHER=2"}, "SLURM_GET_USER_ENV=1"),
        ({"MINE": 5}, {"MINE=5", "SLURM_GET_USER_ENV=1"}, "OTHER=2"),
    ],
)
def test_variables_are_chosen_as_with_export(
    monkeypatch: pytest.MonkeyPatch, asked: Any, there: set[str], away: str
) -> None:
    """Names are taken over, "ALL" is everything, and a choice comes with the user's login environment."""
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("OTHER", "2")
    environment = sent(environment=asked)["environment"]
    assert there <= set(environment)
    assert away not in environment


def test_the_login_environment_is_loaded_on_request_only() -> None:
    """True asks for it, False keeps it out."""
    assert "SLURM_GET_USER_ENV=1" in sent(get_user_environment=True)["environment"]
    assert "SLURM_GET_USER_ENV=1" not in sent(environment={"A": "b"}, get_user_environment=False)["environment"]


def test_a_file_is_read_and_gives_the_job_its_name(tmp_path: Path) -> None:
    """And may have arguments: of text as a shell takes it apart, or of a list."""
    path = tmp_path / "train.sh"
    path.write_text("#!/bin/sh\necho\n")
    for arguments in ("'a b' c", ["a b", "c"]):
        body = JobSubmitDescription(script=path, script_args=arguments)._request("v0.0.42")
        assert (body["script"], body["job"]["name"]) == ("#!/bin/sh\necho\n", "train.sh")
        assert body["job"]["argv"] == [str(path), "a b", "c"]
    with pytest.raises(ValueError, match="script_args: No closing quotation"):
        JobSubmitDescription(script=path, script_args="'")._request("v0.0.42")


def test_a_description_shows_neither_script_nor_environment() -> None:
    """They may hold what isn't for a log."""
    assert "secret" not in repr(JobSubmitDescription(script="#!/bin/sh\nsecret", environment={"A": "secret"}))


def test_fields_are_loaded_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set already stays, unless it is to be overwritten."""
    for name, value in {"NAME": "mine", "ACCOUNT": "ours", "IS_REQUEUEABLE": "False", "NTASKS": "3"}.items():
        monkeypatch.setenv(f"PYSLURM_JOBDESC_{name}", value)
    wanted = JobSubmitDescription(name="given")
    wanted.load_environment()
    assert (wanted.name, wanted.account, wanted.is_requeueable) == ("given", "ours", False)
    assert sent(ntasks=wanted.ntasks)["tasks"] == 3
    wanted.load_environment(overwrite=True)
    assert wanted.name == "mine"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NODEZ", "3", "PYSLURM_JOBDESC_NODEZ: a JobSubmitDescription has no field 'nodez'"),
        ("_MORE", "3", "has no field"),
        ("IS_REQUEUEABLE", "yes", "PYSLURM_JOBDESC_IS_REQUEUEABLE is 'yes', neither True nor False"),
    ],
)
def test_a_variable_that_means_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    """Naming it."""
    monkeypatch.setenv(f"PYSLURM_JOBDESC_{variable}", value)
    with pytest.raises(ValueError, match=message):
        JobSubmitDescription().load_environment()


def loaded(*lines: str, **fields: Any) -> JobSubmitDescription:
    """A description with the options of a script's lines."""
    text = SCRIPT + "".join(f"#SBATCH {line}\n" for line in lines)
    wanted = JobSubmitDescription(script=text, working_directory="/w", **fields)
    wanted.load_sbatch_options()
    return wanted


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-N 1-2", "nodes", "1-2"),
        ("--mem=4G", "memory_per_node", "4G"),
        ("--hold", "priority", 0),
        ("--no-requeue", "is_requeueable", False),
        ("--requeue", "is_requeueable", True),
        ("--exclusive", "resource_sharing", "exclusive"),
        ("--exclusive=user", "resource_sharing", "user"),
        ("-s", "resource_sharing", "oversubscribe"),
        ("--nice", "nice", 100),
        ("-k", "kill_on_node_fail", False),
        ("--no-kill=off", "kill_on_node_fail", True),
        ("--gres=gpu:1 --gpus-per-node=h100:2", "gres_per_node", "gpu:1,gpu:h100:2"),
        ("-B 2:*:1", "threads_per_core", "1"),
        ("--hint=nomultithread", "threads_per_core", 1),
        ("--hint=nomultithread --ntasks-per-core=2", "threads_per_core", None),
        ("--kill-on-invalid-dep=no", "kill_on_invalid_dependency", False),
        ("--gres-flags=enforce-binding", "gres_binding", "enforce-binding"),
        ("--gres-flags=one-task-per-sharing", "gres_tasks_per_sharing", "one"),
        ("--wait-all-nodes=1", "wait_all_nodes", True),
        ("--get-user-env", "get_user_environment", True),
        ("--resv-ports=3", "reserved_ports", 3),
        ("--export=A=b", "environment", "A=b"),
        ("--propagate=NONE -Q -v --parsable", "nodes", None),
    ],
)
def test_an_option_sets_its_field(line: str, field: str, value: Any) -> None:
    """In the field's own form."""
    assert getattr(loaded(line), field) == value


def test_every_option_is_carried_over_or_refused() -> None:
    """None is dropped in silence."""
    from slurmrest.pyslurm import _sbatch_fields as fields
    from slurmrest.sbatch_table import OPTIONS

    known = {*fields._SAME, *fields._SETS, *fields._MORE, *fields._SPECIAL, *fields._NOT_FOR_JOBS}
    refused = {"autocomplete", "export-file", "mem-bind", "mem-update", "resources", "test-only", "wait", "wrap"}
    assert known | refused == set(OPTIONS)
    assert set(fields._SAME.values()) <= {*WRITERS, "environment"}


def test_options_win_over_nothing_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable wins over the script; a field that is set over both, unless it is to be overwritten."""
    monkeypatch.setenv("SBATCH_ACCOUNT", "variable")
    wanted = loaded("-A script -q script -J script", name="given")
    assert (wanted.account, wanted.qos, wanted.name) == ("variable", "script", "given")
    wanted.load_sbatch_options(overwrite=True)
    assert wanted.name == "script"


def test_options_without_a_field_reach_the_request() -> None:
    """`--prefer` and the like have no attribute in pyslurm."""
    wanted = loaded(
        "--prefer=f1 --oom-kill-step --stepmgr --tres-bind=gres/gpu:closest --spread-job --tres-per-task=cpu=2"
    )
    job = wanted._request("v0.0.42")["job"]
    assert (job["prefer"], job["oom_kill_step"], job["tres_bind"]) == ("f1", 1, "gres/gpu:closest")
    assert (job["tres_per_task"], job["flags"]) == ("cpu=2", ["SPREAD_JOB", "STEPMGR_ENABLED"])


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("--nosuch", ValueError, "line 2: an unknown option: --nosuch"),
        ("--wait", PyslurmError, "line 2: --wait: it can't be carried over"),
        ("--mem-bind=local", PyslurmError, "line 2: --mem-bind: it can't be carried over"),
        ("--propagate=ALL", PyslurmError, "line 2: --propagate: the limits of this process are not handed on"),
        ("--hint=compute_bound", PyslurmError, "line 2: --hint: 'compute_bound' steers srun's binding"),
        ("--nice=x", ValueError, "line 2: --nice: invalid literal"),
        ("-F /nowhere", ValueError, "line 2: --nodefile: .*No such file"),
        ("--kill-on-invalid-dep=x", ValueError, "neither yes nor no"),
        ("-B 1:2:3:4", ValueError, "is not sockets:cores:threads"),
        ("-J 'x", ValueError, "line 2: a quote ' is not closed"),
        ("hetjob", PyslurmError, "heterogeneous job"),
    ],
)
def test_what_can_not_be_carried_over_is_named(line: str, kind: type[Exception], message: str) -> None:
    """With its line."""
    with pytest.raises(kind, match=message):
        loaded(line)


def test_options_need_a_script() -> None:
    """There is nothing to read else."""
    with pytest.raises(ValueError, match="script isn't set"):
        JobSubmitDescription().load_sbatch_options()


@given(
    st.dictionaries(
        st.sampled_from(["after", "afterany", "aftercorr", "afternotok", "afterok"]),
        st.lists(st.integers(1, 10**9), min_size=1, max_size=4),
        min_size=1,
    ),
    st.booleans(),
    st.sampled_from(["all", "any"]),
)
def test_dependencies_read_back_as_they_were(jobs: dict[str, list[int]], singleton: bool, satisfy: str) -> None:
    """What a job says of them is what a description takes."""
    from slurmrest.pyslurm._job_forms import dependencies as read

    told = read(dependencies({**jobs, "singleton": singleton, "satisfy": satisfy}))
    expected: dict[str, Any] = {kind: jobs.get(kind, []) for kind in told if kind not in ("singleton", "satisfy")}
    several = len(jobs) + singleton > 1
    assert told == expected | {"singleton": singleton, "satisfy": satisfy if several else "all"}


@pytest.mark.parametrize(
    "field", ["script", "environment", "signal", "kill_on_node_fail", "segment_size", "wait_all_nodes"]
)
def test_what_a_change_would_not_change_is_refused(newest: Recorded, field: str) -> None:
    """slurmctld takes it, and leaves the job as it is."""
    wanted: Any = {field: 1}
    with pytest.raises(PyslurmError, match=rf"{field} can't be changed"):
        Job(7).modify(JobSubmitDescription(**wanted))
    assert newest.requests == []


def test_a_change_sends_what_is_set_and_nothing_else(recorded: Recorded) -> None:
    """No default that a submission would have."""
    Job(7).modify(JobSubmitDescription(time_limit=5, comment=""))
    assert recorded.changes() == [("POST", "job/7", {"time_limit": number(5), "comment": ""})]
