"""What a job's owner asks of Slurm beyond the pod's words: annotations, PriorityClass and queue, within the tenant's bounds.

Pure; a reader calls `check_known`, `read` and `defaults` once each. What always holds: a value that came from a user is
one of those that the admin listed for the tenant, or of a form that is checked here; nobody chooses uid, gid, priority or
another's account; what isn't allowed is refused by the path of the field that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import names, times
from kubeslurm.api.slurmcluster import JobDefaults, SlurmCluster
from kubeslurm.api.tenants import Tenant
from kubeslurm.errors import InvalidObject, Untranslated

Raw = Mapping[str, Any]

_OURS: Final = frozenset(
    {
        names.ANNOTATION_LAUNCHER,
        names.ANNOTATION_STRICT_RENDEZVOUS,
        names.ANNOTATION_LAUNCHER_REASON,
        names.ANNOTATION_JOB_ID,
        names.ANNOTATION_SUBMISSION,
        names.ANNOTATION_ATTEMPT,
        names.ANNOTATION_RETRIES,
        names.ANNOTATION_ENDING,
        names.ANNOTATION_CLUSTER,
    }
)
_TEXT = re.compile(r"[A-Za-z0-9_.@:+&|,*()\[\]-]{1,128}\Z")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\Z")
_DEPENDENCY = re.compile(
    r"(after|afterany|afterok|afternotok|aftercorr)(:[1-9][0-9]{0,9}(\+[0-9]{1,6})?)+\Z|singleton\Z"
)
_SIGNAL = re.compile(r"(?:SIG)?([A-Z][A-Z0-9]{1,9})@([1-9][0-9]{0,4})\Z")
_SIGNALS: Final = frozenset({"HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "CONT", "ALRM"})
_POLICY = "spec.runPolicy.schedulingPolicy"


@dataclass(frozen=True, slots=True)
class Request:
    """What goes beside the shape of the job. `timed`: `time_minutes` was asked for (None is no limit)."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    timed: bool = False
    time_minutes: int | None = None
    constraint: str | None = None
    reservation: str | None = None
    exclusive: bool = False
    nodes: int | None = None
    dependency: str | None = None
    signal: tuple[str, int] | None = None
    """Its name, and how many seconds before the time limit the tasks get it."""
    ignored: tuple[str, ...] = ()

    def limit(self, deadline: int | None, default: int | None) -> int | None:
        """The time limit in minutes, of what was asked for, the deadline and the default: the shorter of the former two."""
        asked = [one for one in (deadline, self.time_minutes if self.timed else None) if one is not None]
        return min(asked) if asked else None if self.timed else default


NONE: Final = Request()


def check_known(annotations: Mapping[str, str]) -> None:
    """No annotation of ours that means nothing: it would be a wish that nobody hears."""
    for name in sorted(annotations):
        if name.startswith(f"{names.GROUP}/") and name not in _OURS and name not in names.REQUESTS:
            raise Untranslated(path(name), "not supported")


def defaults(cluster: SlurmCluster | None, tenant: Tenant | None) -> JobDefaults:
    """What a job gets that does not say: the tenant's word, else the cluster's."""
    common = cluster.spec.jobs.defaults if cluster else JobDefaults()
    own = tenant.defaults.model_dump(exclude_none=True) if tenant else {}
    return common.model_copy(update=own)


def read(
    annotations: Mapping[str, str],
    policy: Raw | None,
    priority_class: tuple[str, str] | None,
    cluster: SlurmCluster | None,
    tenant: Tenant | None,
) -> Request:
    """`policy` is runPolicy.schedulingPolicy; `priority_class` that of the pods, with its path. Without a cluster nothing
    is known of bounds, and classes and queues mean nothing."""
    policy = {key: value for key, value in (policy or {}).items() if value not in (None, "", {}, [])}
    ignored = _policy(policy)
    bounds = _Bounds(annotations, cluster, tenant)
    classes = [(f"{_POLICY}.priorityClass", policy.get("priorityClass")), priority_class or ("", None)]
    if cluster is None:
        ignored += [where for where, name in [*classes, (f"{_POLICY}.queue", policy.get("queue"))] if name]
    time = _time(annotations)
    request = Request(
        partition=bounds.partition(policy.get("queue")),
        account=bounds.account(),
        qos=bounds.qos(classes),
        timed=time is not None,
        time_minutes=time[0] if time else None,
        constraint=_matching(annotations, names.ANNOTATION_CONSTRAINT, _TEXT, "a constraint"),
        reservation=_matching(annotations, names.ANNOTATION_RESERVATION, _NAME, "a reservation"),
        exclusive=_exclusive(annotations),
        nodes=_nodes(annotations),
        dependency=_dependency(annotations),
        signal=_signal(annotations),
        ignored=tuple(ignored),
    )
    if cluster is not None:
        _check_allowed(request, cluster, annotations)
    return request


def _check_allowed(request: Request, cluster: SlurmCluster, annotations: Mapping[str, str]) -> None:
    """A job whose account or QOS none of its partitions takes would wait for ever."""
    chosen = [one for one in cluster.spec.partitions if one.name in (request.partition or "").split(",")]
    for what, value, lists in (
        ("account", request.account, [one.allow_accounts for one in chosen]),
        ("qos", request.qos, [one.allow_qos for one in chosen]),
    ):
        # without a word of ours it is the user's default in slurmdbd, which is not known here
        if value and lists and all(allowed and value not in allowed for allowed in lists):
            given = [name for name in (names.ANNOTATION_PARTITION, f"{names.GROUP}/{what}") if name in annotations]
            where = path(given[0]) if given else "metadata.namespace"
            raise InvalidObject(where, f"partition {request.partition} does not take {what} {value}")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the tenant may use; the first of each list where nothing is asked for."""

    annotations: Mapping[str, str]
    cluster: SlurmCluster | None
    tenant: Tenant | None

    def partition(self, queue: Any) -> str | None:
        """One, or several with commas between them: Slurm takes the first that is free."""
        allowed = self.tenant.partitions if self.tenant else None
        text = self.annotations.get(names.ANNOTATION_PARTITION)
        if text is not None:
            asked = text.split(",")
            for one in asked:
                self._allow(path(names.ANNOTATION_PARTITION), one, allowed, "partition")
            return text
        if queue is not None and self.cluster is not None:
            return self._mapped(f"{_POLICY}.queue", queue, self.cluster.spec.jobs.queues, allowed, "partition")
        return allowed[0] if allowed else None

    def account(self) -> str | None:
        """An account of the tenant's."""
        allowed = self.tenant.accounts if self.tenant else None
        text = self.annotations.get(names.ANNOTATION_ACCOUNT)
        if text is None:
            return allowed[0] if allowed else None
        return self._allow(path(names.ANNOTATION_ACCOUNT), text, allowed, "account")

    def qos(self, classes: Sequence[tuple[str, Any]]) -> str | None:
        """The annotation's, else that of the PriorityClass."""
        allowed = self.tenant.qos if self.tenant else None
        mapped = [
            self._mapped(where, name, self.cluster.spec.jobs.priority_classes, allowed, "qos")
            for where, name in classes
            if name and self.cluster is not None
        ]
        if len(set(mapped)) > 1:
            raise InvalidObject(classes[0][0], f"QOS {mapped[0]}, but the pods' priorityClassName is {mapped[1]}")
        text = self.annotations.get(names.ANNOTATION_QOS)
        if text is not None:
            return self._allow(path(names.ANNOTATION_QOS), text, allowed, "qos")
        return mapped[0] if mapped else allowed[0] if allowed else None

    def _mapped(self, where: str, name: Any, table: Mapping[str, str], allowed: Sequence[str] | None, what: str) -> str:
        if not isinstance(name, str) or name not in table:
            raise InvalidObject(where, f"{str(name)[:64]!r}: the SlurmCluster says of no {what} for it")
        return self._allow(where, table[name], allowed, what)

    def _allow(self, where: str, text: str, allowed: Sequence[str] | None, what: str) -> str:
        if not _NAME.match(text):
            raise InvalidObject(where, f"{text[:64]!r} is no name of a {what}")
        if allowed is not None and text not in allowed:
            choice = f"only {', '.join(allowed[:8])}" if allowed else "none can be chosen"
            raise InvalidObject(where, f"{text[:64]!r} is no {what} of this tenant's; {choice}")
        return text


def path(annotation: str) -> str:
    """Where it stands, as refusals name it."""
    return f"metadata.annotations[{annotation}]"


def _policy(policy: Raw) -> list[str]:
    """A gang is whole in Slurm anyway, so minAvailable asks for nothing and minResources only repeats the pods."""
    for field in sorted(policy.keys() - {"priorityClass", "queue", "minAvailable", "minResources"}):
        raise Untranslated(f"{_POLICY}.{field}", "not supported")
    return [f"{_POLICY}.{field}" for field in ("minAvailable", "minResources") if field in policy]


def _matching(annotations: Mapping[str, str], name: str, form: re.Pattern[str], what: str) -> str | None:
    text = annotations.get(name)
    if text is not None and not form.match(text):
        raise InvalidObject(path(name), f"{text[:64]!r} is not {what}")
    return text


def _time(annotations: Mapping[str, str]) -> tuple[int | None] | None:
    text = annotations.get(names.ANNOTATION_TIME)
    if text is None:
        return None
    try:
        minutes = times.parse_minutes(text)
    except ValueError as error:
        raise InvalidObject(path(names.ANNOTATION_TIME), str(error)) from None
    if minutes == 0:
        raise InvalidObject(path(names.ANNOTATION_TIME), "at least a minute is wanted, or UNLIMITED")
    return (minutes,)


def _exclusive(annotations: Mapping[str, str]) -> bool:
    text = annotations.get(names.ANNOTATION_EXCLUSIVE, "false")
    if text not in ("true", "false"):
        raise InvalidObject(path(names.ANNOTATION_EXCLUSIVE), f"{text[:20]!r} is neither true nor false")
    return text == "true"


def _nodes(annotations: Mapping[str, str]) -> int | None:
    text = annotations.get(names.ANNOTATION_NODES)
    if text is None:
        return None
    if not re.match(r"[1-9][0-9]{0,5}\Z", text):
        raise InvalidObject(path(names.ANNOTATION_NODES), f"{text[:20]!r} is no number of nodes")
    return int(text)


def _dependency(annotations: Mapping[str, str]) -> str | None:
    """Slurm lets a job wait for anybody's, by number; it learns no more of it than squeue tells everyone."""
    text = annotations.get(names.ANNOTATION_DEPENDENCY)
    if text is None:
        return None
    if len(text) > 1024 or not all(_DEPENDENCY.match(one) for one in text.split(",")):
        raise InvalidObject(
            path(names.ANNOTATION_DEPENDENCY), f"{text[:64]!r} is nothing like afterok:123:124,singleton"
        )
    return text


def _signal(annotations: Mapping[str, str]) -> tuple[str, int] | None:
    """As sbatch's --signal. Not `B:`: the batch script is ours, and has nothing to save."""
    given = annotations.get(names.ANNOTATION_SIGNAL)
    if given is None:
        return None
    match = _SIGNAL.match(given)
    if match is None or match.group(1) not in _SIGNALS or int(match.group(2)) > 65535:
        raise InvalidObject(path(names.ANNOTATION_SIGNAL), f"{given[:40]!r} is nothing like USR1@300")
    return match.group(1), int(match.group(2))
