"""The well-known names: every label, annotation, finalizer, condition type and reason prefix, once.

Read by all layers above the REST client. What stands here is part of the user's interface: objects on running
clusters carry these words, so a name is never changed, only added.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "slurm.bridge"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

MANAGER: Final = "kubeslurm"
"""Field manager, `app.kubernetes.io/managed-by`, and the component of our events."""

# Labels
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_CLUSTER: Final = f"{GROUP}/cluster"
LABEL_NODESET: Final = f"{GROUP}/nodeset"
LABEL_ORDINAL: Final = f"{GROUP}/ordinal"
LABEL_VIRTUAL: Final = f"{GROUP}/virtual-node"
LABEL_JOB_ID: Final = f"{GROUP}/job-id"

# The training operator's labels (kubeflow.org/v1), written on mirror pods as it writes them on real ones
LABEL_OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
LABEL_JOB_NAME: Final = "training.kubeflow.org/job-name"
LABEL_REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
LABEL_REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
LABEL_JOB_ROLE: Final = "training.kubeflow.org/job-role"
PYTORCHJOB_CONTROLLER: Final = "pytorchjob-controller"

# Annotations
ANNOTATION_CONFIG_DIGEST: Final = f"{GROUP}/config-digest"
ANNOTATION_USERS_DIGEST: Final = f"{GROUP}/users-digest"
ANNOTATION_TEMPLATE_DIGEST: Final = f"{GROUP}/template-digest"
ANNOTATION_STRICT_RENDEZVOUS: Final = f"{GROUP}/strict-rendezvous"
ANNOTATION_LAUNCHER: Final = f"{GROUP}/launcher"
ANNOTATION_LAUNCHER_REASON: Final = f"{GROUP}/launcher-reason"
ANNOTATION_JOB_ID: Final = f"{GROUP}/job-id"
ANNOTATION_SUBMISSION: Final = f"{GROUP}/submission"
ANNOTATION_ATTEMPT: Final = f"{GROUP}/attempt"
ANNOTATION_RETRIES: Final = f"{GROUP}/retries"
ANNOTATION_ENDING: Final = f"{GROUP}/ending"
ANNOTATION_CLUSTER: Final = f"{GROUP}/cluster"

# Annotations by which a job's owner asks for more, within the tenant's bounds
ANNOTATION_PARTITION: Final = f"{GROUP}/partition"
ANNOTATION_ACCOUNT: Final = f"{GROUP}/account"
ANNOTATION_QOS: Final = f"{GROUP}/qos"
ANNOTATION_TIME: Final = f"{GROUP}/time"
ANNOTATION_CONSTRAINT: Final = f"{GROUP}/constraint"
ANNOTATION_RESERVATION: Final = f"{GROUP}/reservation"
ANNOTATION_EXCLUSIVE: Final = f"{GROUP}/exclusive"
ANNOTATION_NODES: Final = f"{GROUP}/nodes"
ANNOTATION_DEPENDENCY: Final = f"{GROUP}/dependency"
ANNOTATION_SIGNAL: Final = f"{GROUP}/signal"
REQUESTS: Final = frozenset(
    {
        ANNOTATION_SIGNAL,
        ANNOTATION_PARTITION,
        ANNOTATION_ACCOUNT,
        ANNOTATION_QOS,
        ANNOTATION_TIME,
        ANNOTATION_CONSTRAINT,
        ANNOTATION_RESERVATION,
        ANNOTATION_EXCLUSIVE,
        ANNOTATION_NODES,
        ANNOTATION_DEPENDENCY,
    }
)

FINALIZER: Final = f"{GROUP}/finalizer"
MANAGED_BY: Final = f"{GROUP}/kubeslurm"
"""The value of `spec.runPolicy.managedBy` that hands a training job to us."""

TAINT_VIRTUAL: Final = f"{GROUP}/virtual-node"

REASON_PREFIX: Final = "kubeslurm: "
"""Begins the reason of each drain that we make. A drain with another reason is somebody else's: never lifted."""

# Condition types
READY: Final = "Ready"
SLURM_REACHABLE: Final = "SlurmReachable"
CONFIG_APPLIED: Final = "ConfigApplied"
IDENTITY_RESOLVED: Final = "IdentityResolved"
ACCOUNTING_READY: Final = "AccountingReady"
