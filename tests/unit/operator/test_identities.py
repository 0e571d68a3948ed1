"""When a job may be submitted as a tenant's user, and when slurmdbd has been told of the tenants."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kubeslurm import manifests
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.conditions import Verdict
from kubeslurm_operator.accounting import AccountingLoop, digest
from kubeslurm_operator.identities import Identities
from kubeslurm_operator.kube import NAMESPACE, SLURM_CLUSTER, KubeError, Raw
from kubeslurm_operator.store import Key, Store
from tests.unit import examples

KEY = Key("slurm", "ai-cluster")
BOB = {"name": "bob", "uid": 1001, "gid": 1001}
ACCOUNTING = {"database": {"host": "db", "passwordSecret": {"name": "db"}}, "manage": True}


class Pod:
    """slurmctld's pod: what its file with the digest of the users says."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.asked = 0

    async def execute(self, *_: Any) -> tuple[int, str]:
        """As Kube does it."""
        self.asked += 1
        if self.text is None:
            raise KubeError(0, "ExecFailed", "no pod")
        return 0, self.text + "\n"


def with_bob(raw: Raw) -> None:
    """A second tenant, by label."""
    selector = {"matchLabels": {"team": "b"}}
    raw["spec"]["tenants"].append({"namespaceSelector": selector, "user": BOB, "partitions": ["gpu_partition"]})


def identities(pod: Pod) -> Identities:
    """Those of a cluster without accounting."""
    store = Store([NAMESPACE, SLURM_CLUSTER])
    accounting = SimpleNamespace(unsettled=lambda: "")
    return Identities(pod, store, KEY, accounting)  # type: ignore[arg-type]


def look(one: Identities, cluster: SlurmCluster) -> Verdict:
    """The condition."""
    return asyncio.run(one.look(cluster))


@pytest.mark.parametrize("shown", [None, "", "another"])
def test_no_job_goes_out_before_slurmctld_has_the_list_of_users(shown: str | None) -> None:
    """It would take the job, and never run it."""
    one = identities(Pod(shown))
    assert look(one, examples.cluster()).reason == "UsersPropagating"
    assert "alice" in one.unresolved(examples.cluster().spec.tenants[0].user)


def test_the_pod_is_asked_until_it_has_the_list_and_then_no_more() -> None:
    """And the users in it are known."""
    cluster = examples.cluster()
    pod = Pod(manifests.users_digest(cluster))
    one = identities(pod)
    assert [look(one, cluster).holds for _ in range(3)] == [True, True, True]
    assert pod.asked == 1
    assert one.unresolved(cluster.spec.tenants[0].user) == ""


def test_a_new_user_waits_and_the_others_do_not() -> None:
    """While the new list is on its way."""
    pod = Pod(manifests.users_digest(examples.cluster()))
    one = identities(pod)
    look(one, examples.cluster())
    more = examples.cluster(with_bob)
    assert look(one, more).holds is False
    alice, bob = (tenant.user for tenant in more.spec.tenants)
    assert (one.unresolved(alice), bool(one.unresolved(bob))) == ("", True)


def test_a_namespace_that_two_tenants_claim_is_told() -> None:
    """With its name, as long as its labels say so."""
    cluster = examples.cluster(with_bob)
    store = Store([NAMESPACE])
    pod: Any = Pod(manifests.users_digest(cluster))
    one = Identities(pod, store, KEY, SimpleNamespace())  # type: ignore[arg-type]
    assert look(one, cluster).holds is True
    labels = {"team": "b"}
    store.put(NAMESPACE, {"metadata": {"name": "research", "resourceVersion": "1", "labels": labels}})
    verdict = look(one, cluster)
    assert (verdict.holds, verdict.reason) == (False, "NamespaceClaimedTwice")
    assert "research" in verdict.message
    store.put(NAMESPACE, {"metadata": {"name": "research", "resourceVersion": "2"}})
    assert look(one, cluster).holds is True


def accounting(settled: str, **given: Any) -> AccountingLoop:
    """The loop of the example cluster with accounting, as it is when it was told of so much."""

    def change(raw: Raw) -> None:
        raw["metadata"]["generation"] = 1
        raw["spec"]["accounting"] = ACCOUNTING | given
        raw["spec"]["tenants"][0]["accounts"] = ["ml"]

    raw = examples.raw("SlurmCluster", change)
    raw["status"] = {"accountingDigest": digest(SlurmCluster.parse(raw)) if settled == "same" else settled}
    store = Store([SLURM_CLUSTER])
    store.put(SLURM_CLUSTER, raw)
    runtime = SimpleNamespace(slurm=None, pool=SimpleNamespace(wake=lambda: None))
    return AccountingLoop(store, None, KEY, runtime)  # type: ignore[arg-type]


def started(loop: AccountingLoop) -> AccountingLoop:
    """The loop after its first look, without a slurmrestd."""

    async def run() -> None:
        task = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    return loop


def test_no_job_goes_out_before_slurmdbd_was_told_of_its_tenant() -> None:
    """Slurm would refuse it for good."""
    assert started(accounting("")).unsettled()
    assert started(accounting("older")).unsettled()


def test_a_slurmdbd_that_is_away_holds_up_no_tenant_that_it_knows() -> None:
    """An operator that starts anew knows by the status."""
    loop = started(accounting("same"))
    assert loop.unsettled() == ""
    assert loop.verdict is not None
    assert loop.verdict.holds is False


def test_who_keeps_slurmdbd_oneself_waits_for_nothing() -> None:
    """Without `manage` the operator tells it nothing."""
    assert started(accounting("", manage=False)).unsettled() == ""
