"""The CRDs: schemas that Kubernetes takes, and that say what the models say."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema
import pytest

from kubeslurm import crds
from kubeslurm.api.base import Resource
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.api.slurmcluster import SlurmCluster
from tests.unit import examples
from tests.unit.examples import Raw

KINDS: dict[str, type[Resource]] = {
    "crds/slurmclusters.yaml": SlurmCluster,
    "crds/nodesets.yaml": NodeSet,
    "files/pytorchjobs.yaml": PyTorchJob,
}
NOT_STRUCTURAL = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title", "const", "definitions"}


def schema(file: str) -> Raw:
    """The schema of a kind's one version."""
    (version,) = crds.FILES[file]()["spec"]["versions"]
    found: Raw = version["schema"]["openAPIV3Schema"]
    return found


def parts(one: Raw, path: str = "") -> Iterator[tuple[str, Raw]]:
    """The schema and all schemas in it, with their paths."""
    yield path, one
    for name, child in one.get("properties", {}).items():
        yield from parts(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(one.get(key), dict):
            yield from parts(one[key], f"{path}[]")


def with_defaults(value: Any, one: Raw) -> Any:
    """What the API server makes of a value: defaults filled in, inside those given too."""
    if isinstance(value, list):
        return [with_defaults(item, one.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    fields = one.get("properties", {})
    filled = {name: deepcopy(field["default"]) for name, field in fields.items() if "default" in field} | value
    return {name: with_defaults(item, fields.get(name, {})) for name, item in filled.items()}


@pytest.mark.parametrize("file", list(KINDS))
def test_schemas_are_structural(file: str) -> None:
    """Every part has a type, and none of what Kubernetes refuses."""
    for path, one in parts(schema(file)):
        assert not NOT_STRUCTURAL & set(one), path
        assert "type" in one or one.get("x-kubernetes-preserve-unknown-fields"), path
        assert not ("properties" in one and "additionalProperties" in one), path


@pytest.mark.parametrize(("file", "kind"), list(KINDS.items()))
def test_the_examples_are_valid(file: str, kind: type[Resource]) -> None:
    """With every default filled in, as the API server would."""
    filled = with_defaults(examples.raw(kind.KIND), schema(file))
    jsonschema.validate(filled, schema(file))


@pytest.mark.parametrize(("file", "kind"), list(KINDS.items()))
def test_a_schemas_defaults_are_those_of_the_model(file: str, kind: type[Resource]) -> None:
    """An object from a file, which no API server filled in, means the same."""
    raw = examples.raw(kind.KIND)
    assert kind.parse(with_defaults(raw, schema(file))) == kind.parse(raw)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda raw: raw["spec"].update(replicas=-1), "spec.replicas"),
        (lambda raw: raw["spec"]["gpu"].update(type="a;b"), "spec.gpu.type"),
        (lambda raw: raw["spec"]["gpu"].update(devices="/dev/x\nNodeName=y"), "spec.gpu.devices"),
        (lambda raw: raw["spec"].pop("clusterRef"), "spec"),
    ],
)
def test_a_bad_nodeset_is_refused_by_the_schema_already(change: examples.Change, path: str) -> None:
    """kubectl tells at once what the operator would refuse."""
    found = jsonschema.Draft202012Validator(schema("crds/nodesets.yaml")).iter_errors(examples.raw("NodeSet", change))
    assert [".".join(map(str, error.absolute_path)) for error in found] == [path]


def test_nodesets_can_be_scaled() -> None:
    """`kubectl scale` needs three paths, and each must be in the schema."""
    (version,) = crds.node_set()["spec"]["versions"]
    known = {path for path, _ in parts(schema("crds/nodesets.yaml"))}
    assert set(version["subresources"]) == {"status", "scale"}
    assert set(version["subresources"]["scale"].values()) <= known
