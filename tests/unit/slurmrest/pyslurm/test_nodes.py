"""Nodes of pyslurm's face: what recorded answers read as, and what changes are sent."""

from __future__ import annotations

from typing import Any

import pytest

from slurmrest.pyslurm import Node, Nodes, PyslurmError, RPCError
from slurmrest.pyslurm.node import read_cpu_binding, write_cpu_binding
from tests.unit.slurmrest.pyslurm.recorded import Recorded


def test_node_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """Drained, with a comment and GPUs."""
    node = Nodes.load()["n0"]
    assert {"IDLE", "DRAIN"} <= set(node.state.split("+"))
    assert (node.reason, node.comment, node.extra) == ("disk", "seen", None)
    assert (node.configured_gres, node.allocated_gres) == ({"gpu:h100": 8}, {"gpu:h100": 0})
    assert (node.partitions, node.available_features, node.next_state) == (["main"], [], None)
    assert (node.total_cpus, node.idle_cpus, node.allocated_cpus) == (node.effective_cpus, node.effective_cpus, 0)
    assert node.sockets * node.cores_per_socket * node.threads_per_core == node.total_cpus
    assert node.idle_memory == node.real_memory > 0
    assert isinstance(node.cpu_load, float)
    assert (node.boot_time or 0) > 10**9
    assert (node.slurmd_port, node.cpu_binding, node.allocated_tres) == (6818, None, {})


def test_every_attribute_of_a_node_can_be_read(recorded: Recorded) -> None:
    """None of them raises, in any version."""
    assert set(Nodes.load()["n0"].to_dict()) == set(Node._fields)


def test_sums_are_over_all_nodes(newest: Recorded) -> None:
    """Each sum is that of its attribute."""
    nodes = Nodes.load()
    for name in ("real_memory", "idle_memory", "allocated_memory", "total_cpus", "idle_cpus", "allocated_cpus"):
        assert getattr(nodes, name) == sum(getattr(node, name) for node in nodes.values())
    assert (nodes.current_watts, nodes.avg_watts) == (0, 0)
    assert nodes.effective_cpus == nodes.total_cpus
    assert nodes.free_memory == sum(node.free_memory or 0 for node in nodes.values())


def test_one_node_is_loaded_by_its_name(newest: Recorded) -> None:
    """And another name isn't found."""
    assert Node.load("n1").name == "n1"
    newest.answers["node/n7"] = newest.answers["nodes/"]
    with pytest.raises(RPCError, match="without node n7") as caught:
        Node.load("n7")
    assert caught.value.errno == 2018


@pytest.mark.parametrize("name", ["", "../ping", "n0/x", "n0?x=y", "n0\nX: y", "n0\0", "n[0-1]"])
def test_what_is_no_node_name_is_not_asked_for(newest: Recorded, name: str) -> None:
    """Nothing of it reaches a path."""
    with pytest.raises(RPCError, match="is not a node name"):
        Node.load(name)
    assert newest.requests == []


def test_change_sends_what_was_set_and_nothing_else(newest: Recorded) -> None:
    """In the API's own forms."""
    changes = Node(
        state="drain",
        reason="disk",
        comment="c",
        extra="{}",
        weight=5,
        address="10.0.0.1",
        hostname="h",
        configured_gres={"gpu:h100": 4},
        available_features=["a", "b"],
        active_features="a",
        cpu_binding="cores",
    )
    Node("n0").modify(changes)
    assert newest.changes() == [
        (
            "POST",
            "node/n0",
            {
                "state": ["DRAIN"],
                "reason": "disk",
                "comment": "c",
                "extra": "{}",
                "weight": {"set": True, "infinite": False, "number": 5},
                "address": ["10.0.0.1"],
                "hostname": ["h"],
                "gres": "gpu:h100:4",
                "features": ["a", "b"],
                "features_act": ["a"],
                "cpu_bind": 4,
            },
        )
    ]


def test_nothing_takes_all_away(newest: Recorded) -> None:
    """Slurm overlooks an empty list, and takes an empty word for none."""
    Node("n0").modify(Node(available_features=[], active_features="", comment=""))
    assert newest.changes() == [("POST", "node/n0", {"features": [""], "features_act": [""], "comment": ""})]
    assert Node(available_features=[]).available_features == []


def test_many_nodes_change_in_one_call(newest: Recorded) -> None:
    """As scontrol does for a host list."""
    Nodes("n[0-1]").modify(Node(state="RESUME"))
    assert newest.changes() == [("POST", "nodes/", {"state": ["RESUME"], "name": ["n0", "n1"]})]
    Nodes().modify(Node(state="RESUME"))
    assert len(newest.requests) == 1


def test_change_of_nothing_is_refused(newest: Recorded) -> None:
    """Also of a name alone: nodes can't be renamed."""
    with pytest.raises(PyslurmError, match="no change of the node"):
        Node("n0").modify(Node("n1"))
    with pytest.raises(PyslurmError, match="the node has no name"):
        Node().modify(Node(state="DOWN"))
    assert newest.requests == []


def test_new_node_is_a_line_of_slurm_conf(newest: Recorded) -> None:
    """What such a line can't have is changed afterwards."""
    node = Node("x[1-2]", configured_gres={"gpu": 2}, weight=3, available_features=["a", "b"])
    assert node.create(state="cloud") is node
    line = "NodeName=x[1-2] Gres=gpu:2 Features=a,b Weight=3 State=CLOUD"
    assert newest.changes() == [("POST", "new/node/", {"node_conf": line})]
    Node("x3", comment="made", address="10.0.0.3", cpu_binding="sockets").create()
    line = "NodeName=x3 NodeAddr=10.0.0.3 CpuBind=sockets State=FUTURE"
    assert newest.changes()[1:] == [
        ("POST", "new/node/", {"node_conf": line}),
        ("POST", "node/x3", {"comment": "made"}),
    ]


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": "x State=DOWN"},
        {"name": "x#"},
        {"name": "x", "address": 'a"b'},
        {"name": "x", "hostname": "a=b"},
        {"name": "x", "available_features": ["a b"]},
        {"name": "x", "configured_gres": "gpu:1 Weight=1"},
        {"name": "x\\"},
    ],
)
def test_nothing_gets_out_of_its_place_in_a_line(newest: Recorded, attributes: dict[str, Any]) -> None:
    """A value is one word of the line, or nothing is sent."""
    with pytest.raises((PyslurmError, ValueError)):
        Node(**attributes).create()
    assert newest.changes() == []


def test_new_node_is_future_or_cloud(newest: Recorded) -> None:
    """Slurm takes no other."""
    with pytest.raises(ValueError, match="none of FUTURE, CLOUD"):
        Node("x").create(state="idle")


def test_creation_needs_a_version_that_has_it(oldest: Recorded) -> None:
    """The first one is named, and nothing is sent."""
    with pytest.raises(PyslurmError, match=r"needs v0\.0\.44"):
        Node("x").create()
    assert oldest.requests == []


def test_delete_names_the_node(newest: Recorded) -> None:
    """And its refusal has Slurm's number."""
    Node("n0").delete()
    assert newest.changes() == [("DELETE", "node/n0", None)]
    newest.refuse("node/n0", 2028)
    with pytest.raises(RPCError) as caught:
        Node("n0").delete()
    assert caught.value.errno == 2028


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (0, None),
        (32, "none"),
        (8, "sockets"),
        (16, "ldoms"),
        (4, "cores"),
        (2, "threads"),
        (9, "verbose,sockets"),
        ([], None),
        (["CPU_BIND_TO_CORES", "VERBOSE"], "cores,verbose"),
        (["CPU_BIND_NONE"], "none"),
    ],
)
def test_bindings_read_from_bits_and_flags(raw: object, words: str | None) -> None:
    """Bits as 24.11 gave them for each word of scontrol."""
    assert read_cpu_binding(raw) == words


def test_bindings_are_written_as_bits() -> None:
    """With or without the plural's s."""
    assert write_cpu_binding("core") == write_cpu_binding("cores") == 4
    assert write_cpu_binding("sockets,verbose") == 9
    with pytest.raises(ValueError, match="'gpu' is none of"):
        write_cpu_binding("gpu")


@pytest.mark.parametrize("state", ["DRAIN;x", "drain state", "", "D" * 60])
def test_what_is_no_state_is_refused(state: str) -> None:
    """Before anything is sent."""
    with pytest.raises((ValueError, RPCError), match="is not a node state"):
        Node(state=state)


def test_nodes_are_equal_by_name() -> None:
    """Whatever else they know."""
    assert Node("a", weight=1) == Node("a")
    assert len({Node("a"), Node("a"), Node("b")}) == 2
    assert repr(Node("a")) == "pyslurm.Node('a')"
