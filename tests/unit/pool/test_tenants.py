"""Whose is a namespace: by name, by label, and never two tenants'."""

from __future__ import annotations

import pytest

from kubeslurm import tenants
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.errors import InvalidObject
from tests.unit import examples
from tests.unit.examples import Raw

BOB = {"name": "bob", "uid": 1001, "gid": 1001}


def cluster(selector: Raw) -> SlurmCluster:
    """The example's tenant research, and bob's, by a selector."""

    def change(raw: Raw) -> None:
        raw["spec"]["tenants"].append({"namespaceSelector": selector, "user": BOB, "partitions": ["gpu_partition"]})

    return examples.cluster(change)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ({"matchLabels": {"team": "b"}}, {"team": "b", "x": "y"}, True),
        ({"matchLabels": {"team": "b"}}, {"team": "a"}, False),
        ({"matchLabels": {"team": "b", "tier": "1"}}, {"team": "b"}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, {"team": "b"}, True),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, {}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, {}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, {"team": ""}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, {"team": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
    ],
)
def test_a_selector_is_read_as_kubernetes_reads_it(selector: Raw, labels: dict[str, str], matches: bool) -> None:
    """Labels and expressions, all of them."""
    assert tenants.claims(cluster(selector), "lab", labels) == ((1,) if matches else ())


def test_unknown_labels_match_no_selector() -> None:
    """Not even one that asks for the absence of a label."""
    absent = cluster({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]})
    assert tenants.claims(absent, "lab", None) == ()
    assert tenants.claims(absent, "lab", {}) == (1,)


def test_a_namespace_that_two_tenants_claim_is_nobodys() -> None:
    """Whatever their order: a clear refusal, and a sentence for the SlurmCluster."""
    both = cluster({"matchLabels": {"team": "b"}})
    assert tenants.tenant_for(both, "research", {}).user.name == "alice"
    with pytest.raises(InvalidObject, match=r"tenants\[0\] and tenants\[1\] .* claim namespace 'research'") as caught:
        tenants.tenant_for(both, "research", {"team": "b"})
    assert caught.value.path == "metadata.namespace"
    namespaces = {"research": {"team": "b"}, "lab": {"team": "b"}}
    assert tenants.disputes(both, namespaces) == "namespaces claimed twice: research by tenants[0] and tenants[1]"
    assert tenants.disputes(both, {"lab": {"team": "b"}}) == ""


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"namespaceSelector": {}}, "spec.tenants[0].namespaceSelector"),
        ({"namespaces": []}, "spec.tenants[0].namespaces"),
        ({"namespaceSelector": {"matchLabels": {"a b": "c"}}}, "spec.tenants[0].namespaceSelector.matchLabels"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.tenants[0].namespaceSelector.matchExpressions[0].values",
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "spec.tenants[0].namespaceSelector.matchExpressions[0].values",
        ),
        ({"accounts": ["ml\nx"]}, "spec.tenants[0].accounts[0]"),
        ({"accounts": ["ML"]}, "spec.tenants[0].accounts[0]"),
        ({"qos": ["a b"]}, "spec.tenants[0].qos[0]"),
    ],
)
def test_a_tenant_that_is_not_clear_is_refused(change: Raw, path: str) -> None:
    """By the field's path."""
    with pytest.raises(InvalidObject) as caught:
        examples.cluster(lambda raw: raw["spec"]["tenants"][0].update(change))
    assert caught.value.path.startswith(path)


@pytest.mark.parametrize(
    ("user", "path"),
    [
        ({"groups": [{"name": "lab", "gid": 2001}]}, "spec.tenants[1].user.groups[0]"),
        ({"groups": [{"name": "bal", "gid": 2000}]}, "spec.tenants[1].user.groups[0]"),
        ({"groups": [{"name": "a", "gid": 1}, {"name": "a", "gid": 2}]}, "spec.tenants[1].user.groups[1]"),
        ({"groups": [{"name": "slurm", "gid": 5}]}, "spec.tenants[1].user.groups[0].name"),
        ({"groups": [{"name": "a:0", "gid": 5}]}, "spec.tenants[1].user.groups[0].name"),
        ({"groups": [{"name": "a", "gid": 64030}]}, "spec.tenants[1].user.groups[0].gid"),
        ({"name": "alice", "uid": 1000, "gid": 1001}, "spec.tenants[1].user"),
    ],
)
def test_a_group_is_one_and_a_user_too(user: Raw, path: str) -> None:
    """Names and ids that contradict what stands before are refused."""

    def change(raw: Raw) -> None:
        raw["spec"]["tenants"][0]["user"]["groups"] = [{"name": "lab", "gid": 2000}]
        raw["spec"]["tenants"].append({"namespaces": ["b"], "user": BOB | user, "partitions": ["gpu_partition"]})

    with pytest.raises(InvalidObject) as caught:
        examples.cluster(change)
    assert caught.value.path == path


def test_a_queue_names_a_partition_that_there_is() -> None:
    """Else its jobs would wait for nothing."""
    with pytest.raises(InvalidObject, match=r"^spec.jobs.queues\[q\]: there is no partition"):
        examples.cluster(lambda raw: raw["spec"]["jobs"].update(queues={"q": "nowhere"}))
