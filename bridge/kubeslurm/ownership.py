"""Whose PyTorchJob is it: ours, or another controller's? Pure; asked before anything of a job is read.

Source: the training operator skips every value of managedBy but its own (ManagedByExternalController).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubeslurm import names

TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
LABEL_ADOPT: Final = f"{names.GROUP}/adopt"


def is_ours(raw: Mapping[str, Any], *, in_tenant: bool, rival: bool) -> bool:
    """`in_tenant`: its namespace is a tenant's. `rival`: a training operator runs here, and takes jobs that name nobody."""
    policy = (raw.get("spec") or {}).get("runPolicy")
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    if manager is None:
        return not rival
    if manager == MULTIKUEUE:
        return in_tenant and (raw["metadata"].get("labels") or {}).get(LABEL_ADOPT) == "true"
    return bool(manager == names.MANAGED_BY)
