"""Whose PyTorchJob is it, with training operators beside us?"""

from __future__ import annotations

from typing import Any

import pytest

from kubeslurm import names
from kubeslurm.ownership import MULTIKUEUE, Rival, is_ours, rival

NOWHERE = Rival()
EVERYWHERE = Rival(everywhere=True)


def job(manager: str | None = None, *, namespace: str = "research", adopt: bool = False) -> dict[str, Any]:
    """A PyTorchJob."""
    labels = {"slurm.bridge/adopt": "true"} if adopt else {}
    policy = {} if manager is None else {"managedBy": manager}
    return {"metadata": {"name": "x", "namespace": namespace, "labels": labels}, "spec": {"runPolicy": policy}}


def deployment(*args: str, env: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A training operator's."""
    container = {"command": ["/manager"], "args": list(args), "env": env or []}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize("around", [NOWHERE, EVERYWHERE])
@pytest.mark.parametrize(
    ("manager", "adopt", "ours"),
    [
        (names.MANAGED_BY, False, True),
        ("kubeflow.org/training-operator", True, False),
        (MULTIKUEUE, False, False),
        (MULTIKUEUE, True, True),
        ("", True, False),
        ("somebody.example/else", True, False),
    ],
)
def test_a_named_manager_decides(manager: str, adopt: bool, ours: bool, around: Rival) -> None:
    """Whoever runs here; multikueue's only with our label."""
    assert is_ours(job(manager, adopt=adopt), in_tenant=True, rival=around) is ours


def test_a_job_adopted_from_multikueue_needs_a_tenant() -> None:
    """Else it would be refused, and another cluster may be waiting for it."""
    assert not is_ours(job(MULTIKUEUE, adopt=True), in_tenant=False, rival=NOWHERE)


@pytest.mark.parametrize(
    ("around", "ours"), [(NOWHERE, True), (EVERYWHERE, False), (Rival(frozenset({"plain"})), True)]
)
def test_nobodys_job_is_ours_where_no_training_operator_looks(around: Rival, ours: bool) -> None:
    """It takes every job that names no manager in the namespaces that it sees."""
    assert is_ours(job(), in_tenant=True, rival=around) is ours


def test_a_training_operator_of_one_namespace_takes_that_one() -> None:
    """The flag limits it."""
    around = rival([deployment("--namespace=plain")])
    assert not is_ours(job(namespace="plain"), in_tenant=True, rival=around)
    assert is_ours(job(namespace="research"), in_tenant=True, rival=around)


@pytest.mark.parametrize(
    ("args", "env", "expected"),
    [
        ((), None, Rival(everywhere=True)),
        (("--namespace=plain",), None, Rival(frozenset({"plain"}))),
        (("-namespace", "plain"), None, Rival(frozenset({"plain"}))),
        (("--namespace=one", "--namespace=two"), None, Rival(frozenset({"two"}))),
        (("--namespace",), None, Rival(everywhere=True)),
        ((), [{"name": "KUBEFLOW_NAMESPACE", "value": "plain"}], Rival(frozenset({"plain"}))),
        (("--namespace=two",), [{"name": "KUBEFLOW_NAMESPACE", "value": "one"}], Rival(frozenset({"two"}))),
        ((), [{"name": "KUBEFLOW_NAMESPACE", "valueFrom": {"fieldRef": {}}}], Rival(everywhere=True)),
        (("--webhook-service-name=namespace",), None, Rival(everywhere=True)),
    ],
)
def test_the_scope_is_read_of_the_deployment(
    args: tuple[str, ...], env: list[dict[str, Any]] | None, expected: Rival
) -> None:
    """As Go's flag package reads it; what can't be told is everywhere."""
    assert rival([deployment(*args, env=env)]) == expected


def test_several_training_operators_add_up() -> None:
    """Two of one namespace each, or one of all."""
    two = [deployment("--namespace=a"), deployment("--namespace=b")]
    assert rival(two) == Rival(frozenset({"a", "b"}))
    assert rival([*two, deployment()]).takes("c")


@pytest.mark.parametrize("broken", [{}, {"spec": {}}, {"spec": {"template": {"spec": {"containers": None}}}}])
def test_a_deployment_without_containers_is_taken_for_everywhere(broken: dict[str, Any]) -> None:
    """Fail closed."""
    assert rival([broken]) == Rival(everywhere=True)
