"""The one way to the Kubernetes API, for everything that kopf does not watch for us.

Objects go in and out as plain dicts (decoding into the client's models costs 40 times as much). Called by the
adapters below `engine`. What always holds: each call has a timeout, an error is a `KubeError` with the server's status
and reason and never a token, and nothing is retried here; the loops that call are level-triggered and come again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.stream import WsApiClient
from kubernetes.aio.stream.ws_client import ERROR_CHANNEL, STDERR_CHANNEL, STDOUT_CHANNEL, get_websocket_url

from kubeslurm import names

Raw = dict[str, Any]

TIMEOUT_SECONDS = 15.0
MAX_FRAME = 4 * 2**20
MAX_FOLLOWERS = 256
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"


class KubeError(Exception):
    """The API server refused or could not be reached. `status` is the HTTP status, 0 when no answer came."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def gone(self) -> bool:
        """The object is not there."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """It exists already, or it changed under us: read again and decide anew."""
        return self.status == 409


@dataclass(frozen=True, slots=True)
class Kind:
    """Where objects of a kind live."""

    api: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path, each part quoted."""
        root = f"/api/{self.api}" if "/" not in self.api else f"/apis/{self.api}"
        parts = [root]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *(quote(part, safe="") for part in (name, subresource) if part)]
        return "/".join(parts)


POD = Kind("v1", "pods")
SERVICE = Kind("v1", "services")
CONFIG_MAP = Kind("v1", "configmaps")
SECRET = Kind("v1", "secrets")
NODE = Kind("v1", "nodes", namespaced=False)
NAMESPACE = Kind("v1", "namespaces", namespaced=False)
STATEFUL_SET = Kind("apps/v1", "statefulsets")
DEPLOYMENT = Kind("apps/v1", "deployments")
LEASE = Kind("coordination.k8s.io/v1", "leases")
EVENT = Kind("v1", "events")
SLURM_CLUSTER = Kind(names.API_VERSION, "slurmclusters")
NODE_SET = Kind(names.API_VERSION, "nodesets")
PYTORCH_JOB = Kind("kubeflow.org/v1", "pytorchjobs")

TOKEN_REVIEW = Kind("authentication.k8s.io/v1", "tokenreviews", namespaced=False)
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "subjectaccessreviews", namespaced=False)

_KINDS: Mapping[tuple[str, str], Kind] = {
    ("v1", "Pod"): POD,
    ("v1", "Service"): SERVICE,
    ("v1", "ConfigMap"): CONFIG_MAP,
    ("v1", "Secret"): SECRET,
    ("v1", "Node"): NODE,
    ("v1", "Event"): EVENT,
    ("apps/v1", "StatefulSet"): STATEFUL_SET,
    ("apps/v1", "Deployment"): DEPLOYMENT,
    ("coordination.k8s.io/v1", "Lease"): LEASE,
    ("authentication.k8s.io/v1", "TokenReview"): TOKEN_REVIEW,
    ("authorization.k8s.io/v1", "SubjectAccessReview"): ACCESS_REVIEW,
}


def kind_of(raw: Mapping[str, Any]) -> Kind:
    """The kind of an object that we made ourselves."""
    return _KINDS[raw["apiVersion"], raw["kind"]]


class Kube:
    """A connection to one API server; an async context manager."""

    def __init__(self, configuration: client.Configuration) -> None:
        configuration.connection_pool_maxsize = 32
        # else aiohttp reads ~/.netrc and the proxy variables anew, in a thread, for each request
        configuration.client_session_kwargs = {"trust_env": False}
        self._configuration = configuration
        self._api = client.ApiClient(configuration)
        self._streams = WsApiClient(configuration)
        # programs that run for hours take no connection from those that end in a moment
        self._followers = WsApiClient(configuration)
        self._followers.rest_client.maxsize = 2 * MAX_FOLLOWERS

    @classmethod
    async def connect(cls) -> Kube:
        """By the pod's service account, or by the kubeconfig outside a cluster."""
        configuration = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)
        return cls(configuration)

    async def close(self) -> None:
        """Give the connections back."""
        await self._api.close()
        await self._streams.close()
        await self._followers.close()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Raw:
        """One object."""
        return await self._call("GET", kind.path(namespace, name))

    async def find(self, kind: Kind, namespace: str | None, name: str) -> Raw | None:
        """One object, or None where there is none."""
        try:
            return await self.get(kind, namespace, name)
        except KubeError as error:
            if error.gone:
                return None
            raise

    async def list(self, kind: Kind, namespace: str | None = None, *, labels: str = "") -> list[Raw]:
        """All objects that carry the labels (a selector)."""
        query = {"labelSelector": labels} if labels else {}
        answer = await self._call("GET", kind.path(namespace), query=query)
        items: list[Raw] = answer.get("items") or []
        return items

    async def create(self, body: Raw) -> Raw:
        """A new object; a conflict says that it exists."""
        kind = kind_of(body)
        return await self._call("POST", kind.path(body["metadata"].get("namespace")), body=body)

    async def apply(self, body: Raw) -> Raw:
        """Server-side apply as our field manager; what others manage in the object is left alone."""
        meta = body["metadata"]
        path = kind_of(body).path(meta.get("namespace"), meta["name"])
        query = {"fieldManager": names.MANAGER, "force": "true"}
        return await self._call("PATCH", path, query=query, body=body, content_type=_APPLY)

    async def patch(self, kind: Kind, namespace: str | None, name: str, patch: Raw, *, status: bool = False) -> Raw:
        """A JSON merge patch, on the status subresource when asked."""
        path = kind.path(namespace, name, "status" if status else None)
        query = {"fieldManager": names.MANAGER}
        return await self._call("PATCH", path, query=query, body=patch, content_type=_MERGE)

    async def delete(
        self, kind: Kind, namespace: str | None, name: str, *, uid: str | None = None, grace: int | None = None
    ) -> bool:
        """Delete it, only when it still is the object of that uid; False when it was gone already."""
        body: Raw = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            await self._call("DELETE", kind.path(namespace, name), body=body)
        except KubeError as error:
            if error.gone or (uid and error.conflict):
                return False
            raise
        return True

    async def execute(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in a container: its exit code and what it wrote (stdout and stderr together)."""
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in command]
        url = f"{self._configuration.host}{POD.path(namespace, pod, 'exec')}?{urlencode(query)}"
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._exchange(url)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(0, "ExecFailed", f"pod {namespace}/{pod}: {_text(error)}") from None

    async def _exchange(self, url: str) -> tuple[int, str]:
        output: list[bytes] = []
        code = -1
        connection = await self._streams.request("GET", url, headers=await self._headers(), _preload_content=False)
        async with connection as socket:
            async for message in socket:
                channel, data = message.data[0], message.data[1:]
                if channel in (STDOUT_CHANNEL, STDERR_CHANNEL):
                    output.append(data)
                elif channel == ERROR_CHANNEL:
                    code = WsApiClient.parse_error_data(data.decode())
        return code, b"".join(output).decode(errors="replace")

    async def open_exec(
        self,
        namespace: str,
        pod: str,
        container: str,
        command: Sequence[str],
        *,
        stdin: bool,
        protocols: Sequence[str],
        long: bool = False,
    ) -> Any:
        """The websocket of a program in a container, as a context manager; see `pod_exec`."""
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("stdin", "true")] if stdin else []
        query += [("command", word) for word in command]
        url = f"{self._configuration.host}{POD.path(namespace, pod, 'exec')}?{urlencode(query)}"
        sessions = (self._followers if long else self._streams).rest_client
        if sessions.pool_manager is None:
            sessions.pool_manager = sessions._create_pool_manager()
        # by itself, the client would not learn which protocol the server has chosen
        return sessions.pool_manager.ws_connect(
            get_websocket_url(url), protocols=protocols, headers=await self._headers(), max_msg_size=MAX_FRAME
        )

    async def _headers(self) -> dict[str, str]:
        token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return {"authorization": token} if token else {}

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Raw | None = None,
        content_type: str = _JSON,
    ) -> Raw:
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": _JSON, "Content-Type": content_type, **await self._headers()}
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                answer = await self._api.rest_client.request(method, url, headers=headers, body=body)
                data = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(0, "Unreachable", f"{method} {path}: {_text(error)}") from None
        return _read(answer.status, data, f"{method} {path}")


def _read(status: int, data: bytes, call: str) -> Raw:
    try:
        value = json.loads(data) if data else {}
    except ValueError:
        raise KubeError(status, "NotJson", f"{call}: {data[:200]!r}") from None
    if status >= 400:
        raise KubeError(status, str(value.get("reason") or ""), f"{call}: {value.get('message') or ''}")
    result: Raw = value
    return result


def _text(error: BaseException) -> str:
    return f"{type(error).__name__} {error}".strip()


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Raw:
    """The JSON merge patch (RFC 7386) that makes `new` of `old`."""
    patch: Raw = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


def owner(raw: Mapping[str, Any], *, controller: bool = True) -> Raw:
    """An ownerReference to the object."""
    meta = raw["metadata"]
    return {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def finalizers(raw: Mapping[str, Any]) -> list[str]:
    """The finalizers that the object carries."""
    return list(raw["metadata"].get("finalizers") or ())


async def add_finalizer(kube: Kube, kind: Kind, raw: Mapping[str, Any]) -> None:
    """Ours onto the object, so that it stays until we have cleaned up behind it."""
    await _set_finalizers(kube, kind, raw, [*finalizers(raw), names.FINALIZER])


async def remove_finalizer(kube: Kube, kind: Kind, raw: Mapping[str, Any]) -> None:
    """Let the object go."""
    await _set_finalizers(kube, kind, raw, [one for one in finalizers(raw) if one != names.FINALIZER])


async def _set_finalizers(kube: Kube, kind: Kind, raw: Mapping[str, Any], wanted: Iterable[str]) -> None:
    meta = raw["metadata"]
    if finalizers(raw) == list(wanted):
        return
    # resourceVersion in the patch: a list is replaced whole, so somebody else's change must not be lost
    patch = {"metadata": {"finalizers": list(wanted), "resourceVersion": meta["resourceVersion"]}}
    await kube.patch(kind, meta.get("namespace"), meta["name"], patch)
