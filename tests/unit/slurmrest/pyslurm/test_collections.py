"""Collections: dicts for one cluster, and for several."""

from __future__ import annotations

import json
from typing import Any

import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest.pyslurm import Node, Nodes
from slurmrest.pyslurm.xcollections import (
    MultiClusterMap,
    dict_recursive,
    multi_dict_recursive,
    multi_reload,
    sum_property,
    to_json,
)
from tests.unit.slurmrest.pyslurm.recorded import Recorded


def two_clusters() -> Nodes:
    """Nodes a and b here, c elsewhere."""
    return Nodes({"": {"a": Node("a"), "b": Node("b")}, "far": {"c": Node("c")}})


@pytest.mark.parametrize(
    "data", ["a,b", "a, b", ["a", "b"], [Node("a"), "b"], {"a": Node("a"), "b": Node("b")}, "b,a", Nodes("a,b")]
)
def test_made_of_many_forms(data: Any) -> None:
    """Text, names, items, dicts and collections make the same."""
    assert sorted(Nodes(data)) == ["a", "b"]


def test_made_of_a_host_list() -> None:
    """Nodes take ranges."""
    assert list(Nodes("n[0-2]")) == ["n0", "n1", "n2"]


def test_plain_key_is_of_the_local_cluster() -> None:
    """Another cluster's item needs its cluster."""
    nodes = two_clusters()
    assert nodes["a"].name == "a"
    assert nodes["far", "c"] is nodes["far"]["c"]  # type: ignore[index]
    assert "c" not in nodes
    assert ("far", "c") in nodes
    with pytest.raises(KeyError):
        nodes["c"]


def test_length_and_views_go_over_all_clusters() -> None:
    """What is counted and listed is everything."""
    nodes = two_clusters()
    assert len(nodes) == 3
    assert list(nodes) == list(nodes.keys()) == ["a", "b", "c"]
    assert [node.name for node in nodes.values()] == ["a", "b", "c"]
    assert list(nodes.keys().with_cluster()) == [("", "a"), ("", "b"), ("far", "c")]
    assert [(cluster, key) for cluster, key, _ in nodes.items().with_cluster()] == list(nodes.keys().with_cluster())
    assert list(nodes.clusters()) == ["", "far"]
    assert len(nodes.clusters()) == 2
    assert ("a", nodes["a"]) in nodes.items()


def test_local_name_once_known_takes_in_what_had_none(newest: Recorded) -> None:
    """Items made before anything was asked are the local cluster's."""
    nodes = Nodes("a")
    pyslurm.Nodes.load()
    nodes.add(Node("b"))
    assert list(nodes.clusters()) == ["recorded"]
    assert nodes["recorded", "a"].name == "a"


def test_without_local_data_the_first_cluster_is_meant() -> None:
    """Jobs of one other cluster are found by their plain key."""
    assert Nodes({"far": {"c": Node("c")}})["c"].name == "c"


def test_get_and_pop_give_defaults() -> None:
    """As a dict does."""
    nodes = two_clusters()
    assert nodes.get("z") is None
    assert nodes.get(("far", "a"), 7) == 7
    assert nodes.pop(("far", "c")).name == "c"
    assert nodes.pop("c", None) is None
    with pytest.raises(KeyError):
        nodes.pop("c")
    assert nodes.popitem()[0] == "b"


def test_popitem_of_nothing_raises() -> None:
    """As a dict does."""
    nodes = Nodes()
    assert not nodes
    with pytest.raises(KeyError):
        nodes.popitem()


def test_add_takes_only_its_kind() -> None:
    """A collection of nodes holds nodes."""
    with pytest.raises(TypeError, match="Nodes hold Node, not Partition"):
        Nodes().add(pyslurm.Partition("p"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Nodes hold Node"):
        Nodes()["p"] = pyslurm.Partition("p")  # type: ignore[assignment]


def test_update_takes_dicts_and_collections() -> None:
    """By key, by cluster, or whole."""
    nodes = Nodes("a")
    nodes.update({"b": Node("b")})
    nodes.update({"far": {"c": Node("c")}})
    nodes.update(Nodes("d"), e=Node("e"))
    assert list(nodes.keys().with_cluster()) == [("", "a"), ("", "b"), ("", "d"), ("", "e"), ("far", "c")]


def test_copy_is_apart() -> None:
    """The items are shared, the collection is not."""
    nodes = two_clusters()
    other = nodes.copy()
    assert other == nodes
    assert other["a"] is nodes["a"]
    del other["a"]
    assert "a" in nodes
    other.clear()
    assert len(nodes) == 3


def test_delete_by_key_pair_and_cluster() -> None:
    """Each way of naming works for `del` too."""
    nodes = two_clusters()
    del nodes["a"], nodes["far"]
    assert list(nodes.keys().with_cluster()) == [("", "b")]
    with pytest.raises(KeyError):
        del nodes["far", "c"]


def test_as_data() -> None:
    """Of the local cluster, or of all; items as they are, or as dicts."""
    nodes = two_clusters()
    assert nodes.to_dict()["a"] is nodes["a"]
    assert nodes.to_dict(recursive=True)["a"]["name"] == "a"
    assert set(nodes.to_dict(multi_cluster=True)) == {"", "far"}
    assert json.loads(nodes.to_json())["b"]["name"] == "b"
    assert json.loads(nodes.to_json(multi_cluster=True))["far"]["c"]["name"] == "c"
    assert json.loads(to_json(nodes)) == json.loads(json.dumps(dict_recursive(nodes)))
    assert multi_dict_recursive(nodes)["far"]["c"]["name"] == "c"


def test_sum_takes_numbers_only() -> None:
    """An attribute that a node doesn't know counts nothing."""
    nodes = Nodes([Node._of({"name": "a", "free_mem": 3}), Node._of({"name": "b"})])
    assert nodes.free_memory == sum_property(nodes, "free_memory") == 3
    assert sum_property(nodes, Node.free_memory, startval=4) == 7


def test_item_is_found_by_itself() -> None:
    """`node in nodes` asks for the item, a key of a wrong kind is just not there."""
    nodes = two_clusters()
    assert Node("c") in nodes
    assert Node("z") not in nodes
    assert None not in nodes


def test_frozen_reload_keeps_to_its_items(newest: Recorded) -> None:
    """Known items are renewed, gone ones stay as they were, new ones don't come in."""
    name = next(iter(Nodes.load()))
    nodes = multi_reload(Nodes([name, "gone"]))
    assert list(nodes) == [name, "gone"]
    assert nodes[name].total_cpus > 0


def test_reload_that_is_not_frozen_becomes_what_slurm_has(newest: Recorded) -> None:
    """Items come and go."""
    all_names = list(Nodes.load())
    assert sorted(multi_reload(Nodes([all_names[0], "gone"]), frozen=False)) == all_names


def test_reload_of_nothing_loads_all(newest: Recorded) -> None:
    """An empty collection is filled."""
    assert list(Nodes().reload()) == list(Nodes.load())


def test_collection_is_no_key() -> None:
    """It changes, as a dict; and is equal to none but a collection."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(Nodes())
    assert Nodes() != {}
    assert isinstance(Nodes(), MultiClusterMap)
