"""What pyslurm.db asks slurmdbd and makes of its answers."""

from __future__ import annotations

import pytest

from slurmrest.pyslurm import PyslurmError, RPCError, db
from tests.unit.slurmrest.pyslurm.recorded import Recorded


def asked(server: Recorded, tail: str) -> int:
    """How often a path was read."""
    return sum(method == "GET" and path == tail for method, path, _ in server.requests)


def test_jobs_are_the_same_in_every_version(recorded: Recorded) -> None:
    """By id; a failed one with its code, one with GPUs with its resources, one of an array with its number."""
    jobs = db.Jobs.load(db.JobFilter(start_time="2020-01-01"))
    assert list(jobs) == [job["job_id"] for job in recorded.answers["slurmdb/jobs/"]["jobs"]]
    assert {(job.state, job.exit_code) for job in jobs.values()} >= {("FAILED", 3)}
    assert any(job.allocated_tres.gpus for job in jobs.values())
    assert {job.cluster for job in jobs.values()} == {next(iter(jobs.values())).cluster}


def test_sums_are_those_of_the_jobs(recorded: Recorded) -> None:
    """CPUs, nodes, memory and what was used."""
    jobs = db.Jobs.load()
    assert jobs.cpus == sum(job.cpus for job in jobs.values()) > 0
    assert jobs.nodes == sum(job.num_nodes or 0 for job in jobs.values()) > 0
    assert jobs.stats.elapsed_cpu_time == sum(job.stats.elapsed_cpu_time for job in jobs.values())
    jobs.clear()
    jobs.calc_stats()
    assert (jobs.cpus, jobs.nodes, jobs.memory, jobs.stats.elapsed_cpu_time) == (0, 0, 0, 0)


def test_associations_have_their_ids_in_every_version(recorded: Recorded) -> None:
    """v0.0.41 and v0.0.42 write 0 for each; they are found out by another call."""
    associations = db.Associations.load()
    assert len(associations) == len(recorded.answers["slurmdb/associations/"]["associations"])
    assert all(isinstance(number, int) and number > 0 for number in associations)


def test_one_job_or_an_error(newest: Recorded) -> None:
    """RPCError for a job that the database doesn't have."""
    known = newest.answers["slurmdb/jobs/"]["jobs"][0]["job_id"]
    assert db.Job.load(known).id == known
    with pytest.raises(RPCError, match="no job 4711"):
        db.Job.load(4711)


def test_one_quality_of_service_or_an_error(newest: Recorded) -> None:
    """By its name."""
    assert db.QualityOfService.load("normal").id == 1
    assert db.QualitiesOfService.load(name_is_key=False)[1].name == "normal"
    with pytest.raises(RPCError, match="nope"):
        db.QualityOfService.load("nope")


def test_a_quality_of_service_that_is_none_finds_no_job(newest: Recorded) -> None:
    """slurmdbd isn't asked for it: it takes numbers only."""
    assert len(db.Jobs.load(db.JobFilter(qos=["nope"]))) == 0
    assert asked(newest, "slurmdb/jobs/") == 0
    assert len(db.Jobs.load(db.JobFilter(qos=["normal"]))) > 0


def test_scripts_are_asked_for_by_ids(newest: Recorded) -> None:
    """slurmdbd gives them for jobs that are named, and nothing for a search."""
    db.Jobs.load(db.JobFilter(with_script=True))
    assert asked(newest, "slurmdb/jobs/") == 2
    db.Jobs.load(db.JobFilter(with_script=True, ids=[1]))
    assert asked(newest, "slurmdb/jobs/") == 3


def test_the_environment_can_not_be_had(newest: Recorded) -> None:
    """It says so, instead of leaving it out."""
    with pytest.raises(PyslurmError, match="environment"):
        db.Job.load(1, with_env=True)


def test_a_job_is_changed_where_the_api_can(newest: Recorded) -> None:
    """What was set, and nothing else."""
    known = newest.answers["slurmdb/jobs/"]["jobs"][0]["job_id"]
    db.Job(known, cluster="recorded").modify(db.Job(comment="good", wckey="w", derived_exit_code=3))
    (change,) = newest.changes()
    assert change[:2] == ("POST", "slurmdb/jobs/")
    assert change[2]["job_rec"] == {
        "comment": {"job": "good"},
        "wckey": "w",
        "derived_exit_code": {"return_code": {"set": True, "infinite": False, "number": 3 << 8}},
    }
    assert str(known) in change[2]["job_id_list"]


def test_changing_a_job_needs_a_newer_api(oldest: Recorded) -> None:
    """It says which."""
    with pytest.raises(PyslurmError, match=r"v0\.0\.44"):
        db.Jobs.modify(db.JobFilter(ids=[1]), db.Job(comment="x"))
    assert oldest.changes() == []


def test_no_change_and_an_empty_selection_send_nothing(newest: Recorded) -> None:
    """The one is an error, the other nothing to do."""
    with pytest.raises(PyslurmError, match="nothing to change"):
        db.Jobs.modify(db.JobFilter(ids=[1]), db.Job())
    with pytest.raises(PyslurmError, match="nothing to change"):
        db.Associations.modify(db.AssociationFilter(), db.Association())
    assert db.Jobs.modify(db.JobFilter(users=[]), db.Job(comment="x")) == []
    assert db.Associations.modify(db.AssociationFilter(users=[]), db.Association(max_jobs=1)) == []
    assert db.Associations.modify(db.Associations(), db.Association(max_jobs=1)) == []
    assert newest.changes() == []


def test_an_association_keeps_the_limits_that_are_not_changed(recorded: Recorded) -> None:
    """slurmdbd would drop those on resources that a request leaves out."""
    raws = recorded.answers["slurmdb/associations/"]["associations"]
    raws[-1]["max"]["tres"]["total"] = [{"type": "cpu", "name": "", "id": 1, "count": 10}]
    changed = db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=5, max_tres_per_job="gres/gpu=4"))
    assert len(changed) == len(raws)
    ((method, path, body),) = recorded.changes()
    assert (method, path) == ("POST", "slurmdb/associations/")
    sent = body["associations"][-1]
    assert {name: sent[name] for name in ("account", "user")} == {name: raws[-1][name] for name in ("account", "user")}
    assert sent["max"]["jobs"] == {"active": {"set": True, "infinite": False, "number": 5}}
    assert sent["max"]["tres"]["total"] == raws[-1]["max"]["tres"]["total"]
    assert sent["max"]["tres"]["per"]["job"] == [{"type": "gres", "name": "gpu", "count": 4}]


def test_what_an_association_is_told_apart_by_does_not_change(newest: Recorded) -> None:
    """It would be another one."""
    with pytest.raises(PyslurmError, match="account, user"):
        db.Associations.modify(db.AssociationFilter(ids=[1]), db.Association(user="x", account="y", max_jobs=1))
    assert newest.changes() == []


def test_changes_wait_for_the_commit(newest: Recorded) -> None:
    """In their order, and once."""
    connection = db.Connection.open()
    for jobs in (1, 2):
        db.Associations.modify(db.AssociationFilter(ids=[1]), db.Association(max_jobs=jobs), connection)
    assert newest.changes() == []
    connection.commit()
    connection.commit()
    sent = [body["associations"][0]["max"]["jobs"]["active"]["number"] for _, _, body in newest.changes()]
    assert sent == [1, 2]


def test_a_rollback_and_a_close_drop_what_waits(newest: Recorded) -> None:
    """Nothing reaches slurmdbd."""
    connection = db.Connection.open()
    db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=1), connection)
    connection.rollback()
    connection.commit()
    db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=1), connection)
    connection.close()
    connection.close()
    assert not connection.is_open
    assert newest.changes() == []


def test_a_with_block_commits_at_its_end_and_not_after_an_exception(newest: Recorded) -> None:
    """And is closed either way."""
    with db.Connection.open() as connection:
        db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=1), connection)
    assert len(newest.changes()) == 1
    second = db.Connection.open()
    db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=1), second)
    second.__exit__(KeyError, KeyError(), None)
    assert len(newest.changes()) == 1
    assert not connection.is_open
    assert not second.is_open


def test_a_failed_commit_says_how_far_it_came(newest: Recorded) -> None:
    """And drops the rest."""
    connection = db.Connection.open()
    db.Associations.modify(db.AssociationFilter(), db.Association(max_jobs=1), connection)
    newest.refuse("slurmdb/associations/", 2002)
    with pytest.raises(RPCError) as caught:
        connection.commit()
    assert caught.value.__notes__ == ["change 1 of 1: those before it are committed, the rest is not"]
    connection.commit()
    assert len(newest.changes()) == 1


@pytest.mark.parametrize("kind", [db.Jobs, db.Associations, db.QualitiesOfService])
def test_a_closed_connection_is_refused(
    newest: Recorded, kind: type[db.Jobs | db.Associations | db.QualitiesOfService]
) -> None:
    """Also one that was never opened."""
    with pytest.raises(PyslurmError, match="not open"):
        kind.load(None, db.Connection())


def test_an_answer_without_its_list_is_an_error(newest: Recorded) -> None:
    """It is not taken for "none"."""
    newest.answers["slurmdb/qos/"] = {"errors": []}
    with pytest.raises(PyslurmError, match="no list of qos"):
        db.QualitiesOfService.load()


def test_steps_have_numbers_or_names() -> None:
    """Of array tasks and heterogeneous jobs too."""
    raws = [{"step": {"id": text}} for text in ("7.0", "7.12", "7.batch", "7_3.1", "7+1.extern", "")]
    steps = [db.JobStep._of(raw) for raw in raws]
    assert [(step.job_id, step.id) for step in steps] == [
        (7, 0),
        (7, 12),
        (7, "batch"),
        (7, 1),
        (7, "extern"),
        (None, None),
    ]


def test_a_requeued_run_is_told_from_a_pending_job() -> None:
    """sacct shows the flag instead of the base."""
    runs = (["PENDING", "REQUEUED"], ["PENDING"], ["COMPLETED"], ["NEW_WORD"])
    jobs = [db.Job._of({"job_id": 1, "state": {"current": words}}) for words in runs]
    assert [job.state for job in jobs] == ["REQUEUED", "PENDING", "COMPLETED", "UNKNOWN"]


def test_a_signalled_job_has_exit_code_0_and_one_that_runs_none() -> None:
    """As sacct has it."""
    unset, nine = {"set": False, "infinite": False, "number": 0}, {"set": True, "infinite": False, "number": 9}
    killed = db.Job._of({"job_id": 1, "exit_code": {"return_code": unset, "signal": {"id": nine, "name": "KILL"}}})
    runs = db.Job._of({"job_id": 1, "exit_code": {"return_code": unset, "signal": {"id": unset, "name": ""}}})
    assert (killed.exit_code, killed.exit_code_signal) == (0, 9)
    assert (runs.exit_code, runs.exit_code_signal) == (None, None)
