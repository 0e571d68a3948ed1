"""pyslurm.db on a real slurmdbd, in every API version of both Slurms; Slurm's own commands tell the truth."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurmrest.pyslurm import PyslurmError, RPCError, db
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.releases import VERSIONS, connected
from tests.integration.pyslurm.running import Scripts

CASES = [(suite, version) for suite, versions in VERSIONS.items() for version in versions]
WORK = "import time; x = bytearray(40_000_000); open('/tmp/out', 'wb').write(bytes(3_000_000)); time.sleep(3)"
"""Slurm looks each second at what a task uses."""


@dataclass
class Database:
    """A Slurm with ended jobs in its database, and pyslurm's face connected to it."""

    scripts: Scripts
    version: str
    jobs: dict[str, int]

    def sacct(self, fields: str, *more: str) -> list[list[str]]:
        """What sacct has, a list of values per line."""
        return [line.split("|") for line in self.scripts.lines("sacct", "-anP", "-o", fields, *more)]

    def sacctmgr(self, *words: str) -> list[list[str]]:
        """What sacctmgr shows."""
        return [line.split("|") for line in self.scripts.lines("sacctmgr", "-nP", "show", *words)]


_made: dict[int, dict[str, int]] = {}


@pytest.fixture(params=CASES, ids=[f"{suite}-{version}" for suite, version in CASES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Each version of each Slurm in turn. The jobs are run once per Slurm."""
    suite, version = request.param
    slurm: BareSlurm = request.getfixturevalue("accounted" if suite == "trixie" else "accounted_newer")
    scripts = Scripts(slurm)
    if id(slurm) not in _made:
        _made[id(slurm)] = _run_jobs(scripts)
    with connected(slurm, tmp_path, version):
        yield Database(scripts, version, _made[id(slurm)])


def _run_jobs(scripts: Scripts) -> dict[str, int]:
    for key in ("first", "second"):
        scripts.slurm.run("sacctmgr", "-iQ", "add", "wckey", key, "User=alice", check=False)
    jobs = {
        "worked": scripts.job("--nodes=2", "--gres=gpu:2", "--comment=mine", script=f'srun -n2 python3 -c "{WORK}"'),
        "failed": scripts.job("--cpus-per-task=4", "--time=30", "--wckey=first", script="exit 3", user="alice"),
        "killed": scripts.job("--job-name=killed", script="kill -9 $$", user="bob"),
        "array": scripts.job("--array=1-2", "--job-name=sweep", script="true", user="bob"),
    }
    jobs["cancelled"] = scripts.in_state(scripts.job("--job-name=long", user="bob"), "RUNNING")
    scripts.slurm.run("scancel", str(jobs["cancelled"]))
    scripts.until("all jobs have ended", lambda: not scripts.lines("squeue", "-h"))
    scripts.until("the database knows", lambda: "Unknown" not in str(scripts.lines("sacct", "-aXnP", "-o", "End")))
    return jobs


def test_jobs_are_those_of_sacct(database: Database) -> None:
    """All of today, with state, codes, user, times and resources."""
    jobs = db.Jobs.load()
    fields = "JobIDRaw,State,ExitCode,User,Account,AllocCPUS,ElapsedRaw,CPUTimeRAW,NodeList,AllocNodes"
    truth = {int(job): rest for job, *rest in database.sacct(fields, "-X")}
    assert set(jobs) == set(truth)
    for number, (state, code, user, account, cpus, elapsed, cpu_time, nodes, count) in truth.items():
        job = jobs[number]
        assert (job.state, f"{job.exit_code}:{job.exit_code_signal or 0}") == (state.split()[0], code)
        assert (job.user_name, job.account, job.cpus, job.elapsed_time) == (user, account, int(cpus), int(elapsed))
        assert (job.stats.elapsed_cpu_time, job.nodelist, job.num_nodes) == (int(cpu_time), nodes, int(count))


def test_a_jobs_resources_and_steps(database: Database) -> None:
    """GPUs of both nodes; a step per srun, with the memory that its largest task had."""
    job = db.Job.load(database.jobs["worked"])
    assert job.allocated_tres.gres["gpu"].count == job.gpus["gpu"].count == 4
    assert (job.tres.nodes, job.comment, job.partition) == (2, "mine", "main")
    truth = {
        one[0].split(".")[1]: one[1:]
        for one in database.sacct("JobID,NTasks,NNodes,State", "-j", str(job.id))
        if "." in one[0]
    }
    told = {str(key): [str(step.ntasks), str(step.num_nodes), step.state] for key, step in job.steps.items()}
    assert told == truth
    assert job.steps[0].stats.max_resident_memory > 20_000_000
    assert job.stats.total_cpu_time >= 0


def test_what_a_step_used_is_what_sacct_says(database: Database) -> None:
    """Memory and disk in bytes, with node and task."""
    job = db.Job.load(database.jobs["worked"])
    fields = "MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxVMSize,MaxDiskRead,MaxDiskWrite,AvePages"
    (truth,) = database.sacct(fields, "-j", f"{job.id}.0", "--noconvert")
    used = job.steps[0].stats
    sizes = (used.max_resident_memory, used.avg_resident_memory, used.max_virtual_memory)
    assert sizes == tuple(_bytes(truth[index]) for index in (0, 3, 4))
    assert (used.max_resident_memory_node, str(used.max_resident_memory_task)) == (truth[1], truth[2])
    disk = (used.max_disk_read, used.max_disk_write)
    assert disk == pytest.approx((_bytes(truth[5]), _bytes(truth[6])), abs=_bytes("0.01M"))


def _bytes(text: str) -> int:
    return int(float(text.rstrip("KM")) * {"K": 1024, "M": 1024**2}.get(text[-1], 1))


def test_every_filter_finds_what_sacct_finds(database: Database) -> None:
    """One at a time."""
    jobs = database.jobs
    today = time.strftime("%Y-%m-%dT00:00:00", time.gmtime())
    filters = {
        "-u bob": db.JobFilter(users=["bob"]),
        "-u alice,bob": db.JobFilter(users="alice,bob"),
        "-A chemistry": db.JobFilter(accounts=["chemistry"]),
        "-A chemistry,physics": db.JobFilter(accounts=["chemistry", "physics"]),
        "-A physics,nope": db.JobFilter(accounts=["physics", "nope"]),
        "-r main,nope": db.JobFilter(partitions=["main", "nope"]),
        "-W first,second": db.JobFilter(wckeys=["first", "second"]),
        "-M bare,other": db.JobFilter(clusters=["bare", "other"]),
        "--nodelist n[0-1]": db.JobFilter(nodelist="n0,n1"),
        "-g 1000,1001": db.JobFilter(groups=["1001", "1000"]),
        "--name killed,sweep": db.JobFilter(names=["killed", "sweep"]),
        "-r main": db.JobFilter(partitions="main"),
        "-r nope": db.JobFilter(partitions="nope"),
        f"-j {jobs['failed']},{jobs['killed']}": db.JobFilter(ids=[jobs["failed"], jobs["killed"]]),
        "--nodelist n1": db.JobFilter(nodelist=["n1"]),
        "-q normal": db.JobFilter(qos=["normal"]),
        "-W first": db.JobFilter(wckeys=["first"]),
        "-g 1001": db.JobFilter(groups=["bob"]),
        "-i 2": db.JobFilter(nodes=2),
        "-i 1-2": db.JobFilter(nodes=1, max_nodes=2),
        "-k 20 -K 40": db.JobFilter(timelimit=20, max_timelimit=40),
        "-M bare": db.JobFilter(clusters=["bare"]),
        f"-S {today} -E now": db.JobFilter(start_time=today, end_time="now"),
        "-S now-2days -E now-1days": db.JobFilter(start_time="now-2days", end_time="now-1day"),
    }
    for options, asked in filters.items():
        truth = sorted(int(job) for (job,) in database.sacct("JobIDRaw", "-X", *options.split()))
        assert sorted(db.Jobs.load(asked)) == truth, options


def test_jobs_are_found_by_their_cpus(database: Database) -> None:
    """Exactly so many, or a range."""
    truth = {int(job): int(cpus) for job, cpus in database.sacct("JobIDRaw,AllocCPUS", "-X")}
    assert set(db.Jobs.load(db.JobFilter(cpus=4))) == {job for job, cpus in truth.items() if cpus == 4} != set()
    assert set(db.Jobs.load(db.JobFilter(cpus=2, max_cpus=4))) == {job for job, cpus in truth.items() if 2 <= cpus <= 4}


def test_an_unknown_job_and_an_unknown_user_are_errors(database: Database) -> None:
    """RPCError, as Slurm has them."""
    with pytest.raises(RPCError, match="no job 4711"):
        db.Job.load(4711)
    with pytest.raises(RPCError):
        db.Jobs.load(db.JobFilter(users=["nobody-of-that-name"]))


def test_scripts_of_jobs_are_found(database: Database) -> None:
    """Of one job, and of all of a search."""
    assert "exit 3" in str(db.Job.load(database.jobs["failed"], with_script=True).script)
    found = db.Jobs.load(db.JobFilter(users=["bob"], with_script=True))
    assert all("#!/bin/sh" in str(job.script) for job in found.values() if not job.array_id)


def test_who_cancelled_a_job(database: Database) -> None:
    """root did."""
    assert db.Job.load(database.jobs["cancelled"]).cancelled_by == "root"


def test_associations_are_those_of_sacctmgr(database: Database) -> None:
    """With their ids in every version."""
    truth = {
        int(number): rest
        for number, *rest in database.sacctmgr("association", "format=id,cluster,account,user,share,parentname")
    }
    told = db.Associations.load()
    assert {
        number: [one.cluster, one.account or "", one.user or "", str(one.shares), one.parent_account or ""]
        for number, one in told.items()
    } == truth
    mine = db.Associations.load(db.AssociationFilter(users=["alice"], accounts=["physics"]))
    assert [(one.user, one.account) for one in mine.values()] == [("alice", "physics")]
    assert list(db.Associations.load(mine)) == list(mine)
    assert len(db.Associations.load(db.AssociationFilter(users=["nobody"]))) == 0


LIMITS = {
    "group_jobs": ("GrpJobs", 11),
    "group_jobs_accrue": ("GrpJobsAccrue", 12),
    "group_submit_jobs": ("GrpSubmit", 13),
    "group_wall_time": ("GrpWall", 14),
    "max_jobs": ("MaxJobs", 15),
    "max_jobs_accrue": ("MaxJobsAccrue", 16),
    "max_submit_jobs": ("MaxSubmit", 17),
    "max_wall_time_per_job": ("MaxWall", 18),
    "min_priority_threshold": ("MinPrioThresh", 19),
    "priority": ("Priority", 20),
    "shares": ("Fairshare", 21),
    "group_tres": ("GrpTRES", "cpu=22"),
    "group_tres_mins": ("GrpTRESMins", "cpu=23"),
    "group_tres_run_mins": ("GrpTRESRunMins", "cpu=24"),
    "max_tres_per_job": ("MaxTRES", "cpu=25"),
    "max_tres_per_node": ("MaxTRESPerNode", "cpu=26"),
    "max_tres_mins_per_job": ("MaxTRESMins", "cpu=27"),
}


def test_each_limit_is_set_alone_and_the_others_stay(database: Database) -> None:
    """sacctmgr sees each; it reads back as it was set."""
    chosen = db.AssociationFilter(users=["bob"], accounts=["physics"])
    where = ("association", "where", "user=bob", "account=physics")
    expected: dict[str, str] = {}
    for attribute, (word, value) in LIMITS.items():
        assert len(db.Associations.modify(chosen, db.Association(**{attribute: value}))) == 1
        expected[word] = f"00:{value}:00" if "Wall" in word else str(value)
        shown = database.sacctmgr(*where, f"format={','.join(f'{name}%40' for name in expected)}")[0]
        assert dict(zip(expected, shown, strict=True)) == expected
    (one,) = db.Associations.load(chosen).values()
    assert all(str(getattr(one, attribute)) == str(value) for attribute, (_, value) in LIMITS.items())


def test_a_limit_is_taken_away(database: Database) -> None:
    """UNLIMITED, and resources that aren't given."""
    chosen = db.AssociationFilter(users=["bob"], accounts=["chemistry"])
    show = ("association", "where", "user=bob", "account=chemistry", "format=maxjobs,maxtres")
    db.Associations.modify(chosen, db.Association(max_jobs=5, max_tres_per_job="cpu=3,gres/gpu=4"))
    assert database.sacctmgr(*show) == [["5", "cpu=3,gres/gpu=4"]]
    db.Associations.modify(chosen, db.Association(max_jobs="UNLIMITED", max_tres_per_job="cpu=3"))
    assert database.sacctmgr(*show) == [["", "cpu=3"]]
    db.Associations.modify(chosen, db.Association(max_tres_per_job={}))
    assert database.sacctmgr(*show) == [["", ""]]


def test_changes_of_a_connection_come_with_its_commit(database: Database) -> None:
    """Not before, and not at all after a rollback."""
    chosen = db.AssociationFilter(users=["alice"], accounts=["chemistry"])
    show = ("association", "where", "user=alice", "account=chemistry", "format=maxjobs")
    connection = db.Connection.open()
    db.Associations.modify(chosen, db.Association(max_jobs=7), connection)
    connection.rollback()
    db.Associations.modify(chosen, db.Association(max_jobs=8), connection)
    assert database.sacctmgr(*show) != [["8"]]
    connection.commit()
    assert database.sacctmgr(*show) == [["8"]]
    connection.close()
    db.Associations.modify(chosen, db.Association(max_jobs="UNLIMITED"))


def test_qualities_of_service_and_resources(database: Database) -> None:
    """By name and id."""
    truth = {name: int(number) for name, number in database.sacctmgr("qos", "format=name,id")}
    assert {name: qos.id for name, qos in db.QualitiesOfService.load().items()} == truth
    assert set(db.QualitiesOfService.load(db.QualityOfServiceFilter(names=["normal"]))) == {"normal"}
    known = db.TrackableResources.load()
    assert {one.type_and_name: one.id for one in known} == {
        f"{kind}/{name}" if name else kind: int(number) for kind, name, number in database.sacctmgr("tres")
    }
    read = db.TrackableResources.from_str("1=4,1001=8", known)
    assert read is not None
    assert str(read) == "cpu=4,gres/gpu=8"


def test_a_job_is_changed_in_the_database_where_the_api_can(database: Database) -> None:
    """All that pyslurm lets be set, as sacct shows it."""
    number = database.jobs["failed"]
    mark = f"by {database.version}"
    changes = db.Job(comment=mark, admin_comment=f"a {mark}", system_comment=f"s {mark}", extra="x", wckey="second")
    changes.derived_exit_code = 9
    if database.version < "v0.0.44":
        with pytest.raises(PyslurmError, match=r"v0\.0\.44"):
            db.Jobs.modify(db.JobFilter(ids=[number]), changes)
        return
    assert db.Jobs.modify(db.JobFilter(ids=[number]), changes) == [number]
    fields = "Comment,AdminComment,SystemComment,Extra,WCKey,DerivedExitCode"
    assert database.sacct(fields, "-X", "-j", str(number)) == [[mark, f"a {mark}", f"s {mark}", "x", "second", "9:0"]]
    job = db.Job.load(number)
    assert (job.comment, job.derived_exit_code, job.wckey) == (mark, 9, "second")
    job.modify(db.Job(wckey="first"))


def test_a_user_may_not_change_limits(database: Database, tmp_path: Path) -> None:
    """And sees the refusal."""
    with connected(database.scripts.slurm, tmp_path, database.version, user="bob"), pytest.raises(RPCError):
        db.Associations.modify(db.AssociationFilter(users=["bob"]), db.Association(max_jobs=99))
    assert ["99"] not in database.sacctmgr("association", "where", "user=bob", "format=maxjobs")
