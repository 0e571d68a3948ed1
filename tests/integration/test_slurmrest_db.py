"""slurmdbd's calls on a real slurmdbd, in each release and API version: the effect as sacctmgr sees it, and read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmrest import (
    ExitCode,
    InvalidRequest,
    JobBase,
    NotFound,
    PermissionDenied,
    SignedTokens,
    Slurm,
    Unsupported,
    number,
)
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import slurms

pytestmark = pytest.mark.slurm

JOB: dict[str, Any] = {
    "name": "failing",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/usr/bin:/bin"],
    "standard_output": "/dev/null",
    "time_limit": number(5),
    "account": "physics",
    "tres_per_node": "gres/gpu:2",
}


@pytest.fixture(scope="module")
def running() -> Iterator[Callable[[str], BareSlurm]]:
    """One Slurm with accounting per release: accounts physics and chemistry, users alice and bob in both."""
    with slurms(lambda suite: BareSlurm(nodes=1, gpus=8, suite=suite, accounting=True), accounting=True) as of:
        yield of


@pytest.fixture
def slurm(pair: tuple[BareSlurm, str]) -> Iterator[Slurm]:
    """Root's client of it."""
    bare, version = pair
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as client:
        yield client


def said(bare: BareSlurm, *words: str) -> list[str]:
    """sacctmgr's own view: the lines, their columns with bars between them."""
    return bare.run("sacctmgr", "-nP", "show", *words).stdout.split()


def test_an_account_comes_changes_and_goes(bare: BareSlurm, slurm: Slurm) -> None:
    """With its association; twice is once, and what is gone is not found."""
    for _ in range(2):
        slurm.db.add_accounts(["ml", "vision"], description="d", organization="o", parent="physics", fairshare=7)
    wanted = ["account=ml", "where", "user=", "format=account,parentname,fairshare"]
    assert said(bare, "assoc", *wanted) == ["ml|physics|7"]
    slurm.db.update_accounts([{"name": "ml", "description": "new", "organization": "o"}])
    assert said(bare, "account", "ml", "format=account,descr,org") == ["ml|new|o"]
    found = slurm.db.account("ml", with_assocs=True)
    assert (found.name, found.description, found.organization) == ("ml", "new", "o")
    assert [one["account"] for one in found.raw["associations"]] == ["ml"]
    assert {"ml", "vision", "physics", "root"} <= {one.name for one in slurm.db.accounts()}
    for name in ("ml", "vision"):
        slurm.db.delete_account(name)
        with pytest.raises(NotFound):
            slurm.db.delete_account(name)
        with pytest.raises(NotFound):
            slurm.db.account(name)
    assert said(bare, "account", "ml") == []


def test_a_user_is_put_into_an_account_and_taken_out_again(bare: BareSlurm, slurm: Slurm) -> None:
    """With limits and a quality of service; an association that isn't there is not made."""
    slurm.db.add_accounts(["ml"], description="d", organization="o")
    slurm.db.save_qos([{"name": "prod", "priority": number(100)}])
    for _ in range(2):
        slurm.db.add_users(["bob"], ["ml"], maxjobs=number(3))
    slurm.db.update_associations([{"account": "ml", "user": "bob", "cluster": "bare", "qos": ["normal", "prod"]}])
    assert said(bare, "assoc", "account=ml", "user=bob", "format=user,maxjobs,qos") == ["bob|3|normal,prod"]
    (association,) = slurm.db.associations(user="bob", account="ml")
    assert (association.qos, association.cluster, association.is_default) == (("normal", "prod"), "bare", False)
    assert len(slurm.db.associations(user="alice,bob", account="physics")) == 2
    with pytest.raises(NotFound, match="add_users"):
        slurm.db.update_associations([{"account": "ml", "user": "alice", "cluster": "bare"}])
    assert len(slurm.db.delete_associations(user="bob", account="ml")) == 1
    with pytest.raises(NotFound):
        slurm.db.delete_associations(user="bob", account="ml")
    with pytest.raises(InvalidRequest, match="default account"):
        slurm.db.delete_associations(user="bob", account="chemistry")
    slurm.db.delete_account("ml")
    slurm.db.delete_qos("prod")


def test_a_users_level_and_default_account_are_read_and_changed(bare: BareSlurm, slurm: Slurm) -> None:
    """sacctmgr sees the same."""
    slurm.db.update_users([{"name": "bob", "administrator_level": ["Operator"]}])
    assert said(bare, "user", "bob", "format=user,admin") == ["bob|Operator"]
    found = slurm.db.user("bob", with_assocs=True)
    assert (found.admin_level, found.default_account) == ("Operator", "chemistry")
    slurm.db.update_users([{"name": "bob", "administrator_level": ["None"]}])
    assert {one.name for one in slurm.db.users()} == {"alice", "bob", "root"}
    with pytest.raises(NotFound):
        slurm.db.user("zoe")
    with pytest.raises(NotFound):
        slurm.db.delete_user("zoe")


def test_a_quality_of_service_comes_changes_and_goes(bare: BareSlurm, slurm: Slurm) -> None:
    """Only administrators may."""
    slurm.db.save_qos([{"name": "prod", "priority": number(100)}])
    slurm.db.save_qos([{"name": "prod", "priority": number(101), "flags": ["DENY_LIMIT"]}])
    assert said(bare, "qos", "prod", "format=name,priority,flags") == ["prod|101|DenyOnLimit"]
    found = slurm.db.one_qos("prod")
    assert (found.name, found.priority, found.flags) == ("prod", 101, frozenset({"DENY_LIMIT"}))
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=slurm.version(), user="alice") as alice:
        with pytest.raises(PermissionDenied):
            alice.db.save_qos([{"name": "mine"}])
        assert "normal" in {one.name for one in alice.db.qos()}
    slurm.db.delete_qos("prod")
    assert said(bare, "qos", "prod") == []
    with pytest.raises(NotFound):
        slurm.db.delete_qos("prod")
    with pytest.raises(NotFound):
        slurm.db.one_qos("prod")


def test_wckeys_and_clusters_come_and_go(bare: BareSlurm, slurm: Slurm) -> None:
    """By their names."""
    slurm.db.save_wckeys([{"name": "thesis", "user": "alice", "cluster": "bare"}])
    assert [(one.name, one.user, one.cluster) for one in slurm.db.wckey("thesis")] == [("thesis", "alice", "bare")]
    assert "thesis" in {one.name for one in slurm.db.wckeys()}
    assert said(bare, "wckey", "wckey=thesis", "format=wckey,user") == ["thesis|alice"]
    slurm.db.delete_wckey("thesis")
    for call in (slurm.db.wckey, slurm.db.delete_wckey):
        with pytest.raises(NotFound):
            call("thesis")
    slurm.db.add_clusters([{"name": "other"}])
    assert {"bare", "other"} <= set(said(bare, "cluster", "format=cluster"))
    slurm.db.delete_cluster("other")
    for cluster_call in (slurm.db.cluster, slurm.db.delete_cluster):
        with pytest.raises(NotFound):
            cluster_call("other")


def test_the_cluster_its_resources_and_its_instances_are_read(slurm: Slurm) -> None:
    """What slurmctld has registered."""
    assert slurm.db.cluster("bare").nodes == "n0"
    assert {"cpu", "mem", "node", "gres/gpu"} <= {str(one).partition("=")[0] for one in slurm.db.tres()}
    assert [one.node_name for one in slurm.db.instances(node_list="n0")] == ["n0"]
    assert slurm.db.instances(node_list="n9") == []
    with pytest.raises(InvalidRequest, match="2036"):
        slurm.db.add_tres([{"type": "gres", "name": "foo"}])


def test_the_whole_configuration_is_read_and_loaded_again(slurm: Slurm) -> None:
    """What is there already stays."""
    config = slurm.db.config()
    kinds = ("clusters", "tres", "accounts", "users", "qos", "wckeys", "associations")
    before = {kind: len(config[kind]) for kind in kinds}
    slurm.db.load_config({kind: config[kind] for kind in kinds})
    again = slurm.db.config()
    assert {kind: len(again[kind]) for kind in kinds} == before


def test_a_job_is_recorded_and_found_by_every_filter(slurm: Slurm) -> None:
    """By id, user, account, state, time, name, partition; and by none that doesn't match."""
    job_id = slurm.submit(JOB, "#!/bin/sh\nexit 3\n", user="alice").job_id
    record = _ended(slurm, job_id)
    assert (record.exit_code, record.user, record.account, record.cluster) == (
        ExitCode("ERROR", 3, None), "alice", "physics", "bare",
    )  # fmt: skip
    assert "gres/gpu=2" in [str(one) for one in record.allocated]
    assert [step.name for step in record.steps] == ["batch"]
    hour = int(time.time()) - 3600
    matching: list[dict[str, Any]] = [
        {"users": ["alice", "bob"]},
        {"account": ["physics"]},
        {"state": ["FAILED", "COMPLETED"]},
        {"start_time": hour},
        {"start_time": "now-1hour", "end_time": int(time.time()) + 60},
        {"job_name": ["failing"], "partition": ["main"], "qos": ["normal"], "node": "n0"},
    ]
    for filters in matching:
        assert job_id in [one.job_id for one in slurm.db.jobs(jobs=[job_id], **filters)], filters
    for filters in (
        {"users": ["bob"]},
        {"account": ["chemistry"]},
        {"state": ["TIMEOUT"]},
        {"start_time": 2_000_000_000},
    ):
        assert slurm.db.jobs(jobs=[job_id], **filters) == [], filters
    assert slurm.db.jobs(jobs=[job_id], skip_steps=True)[0].steps == ()
    with pytest.raises(NotFound):
        slurm.db.job(4_000_000)


def test_a_record_is_changed_where_the_version_can(slurm: Slurm) -> None:
    """From v0.0.44 on; older ones say so, and nothing is sent."""
    job_id = slurm.submit(JOB, "#!/bin/sh\nexit 3\n", user="alice").job_id
    _ended(slurm, job_id)
    if slurm.version() < "v0.0.44":
        with pytest.raises(Unsupported, match=r"v0\.0\.44"):
            slurm.db.update_job(job_id, {"comment": {"administrator": "seen"}})
        return
    slurm.db.update_job(job_id, {"comment": {"administrator": "seen"}})
    assert slurm.db.job(job_id).admin_comment == "seen"
    slurm.db.update_jobs([job_id], {"comment": {"administrator": "twice"}})
    assert slurm.db.job(job_id).admin_comment == "twice"


def test_slurmdbd_tells_of_itself(slurm: Slurm) -> None:
    """What the version can't say, it says so."""
    assert slurm.db.diag()["RPCs"]
    if slurm.version() < "v0.0.42":
        with pytest.raises(Unsupported, match=r"v0\.0\.42"):
            slurm.db.ping()
    else:
        assert [one.responding for one in slurm.db.ping()] == [True]
    if slurm.version() < "v0.0.45":
        with pytest.raises(Unsupported, match=r"v0\.0\.45"):
            slurm.db.conf()
    else:
        assert slurm.db.conf()["DbdHost"] == "controller"


def _ended(slurm: Slurm, job_id: int) -> Any:
    """The record of a job, once slurmdbd knows its end."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = slurm.db.jobs(jobs=[job_id])
        if found and found[0].states.base is JobBase.FAILED:
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"job {job_id} is not recorded as ended")
