"""The tenants' accounts, users and QOS in a real slurmdbd: made once, nothing of others' touched, and Slurm goes by them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kubeslurm import accounting
from kubeslurm.accounting import Step
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm_operator.accounting import bring
from slurmrest import AsyncSlurm, InvalidRequest, SignedTokens, Slurm, Unavailable, number
from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system
from tests.unit import examples
from tests.unit.examples import Raw

pytestmark = pytest.mark.slurm

QOS = [{"name": "urgent", "priority": 100, "preempts": ["low"], "gpusPerUser": 4}, {"name": "low"}]


@pytest.fixture(scope="module")
def bare() -> Iterator[BareSlurm]:
    """A Slurm with slurmdbd, whose cluster is named bare; alice and bob are in accounts of somebody else's."""
    need_root_file_system("trixie", accounting=True)
    with BareSlurm(nodes=1, gpus=8, accounting=True) as running:
        yield running


def tenants(**given: Any) -> SlurmCluster:
    """A SlurmCluster of that name; alice's tenant has accounts ml and vision."""

    def change(raw: Raw) -> None:
        raw["metadata"]["name"] = "bare"
        database = {"host": "mariadb", "passwordSecret": {"name": "db"}}
        raw["spec"]["accounting"] = {"database": database, "manage": True, "qos": QOS}
        tenant = {"accounts": ["ml", "vision"], "qos": ["normal", "urgent"], "shares": 7}
        raw["spec"]["tenants"][0] |= tenant | given

    return examples.cluster(change)


def settle(bare: BareSlurm, cluster: SlurmCluster) -> list[str]:
    """Bring it there; the steps in words."""
    taken: list[Step] = []

    async def run() -> None:
        async with AsyncSlurm(bare.url, SignedTokens(bare.jwt_key)) as slurm:
            verdict = await bring(slurm, cluster, taken.append)
        assert (verdict.holds, verdict.reason) == (True, "Registered"), verdict

    asyncio.run(run())
    return [accounting.explain(step) for step in taken]


def said(bare: BareSlurm, *words: str) -> list[str]:
    """sacctmgr's own view."""
    return bare.run("sacctmgr", "-nP", "show", *words).stdout.split()


ALICE = ("assoc", "user=alice", "account=ml,vision", "format=account,share,qos,defaultqos")


def test_the_tenants_are_made_once_and_others_stay(bare: BareSlurm) -> None:
    """A second time there is nothing to do, and what was there has not changed."""
    before = said(bare, "assoc", "account=physics,chemistry", "format=account,user,share,qos")
    assert settle(bare, tenants()) == [
        "QOS low made",
        "QOS urgent made",
        "accounts ml, vision made",
        "user alice put into account ml",
        "user alice put into account vision",
    ]
    assert said(bare, *ALICE) == ["ml|7|normal,urgent|normal", "vision|7|normal,urgent|normal"]
    assert said(bare, "qos", "urgent", "format=name,priority,preempt,maxtrespu") == ["urgent|100|low|gres/gpu=4"]
    assert settle(bare, tenants()) == []
    assert said(bare, "assoc", "account=physics,chemistry", "format=account,user,share,qos") == before
    assert said(bare, "user", "alice", "format=defaultaccount") == ["physics"]


def test_a_qos_more_leaves_the_limits_of_an_association(bare: BareSlurm) -> None:
    """What the admin set by sacctmgr, and the QOS that the admin added."""
    settle(bare, tenants())
    bare.run("sacctmgr", "-iQ", "add", "qos", "theirs")
    change = ["set", "qos+=theirs", "maxjobs=5", "grptres=gres/gpu=16", "fairshare=9", "maxwall=60"]
    bare.run("sacctmgr", "-iQ", "modify", "user", "where", "name=alice", "account=ml", *change)
    assert settle(bare, tenants(qos=["normal", "urgent", "low"])) == [
        "user alice may use QOS low in account ml",
        "user alice may use QOS low in account vision",
    ]
    columns = "format=account,share,maxjobs,grptres,maxwall,qos"
    assert said(bare, "assoc", "user=alice", "account=ml", columns) == [
        "ml|9|5|gres/gpu=16|01:00:00|low,normal,theirs,urgent"
    ]


def job(**fields: Any) -> Raw:
    """A job that ends at once."""
    base = {"name": "j", "current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin"]}
    return base | {"standard_output": "/dev/null", "time_limit": number(5), "tres_per_node": "gres/gpu:1"} | fields


def test_slurm_takes_the_tenants_job_and_refuses_a_strangers(bare: BareSlurm) -> None:
    """In its own words; and the usage of the account is counted by user."""
    settle(bare, tenants())
    with Slurm(bare.url, SignedTokens(bare.jwt_key)) as slurm:
        job_id = slurm.submit(job(account="ml", qos="urgent"), "#!/bin/sh\ntrue\n", user="alice").job_id
        assert (slurm.job(job_id).account, slurm.job(job_id).qos) == ("ml", "urgent")
        with pytest.raises(InvalidRequest, match="nvalid account"):
            slurm.submit(job(account="ml"), "#!/bin/sh\ntrue\n", user="bob")
        with pytest.raises(InvalidRequest, match="nvalid qos"):
            slurm.submit(job(account="physics", qos="urgent"), "#!/bin/sh\ntrue\n", user="alice")
        shares = {one.name: one for one in slurm.shares(accounts=["ml"])}
        assert "alice" in shares


def test_a_slurmdbd_that_is_away_stops_no_job(bare: BareSlurm) -> None:
    """slurmctld goes by what it knows; the operator is told that slurmdbd can't be reached."""
    settle(bare, tenants())
    bare.stop("slurmdbd")
    with pytest.raises(Unavailable, match="slurmdbd"):
        settle(bare, tenants())
    with Slurm(bare.url, SignedTokens(bare.jwt_key)) as slurm:
        job_id = slurm.submit(job(account="ml"), "#!/bin/sh\ntrue\n", user="alice").job_id
        assert slurm.job(job_id).account == "ml"
