"""Nodes of pyslurm's face on a real Slurm, against what scontrol and sinfo print."""

from __future__ import annotations

import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest.pyslurm import Node, Nodes, _session
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.reached import acting, refused, shown, until
from tests.integration.pyslurm.releases import VERSIONS

pytestmark = pytest.mark.slurm


def test_a_node_reads_as_scontrol_shows_it(slurm: BareSlurm) -> None:
    """Hardware, names and versions."""
    node, truth = Node.load("n1"), shown(slurm, "node", "n1")
    assert str(node.total_cpus) == truth["CPUTot"]
    assert (str(node.real_memory), str(node.free_memory)) == (truth["RealMemory"], truth["FreeMem"])
    assert (str(node.sockets), str(node.boards)) == (truth["Sockets"], truth["Boards"])
    assert (str(node.cores_per_socket), str(node.threads_per_core)) == (
        truth["CoresPerSocket"],
        truth["ThreadsPerCore"],
    )
    assert (node.address, node.hostname) == (truth["NodeAddr"], truth["NodeHostName"])
    assert (node.state, node.slurm_version, node.architecture) == (truth["State"], truth["Version"], truth["Arch"])
    assert (str(node.weight), str(node.slurmd_port)) == (truth["Weight"], "6818")
    assert truth["Gres"] == "gpu:h100:8"
    assert node.configured_gres == {"gpu:h100": 8}
    assert pyslurm.utils.timestamp_to_date(node.boot_time) == truth["BootTime"]
    assert ",".join(node.partitions) == truth["Partitions"]


def test_all_nodes_are_those_of_sinfo(slurm: BareSlurm) -> None:
    """And their cluster has its name."""
    nodes = Nodes.load()
    names = slurm.run("sinfo", "--noheader", "-N", "-o", "%N").stdout.split()
    assert list(nodes) == names
    assert list(nodes.clusters()) == ["bare"]
    assert nodes["bare", "n0"].name == "n0"


def test_sums_follow_a_running_job(slurm: BareSlurm) -> None:
    """What a job has is allocated, and comes back."""
    before = Nodes.load()
    assert (before.allocated_cpus, before.allocated_memory) == (0, 0)
    argv = ["sbatch", "--parsable", "-N2", "-n2", "-c4", "--mem=1000", "--gres=gpu:2", "--wrap", "sleep 60"]
    job_id = slurm.run(*argv, user="alice").stdout.strip()
    until(lambda: "R" in slurm.run("squeue", "--noheader", "-o", "%t", "-j", job_id).stdout.split())
    during = Nodes.load()
    slurm.run("scancel", job_id)
    assert (during.allocated_cpus, during.allocated_memory) == (8, 2000)
    assert during.idle_cpus == before.idle_cpus - 8
    assert during.idle_memory == before.idle_memory - 2000
    busy = [node for node in during.values() if node.allocated_cpus]
    assert [node.allocated_gres for node in busy] == [{"gpu:h100": 2}] * 2
    assert {node.allocated_tres["cpu"] for node in busy} == {4}
    assert {node.allocated_tres["mem"] for node in busy} == {1000}


def test_drain_and_resume(slurm: BareSlurm) -> None:
    """As an administrator does it."""
    Node("n0").modify(Node(state="DRAIN", reason="disk 'sda' = bad"))
    node = Node.load("n0")
    assert "DRAIN" in node.state.split("+")
    assert (node.reason, node.reason_user) == ("disk 'sda' = bad", "root")
    assert (node.reason_time or 0) > 10**9
    Node("n0").modify(Node(state="RESUME"))
    assert "DRAIN" not in Node.load("n0").state


def test_every_other_change_shows(slurm: BareSlurm) -> None:
    """Each attribute that can be set, in scontrol's words."""
    changes = Node(
        comment="a\nb",
        extra='{"uid": "x"}',
        weight=7,
        available_features=["fast", "big"],
        active_features=["fast"],
        cpu_binding="sockets",
    )
    Node("n2").modify(changes)
    node, truth = Node.load("n2"), shown(slurm, "node", "n2")
    assert (node.comment, node.extra) == ("a\nb", '{"uid": "x"}')
    assert (truth["AvailableFeatures"], truth["ActiveFeatures"]) == ("fast,big", "fast")
    assert (truth["CpuBind"], truth["Weight"]) == ("sockets", "7")
    assert (node.available_features, node.active_features) == (["fast", "big"], ["fast"])
    assert (node.cpu_binding, node.weight) == ("sockets", 7)


def test_changes_are_the_same_in_every_version(slurm: BareSlurm) -> None:
    """Written in one, read in each."""
    versions = VERSIONS[slurm.suite]
    for weight, version in enumerate(versions, start=10):
        with acting(slurm, version=version):
            Node("n1").modify(Node(weight=weight, extra=version, cpu_binding="cores", available_features=["a", "b"]))
            found = Node.load("n1")
            assert (found.weight, found.extra, found.cpu_binding) == (weight, version, "cores")
            assert found.available_features == ["a", "b"]
            Node("n1").modify(Node(cpu_binding="none", available_features=[], active_features=[]))
    assert len(versions) >= 3


def test_nothing_takes_all_away(slurm: BareSlurm) -> None:
    """Texts and features of a node."""
    Node("n1").modify(Node(comment="c", extra="e", available_features=["a"], active_features=["a"]))
    Node("n1").modify(Node(comment="", extra="", available_features=[], active_features=[]))
    node = Node.load("n1")
    assert (node.comment, node.extra, node.available_features, node.active_features) == (None, None, [], [])


def test_many_nodes_change_at_once(slurm: BareSlurm) -> None:
    """One call for a host list; reload shows it in place."""
    nodes = Nodes("n[0-1]")
    nodes.modify(Node(extra="both"))
    nodes.reload()
    assert [node.extra for node in nodes.values()] == ["both", "both"]
    assert Node.load("n2").extra != "both"


def test_refusals_have_slurms_numbers(slurm: BareSlurm) -> None:
    """No such node, and a node of slurm.conf can't go."""
    refused(2018, Node.load, "n77")
    refused(2018, Node("n77").modify, Node(weight=1))
    refused(2028, Node("n0").delete)


def test_nobody_but_an_administrator_changes_a_node(slurm: BareSlurm) -> None:
    """Alice is refused."""
    with acting(slurm, "alice"):
        refused(2010, Node("n0").modify, Node(state="DRAIN", reason="x"))


def test_created_node_is_there_and_goes(slurm: BareSlurm) -> None:
    """Where the API has it: else the first version that has is named."""
    if _session.api_version() < "v0.0.44":
        with pytest.raises(pyslurm.PyslurmError, match=r"needs v0\.0\.44"):
            Node("x1").create()
        return
    Node("x1", configured_gres={"gpu": 2}, weight=3, available_features=["a"], comment="made").create(state="cloud")
    node, truth = Node.load("x1"), shown(slurm, "node", "x1")
    assert (node.weight, node.comment, node.available_features) == (3, "made", ["a"])
    assert (truth["Gres"], node.configured_gres) == ("gpu:2", {"gpu": 2})
    assert "CLOUD" in node.state
    refused(2168, Node("x1").create, "cloud")
    node.delete()
    refused(2018, Node.load, "x1")
