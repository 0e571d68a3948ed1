"""Each field of a `JobSubmitDescription` on a real Slurm: the job is the one that sbatch makes."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from slurmrest.pyslurm import _session
from slurmrest.pyslurm.error import PyslurmError, RPCError
from slurmrest.pyslurm.job import Job, Jobs
from slurmrest.pyslurm.submission import JobSubmitDescription
from slurmrest.pyslurm.task_dist import TaskDistribution
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.releases import VERSIONS, available, connected, until

pytestmark = pytest.mark.slurm

SCRIPT = "#!/bin/sh\n"
LATER = "2030-01-01T00:00:00"
VOLATILE = re.compile(
    r"job_id|array_job_id|.*_time|last_sched_evaluation|submit_line|command|allocating_node|step_id|stdin_expanded"
)
"""Fields that two jobs of the same options differ in, or that tell who submitted."""
OWN_ID = re.compile(r"(?<=slurm-)[\d_]+(?=\.out$)|(?<=o-)\d+")
PRIORITY = ("hold", "flags", "max_nodes", "state_reason", "priority")
"""The job's number in the name of its output."""

Row = tuple[dict[str, Any], str]
ROWS: Final[list[Row]] = [
    ({"name": "a name"}, "-J 'a name'"),
    ({"account": "a"}, "-A a"),
    ({"user_id": "alice", "group_id": "daemon"}, "--uid=alice --gid=1"),
    ({"user_id": 1000, "group_id": 1001}, "--uid=1000 --gid=1001"),
    ({"wckey": "w"}, "--wckey=w"),
    ({"array": "0-3%2"}, "-a 0-3%2"),
    ({"array": [1, 3, "5-7"]}, "-a 1,3,5-7"),
    ({"constraints": "f1", "batch_constraints": "f1"}, "-C f1 --batch=f1"),
    ({"constraints": ["f1", "f2"]}, "-C f1,f2"),
    ({"begin_time": LATER}, f"-b {LATER}"),
    ({"cluster_constraints": "x"}, "--cluster-constraint=x"),
    ({"comment": "c d"}, "--comment='c d'"),
    ({"requires_contiguous_nodes": True}, "--contiguous"),
    ({"cores_reserved_for_system": 1}, "-S1"),
    ({"threads_reserved_for_system": 2}, "--thread-spec=2"),
    ({"cpu_frequency": {"min": "Low", "max": "High", "governor": "OnDemand"}}, "--cpu-freq=Low-High:OnDemand"),
    ({"cpu_frequency": 1000}, "--cpu-freq=1000"),
    ({"nodes": 2}, "-N2"),
    ({"nodes": "1-2"}, "-N1-2"),
    ({"nodes": {"min": 1, "max": 2}}, "-N1-2"),
    ({"deadline": LATER}, f"--deadline={LATER}"),
    ({"delay_boot_time": 5}, "--delay-boot=5"),
    ({"delay_boot_time": "1:30:00"}, "--delay-boot=90"),
    ({"dependencies": {"afterany": [1, 2], "singleton": True}}, "-d afterany:1:2,singleton"),
    ({"dependencies": {"afterok": 1, "afternotok": [2], "satisfy": "any"}}, "-d afterok:1?afternotok:2"),
    ({"dependencies": "afterok:1"}, "-d afterok:1"),
    ({"excluded_nodes": ["n1"]}, "-x n1"),
    ({"excluded_nodes": "n[1-2],n0"}, "-x n[0-2]"),
    ({"required_nodes": "n1"}, "-w n1"),
    ({"licenses": ["lic:1", "lic2"]}, "-L lic:1,lic2"),
    ({"licenses": {"lic": 2}}, "-L lic:2"),
    ({"mail_user": ["a", "b@c"], "mail_types": "ALL"}, "--mail-user=a,b@c --mail-type=ALL"),
    ({"mail_types": ["END", "TIME_LIMIT_80"]}, "--mail-type=END,TIME_LIMIT_80"),
    ({"mcs_label": "m"}, "--mcs-label=m"),
    ({"memory_per_cpu": 100}, "--mem-per-cpu=100"),
    ({"memory_per_node": "1G"}, "--mem=1G"),
    ({"memory_per_node": 0}, "--mem=0"),
    ({"memory_per_gpu": "1G", "gpus": 1}, "--mem-per-gpu=1G -G1"),
    ({"network": "sn"}, "--network=sn"),
    ({"nice": -5}, "--nice=-5"),
    ({"overcommit": True, "ntasks": 64, "nodes": 1}, "-O -n64 -N1"),
    ({"partitions": ["other", "main"]}, "-p other,main"),
    ({"profile_types": "energy,task"}, "--profile=energy,task"),
    ({"qos": "q"}, "-q q"),
    ({"requires_node_reboot": True}, "--reboot"),
    ({"is_requeueable": False}, "--no-requeue"),
    ({"reservations": "r"}, "--reservation=r"),
    ({"resource_sharing": "exclusive"}, "--exclusive"),
    ({"resource_sharing": "yes"}, "-s"),
    ({"resource_sharing": "user"}, "--exclusive=user"),
    ({"resource_sharing": "mcs"}, "--exclusive=mcs"),
    ({"time_limit": "1-12"}, "-t 1-12"),
    ({"time_limit": "UNLIMITED", "partitions": "other"}, "-t UNLIMITED -p other"),
    ({"time_limit": 0, "partitions": "other"}, "-t 0 -p other"),
    ({"time_limit": 5, "time_limit_min": "2"}, "-t 5 --time-min=2"),
    ({"container": "/tmp/c"}, "--container=/tmp/c"),
    ({"container_id": "cid"}, "--container-id=cid"),
    ({"cpus_per_task": 2}, "-c2"),
    ({"cpus_per_gpu": 2, "gpus": 1}, "--cpus-per-gpu=2 -G1"),
    ({"sockets_per_node": 1}, "--sockets-per-node=1"),
    ({"cores_per_socket": 2}, "--cores-per-socket=2"),
    ({"threads_per_core": 1}, "--threads-per-core=1"),
    ({"gpus": 2}, "-G2"),
    ({"gpus": {"h100": 1}}, "-G h100:1"),
    ({"gpus_per_socket": "h100:1", "sockets_per_node": 1}, "--gpus-per-socket=h100:1 --sockets-per-node=1"),
    ({"gpus_per_task": 1, "ntasks": 2}, "--gpus-per-task=1 -n2"),
    ({"gpus_per_task": {"h100": 1}, "ntasks": 2, "cpus_per_task": 2}, "--gpus-per-task=h100:1 -n2 -c2"),
    ({"gpus_per_task": 1, "ntasks": 2, "gpu_binding": "single:1"}, "--gpus-per-task=1 -n2 --gpu-bind=single:1"),
    ({"gres_per_node": {"gpu:h100": 1}}, "--gres=gpu:h100:1"),
    ({"gres_per_node": "gpu:2", "gpu_binding": "closest"}, "--gres=gpu:2 --gpu-bind=closest"),
    ({"ntasks": 3}, "-n3"),
    ({"ntasks_per_node": 2, "nodes": 2}, "--ntasks-per-node=2 -N2"),
    ({"ntasks_per_socket": 1}, "--ntasks-per-socket=1"),
    ({"ntasks_per_core": 1}, "--ntasks-per-core=1"),
    ({"ntasks_per_gpu": 1, "gpus": 1}, "--ntasks-per-gpu=1 -G1"),
    ({"switches": {"count": 1, "max_wait_time": "00:04:00"}}, "--switches=1@4"),
    ({"switches": "2@00:04:00"}, "--switches=2@4"),
    ({"standard_in": "/tmp/i"}, "-i /tmp/i"),
    ({"standard_output": "o-%j", "standard_error": "/tmp/e"}, "-o o-%j -e /tmp/e"),
    ({"kill_on_invalid_dependency": True}, "--kill-on-invalid-dep=yes"),
    ({"kill_on_invalid_dependency": False}, "--kill-on-invalid-dep=no"),
    ({"spreads_over_nodes": True}, "--spread-job"),
    ({"use_min_nodes": True}, "--use-min-nodes"),
    ({"gres_binding": "enforce-binding"}, "--gres-flags=enforce-binding"),
    ({"gres_binding": "disable-binding"}, "--gres-flags=disable-binding"),
    ({"temporary_disk_per_node": "2G"}, "--tmp=2G"),
    ({"min_cpus_per_node": "2"}, "--mincpus=2"),
    ({"working_directory": "/var"}, "-D /var"),
    ({"extra": "e f"}, "--extra='e f'"),
    ({"priority": 7}, "--priority=7"),
    ({"accounting_gather_frequency": {"task": 30}}, "--acctg-freq=task=30"),
    ({"log_files_open_mode": "append"}, "--open-mode=append"),
    ({"distribution": "cyclic:block", "ntasks": 4}, "-m cyclic:block -n4"),
    ({"distribution": TaskDistribution("plane", plane=2), "ntasks": 4}, "-m plane=2 -n4"),
    ({"signal": "B:USR1@60"}, "--signal=B:USR1@60"),
    ({"kill_on_node_fail": False}, "-k"),
    ({"wait_all_nodes": True}, "--wait-all-nodes=1"),
    ({"selinux_context": "x"}, "--context=x"),
    ({"segment_size": 1}, "--segment=1"),
    ({"reserved_ports": 1}, ""),
]
"""Fields, and what stands for them on sbatch's command line."""

UNSEEN: Final = {
    "begin_time": "begin=2030-01-01T00:00:00",
    "accounting_gather_frequency": "acctg_freq=task=30",
    "log_files_open_mode": "open_mode=1",
    "signal": "signal=B:10@60",
    "kill_on_node_fail": "kill_on_node_fail=0",
    "wait_all_nodes": "wait_all_nodes=1",
    "reserved_ports": "other_port=1",
    "resource_sharing": "shared=",
    "selinux_context": "JobDesc",
    "segment_size": "JobDesc",
}
"""What no answer tells of a job, and slurmctld's own word for it in its log of the request. Two it does not even log: the
context in a Slurm that is built without SELinux, and the size of segments before 26.05."""

LACKING = {
    "cores_per_socket": {"v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"},
    "distribution": {"v0.0.40"},
    "segment_size": {"v0.0.40"},
}


PAIRS = [(suite, one) for suite, versions in VERSIONS.items() for one in versions]
EDGES = [pair for suite, versions in VERSIONS.items() for pair in ((suite, versions[0]), (suite, versions[-1]))]
LATEST = [(suite, versions[-1]) for suite, versions in VERSIONS.items()]


@dataclasses.dataclass
class Release:
    """A Slurm, one API version that pyslurm's face speaks with it, and the jobs that sbatch made there so far."""

    slurm: BareSlurm
    version: str
    made: dict[str, int]
    told: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def by_sbatch(self, words: str) -> int:
        """The held job of these words."""
        if words not in self.made:
            said = self.slurm.run("sh", "-c", f"sbatch --parsable -H {words}", input=SCRIPT)
            self.made[words] = int(said.stdout)
        return self.made[words]

    def expected(self, words: str) -> dict[str, Any]:
        """What this version tells of that job."""
        if words not in self.told:
            self.told[words] = stable(self.by_sbatch(words))
        return self.told[words]


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[str], Release]]:
    """Starts each Slurm at its first need: three nodes of two GPUs, of which the first has features."""
    lines = ["PartitionName=other Nodes=ALL MaxTime=INFINITE", "Licenses=lic:10,lic2:10"]
    lines += ["AllowSpecResourcesUsage=yes", "SlurmctldDebug=debug3"]
    known: dict[str, Release] = {}
    with ExitStack() as stack:

        def start(suite: str) -> Release:
            if suite not in known:
                available(suite)
                slurm = stack.enter_context(BareSlurm(nodes=3, gpus=2, config_lines=lines, suite=suite))
                slurm.run("scontrol", "update", "node=n0", "availablefeatures=f1,f2", "activefeatures=f1,f2")
                reservation = "reservationname=r starttime=now duration=60 users=root,alice nodes=n0"
                slurm.run("scontrol", "create", "reservation", *reservation.split())
                known[suite] = Release(slurm, "", {})
            return known[suite]

        yield start


@pytest.fixture(scope="module", params=EDGES, ids=lambda pair: "-".join(pair))
def release(
    request: pytest.FixtureRequest, started: Callable[[str], Release], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Each release with its oldest and its newest API version, connected as root."""
    yield from speaking(started, request.param, tmp_path_factory)


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: "-".join(pair))
def any_version(
    request: pytest.FixtureRequest, started: Callable[[str], Release], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Each release with each of its API versions."""
    yield from speaking(started, request.param, tmp_path_factory)


@pytest.fixture(scope="module", params=LATEST, ids=lambda pair: "-".join(pair))
def latest(
    request: pytest.FixtureRequest, started: Callable[[str], Release], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Each release with its newest API version: for jobs that run, which takes a second each."""
    yield from speaking(started, request.param, tmp_path_factory)


def speaking(
    started: Callable[[str], Release], pair: tuple[str, str], folders: pytest.TempPathFactory
) -> Iterator[Release]:
    """The release of this suite, spoken to in this API version."""
    suite, version = pair
    one = dataclasses.replace(started(suite), version=version, told={})
    with connected(one.slurm, folders.mktemp("key"), version):
        yield one


def stable(job_id: int) -> dict[str, Any]:
    """What the API tells of a job, without what differs from job to job."""
    (job,) = _session.request("GET", f"job/{job_id}").payload["jobs"]
    found = {name: value for name, value in job.items() if not VOLATILE.fullmatch(name)}
    return {name: OWN_ID.sub("#", value) if isinstance(value, str) else value for name, value in found.items()}


def description(**fields: Any) -> JobSubmitDescription:
    """A held job with these fields."""
    return JobSubmitDescription(**{"script": SCRIPT, "working_directory": "/tmp", "priority": 0, **fields})


@pytest.mark.parametrize(("fields", "words"), ROWS, ids=[f"{'+'.join(row[0])}:{row[1]}" for row in ROWS])
def test_a_field_makes_the_job_that_sbatch_makes(release: Release, fields: dict[str, Any], words: str) -> None:
    """All that the API tells of both jobs is the same, and a version that lacks a field refuses it."""
    if any(release.version in LACKING.get(name, ()) for name in fields):
        with pytest.raises(PyslurmError, match=r"needs API v0\.0\.4\d"):
            description(**fields).submit()
        return
    log = release.slurm.folder / "logs" / "slurmctld"
    before = log.stat().st_size
    job_id = description(**fields).submit()
    expected, told = release.expected(words), stable(job_id)
    if "priority" in fields:  # sbatch's is held
        expected = expected | {name: value for name, value in told.items() if name in PRIORITY}
    assert told == expected
    if expected == release.expected(""):  # nothing to be seen: slurmctld has it all the same
        with log.open() as lines:
            lines.seek(before)
            said = lines.read()
        assert UNSEEN[next(iter(fields))] in said[: said.index("_slurm_rpc_submit_batch_job")]


def test_no_version_drops_a_field(any_version: Release) -> None:
    """slurmrestd warns of each field that it ignores; we refuse those before."""
    told: dict[str, list[str]] = {}
    for fields, _ in ROWS:
        if any(any_version.version in LACKING.get(name, ()) for name in fields):
            continue
        body = description(**fields)._request(any_version.version)
        warnings = _session.session().submit(body["job"], body["script"]).warnings
        told["+".join(fields)] = [warning for warning in warnings if "held state" not in warning]
    assert {names: warnings for names, warnings in told.items() if warnings} == {}


def test_every_field_is_tried() -> None:
    """Here, or in a test of its own below."""
    apart = {"is_update", "script", "script_args", "environment", "get_user_environment", "_more"}
    refused = {"site_factor", "admin_comment", "gres_tasks_per_sharing", "clusters"}
    tried = {name for fields, _ in ROWS for name in fields}
    assert tried | apart | refused == {one.name for one in dataclasses.fields(JobSubmitDescription)}
    assert not tried & (apart | refused)


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"admin_comment": "x"}, ValueError, "admin_comment is for changes of a job only"),
        ({"site_factor": 1}, ValueError, "site_factor is for changes of a job only"),
        ({"is_update": True}, ValueError, "changes can't be submitted"),
        ({"gres_tasks_per_sharing": "one"}, PyslurmError, "gres_tasks_per_sharing: no version of the REST API"),
        ({"get_user_environment": 10}, PyslurmError, "get_user_environment: a time or mode"),
        ({"clusters": "elsewhere"}, PyslurmError, "slurmrestd serves bare, which is not among them"),
        ({"partitions": "nosuch"}, RPCError, "Invalid partition name"),
    ],
)
def test_what_can_not_be_is_refused(
    release: Release, fields: dict[str, Any], kind: type[Exception], message: str
) -> None:
    """With the field's name, or Slurm's own words; and no job is made."""
    before = len(Jobs.load())
    with pytest.raises(kind, match=re.escape(message)):
        description(**fields).submit()
    assert len(Jobs.load()) == before


def test_a_key_makes_one_job(release: Release) -> None:
    """However often it is submitted; its place is the comment."""
    key = f"once-{release.version}"
    first = description().submit(key=key)
    assert (description().submit(key=key), Job.load(first).comment) == (first, f"kubeslurm:{key}")
    with pytest.raises(RPCError, match="the job's comment is the key's place"):
        description(comment="mine").submit(key=key)
    with pytest.raises(ValueError, match="user_id: a key is the connection's user's"):
        description(user_id="alice").submit(key=key)


def test_the_cluster_may_be_named(release: Release) -> None:
    """The one that slurmrestd serves."""
    assert description(clusters=["bare", "other"]).submit() > 0


def output(latest: Release, job_id: int, path: str) -> list[str]:
    """The lines that a job printed, once it has ended."""
    until(f"job {job_id} has ended", lambda: Job.load(job_id).state in ("COMPLETED", "FAILED"))
    return latest.slurm.run("cat", path).stdout.splitlines()


def ran(latest: Release, script: str, **fields: Any) -> list[str]:
    """What a job of alice's prints."""
    path = f"/tmp/out-{next(COUNTER)}"
    wanted = JobSubmitDescription(
        script=script, working_directory="/tmp", standard_output=path, user_id="alice", **fields
    )
    return output(latest, wanted.submit(), path)


COUNTER = itertools.count()
PRINT = "#!/bin/sh\numask; env | grep -v '^SLURM_JOB\\|^SLURM_TASK_PID' | sort\n"


def test_a_job_sees_the_variables_that_sbatch_sets(latest: Release) -> None:
    """What sbatch tells the job of its options, srun in the script reads."""
    words = "-N1 -n2 -c2 --ntasks-per-node=2 -t 5 --gpus-per-task=1 --acctg-freq=task=30 --open-mode=append"
    words += " --profile=task --threads-per-core=1 -w n1"
    path = f"/tmp/out-{next(COUNTER)}"
    said = latest.slurm.run("sh", "-c", f"sbatch --parsable -o {path} {words}", input=PRINT, user="alice")
    expected = output(latest, int(said.stdout), path)
    fields: dict[str, Any] = {"nodes": 1, "ntasks": 2, "cpus_per_task": 2, "ntasks_per_node": 2, "time_limit": 5}
    fields |= {
        "gpus_per_task": 1,
        "accounting_gather_frequency": "task=30",
        "profile_types": "task",
        "required_nodes": "n1",
    }
    told = ran(latest, PRINT, **fields, threads_per_core=1, log_files_open_mode="append")
    ours = {line for line in told if line.startswith("SLURM_") and not line.startswith("SLURM_SUBMIT")}
    theirs = {line for line in expected if line.startswith("SLURM_") and not line.startswith("SLURM_SUBMIT")}
    assert {"SLURM_CPUS_PER_TASK=2", "SLURM_NTASKS_PER_NODE=2", "SLURM_TRES_BIND=gres/gpu:per_task:1"} <= theirs
    assert ours - {"SLURM_UMASK"} == theirs


def test_the_environment_is_taken_over_without_the_token(latest: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sbatch does: all variables but the token."""
    monkeypatch.setenv("SOME_OF_MINE", "a b\nc")
    monkeypatch.setenv("SLURM_JWT", "secret")
    told = ran(latest, PRINT)
    assert "SOME_OF_MINE=a b" in told
    assert "c" in told
    assert "secret" not in "".join(told)
    assert f"SLURM_SUBMIT_DIR={os.getcwd()}" in told


@pytest.mark.parametrize("environment", [{"A": "b"}, "A=b"])
def test_given_variables_come_with_the_users_own_environment(latest: Release, environment: Any) -> None:
    """As `sbatch --export=A=b` has it."""
    told = ran(latest, PRINT, environment=environment)
    assert {"A=b", "LOGNAME=alice", "SLURM_GET_USER_ENV=1"} <= set(told)
    assert not any(line.startswith("PYTEST") for line in told)


def test_the_umask_is_handed_on(latest: Release) -> None:
    """What a job writes is as private as what its submitter writes."""
    before = os.umask(0o027)
    try:
        assert ran(latest, "#!/bin/sh\numask\n") == ["0027"]
    finally:
        os.umask(before)


def test_a_script_from_a_file_has_arguments(latest: Release, tmp_path: Path) -> None:
    """Its name is the job's, and its arguments reach it one by one."""
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/sh\nprintf \'%s\\n\' "$SLURM_JOB_NAME" "$@"\n')
    assert ran(latest, str(script), script_args="'a b' c") == ["job.sh", "a b", "c"]
    assert ran(latest, str(script), script_args=["$HOME", "*"]) == ["job.sh", "$HOME", "*"]


def test_options_of_the_script_are_those_of_sbatch(latest: Release) -> None:
    """`load_sbatch_options` and `submit` make the job that sbatch makes of the same script."""
    script = SCRIPT + (
        "#SBATCH -J 'from script' -N 1-2 -n3 --mem-per-cpu=1G -t 1-0 --gres=gpu:1 # comment\n"
        "#SBATCH --no-requeue --exclude=n2 --mail-type=END --kill-on-invalid-dep=no --tres-bind=gres/gpu:closest\n"
        "#SBATCH --gpu-freq=low --prefer=f1 --nice --hold --ntasks-per-core=1 --hint=nomultithread -D /var -O\n"
        "sleep 1\n#SBATCH -J late\n"
    )
    said = latest.slurm.run("sbatch", "--parsable", input=script)
    ours = JobSubmitDescription(script=script)
    ours.load_sbatch_options()
    assert stable(ours.submit()) == stable(int(said.stdout))


def changed(job_id: int) -> dict[str, Any]:
    """What is compared before and after a change: all but the times that pass by themselves."""
    told = _session.request("GET", f"job/{job_id}").payload["jobs"][0]
    passing = ("last_sched_evaluation", "accrue_time", "start_time", "end_time")
    return {name: value for name, value in told.items() if name not in passing}


def test_a_change_has_its_effect_or_is_refused(latest: Release) -> None:
    """slurmctld ignores many fields of a change without a word: those never reach it."""
    dropped = []
    elsewhere = {"account", "qos", "mcs_label"}  # they need slurmdbd, or a plugin
    unseen = {"resource_sharing"} if latest.version == "v0.0.45" else set()
    for fields, _ in ROWS:
        if elsewhere & set(fields) or fields in ({"memory_per_node": 0}, {"priority": 7}):
            continue
        job = Job(description(ntasks=2).submit())
        before = changed(job.id)
        try:
            job.modify(JobSubmitDescription(**fields))
        except (PyslurmError, ValueError):
            assert changed(job.id) == before
            continue
        if changed(job.id) == before and not unseen & set(fields):
            dropped.append(fields)
    assert dropped == []


def test_the_tasks_of_an_array_that_run_at_once_can_be_changed(latest: Release) -> None:
    """And nothing else of it: slurmctld would take the ranges for "no limit"."""
    job = Job(description(array="0-3%2").submit())
    job.modify(JobSubmitDescription(array="%3"))
    assert Job.load(job.id).array_tasks_parallel == 3
    for array in ("0-3%1", "1", [1]):
        with pytest.raises(ValueError, match="only the tasks that run at once can be changed"):
            job.modify(JobSubmitDescription(array=array))
    assert Job.load(job.id).array_tasks_parallel == 3
