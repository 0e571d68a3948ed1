"""Reads spec.elasticPolicy: how few replicas are enough, and where torchrun's agents meet.

Pure; called by `readers.pytorch`. What always holds: agents meet on the job's first node by c10d. An etcd of Kubernetes is
not reached from Slurm's nodes: it is replaced, which the user is told, or refused where the user insists on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubeslurm import names, requests
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.plans import Elastic, Role

Raw = Mapping[str, Any]

PATH: Final = "spec.elasticPolicy"
_READ: Final = frozenset(
    [
        "minReplicas",
        "maxReplicas",
        "rdzvBackend",
        "rdzvHost",
        "rdzvPort",
        "rdzvId",
        "rdzvConf",
        "standalone",
        "nProcPerNode",
        "maxRestarts",
        "metrics",
    ]
)
_BACKENDS: Final = ("c10d", "etcd", "etcd-v2")
_CONF: Final = re.compile(r"[A-Za-z0-9_.:/@+-]{1,128}\Z")
_OWN_CONF: Final = frozenset({"is_host"})


def policy(job: PyTorchJob) -> Raw:
    """What the policy says; empty where there is none."""
    return {key: value for key, value in (job.spec.elastic_policy or {}).items() if value is not None}


def read(job: PyTorchJob, roles: Sequence[Role], attempt: int) -> Elastic | None:
    """The rendezvous; None for a job that is not elastic."""
    strict = _strict(job.metadata.annotations)
    if job.spec.elastic_policy is None:
        return None
    given = policy(job)
    for field in sorted(given.keys() - _READ):
        raise Untranslated(f"{PATH}.{field}", "not supported")
    if not any(role.name == "Worker" for role in roles):
        raise InvalidObject(PATH, "needs a Worker entry in spec.pytorchReplicaSpecs")
    _check_rendezvous(given, strict=strict)
    least, most = _bounds(given, sum(role.replicas for role in roles))
    return Elastic(
        least=least,
        most=most,
        rdzv_id=f"{job.metadata.uid}-{attempt}",
        conf=tuple(_conf(given)),
        max_restarts=_number(given, "maxRestarts", 0),
        standalone=_switch(given, "standalone"),
        port=_number(given, "rdzvPort", 1, 65535) if given.get("rdzvBackend", "c10d") == "c10d" else None,
    )


def notes(job: PyTorchJob) -> Iterator[str]:
    """What is done otherwise than the policy says."""
    given = policy(job)
    if given.get("rdzvBackend", "c10d") != "c10d":
        yield f"{given['rdzvBackend']} replaced: agents meet by c10d on the job's first node"
    elif given.get("rdzvHost"):
        yield f"{PATH}.rdzvHost replaced: agents meet on the job's first node"
    if given.get("rdzvId"):
        yield f"{PATH}.rdzvId replaced by the job's uid and attempt"
    if given.get("metrics"):
        yield f"{PATH}.metrics ignored: a job in Slurm does not grow"


def _strict(annotations: Mapping[str, str]) -> bool:
    """Would the user rather not run than meet elsewhere?"""
    text = annotations.get(names.ANNOTATION_STRICT_RENDEZVOUS, "false")
    if text not in ("true", "false"):
        raise InvalidObject(
            requests.path(names.ANNOTATION_STRICT_RENDEZVOUS), f"{text[:20]!r} is neither true nor false"
        )
    return text == "true"


def _check_rendezvous(given: Raw, *, strict: bool) -> None:
    backend = given.get("rdzvBackend", "c10d")
    if backend not in _BACKENDS:
        raise InvalidObject(f"{PATH}.rdzvBackend", f"{str(backend)[:40]!r} is none of {', '.join(_BACKENDS)}")
    if strict and (given.get("rdzvHost") or backend != "c10d"):
        field = "rdzvHost" if given.get("rdzvHost") else "rdzvBackend"
        raise Untranslated(f"{PATH}.{field}", "agents of a Slurm job meet on its first node")


def _bounds(given: Raw, replicas: int) -> tuple[int, int]:
    """As upstream defaults them: either stands for the other, neither for the replicas; no job is larger than those."""
    least, most = _number(given, "minReplicas", 1), _number(given, "maxReplicas", 1)
    if least is not None and most is not None and least > most:
        raise InvalidObject(f"{PATH}.minReplicas", f"{least} is more than maxReplicas, {most}")
    least = least or most or replicas
    if least > replicas:
        raise InvalidObject(f"{PATH}.minReplicas", f"{least}, but there are {replicas} replicas")
    return least, min(most or least, replicas)


def _conf(given: Raw) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(given.get("rdzvConf") or ()):
        path = f"{PATH}.rdzvConf[{index}]"
        key, value = (str(one.get(field, "")) for field in ("key", "value")) if isinstance(one, dict) else ("", "")
        if not _CONF.match(key) or not _CONF.match(value):
            raise InvalidObject(path, "a key and a value of plain characters are wanted")
        if key not in _OWN_CONF:
            yield key, value


def _number(given: Raw, field: str, least: int, most: int = 100_000) -> int | None:
    value = given.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidObject(f"{PATH}.{field}", f"a number from {least} to {most} is wanted")
    return value


def _switch(given: Raw, field: str) -> bool:
    value = given.get(field, False)
    if not isinstance(value, bool):
        raise InvalidObject(f"{PATH}.{field}", "true or false is wanted")
    return value
