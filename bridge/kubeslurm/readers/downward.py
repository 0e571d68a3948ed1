"""Reads what a variable takes of the pod itself (the downward API): its name, its labels, its resources.

Pure; called by `readers.variables`. What always holds: what only the running task knows is a reference to a shell variable
that `scripts` sets there; what no Slurm task can know is refused by its path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import mirror_names, names, quantities, task_facts
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.expansion import Ref, Word

Raw = Mapping[str, Any]

_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']{1,316})'\]\Z")
_ADDRESSES: Final = ("status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs")


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What is known of a replica's pod before it runs. `container` is its one container."""

    job: str
    namespace: str
    template: Raw
    container: Raw


def value(path: str, source: Raw, facts: PodFacts) -> Word | None:
    """The value of `valueFrom`; None where that is no downward API. `path` ends with valueFrom."""
    given = {key: one for key, one in source.items() if one is not None}
    kind = next(iter(given), "")
    if kind not in ("fieldRef", "resourceFieldRef"):
        return None
    if len(given) > 1 or not isinstance(given[kind], dict):
        raise InvalidObject(path, "one source can stand here")
    return (_field if kind == "fieldRef" else _resource)(f"{path}.{kind}", given[kind], facts)


def _field(path: str, reference: Raw, facts: PodFacts) -> Word:
    field = str(reference.get("fieldPath"))
    where = f"{path}.fieldPath"
    if match := _KEYED.match(field):
        return _keyed(match.group(1), match.group(2), facts)
    known: dict[str, Word] = {
        "metadata.name": (Ref(task_facts.POD),),
        "metadata.namespace": (facts.namespace,),
        "spec.nodeName": (Ref(task_facts.NODE),),
        "spec.serviceAccountName": (str(facts.template["spec"].get("serviceAccountName") or "default"),),
        **{one: (Ref(task_facts.ADDRESS),) for one in _ADDRESSES},
    }
    if field not in known:
        raise Untranslated(where, f"{field[:64]!r} is not known to a Slurm task")
    return known[field]


def _keyed(kind: str, key: str, facts: PodFacts) -> Word:
    if kind == "labels":
        ours: dict[str, Word] = {
            names.LABEL_REPLICA_INDEX: (Ref(task_facts.INDEX),),
            names.LABEL_REPLICA_TYPE: (Ref(task_facts.ROLE),),
            names.LABEL_JOB_NAME: (mirror_names.label(facts.job),),
            names.LABEL_OPERATOR_NAME: (names.PYTORCHJOB_CONTROLLER,),
        }
        if key in ours:
            return ours[key]
    found = str(((facts.template.get("metadata") or {}).get(kind) or {}).get(key) or "")
    return (found,) if found else ()


def _resource(path: str, reference: Raw, facts: PodFacts) -> Word:
    """As the kubelet: divided by `divisor` and rounded up."""
    if reference.get("containerName") not in (None, "", facts.container.get("name")):
        raise InvalidObject(f"{path}.containerName", "there is no such container")
    side, _, resource = str(reference.get("resource")).partition(".")
    if side not in ("limits", "requests") or not resource:
        raise InvalidObject(f"{path}.resource", "limits.<resource> or requests.<resource> is wanted")
    found = ((facts.container.get("resources") or {}).get(side) or {}).get(resource)
    if found is None and side == "requests":
        found = ((facts.container.get("resources") or {}).get("limits") or {}).get(resource)
    if found is None:
        raise Untranslated(f"{path}.resource", f"the container has no {side}.{resource[:64]}")
    return (str(_divided(path, found, reference.get("divisor"))),)


def _divided(path: str, found: Any, divisor: Any) -> int:
    try:
        amount = quantities.parse_quantity(found)
        unit = quantities.parse_quantity(divisor or "1") or quantities.parse_quantity("1")
    except ValueError as error:
        raise InvalidObject(f"{path}.divisor", str(error)) from None
    return math.ceil(amount / unit)
