"""Who may ask the kubelet endpoint for what: client certificates, bearer tokens, and the API server's word on rights.

Used by `kubelet`. What always holds: nobody is served whom the API server's own CA or a TokenReview does not name, and
nobody without a SubjectAccessReview that allows it; answers are kept for a minute at most, and so many of them.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aiohttp import web

from kubeslurm import log_requests
from kubeslurm.errors import Refused
from kubeslurm_operator.kube import Kube, KubeError, Raw

YES_SECONDS = 60.0
NO_SECONDS = 10.0
MOST_ANSWERS = 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody known. `extra` as a TokenReview gives it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Answers(Generic[T]):
    """The newest answers by question, for as long as they hold."""

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._kept: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._most = most

    def get(self, question: Hashable) -> tuple[T] | None:
        """The answer, in a tuple; None where there is none that still holds."""
        until, answer = self._kept.get(question, (0.0, None))
        return (answer,) if answer is not None and time.monotonic() < until else None

    def keep(self, question: Hashable, answer: T, seconds: float) -> T:
        """Remember it for so long; the oldest one goes."""
        self._kept.pop(question, None)
        self._kept[question] = (time.monotonic() + seconds, answer)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return answer


class Gate:
    """See the module."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._tokens: Answers[User | bool] = Answers()
        self._rights: Answers[bool] = Answers()

    async def admit(self, request: web.Request, node: str) -> None:
        """Refused: 401 to whom nobody knows, 403 to who may not, 500 where the API server can't say."""
        user = by_certificate(request) or await self._by_token(request.headers.get("Authorization", ""))
        if user is None:
            raise Refused(401, "Unauthorized")
        verb, subresources = log_requests.verb(request.method), log_requests.subresources(request.path)
        for one in subresources:
            if await self._allowed(user, verb, one, node):
                return
        asked = f"user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(subresources)}]"
        raise Refused(403, f"Forbidden ({asked})")

    async def _by_token(self, header: str) -> User | None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        digest = hashlib.sha256(token.strip().encode()).digest()
        if known := self._tokens.get(digest):
            return known[0] if isinstance(known[0], User) else None
        try:
            review = await self._kube.create(_review("authentication", "TokenReview", {"token": token.strip()}))
        except KubeError:
            raise Refused(401, "Unauthorized: the token could not be checked") from None
        user = by_review(review.get("status") or {})
        self._tokens.keep(digest, user or False, YES_SECONDS if user else NO_SECONDS)
        return user

    async def _allowed(self, user: User, verb: str, subresource: str, node: str) -> bool:
        question = (user, verb, subresource, node)
        if known := self._rights.get(question):
            return known[0]
        attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": node}
        spec: Raw = {"user": user.name, "groups": list(user.groups), "resourceAttributes": attributes}
        spec |= {"uid": user.uid, "extra": {name: list(values) for name, values in user.extra}}
        try:
            review = await self._kube.create(_review("authorization", "SubjectAccessReview", spec))
        except KubeError:
            raise Refused(500, f"Authorization error (user={user.name}, verb={verb}, resource=nodes)") from None
        allowed = (review.get("status") or {}).get("allowed") is True
        return self._rights.keep(question, allowed, YES_SECONDS if allowed else NO_SECONDS)


def _review(group: str, kind: str, spec: Raw) -> Raw:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "metadata": {}, "spec": spec}


def by_review(status: Mapping[str, Any]) -> User | None:
    """The user of a TokenReview's status."""
    user = status.get("user") or {}
    if status.get("authenticated") is not True or not user.get("username"):
        return None
    extra = tuple(sorted((name, tuple(values)) for name, values in (user.get("extra") or {}).items()))
    return User(user["username"], tuple(user.get("groups") or ()), user.get("uid") or "", extra)


def by_certificate(request: web.Request) -> User | None:
    """The user of a client certificate, which TLS has checked against the CA by now."""
    certificate = request.transport.get_extra_info("peercert") if request.transport else None
    return by_subject((certificate or {}).get("subject") or ())


def by_subject(subject: tuple[tuple[tuple[str, str], ...], ...]) -> User | None:
    """The common name is the user, organizations are groups; `system:authenticated` as the API server adds it."""
    parts = [pair for part in subject for pair in part]
    name = next((value for key, value in parts if key == "commonName"), "")
    groups = tuple(value for key, value in parts if key == "organizationName")
    return User(name, (*groups, "system:authenticated")) if name else None
