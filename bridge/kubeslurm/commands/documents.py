"""Reads the YAML files that the commands are given, and finds our objects in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from kubeslurm.api.base import Resource
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.errors import BridgeError, InvalidObject

MAX_BYTES = 16 << 20

R = TypeVar("R", bound=Resource)


def read(paths: Sequence[str]) -> list[Mapping[str, Any]]:
    """All objects in the files, `-` being stdin; lists are opened up."""
    found: list[Mapping[str, Any]] = []
    for path in paths:
        found.extend(_documents(path))
    return found


def _documents(path: str) -> Iterator[Mapping[str, Any]]:
    try:
        text = sys.stdin.read(MAX_BYTES) if path == "-" else Path(path).read_text("utf-8")
        documents = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        raise BridgeError(f"{path}: " + " ".join(str(error).split())) from None
    for document in documents:
        listed = isinstance(document, dict) and document.get("kind") == "List"
        items = document.get("items") or [] if listed else [] if document is None else [document]
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise BridgeError(f"{path}: a document is no object")
        yield from items


def named(raw: Mapping[str, Any]) -> str:
    """`NodeSet slurm/gpu-node`, as messages name an object."""
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{raw.get('kind')} {meta.get('namespace', 'default')}/{meta.get('name', '')}"


def parse(model: type[R], raw: Mapping[str, Any]) -> R:
    """The object; the complaint names it."""
    try:
        return model.parse(raw)
    except InvalidObject as error:
        raise BridgeError(f"{named(raw)}: {error}") from None


def of_kind(documents: Sequence[Mapping[str, Any]], model: type[R]) -> list[R]:
    """All objects of the kind."""
    return [parse(model, raw) for raw in documents if raw.get("kind") == model.KIND]


def labels_of(documents: Sequence[Mapping[str, Any]], namespace: str) -> Mapping[str, str] | None:
    """The labels of a namespace, where the documents hold it."""
    for raw in documents:
        meta = raw.get("metadata")
        if raw.get("kind") == "Namespace" and isinstance(meta, dict) and meta.get("name") == namespace:
            labels = meta.get("labels") or {}
            return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
    return None


def pool(documents: Sequence[Mapping[str, Any]]) -> tuple[SlurmCluster, list[NodeSet]] | None:
    """The one SlurmCluster of the documents and its NodeSets; None where there is no SlurmCluster."""
    clusters = of_kind(documents, SlurmCluster)
    if not clusters:
        return None
    if len(clusters) > 1:
        raise BridgeError(f"{len(clusters)} SlurmClusters are given; one is wanted")
    cluster = clusters[0].metadata
    nodesets = [
        one
        for one in of_kind(documents, NodeSet)
        if (one.metadata.namespace, one.spec.cluster_ref.name) == (cluster.namespace, cluster.name)
    ]
    return clusters[0], nodesets
