"""Whose PyTorchJob is it: ours, or another controller's? Pure; asked before anything of a job is read.

Source: the training operator skips every value of managedBy but its own (ManagedByExternalController).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import names

TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
LABEL_ADOPT: Final = f"{names.GROUP}/adopt"


_SCOPE_VARIABLE: Final = "KUBEFLOW_NAMESPACE"
_SCOPE_FLAG: Final = "namespace"


@dataclass(frozen=True, slots=True)
class Rival:
    """Where a training operator beside us takes the jobs that name no manager: nowhere, in some namespaces, everywhere."""

    namespaces: frozenset[str] = frozenset()
    everywhere: bool = False

    def takes(self, namespace: str) -> bool:
        """Would it take such a job there?"""
        return self.everywhere or namespace in self.namespaces


def rival(deployments: Iterable[Mapping[str, Any]]) -> Rival:
    """By the training operators' Deployments: each sees the namespace of its flag or variable, else all."""
    scopes = [_scope(one) for one in deployments]
    return Rival(frozenset(one for one in scopes if one), everywhere="" in scopes)


def _scope(deployment: Mapping[str, Any]) -> str:
    """The one namespace that it is limited to; "" for all, also where it can't be told."""
    scope = ""
    for container in (((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or ():
        variables = {one.get("name"): one.get("value") or "" for one in container.get("env") or ()}
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        scope = next(_flags(words), variables.get(_SCOPE_VARIABLE, "")) or scope
    return scope


def _flags(words: list[str]) -> Iterator[str]:
    """Values of the flag, the last one first, as Go's flag package takes it: one dash or two, `=` or a word of its own."""
    for index in reversed(range(len(words))):
        name, equals, value = words[index].partition("=")
        if words[index].startswith("-") and name.lstrip("-") == _SCOPE_FLAG:
            yield value if equals else next(iter(words[index + 1 :]), "")


def is_ours(raw: Mapping[str, Any], *, in_tenant: bool, rival: Rival) -> bool:
    """`in_tenant`: its namespace is a tenant's. `rival`: the training operators that run here."""
    policy = (raw.get("spec") or {}).get("runPolicy")
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    if manager is None:
        return not rival.takes(raw["metadata"]["namespace"])
    if manager == MULTIKUEUE:
        return in_tenant and (raw["metadata"].get("labels") or {}).get(LABEL_ADOPT) == "true"
    return bool(manager == names.MANAGED_BY)
