"""Partitions of pyslurm's face: what recorded answers read as, and what changes are sent."""

from __future__ import annotations

from typing import Any

import pytest

from slurmrest.pyslurm import Partition, Partitions, PyslurmError, RPCError
from slurmrest.pyslurm.constants import UNLIMITED
from tests.unit.slurmrest.pyslurm.recorded import Recorded

FLAGS = (
    "is_default",
    "allow_root_jobs",
    "is_user_exclusive",
    "is_hidden",
    "least_loaded_nodes_scheduling",
    "is_root_only",
    "requires_reservation",
    "power_down_on_idle",
)


def test_partition_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """Two nodes, no limits."""
    partition = Partitions.load()["main"]
    assert (partition.nodes, partition.total_nodes, partition.state) == ("n[0-1]", 2, "UP")
    assert (partition.max_time, partition.default_time, partition.over_time_limit) == (UNLIMITED, None, None)
    assert partition.max_nodes == partition.max_cpus_per_node == partition.max_cpus_per_socket == UNLIMITED
    assert (partition.default_memory_per_node, partition.default_memory_per_cpu) == (UNLIMITED, None)
    assert (partition.max_memory_per_node, partition.max_memory_per_cpu) == (UNLIMITED, None)
    assert partition.allowed_accounts == partition.allowed_groups == partition.allowed_qos == ["ALL"]
    assert partition.allowed_submit_nodes == ["ALL"]
    assert (partition.denied_accounts, partition.denied_qos, partition.qos, partition.alternate) == ([], [], None, None)
    assert (partition.oversubscribe, partition.priority_tier, partition.priority_job_factor) == ("NO", 1, 1)
    assert (partition.min_nodes, partition.preemption_grace_time, partition.cpu_binding) == (0, 0, None)


def test_every_attribute_of_a_partition_can_be_read_or_says_since_when(recorded: Recorded) -> None:
    """Flags came with v0.0.45; all others have always been there."""
    partition = Partitions.load()["main"]
    assert set(partition.to_dict()) == set(Partition._fields)
    for name in (*FLAGS, "preempt_mode"):
        if recorded.version < "v0.0.45":
            with pytest.raises(PyslurmError, match=rf"Partition\.{name} needs API v0\.0\.45"):
                getattr(partition, name)
        else:
            assert getattr(partition, name) in (True, False, "CLUSTER_GLOBAL")


def test_flags_of_the_default_partition(newest: Recorded) -> None:
    """The default one, open to root."""
    partition = Partition.load("main")
    assert partition.is_default
    assert partition.allow_root_jobs
    assert not partition.is_hidden
    assert not partition.is_user_exclusive


def test_sums_are_over_all_partitions(newest: Recorded) -> None:
    """A node in two counts twice."""
    partitions = Partitions([Partition.load("main")])
    partitions.update({"other": Partition._of({"name": "other", "cpus": {"total": 3}, "nodes": {"total": 1}})})
    assert partitions.total_nodes == 3
    assert partitions.total_cpus == Partition.load("main").total_cpus + 3


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"oversubscribe": {"jobs": 0, "flags": []}}, "EXCLUSIVE"),
        ({"oversubscribe": {"jobs": 1, "flags": []}}, "NO"),
        ({"oversubscribe": {"jobs": 4, "flags": []}}, "YES:4"),
        ({"oversubscribe": {"jobs": 3, "flags": ["force"]}}, "FORCE:3"),
    ],
)
def test_sharing_reads_from_jobs_and_force(raw: dict[str, Any], text: str) -> None:
    """As 24.11 gave it for each of scontrol's words; newer versions give the text."""
    assert Partition._of({"maximums": raw}).oversubscribe == text
    assert Partition._of({"maximums": raw, "partition": {"oversubscribe": "FORCE:9"}}).oversubscribe == "FORCE:9"
    alone = {"oversubscribe": "NO", "exclusive": "NODE"}
    assert Partition._of({"maximums": raw, "partition": alone}).oversubscribe == "EXCLUSIVE"


def test_partition_that_is_not_there(newest: Recorded) -> None:
    """Slurm answers with nothing at all; it has the number of no such partition."""
    with pytest.raises(RPCError, match="without partition nope") as caught:
        Partition.load("nope")
    assert caught.value.errno == 2000


def test_new_partition_is_sent_in_the_apis_forms(newest: Recorded) -> None:
    """Memory in MiB, times in minutes, flags in one list, job defaults in one text."""
    new = Partition(
        "p2",
        nodes=["n[0,1]"],
        allowed_accounts=["a", "b"],
        default_memory_per_cpu="10G",
        max_memory_per_node=UNLIMITED,
        max_time="1-00:00:00",
        default_time=30,
        max_nodes=2,
        min_nodes=1,
        oversubscribe="force:4",
        state="drain",
        is_hidden=True,
        allow_root_jobs=False,
        is_default=False,
        is_user_exclusive=True,
        default_cpus_per_gpu=2,
        default_memory_per_gpu="1G",
        preempt_mode="REQUEUE",
        cpu_binding="cores",
    )
    assert new.create() is new
    assert newest.changes() == [("POST", "partitions/", {"partitions": [_sent_partition()]})]


def _sent_partition() -> dict[str, Any]:
    def number(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    return {
        "name": "p2",
        "nodes": {"configured": "n[0,1]"},
        "accounts": {"allowed": "a,b"},
        "defaults": {
            "partition_memory_per_cpu": number(10240),
            "time": number(30),
            "job": "DefCpuPerGPU=2,DefMemPerGPU=1024",
        },
        "maximums": {"partition_memory_per_node": number(0), "time": number(1440), "nodes": number(2)},
        "minimums": {"nodes": 1},
        "partition": {"oversubscribe": "FORCE:4", "state": ["DRAIN"], "exclusive": "USER"},
        "flags": ["HIDDEN", "NO_ROOT", "DEFAULT_CLEAR"],
        "preempt_mode": ["REQUEUE"],
        "cpus": {"task_binding": ["CPU_BIND_TO_CORES"]},
    }


def test_what_was_set_reads_back_as_it_will_read(newest: Recorded) -> None:
    """Before anything is sent."""
    partition = Partition("p", max_time="UNLIMITED", default_memory_per_cpu="1G", is_hidden=True, state="up")
    assert (partition.max_time, partition.default_memory_per_cpu, partition.is_hidden) == (UNLIMITED, 1024, True)
    assert (partition.state, Partition("p", default_cpus_per_gpu=2).default_cpus_per_gpu) == ("UP", 2)
    assert newest.requests == []


def test_existing_partition_is_not_made_again(newest: Recorded) -> None:
    """The call would change it."""
    with pytest.raises(RPCError, match="there is a partition main already"):
        Partition("main", state="DOWN").create()
    assert newest.changes() == []


def test_change_does_not_make_a_partition(newest: Recorded) -> None:
    """The call would make it."""
    with pytest.raises(RPCError, match="without partition nope"):
        Partition("nope").modify(Partition(state="DOWN"))
    Partition("main").modify(Partition(state="DOWN"))
    Partitions.load().modify(Partition(is_hidden=True))
    assert [body["partitions"][0] for _, _, body in newest.changes()] == [
        {"partition": {"state": ["DOWN"]}, "name": "main"},
        {"flags": ["HIDDEN"], "name": "main"},
    ]


def test_delete_names_the_partition(newest: Recorded) -> None:
    """One call."""
    Partition("main").delete()
    assert newest.changes() == [("DELETE", "partition/main", None)]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("state", "IDLE"),
        ("oversubscribe", "MAYBE"),
        ("oversubscribe", "FORCE:0"),
        ("max_time", "soon"),
        ("default_memory_per_cpu", "much"),
        ("min_nodes", -1),
        ("is_hidden", "yes"),
        ("cpu_binding", "gpu"),
        ("preempt_mode", "MAYBE"),
        ("alternate", "a b,c"),
        ("nodes", "n0\nn1"),
    ],
)
def test_wrong_value_is_refused_by_attribute(attribute: str, value: object) -> None:
    """Before anything is sent."""
    with pytest.raises((ValueError, TypeError), match=rf"^Partition\.{attribute}: "):
        Partition("p", **{attribute: value})


@pytest.mark.parametrize("name", ["a b", "a/b", "../x", "a,b", "a\0", "x=1"])
def test_what_is_no_partition_name_is_not_sent(newest: Recorded, name: str) -> None:
    """slurmctld would take it, and slurm.conf would not."""
    with pytest.raises((RPCError, ValueError)):
        Partition(name).create()
    assert newest.requests == []


@pytest.mark.parametrize("call", ["create", "delete"])
def test_changes_need_a_version_that_has_them(oldest: Recorded, call: str) -> None:
    """The first one is named."""
    with pytest.raises(PyslurmError, match=r"needs v0\.0\.45"):
        getattr(Partition("p"), call)()
    with pytest.raises(PyslurmError, match=r"needs v0\.0\.45"):
        Partition("main").modify(Partition(state="DOWN"))
    assert oldest.changes() == []
