"""The store: the newest of what the watches and the listings say."""

from __future__ import annotations

from typing import Any

import pytest

from kubeslurm_operator.kube import POD, Kind, Raw, merge_patch
from kubeslurm_operator.store import Key, Store

KEY = Key("a", "x")


def pod(version: int, uid: str = "u", **labels: str) -> Raw:
    """A pod at a resource version."""
    return {"metadata": {"namespace": "a", "name": "x", "uid": uid, "resourceVersion": str(version), "labels": labels}}


@pytest.fixture
def store() -> Store:
    """An empty store of pods."""
    return Store([POD])


def test_an_older_version_does_not_replace_a_newer_one(store: Store) -> None:
    """A watch may tell late what an answer to a patch told before."""
    store.put(POD, pod(5, color="new"))
    store.put(POD, pod(4, color="old"))
    assert (store.get(POD, KEY) or {})["metadata"]["labels"] == {"color": "new"}


def test_a_successor_replaces_its_namesake(store: Store) -> None:
    """Another uid is another object."""
    store.put(POD, pod(5))
    store.put(POD, pod(6, uid="v"))
    assert store.uids(POD) == {KEY: "v"}


def test_the_end_of_a_namesake_does_not_remove_the_successor(store: Store) -> None:
    """Deletions may come late, too."""
    store.put(POD, pod(6, uid="v"))
    store.drop(POD, pod(5, uid="u"))
    assert store.get(POD, KEY) is not None


def test_a_listing_removes_what_it_lacks_but_not_what_came_meanwhile(store: Store) -> None:
    """What was put after the listing was asked for stays."""
    store.put(POD, pod(5))
    before = store.uids(POD)
    store.replace(POD, [], before)
    assert store.get(POD, KEY) is None
    before = store.uids(POD)
    store.put(POD, pod(7, uid="late"))
    store.replace(POD, [], before)
    assert store.get(POD, KEY) is not None


def test_listeners_hear_of_changes_and_of_ends_once(store: Store) -> None:
    """Not of what changes nothing."""
    heard: list[tuple[Kind, str]] = []
    store.subscribe(lambda kind, raw: heard.append((kind, raw["metadata"]["resourceVersion"])))
    store.put(POD, pod(5))
    store.put(POD, pod(5))
    store.drop(POD, pod(9))
    assert heard == [(POD, "5"), (POD, "5")]


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, {}),
    ],
)
def test_a_merge_patch_says_the_difference(old: Any, new: Any, patch: Any) -> None:
    """RFC 7386: what goes is null."""
    assert merge_patch(old, new) == patch
