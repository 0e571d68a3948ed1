"""The kopf side: which kinds are watched, and that each event lands in the store. Nothing else happens in a handler.

Called by `__main__`, which runs kopf with this registry. What always holds: kopf writes nothing onto users' objects (no
annotations, no finalizers): only raw event handlers are used, and the loops do the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from kubeslurm import names
from kubeslurm_operator.engine import Engine
from kubeslurm_operator.kube import NAMESPACE, NODE_SET, POD, PYTORCH_JOB, SLURM_CLUSTER, Kind

LOG = logging.getLogger(__name__)

MANAGED = f"{names.LABEL_MANAGED_BY}={names.MANAGER}"
WATCHED = (SLURM_CLUSTER, NODE_SET, PYTORCH_JOB, POD, NAMESPACE)

EventHandler = Callable[..., Awaitable[None]]


class NoEssence(kopf.DiffBaseStorage):
    """What kopf would compare an object with: nothing. It copies each object whole for that, and no handler of ours asks."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """No part of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        """None was stored."""
        return None

    def store(self, **_: Any) -> None:
        """Nothing is."""


def configure(settings: kopf.OperatorSettings) -> None:
    """Time-outs, selectors and names; see docs/architecture.md for why one replica needs no peering."""
    settings.peering.standalone = True
    settings.persistence.finalizer = f"{names.GROUP}/kopf"  # never set; ours would be taken away by kopf
    settings.persistence.diffbase_storage = NoEssence()
    settings.posting.enabled = False
    settings.networking.connect_timeout, settings.networking.request_timeout = 10, 30
    settings.watching.connect_timeout, settings.watching.server_timeout = 10, 300
    settings.watching.client_timeout = 330
    settings.watching.label_selectors["pods"] = MANAGED
    settings.queueing.worker_limit = None


def registry(connect: Callable[[], Awaitable[Engine]]) -> kopf.OperatorRegistry:
    """The handlers. `connect` makes the engine once kopf's loop runs."""
    handlers = kopf.OperatorRegistry()
    box: dict[str, Engine] = {}

    @kopf.on.login(registry=handlers)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.startup(registry=handlers)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        box["engine"] = await connect()
        await box["engine"].start()

    @kopf.on.cleanup(registry=handlers)
    async def stop(**_: Any) -> None:
        await box["engine"].stop()

    @kopf.on.probe(registry=handlers, id="engine")
    async def probe(**_: Any) -> str:
        return box["engine"].health()

    for kind in WATCHED:
        _watch(handlers, kind, box)
    return handlers


def _watch(handlers: kopf.OperatorRegistry, kind: Kind, box: dict[str, Engine]) -> None:
    api = kind.api if "/" in kind.api else f"/{kind.api}"
    group, version = api.rsplit("/", 1)

    @kopf.on.event(group, version, kind.plural, registry=handlers, id=f"store-{kind.plural}")
    async def store(event: kopf.RawEvent, **_: Any) -> None:
        raw = dict(event["object"])
        if event["type"] == "DELETED":
            box["engine"].store.drop(kind, raw)
        else:
            box["engine"].store.put(kind, raw)
        await asyncio.sleep(0)
