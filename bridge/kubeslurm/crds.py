"""Makes the CRDs out of the models: `python -m kubeslurm.crds DIRECTORY` writes one YAML file each.

Run by `make docs`; a test holds the files in helm/ to it. What always holds: the schemas are structural (no $ref, no
anyOf, no title), each field has a description, and what the schema defaults the model defaults alike.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from kubeslurm import names
from kubeslurm.api.base import Resource
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster

Raw = dict[str, Any]

_DROPPED: Final = frozenset(
    {"title", "additionalProperties", "discriminator", "examples", "$defs", "const", "propertyNames"}
)
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_GPU_RULE: Final[Raw] = {
    "rule": "!has(self.gpu) || !has(self.gpu.count) || self.gpu.count > 0",
    "message": "gpu.count must be above 0",
}
_CLUSTER_REF_RULE: Final[Raw] = {
    "rule": "self.clusterRef == oldSelf.clusterRef",
    "message": "clusterRef can't be changed: nodes don't move between clusters",
}
_ORDINALS_RULE: Final[Raw] = {
    "rule": "self.ordinals == oldSelf.ordinals",
    "message": "ordinals can't be changed: nodes would change their names",
}
_DEFAULT_RULE: Final[Raw] = {
    "rule": "self.partitions.filter(p, has(p.default) && p.default).size() <= 1",
    "message": "only one partition can be the default",
}


def _column(name: str, kind: str, path: str, description: str, priority: int = 0) -> Raw:
    column: Raw = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | {"priority": priority} if priority else column


def _ready(kind: str) -> str:
    return f".status.conditions[?(@.type=='Ready')].{kind}"


AGE: Final = _column("Age", "date", ".metadata.creationTimestamp", "Since when it exists.")

CLUSTER_COLUMNS: Final = [
    _column("Ready", "string", _ready("status"), "Does slurmctld answer and run on the config?"),
    _column("Slurm", "string", ".status.slurmVersion", "Slurm's version."),
    _column("Nodes", "integer", ".status.nodes", "Slurm nodes."),
    _column("GPUs", "integer", ".status.gpus.total", "GPUs in all."),
    _column("In-Use", "integer", ".status.gpus.allocated", "GPUs that jobs hold."),
    _column("Running", "integer", ".status.jobs.running", "Jobs that run."),
    _column("Pending", "integer", ".status.jobs.pending", "Jobs that wait."),
    _column("Reason", "string", _ready("reason"), "Why it is, or is not, ready.", 1),
    AGE,
]
NODESET_COLUMNS: Final = [
    _column("Cluster", "string", ".spec.clusterRef.name", "The SlurmCluster."),
    _column("Desired", "integer", ".spec.replicas", "Nodes wanted."),
    _column("Registered", "integer", ".status.readyReplicas", "Nodes registered with Slurm."),
    _column("Idle", "integer", ".status.idle", "Nodes that run nothing."),
    _column("Allocated", "integer", ".status.allocated", "Nodes that jobs hold."),
    _column("Drained", "integer", ".status.drained", "Nodes that take no new job."),
    _column("Down", "integer", ".status.down", "Nodes that are down."),
    _column("GPUs", "integer", ".status.gpus.total", "GPUs in all."),
    _column("Ready", "string", _ready("status"), "Have all nodes registered?"),
    _column("Message", "string", _ready("message"), "What is so.", 1),
    AGE,
]


def flatten(schema: Raw, definitions: Raw | None = None) -> Raw:
    """A structural schema out of pydantic's: references inlined, `X or null` as X, what Kubernetes refuses dropped."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        target: Raw = definitions[schema["$ref"].rsplit("/", 1)[1]]
        schema = target | {key: value for key, value in schema.items() if key != "$ref"}
    if "allOf" in schema and len(schema["allOf"]) == 1:
        schema = schema["allOf"][0] | {key: value for key, value in schema.items() if key != "allOf"}
        return flatten(schema, definitions)
    if "anyOf" in schema:
        schema = _without_null(schema)
        return flatten(schema, definitions)
    result = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if "default" in result:
        result["default"] = _without_nulls(result["default"])
        if result["default"] is None:
            del result["default"]
    return _children(result, schema, definitions)


def _without_null(schema: Raw) -> Raw:
    options = [one for one in schema["anyOf"] if one.get("type") != "null"]
    if len(options) != 1:
        raise ValueError(f"a union can't be a structural schema: {schema}")
    only: Raw = options[0]
    return only | {key: value for key, value in schema.items() if key != "anyOf"}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return value


def _children(result: Raw, schema: Raw, definitions: Raw) -> Raw:
    if "properties" in result:
        result["properties"] = {name: flatten(one, definitions) for name, one in result["properties"].items()}
    if "items" in result:
        result["items"] = flatten(result["items"], definitions)
    free = schema.get("additionalProperties")
    if isinstance(free, dict) and not result.get(_PRESERVE):
        result["additionalProperties"] = flatten(free, definitions)
    return result


def _schema(model: type[Resource], rules: list[Raw]) -> Raw:
    whole = flatten(model.model_json_schema(by_alias=True, mode="validation"))
    spec, status = whole["properties"]["spec"], whole["properties"]["status"]
    status.pop("default", None)
    spec["x-kubernetes-validations"] = rules
    status["properties"]["conditions"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return {
        "type": "object",
        "description": (model.__doc__ or "").strip(),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Always " + model.API + "."},
            "kind": {"type": "string", "description": "Always " + model.KIND + "."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _crd(group: str, version: Raw, kind: str, plural: str, short: list[str]) -> Raw:
    names_of = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    if short:
        names_of["shortNames"] = short  # type: ignore[assignment]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names_of, "versions": [version]},
    }


def _version(name: str, schema: Raw, columns: list[Raw], subresources: Raw) -> Raw:
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
        "subresources": {"status": {}} | subresources,
    }


def slurm_cluster() -> Raw:
    """slurmclusters.slurm.bridge."""
    version = _version(names.VERSION, _schema(SlurmCluster, [_DEFAULT_RULE]), CLUSTER_COLUMNS, {})
    return _crd(names.GROUP, version, "SlurmCluster", "slurmclusters", ["slc"])


def node_set() -> Raw:
    """nodesets.slurm.bridge, with the scale subresource."""
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    rules = [_GPU_RULE, _CLUSTER_REF_RULE, _ORDINALS_RULE]
    version = _version(names.VERSION, _schema(NodeSet, rules), NODESET_COLUMNS, {"scale": scale})
    return _crd(names.GROUP, version, "NodeSet", "nodesets", ["nss"])


def pytorch_job() -> Raw:
    """pytorchjobs.kubeflow.org, for clusters without the training operator; the spec is left to the reader."""
    text = {"type": "string"}
    count = {"type": "integer", "format": "int32"}
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": dict.fromkeys(
            ("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime"), text
        ),
    }
    replica_status = {
        "type": "object",
        "properties": {"active": count, "succeeded": count, "failed": count, "selector": text},
    }
    status = {
        "type": "object",
        "properties": {
            "conditions": {"type": "array", "items": condition},
            "replicaStatuses": {"type": "object", "additionalProperties": replica_status},
            **{field: text | {"format": "date-time"} for field in ("startTime", "completionTime", "lastReconcileTime")},
        },
    }
    replica = {"type": "object", _PRESERVE: True, "properties": {"replicas": count, "restartPolicy": text}}
    spec = {
        "type": "object",
        _PRESERVE: True,
        "required": ["pytorchReplicaSpecs"],
        "properties": {"pytorchReplicaSpecs": {"type": "object", "additionalProperties": replica}},
    }
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    columns = [_column("State", "string", ".status.conditions[-1:].type", "The newest condition."), AGE]
    scale = {
        "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Worker.active",
        "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
    }
    version = _version("v1", schema, columns, {"scale": scale})
    return _crd("kubeflow.org", version, "PyTorchJob", "pytorchjobs", [])


FILES: Final = {
    "crds/slurmclusters.yaml": slurm_cluster,
    "crds/nodesets.yaml": node_set,
    "files/pytorchjobs.yaml": pytorch_job,
}
"""Below helm/kubeslurm."""


def text(name: str) -> str:
    """The content of one of FILES."""
    head = "# Made by `python -m kubeslurm.crds` out of the models; changes made here are lost.\n"
    return head + str(yaml.safe_dump(FILES[name](), sort_keys=False, width=120))


def main() -> None:
    """Write the files below the directory given."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "helm/kubeslurm")
    for name in FILES:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(name))


if __name__ == "__main__":
    main()
