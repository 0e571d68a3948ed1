"""Reads where a pod may run: its node selector and its required node affinity, by the admin's table of node labels.

Pure; called by `readers.shapes`. What always holds: a label that the table does not have is refused by its path, since a
job on any node would not be what was asked for; wishes (preferred affinity) are listed as ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm.api.slurmcluster import Jobs, NodeLabel
from kubeslurm.errors import InvalidObject, Untranslated

Raw = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Selection:
    """The nodes that a replica takes: a GPU type, features that they all have."""

    gpu_type: str | None = None
    features: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def read(path: str, pod: Raw, jobs: Jobs) -> Selection:
    """`path` is the pod's spec."""
    found = list(_asked(path, pod, jobs))
    types = sorted({one.gpu_type for _, one in found if one.gpu_type})
    if len(types) > 1:
        raise InvalidObject(found[0][0], f"asks for {' and '.join(types)} at once")
    features = dict.fromkeys(one.feature for _, one in found if one.feature)
    return Selection(types[0] if types else None, tuple(features), tuple(_wishes(path, pod)))


def _asked(path: str, pod: Raw, jobs: Jobs) -> Iterator[tuple[str, NodeLabel]]:
    for label, value in sorted(_mapping(f"{path}.nodeSelector", pod.get("nodeSelector")).items()):
        yield _known(f"{path}.nodeSelector[{label}]", label, value, jobs)
    affinity = _mapping(f"{path}.affinity", pod.get("affinity"))
    node = _mapping(f"{path}.affinity.nodeAffinity", affinity.get("nodeAffinity"))
    where = f"{path}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms = _mapping(where, node.get(_REQUIRED)).get("nodeSelectorTerms") or []
    if not isinstance(terms, list) or len(terms) > 1:
        raise Untranslated(where, "one term at most can be asked of Slurm")
    for term in terms:
        yield from _term(f"{where}[0]", _mapping(f"{where}[0]", term), jobs)


def _term(path: str, term: Raw, jobs: Jobs) -> Iterator[tuple[str, NodeLabel]]:
    for field in sorted(term.keys() - {"matchExpressions"}):
        if term[field]:
            raise Untranslated(f"{path}.{field}", "not supported")
    for index, one in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        one = _mapping(where, one)
        values = one.get("values") or []
        if one.get("operator") != "In" or not isinstance(values, list) or len(values) != 1:
            raise Untranslated(where, "only In with one value can be asked of Slurm")
        yield _known(where, str(one.get("key")), values[0], jobs)


def _known(path: str, label: str, value: Any, jobs: Jobs) -> tuple[str, NodeLabel]:
    for one in jobs.node_labels:
        if one.label == label and one.value == value:
            return path, one
    raise Untranslated(path, f"the SlurmCluster's jobs.nodeLabels has no {label[:128]}={str(value)[:64]}")


def _wishes(path: str, pod: Raw) -> Iterator[str]:
    """What Kubernetes would try to do, and Slurm's own placement does in its way: a gang has each of its nodes once."""
    affinity = pod.get("affinity") or {}
    for kind in sorted(affinity):
        given = {key for key, value in _mapping(f"{path}.affinity.{kind}", affinity[kind]).items() if value}
        if _PREFERRED in given:
            yield f"{path}.affinity.{kind}.{_PREFERRED}"
        if _REQUIRED in given and kind == "podAntiAffinity":
            yield f"{path}.affinity.{kind}.{_REQUIRED}"
        elif _REQUIRED in given and kind != "nodeAffinity":
            raise Untranslated(f"{path}.affinity.{kind}.{_REQUIRED}", "not supported")


def _mapping(path: str, value: Any) -> Raw:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidObject(path, "an object is wanted")
    return value
