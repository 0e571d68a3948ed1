"""Every value but nodes and jobs (those are in test_versions), read from what real Slurms of each version answered."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from slurmrest import ExitCode, JobBase, JobOutcome, License, Node, NodeShare, ProtocolError
from slurmrest.db_values import Account, Instance, Tres, Wckey
from slurmrest.streams import Entries
from slurmrest.values import NOT_KEPT
from slurmrest.versions import ADAPTERS, Adapter
from tests.unit.slurmrest.test_versions import RECORDS

Recorded = tuple[Adapter, dict[str, Any]]


@pytest.fixture(params=RECORDS, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """One version's adapter and answers."""
    return ADAPTERS[request.param.name.split("-")[0]], json.loads(request.param.read_text())


def test_reservations_and_licences_read_the_same_from_every_version(recorded: Recorded) -> None:
    """A reservation of one node for a user, and a licence in use."""
    adapter, answers = recorded
    (reservation,) = adapter.each_reservation().read_all(answers["reservations/"])
    assert (reservation.name, reservation.nodes, reservation.node_count) == ("window", "n0", 1)
    assert (reservation.users, reservation.flags, reservation.tres) == (("alice",), frozenset({"SPEC_NODES"}), "cpu=32")
    assert (reservation.end_time or 0) - (reservation.start_time or 0) == 3600
    assert adapter.each_reservation().read_all(answers["reservation/{reservation_name}"]) == [reservation]
    assert adapter.each_license().read_all(answers["licenses/"]) == [License("matlab", 10, 2, 8, 0, remote=False)]


def test_fair_shares_read_the_same_from_every_version(recorded: Recorded) -> None:
    """Of accounts and of users in them."""
    adapter, answers = recorded
    share = adapter.shares(answers["shares"])[-1]
    assert (share.name, share.parent, share.cluster, share.kind, share.shares) == ("bob", "physics", "bare", "USER", 1)
    assert (share.shares_normalized, share.fairshare, share.usage) == (0.5, 1.0, 0)


def test_what_a_job_holds_on_a_node_reads_the_same_where_it_can_be_had(recorded: Recorded) -> None:
    """From v0.0.44 on."""
    adapter, answers = recorded
    if "resources/{job_id}" in answers:
        found = adapter.each_node_share().read_all(answers["resources/{job_id}"])
        assert found == [NodeShare("n1", 1000, 2, 16, "0x00000001", ("gpu:h100:2(IDX:0-1)",))]
    else:
        assert adapter.version < "v0.0.44"


def test_parts_of_jobs_know_what_they_are_parts_of(recorded: Recorded) -> None:
    """An array of two tasks and a heterogeneous job of two parts, at slurmctld and at slurmdbd."""
    adapter, answers = recorded
    parts: list[tuple[int | None, ...]] = [(1, None, None, None, None), (2, 2, 1, None, None), (3, 2, 0, None, None)]
    parts += [(4, None, None, 4, 0), (5, None, None, 4, 1), (6, None, None, None, None)]
    jobs = adapter.jobs(answers["jobs/"])
    records = adapter.each_job_record().read_all(answers["slurmdb/jobs/"])
    for found in (jobs, records):
        ids = [(one.job_id, one.array_job_id, one.array_task_id, one.het_job_id, one.het_job_offset) for one in found]
        assert sorted(ids) == parts


def test_a_recorded_job_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """The one that failed with 3, with its step."""
    adapter, answers = recorded
    (job,) = adapter.each_job_record().read_all(answers["slurmdb/job/{job_id}"])
    assert (job.job_id, job.name, job.user, job.account, job.cluster) == (1, "failing", "alice", "physics", "bare")
    assert (job.states.base, job.exit_code) == (JobBase.FAILED, ExitCode("ERROR", 3, None))
    assert (job.partition, job.time_limit, job.working_directory) == ("main", 5, "/tmp")
    assert Tres("gres", "gpu", 1001, 2) in job.allocated
    assert (job.end_time or 0) - (job.start_time or 0) == job.elapsed
    assert (job.submit_time or 0) > 0
    (step,) = job.steps
    assert (step.name, step.nodes, step.exit_code) == ("batch", job.nodes, ExitCode("ERROR", 3, None))
    assert job.nodes in ("n0", "n1")
    assert step.states.base is JobBase.FAILED


def test_who_may_what_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """Accounts, users, associations, qualities of service and wckeys."""
    adapter, answers = recorded
    accounts = adapter.each_account().read_all(answers["slurmdb/accounts/"])
    assert Account("root", "default root account", "root") in accounts
    assert {"physics", "chemistry"} <= {one.name for one in accounts}
    users = {one.name: one for one in adapter.each_user().read_all(answers["slurmdb/users/"])}
    assert (users["root"].admin_level, users["alice"].admin_level) == ("Administrator", "None")
    associations = adapter.each_association().read_all(answers["slurmdb/associations/"])
    assert {("physics", "alice"), ("chemistry", "bob"), ("physics", "")} <= {
        (one.account, one.user) for one in associations
    }
    assert {one.cluster for one in associations} == {"bare"}
    qos = {one.name: one for one in adapter.each_qos().read_all(answers["slurmdb/qos/"])}
    assert (qos["normal"].id, qos["normal"].usage_factor, qos["gpu"].description) == (1, 1.0, "gpu")
    assert Wckey("ml", 1, "alice", "bare") in adapter.each_wckey().read_all(answers["slurmdb/wckeys/"])


def test_clusters_resources_and_instances_read_the_same_from_every_version(recorded: Recorded) -> None:
    """Two nodes with eight GPUs each."""
    adapter, answers = recorded
    (cluster,) = adapter.each_cluster().read_all(answers["slurmdb/clusters/"])
    assert (cluster.name, cluster.nodes, cluster.port) == ("bare", "n[0-1]", 6817)
    assert Tres("gres", "gpu", 1001, 16) in cluster.tres
    assert "gres/gpu" in [str(one).partition("=")[0] for one in adapter.each_tres().read_all(answers["slurmdb/tres/"])]
    instances = adapter.each_instance().read_all(answers["slurmdb/instances/"])
    (instance,) = [one for one in instances if one.node_name == "n1" and one.instance_id]
    assert instance == Instance("n1", "bare", "i-1", "m1", start_time=instance.start_time)


def test_what_a_value_has_no_name_for_is_in_its_raw_entry(recorded: Recorded) -> None:
    """On request; two values are the same whether they keep it or not."""
    adapter, answers = recorded
    readers: dict[str, Callable[[bool], Entries[Any]]] = {
        "nodes/": adapter.each_node,
        "jobs/": adapter.each_job,
        "partitions/": adapter.each_partition,
        "reservations/": adapter.each_reservation,
        "slurmdb/qos/": adapter.each_qos,
        "slurmdb/jobs/": adapter.each_job_record,
    }
    for tail, entries in readers.items():
        kept, left = (entries(raw).read_all(answers[tail]) for raw in (True, False))
        assert kept == left
        assert [one.raw for one in kept] == answers[tail][entries(False).field]
        assert all(one.raw is NOT_KEPT for one in left)
        assert "raw" not in repr(kept)


def test_a_value_can_be_copied_pickled_and_made_a_dictionary() -> None:
    """Also one that has kept nothing."""
    (node,) = ADAPTERS["v0.0.45"].nodes({"nodes": [{"name": "n0", "state": ["IDLE"]}]})
    assert isinstance(node, Node)
    assert copy.deepcopy(node) == pickle.loads(pickle.dumps(node)) == node  # noqa: S301 - our own
    assert asdict(node)["raw"] == {}
    assert hash(node) == hash(copy.copy(node))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (
            {
                "error": {"code": 2017, "message": "Invalid job id"},
                "step_id": "9",
                "job_id": {"set": False, "number": 0},
            },
            JobOutcome("9", None, 2017, "Invalid job id"),
        ),
        (
            {"error": {"code": 0, "message": ""}, "step_id": "7_[3]", "job_id": {"set": True, "number": 7}},
            JobOutcome("7_[3]", 7),
        ),
        ([{"job_id": 3, "step_id": "3_[0]", "error": "No error", "error_code": 0, "why": ""}], JobOutcome("3_[0]", 3)),
        (
            [{"job_id": 3, "step_id": "3", "error": "Pending", "error_code": 2024, "why": "it waits"}],
            JobOutcome("3", 3, 2024, "it waits"),
        ),
    ],
)
def test_the_outcome_for_a_job_is_read_from_a_cancel_and_from_a_requeue(status: Any, outcome: JobOutcome) -> None:
    """Each has a form of its own."""
    assert ADAPTERS["v0.0.45"].outcomes({"status": [status]}) == [outcome]
    assert outcome.ok is (outcome.number == 0)


@pytest.mark.parametrize(
    ("entries", "entry"),
    [
        ("each_reservation", {"name": 5}),
        ("each_license", {"Total": 1}),
        ("each_account", {"name": None}),
        ("each_association", {"account": "a", "id": "x"}),
        ("each_cluster", {"name": "c", "tres": [{"type": 3}]}),
        ("each_job_record", {"job_id": "x"}),
        ("each_job_record", {"job_id": 1, "tres": [1]}),
        ("each_node_share", {"node": "n", "gres": [1]}),
    ],
)
def test_an_entry_of_another_form_is_a_protocol_error(entries: str, entry: Mapping[str, Any]) -> None:
    """Never a TypeError out of a call."""
    reader: Entries[Any] = getattr(ADAPTERS["v0.0.45"], entries)()
    with pytest.raises(ProtocolError):
        reader.read_all({reader.field: [entry]})
