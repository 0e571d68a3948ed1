"""Kubernetes events that we post on users' objects: one per thing that happened, not one per tick.

Called by the loops. What always holds: the same words on the same object are posted once in ten minutes, and a failure
to post is logged and changes nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kubeslurm import names
from kubeslurm_operator.kube import Kube, KubeError, Raw

LOG = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
MAX_MESSAGE = 1024


class Events:
    """The poster, with its memory of what it has said."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._said: dict[str, float] = {}

    async def normal(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Something happened as it should."""
        await self.post(about, "Normal", reason, message)

    async def warning(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Somebody should look at this."""
        await self.post(about, "Warning", reason, message)

    async def post(self, about: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        """Post it unless it was said lately."""
        fingerprint = hashlib.sha256("\0".join((about["metadata"]["uid"], kind, reason, message)).encode()).hexdigest()
        now = time.monotonic()
        if now - self._said.get(fingerprint, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._forget(now - REPEAT_SECONDS)
        self._said[fingerprint] = now
        try:
            await self._kube.create(_body(about, kind, reason, message[:MAX_MESSAGE], fingerprint))
        except KubeError as error:
            LOG.warning("event %s not posted: %s", reason, error)

    def _forget(self, until: float) -> None:
        """The oldest stand first."""
        while self._said and next(iter(self._said.values())) <= until:
            del self._said[next(iter(self._said))]


def _body(about: Mapping[str, Any], kind: str, reason: str, message: str, fingerprint: str) -> Raw:
    meta = about["metadata"]
    stamp = datetime.now(UTC)
    when = stamp.strftime("%Y-%m-%dT%H:%M:%SZ")
    involved = {field: about.get(field) for field in ("apiVersion", "kind")}
    involved |= {field: meta.get(field) for field in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{meta['name'][:200]}.{fingerprint[:8]}{int(stamp.timestamp() * 1000) & 0xFFFFFFFF:08x}",
            "namespace": meta.get("namespace", "default"),
        },
        "involvedObject": {field: value for field, value in involved.items() if value},
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": names.MANAGER},
        "reportingComponent": names.MANAGER,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
