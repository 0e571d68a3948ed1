"""Scripts for pyslurm that look at nodes, partitions and the controller, and change nodes."""

from __future__ import annotations

import json
import re
from collections import Counter

from tests.integration.pyslurm.running import Scripts


def test_a_small_sinfo(scripts: Scripts) -> None:
    """Name, state, CPUs, memory, partition of each node."""
    states = {f"n{number}": scripts.shown("node", f"n{number}")["State"] for number in range(4)}
    truth = [line.split() for line in scripts.lines("sinfo", "-N", "-h", "-o", "%N %c %m %R")]
    assert scripts.run("sinfo") == [" ".join([name, states[name], *rest]) for name, *rest in truth]


def test_a_node_is_drained_and_taken_back(scripts: Scripts) -> None:
    """scontrol sees state and reason; another script lists it meanwhile."""
    before = scripts.shown("node", "n3")["State"]
    assert scripts.run("drain_node", "n3", "disk is full") == [f"{before}+DRAIN"]
    said = scripts.slurm.run("scontrol", "-o", "show", "node", "n3").stdout
    assert f"State={before}+DRAIN " in said
    assert "Reason=disk is full [root@" in said
    assert scripts.run("drained_nodes") == ["n3: disk is full"]
    assert scripts.run("resume_node", "n3") == []
    # Till slurmctld's next ping.
    assert scripts.shown("node", "n3")["State"].removesuffix("+NOT_RESPONDING") == before
    assert scripts.run("drained_nodes") == []


def test_memory_and_cpus_are_summed(scripts: Scripts) -> None:
    """All, allocated and idle, as sinfo adds them up."""
    scripts.in_state(scripts.job("--mem=3000", "--cpus-per-task=5"), "RUNNING")
    nodes = [scripts.shown("node", f"n{number}") for number in range(4)]
    real, held = (sum(int(node[word]) for node in nodes) for word in ("RealMemory", "AllocMem"))
    allocated, idle, _, total = scripts.lines("sinfo", "-h", "-o", "%C")[0].split("/")
    assert scripts.run("node_memory") == [f"{real} {held} {real - held}", f"{total} {allocated} {idle}"]
    assert (held, allocated) == (3000, "5")


def test_gpus_are_counted_by_node(scripts: Scripts) -> None:
    """Those that there are and those that are used, as sinfo shows them."""
    scripts.in_state(scripts.job("--gres=gpu:3", "--nodelist=n1"), "RUNNING")
    shown = scripts.lines("sinfo", "-N", "-h", "-O", "NodeHost:10,Gres:30,GresUsed:40")
    truth = [re.sub(r"(\S+)\s+gpu:h100:(\d+)\S*\s+gpu:h100:(\d+).*", r"\1 \2 \3", line) for line in shown]
    assert scripts.run("node_gpus") == truth == ["n0 8 0", "n1 8 3", "n2 8 0", "n3 8 0"]


def test_states_are_counted(scripts: Scripts) -> None:
    """One line per state."""
    scripts.in_state(scripts.job("--exclusive", "--nodes=2"), "RUNNING")
    truth = Counter(scripts.shown("node", f"n{number}")["State"] for number in range(4))
    assert dict(line.split() for line in scripts.run("node_states")) == {key: str(n) for key, n in truth.items()}
    assert sorted(truth.values()) == [2, 2]


def test_nodes_are_written_as_json(scripts: Scripts) -> None:
    """The same nodes with the same figures as sinfo's."""
    told = json.loads("\n".join(scripts.run("nodes_json")))
    truth = {
        name: int(memory)
        for name, memory in (line.split() for line in scripts.lines("sinfo", "-N", "-h", "-o", "%N %m"))
    }
    assert {name: node["real_memory"] for name, node in told.items()} == truth


def test_several_nodes_get_a_comment(scripts: Scripts) -> None:
    """Those named, and no other."""
    assert scripts.run("comment_nodes", "n1,n2", "rack 7") == []
    said = [scripts.slurm.run("scontrol", "-o", "show", "node", f"n{number}").stdout for number in range(4)]
    assert ["Comment=rack 7" in one for one in said] == [False, True, True, False]


def test_partitions_have_size_and_limits(scripts: Scripts) -> None:
    """As scontrol has them."""
    truth = scripts.shown("partition", "main")
    assert truth["MaxTime"] == "UNLIMITED"
    expected = f"main {truth['State']} {truth['TotalNodes']} {truth['TotalCPUs']} UNLIMITED"
    assert scripts.run("partitions") == [expected]


def test_reservations_are_listed(scripts: Scripts) -> None:
    """Made by scontrol."""
    make = [
        "reservation",
        "ReservationName=maint",
        "StartTime=now+1hour",
        "Duration=120",
        "Users=alice,bob",
        "Nodes=n[1-2]",
    ]
    scripts.slurm.run("scontrol", "create", *make)
    assert scripts.run("reservations") == ["maint n[1-2] alice,bob 7200"]
    scripts.slurm.run("scontrol", "delete", "ReservationName=maint")
    assert scripts.run("reservations") == []


def test_the_controller_answers(scripts: Scripts) -> None:
    """As scontrol ping says."""
    assert re.search(r"Slurmctld\(primary\) at controller is UP", scripts.slurm.run("scontrol", "ping").stdout)
    assert scripts.run("ping") == ["controller True True"]


def test_the_controllers_figures_are_those_of_sdiag(scripts: Scripts) -> None:
    """Jobs submitted and running."""
    scripts.in_state(scripts.job(), "RUNNING")
    told = scripts.run("diag")
    said = scripts.slurm.run("sdiag").stdout
    for line in told:
        word, count = line.split()
        assert re.search(rf"Jobs {word}:\s*{count}\n", said), (line, said)
