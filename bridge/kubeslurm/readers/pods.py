"""Sorts the fields of a pod's spec: those that are read elsewhere, those without a meaning in Slurm, those that are refused.

Pure; called by `readers.pytorch`. What always holds: a field that is in none of the tables is refused by its path, so that
one which Kubernetes adds tomorrow is never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubeslurm.errors import InvalidObject, Untranslated

Raw = Mapping[str, Any]

PORT_NAME: Final = "pytorchjob-port"
CONTAINER: Final = "pytorch"
KILL_WAIT: Final = 30
"""Seconds from SIGTERM to SIGKILL in Slurm, unless the admin says otherwise."""

_POD_READ: Final = frozenset(
    {"containers", "volumes", "priorityClassName", "nodeSelector", "affinity", "securityContext"}
)
_POD_IGNORED: Final = frozenset(
    [
        "automountServiceAccountToken",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostname",
        "imagePullSecrets",
        "os",
        "preemptionPolicy",
        "readinessGates",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
    ]
)
_CONTAINER_READ: Final = frozenset(
    [
        "args",
        "command",
        "env",
        "envFrom",
        "name",
        "ports",
        "resources",
        "securityContext",
        "volumeMounts",
        "workingDir",
    ]
)
_CONTAINER_IGNORED: Final = frozenset(
    [
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "resizePolicy",
        "startupProbe",
        "terminationMessagePath",
        "terminationMessagePolicy",
    ]
)
_SECURITY: Final = frozenset(
    [
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "capabilities",
        "fsGroup",
        "fsGroupChangePolicy",
        "privileged",
        "procMount",
        "readOnlyRootFilesystem",
        "runAsNonRoot",
        "seLinuxOptions",
        "seccompProfile",
        "supplementalGroups",
    ]
)
"""In Slurm a job has the rights of its user, no more and no fewer."""


def check(path: str, pod: Any) -> None:
    """One container, of the name that the training operator wants."""
    if not isinstance(pod, dict):
        raise InvalidObject(path, "missing")
    containers = pod.get("containers")
    if not containers:
        raise InvalidObject(f"{path}.containers", "one container is needed")
    if len(containers) > 1:
        raise Untranslated(f"{path}.containers[1]", "a second container can't run in a Slurm job")
    if containers[0].get("name") != CONTAINER:
        raise InvalidObject(f"{path}.containers[0].name", f"must be {CONTAINER!r}")


def ignored(path: str, pod: Raw, user: tuple[int, int] | None) -> Iterator[str]:
    """The paths of all fields without a meaning. `user`: the uid and gid that the job runs as, where they are known."""
    container = pod["containers"][0]
    given = {key: value for key, value in pod.items() if not (key == "terminationGracePeriodSeconds" and _short(value))}
    yield from _sorted(path, given, _POD_READ, _POD_IGNORED)
    yield from _security(f"{path}.securityContext", pod.get("securityContext"), user)
    where = f"{path}.containers[0]"
    yield from _sorted(where, container, _CONTAINER_READ, _CONTAINER_IGNORED)
    yield from _security(f"{where}.securityContext", container.get("securityContext"), user)
    for index, one in enumerate(container.get("ports") or ()):
        if one.get("name") != PORT_NAME:
            yield f"{where}.ports[{index}]"


def _short(seconds: Any) -> bool:
    """Slurm gives a job that long anyway."""
    return isinstance(seconds, int) and seconds <= KILL_WAIT


def _sorted(path: str, given: Raw, read: frozenset[str], harmless: frozenset[str]) -> Iterator[str]:
    for field in sorted(given):
        if field in read or given[field] in (None, [], {}, "", False):
            continue
        if field not in harmless:
            raise Untranslated(f"{path}.{field}", "not supported")
        yield f"{path}.{field}"


def _security(path: str, context: Any, user: tuple[int, int] | None) -> Iterator[str]:
    """Who the job runs as is the tenant's to say."""
    if context is not None and not isinstance(context, dict):
        raise InvalidObject(path, "an object is wanted")
    given = {key: value for key, value in (context or {}).items() if value not in (None, [], {}, "", False)}
    for field, own in zip(("runAsUser", "runAsGroup"), user or (None, None), strict=True):
        wanted = (context or {}).get(field)
        given.pop(field, None)
        if wanted is not None and wanted != own:
            raise Untranslated(
                f"{path}.{field}", f"{str(wanted)[:20]}: the job runs as {own if user else 'the tenant'}"
            )
    yield from _sorted(path, given, frozenset(), _SECURITY)


def port(path: str, container: Raw) -> int | None:
    """The one that the training operator would tell the ranks, where the job names it. `path` is the container's."""
    for index, one in enumerate(container.get("ports") or ()):
        if one.get("name") == PORT_NAME:
            found = one.get("containerPort")
            if found is None:
                raise InvalidObject(f"{path}.ports[{index}].containerPort", "missing")
            return int(found)
    return None
