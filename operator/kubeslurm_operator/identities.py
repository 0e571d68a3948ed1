"""Does slurmctld know the users that jobs are to run as? Says so in IdentityResolved, and holds submissions until it does.

Owned by the cluster's runtime; the pool loop looks each turn, the job loop asks before each submission. What always holds:
a user counts as known only when the list of users in slurmctld's pod is the one that holds it (slurmctld takes a job of an
unknown user and then never runs it), and a namespace that two tenants claim is told of.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kubeslurm import manifests, names, tenants
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.api.tenants import User
from kubeslurm.conditions import Verdict
from kubeslurm_operator.kube import NAMESPACE, Kube, KubeError
from kubeslurm_operator.store import Key, Store

if TYPE_CHECKING:
    from kubeslurm_operator.accounting import AccountingLoop

LOG = logging.getLogger(__name__)


class Identities:
    """See the module."""

    def __init__(self, kube: Kube, store: Store, key: Key, accounting: AccountingLoop) -> None:
        self._kube = kube
        self._store = store
        self._key = key
        self._accounting = accounting
        self._known: frozenset[User] = frozenset()
        self._digest = ""
        self._seen: object = None
        self._told = ""

    def unresolved(self, user: User) -> str:
        """Why a job of this user can't be submitted yet; empty when it can."""
        if user not in self._known:
            return f"slurmctld does not know user {user.name} yet"
        return self._accounting.unsettled()

    async def look(self, cluster: SlurmCluster) -> Verdict:
        """The condition as it is now."""
        wanted = manifests.users_digest(cluster)
        if self._digest != wanted and await self._shown() == wanted:
            self._digest, self._known = wanted, frozenset(tenant.user for tenant in cluster.spec.tenants)
            LOG.info("slurmctld of %s knows %d users of tenants", self._key, len(self._known))
        if self._digest != wanted:
            text = "the kubelet has not brought the tenants' users into slurmctld's pod yet"
            return Verdict(names.IDENTITY_RESOLVED, False, "UsersPropagating", text)
        if disputes := self._disputes(cluster):
            return Verdict(names.IDENTITY_RESOLVED, False, "NamespaceClaimedTwice", disputes)
        return Verdict(names.IDENTITY_RESOLVED, True, "Resolved", "slurmctld knows the tenants' users")

    def _disputes(self, cluster: SlurmCluster) -> str:
        """Looked at anew when the tenants or the namespaces have changed: there can be many of both."""
        found = self._store.all(NAMESPACE)
        seen = (cluster.spec.tenants, [raw["metadata"].get("resourceVersion") for raw in found])
        if seen != self._seen:
            namespaces = {raw["metadata"]["name"]: raw["metadata"].get("labels") or {} for raw in found}
            self._seen, self._told = seen, tenants.disputes(cluster, namespaces)
        return self._told

    async def _shown(self) -> str:
        """The digest of the list of users that slurmctld's pod has now."""
        pod = manifests.controller_pod_name(self._key.name)
        command = ["cat", f"{manifests.USERS_DIR}/{manifests.USERS_DIGEST}"]
        try:
            code, text = await self._kube.execute(self._key.namespace, pod, manifests.CONTROLLER_CONTAINER, command)
        except KubeError as error:
            LOG.debug("users of %s: %s", self._key, error)
            return ""
        return text.strip() if code == 0 else ""
