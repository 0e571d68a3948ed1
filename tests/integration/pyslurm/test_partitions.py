"""Partitions of pyslurm's face on a real Slurm, against what scontrol prints."""

from __future__ import annotations

import pytest

from slurmrest.pyslurm import Partition, Partitions, PyslurmError, RPCError
from slurmrest.pyslurm.constants import UNLIMITED
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.reached import OLD, acting, begun, refused, shown

pytestmark = pytest.mark.slurm

SETTINGS = {
    "AllowAccounts": "a,b",
    "AllowGroups": "alice",
    "AllocNodes": "n0",
    "DefMemPerCPU": "100",
    "DefaultTime": "10",
    "GraceTime": "60",
    "MaxMemPerNode": "1000",
    "MaxNodes": "2",
    "MaxTime": "1-00:00:00",
    "MinNodes": "1",
    "OverSubscribe": "FORCE:3",
    "OverTimeLimit": "5",
    "PriorityJobFactor": "4",
    "PriorityTier": "3",
    "State": "DRAIN",
}
"""As scontrol takes them."""


def test_a_partition_reads_as_scontrol_made_it(slurm: BareSlurm) -> None:
    """Each setting in its unit."""
    assert Partition.load("main").max_time == UNLIMITED
    slurm.run("scontrol", "create", "PartitionName=set", "Nodes=n[0-1]", *(f"{k}={v}" for k, v in SETTINGS.items()))
    found = Partitions.load()["set"]
    assert (found.nodes, found.total_nodes) == ("n[0-1]", 2)
    assert str(found.total_cpus) == shown(slurm, "partition", "set")["TotalCPUs"]
    assert (found.allowed_accounts, found.allowed_groups, found.allowed_submit_nodes) == (["a", "b"], ["alice"], ["n0"])
    assert (found.denied_qos, found.denied_accounts, found.allowed_qos) == ([], [], ["ALL"])
    assert (found.default_memory_per_cpu, found.default_memory_per_node) == (100, None)
    assert (found.max_memory_per_node, found.max_memory_per_cpu) == (1000, None)
    assert (found.default_time, found.max_time, found.over_time_limit) == (10, 1440, 5)
    assert (found.max_nodes, found.min_nodes, found.preemption_grace_time) == (2, 1, 60)
    assert (found.oversubscribe, found.priority_job_factor, found.priority_tier) == ("FORCE:3", 4, 3)
    assert found.state == "DRAIN"


@pytest.mark.parametrize("words", ["EXCLUSIVE", "NO", "YES:4", "FORCE:2"])
def test_sharing_reads_as_scontrol_set_it(slurm: BareSlurm, words: str) -> None:
    """A number of jobs in one version, a text in the other."""
    slurm.run("scontrol", "update", "PartitionName=main", f"OverSubscribe={words}")
    assert Partition.load("main").oversubscribe == words


def test_partition_that_is_not_there(slurm: BareSlurm) -> None:
    """Each Slurm says it in another way: one number."""
    refused(2000, Partition.load, "nope")


def test_made_partition_is_what_was_asked_for(newest: BareSlurm) -> None:
    """Each attribute that can be set, in scontrol's words."""
    Partition(
        "made",
        nodes="n[0-1]",
        allowed_groups=["alice"],
        allowed_submit_nodes=["n0", "n1"],
        denied_accounts=["a", "b"],
        alternate="main",
        cpu_binding="cores",
        default_memory_per_cpu="2G",
        max_memory_per_node="10G",
        default_time="01:00:00",
        max_time="1-00:00:00",
        over_time_limit=5,
        preemption_grace_time=60,
        default_cpus_per_gpu=2,
        default_memory_per_gpu="1G",
        max_cpus_per_node=16,
        max_cpus_per_socket=8,
        max_nodes=2,
        min_nodes=1,
        oversubscribe="FORCE:4",
        preempt_mode="REQUEUE",
        priority_job_factor=4,
        priority_tier=3,
        state="DRAIN",
        allow_root_jobs=False,
        is_hidden=True,
        is_root_only=True,
        is_user_exclusive=True,
        least_loaded_nodes_scheduling=True,
        power_down_on_idle=True,
        requires_reservation=True,
    ).create()
    truth = shown(newest, "partition", "made")
    wanted = {
        "Nodes": "n[0-1]",
        "AllowGroups": "alice",
        "AllocNodes": "n0,n1",
        "DenyAccounts": "a,b",
        "Alternate": "main",
        "CpuBind": "cores",
        "DefMemPerCPU": "2048",
        "MaxMemPerNode": "10240",
        "DefaultTime": "01:00:00",
        "MaxTime": "1-00:00:00",
        "OverTimeLimit": "5",
        "GraceTime": "60",
        "JobDefaults": "DefCpuPerGPU=2,DefMemPerGPU=1024",
        "MaxCPUsPerNode": "16",
        "MaxCPUsPerSocket": "8",
        "MaxNodes": "2",
        "MinNodes": "1",
        "OverSubscribe": "FORCE:4",
        "PreemptMode": "REQUEUE",
        "PriorityJobFactor": "4",
        "PriorityTier": "3",
        "State": "DRAIN",
        "DisableRootJobs": "YES",
        "Hidden": "YES",
        "RootOnly": "YES",
        "Exclusive": "USER",
        "LLN": "YES",
        "PowerDownOnIdle": "YES",
        "ReqResv": "YES",
    }
    assert {name: truth.get(name) for name in wanted} == wanted


def test_made_partition_reads_back(newest: BareSlurm) -> None:
    """What was set is what is told, and can be changed and taken back."""
    made = Partition("back", nodes="n2", is_hidden=True, max_time=60, least_loaded_nodes_scheduling=True).create()
    found = Partition.load("back")
    assert (found.is_hidden, found.max_time, found.least_loaded_nodes_scheduling, found.is_default) == (
        True,
        60,
        True,
        False,
    )
    made.modify(Partition(is_hidden=False, max_time=UNLIMITED, state="DOWN"))
    found = Partition.load("back")
    assert (found.is_hidden, found.max_time, found.state, found.least_loaded_nodes_scheduling) == (
        False,
        UNLIMITED,
        "DOWN",
        True,
    )
    with pytest.raises(RPCError, match="there is a partition back already"):
        Partition("back").create()
    made.delete()
    refused(2000, made.delete)


@pytest.mark.parametrize("sharing", ["EXCLUSIVE", "YES:4", "FORCE:2", "NO"])
def test_sharing_is_changed_from_and_to_each_kind(newest: BareSlurm, sharing: str) -> None:
    """Exclusive is another field there; users' exclusiveness is left alone."""
    made = Partition("share", nodes="n2", oversubscribe=sharing).create()
    assert Partition.load("share").oversubscribe == sharing
    for other in ("FORCE:3", "EXCLUSIVE", "NO"):
        made.modify(Partition(oversubscribe=other))
        assert Partition.load("share").oversubscribe == other
    made.modify(Partition(is_user_exclusive=True))
    made.modify(Partition(oversubscribe="YES:2"))
    found = Partition.load("share")
    assert (found.is_user_exclusive, found.oversubscribe) == (True, "YES:2")
    made.delete()


def test_limits_that_are_taken_off(newest: BareSlurm) -> None:
    """UNLIMITED is written in each field's own way."""
    Partition("limits", nodes="n2", default_memory_per_cpu=100, max_memory_per_cpu=100, max_nodes=1).create()
    Partition("limits").modify(
        Partition(default_memory_per_cpu=UNLIMITED, max_memory_per_cpu=UNLIMITED, max_nodes=UNLIMITED)
    )
    truth = shown(newest, "partition", "limits")
    assert truth["MaxNodes"] == "UNLIMITED"
    assert {truth.get("DefMemPerCPU"), truth.get("DefMemPerNode")} == {None, "UNLIMITED"}
    assert {truth.get("MaxMemPerCPU"), truth.get("MaxMemPerNode")} == {None, "UNLIMITED"}


def test_nothing_takes_all_away(newest: BareSlurm) -> None:
    """Names of a partition."""
    Partition("bare", nodes="n2", alternate="main", denied_accounts=["a"], allowed_groups=["alice"]).create()
    Partition("bare").modify(Partition(alternate="", denied_accounts=[], allowed_groups=[]))
    found = Partition.load("bare")
    assert (found.alternate, found.denied_accounts, found.allowed_groups) == (None, [], ["ALL"])


def test_change_of_a_partition_that_is_not_there_makes_none(newest: BareSlurm) -> None:
    """slurmctld would make it."""
    refused(2000, Partition("ghost").modify, Partition(state="UP"))
    assert "ghost" not in Partitions.load()


def test_nobody_but_an_administrator_changes_a_partition(newest: BareSlurm) -> None:
    """Alice is refused."""
    with acting(newest, "alice"):
        refused(2010, Partition("main").modify, Partition(state="DOWN"))
    assert Partition.load("main").state == "UP"


def test_changes_on_a_slurm_without_them_say_since_when() -> None:
    """24.11 can read partitions only."""
    with begun(OLD) as slurm, acting(slurm):
        with pytest.raises(PyslurmError, match=r"needs v0\.0\.45 \(Slurm 26\.05\)"):
            Partition("p").create()
        with pytest.raises(PyslurmError, match=r"needs API v0\.0\.45"):
            _ = Partition.load("main").is_default
