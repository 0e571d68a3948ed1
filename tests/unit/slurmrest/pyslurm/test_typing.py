"""What a user's type checker sees of pyslurm's face: real types of attributes, though each is declared once."""

from __future__ import annotations

from pathlib import Path

from tests.unit.slurmrest.test_typing import mypy

SNIPPET = """
from typing import Any, assert_type

import slurmrest.pyslurm as pyslurm

node = pyslurm.Node.load("n0")
assert_type(node, pyslurm.Node)
assert_type(node.free_memory, int | None)
assert_type(node.idle_cpus, int)
assert_type(node.cpu_load, float | None)
assert_type(node.configured_gres, dict[str, int])
assert_type(node.available_features, list[str])
node.weight = 5
node.configured_gres = {"gpu": 8}
node.modify(pyslurm.Node(state="DRAIN", reason="disk"))

nodes = pyslurm.Nodes.load()
assert_type(nodes["n0"], pyslurm.Node)
assert_type(nodes["here", "n0"], pyslurm.Node)
assert_type(nodes.get("n0"), pyslurm.Node | None)
assert_type(nodes.free_memory, int)
for name, one in nodes.items():
    assert_type(name, str)
    assert_type(one, pyslurm.Node)
for cluster, name, one in nodes.items().with_cluster():
    assert_type(one.state, str)
    assert_type(one.reason, str | None)

partition = pyslurm.Partitions.load()["main"]
assert_type(partition.max_time, int | str | None)
assert_type(partition.is_default, bool)
reservation = pyslurm.Reservation("r", start_time="now", duration="1-00:00:00").create()
assert_type(reservation.flags, pyslurm.ReservationFlags)
assert_type(reservation.reoccurrence, pyslurm.ReservationReoccurrence)
assert_type(pyslurm.slurmctld.diag().jobs_running, int)
assert_type(pyslurm.slurmctld.diag().rpcs_by_user["root"].count, int)
assert_type(pyslurm.slurmctld.Config.load().gres_types, list[str])
assert_type(pyslurm.slurmctld.ping_primary().is_primary, bool)
assert_type(pyslurm.utils.timestr_to_secs("1:00"), int | str | None)
try:
    node.delete()
except pyslurm.RPCError as error:
    assert_type(error.errno, int)
"""
MISTAKES = """
import slurmrest.pyslurm as pyslurm

node = pyslurm.Node.load("n0")
node.real_memory = 5
node.fre_memory
node.weight = [5]
pyslurm.Nodes.load()["n0"].modify("DRAIN")
print(node.idle_cpus + node.reason)
pyslurm.slurmctld.shutdwon(1)
"""


def test_a_users_script_sees_the_types_of_attributes(tmp_path: Path) -> None:
    """Of single things, of collections and of what is set."""
    assert mypy(SNIPPET, tmp_path).startswith("Success")


def test_a_users_mistakes_are_found_before_anything_runs(tmp_path: Path) -> None:
    """Each wrong line, and no other."""
    said = mypy(MISTAKES, tmp_path)
    lines = [int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line]
    assert sorted(set(lines)) == [5, 6, 7, 8, 9, 10], said
