"""Reads what a pod template wants of ConfigMaps, Secrets and volumes into Materials.

Pure; called by `readers.pytorch`. What always holds: no value is read here, only names; a field is used, or listed as
ignored, or refused by its path; a mount that can't be made where the job runs is refused before anything is submitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import material_scripts, materials
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.api.slurmcluster import Mounts, SlurmCluster
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.materials import Every, Item, Materials, Mount, Piece, Source, Variable, Volume

Raw = Mapping[str, Any]

_OBJECT: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,253}\Z")
_VOLUME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_PATH: Final = re.compile(r"/[A-Za-z0-9_./+@=-]{1,1024}\Z")
_PREFIX: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,255})?\Z")
_SYSTEM: Final = ("/proc", "/sys", "/dev", "/run/kubeslurm")
_KINDS: Final = {"configMap": "ConfigMap", "secret": "Secret"}
MODE: Final = 0o644
MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where the job runs: its namespace, the admin's table, and whether there is a container to mount in, and read-only."""

    namespace: str
    mounts: Mounts
    contained: bool
    read_only: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def variable(path: str, entry: Raw) -> Variable | None:
    """An env entry's key of a ConfigMap or Secret; None where its value comes from elsewhere."""
    given = {key: one for key, one in (entry.get("valueFrom") or {}).items() if one is not None}
    kind = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}.get(next(iter(given), ""))
    if kind is None:
        return None
    (field, reference), where = next(iter(given.items())), f"{path}.valueFrom"
    if len(given) > 1:
        raise InvalidObject(where, "only one source can stand here")
    name = str(entry["name"])
    if not materials.usable(name):
        raise Untranslated(f"{path}.name", f"{name[:40]!r} can't be set from a {kind} in a Slurm job")
    reference = _mapping(f"{where}.{field}", reference)
    key = _matching(f"{where}.{field}.key", reference.get("key"), _KEY)
    return Variable(name, _source(f"{where}.{field}", kind, reference), key, _optional(f"{where}.{field}", reference))


def every(path: str, container: Raw) -> tuple[Every, ...]:
    """envFrom."""
    return tuple(_every(f"{path}.envFrom[{index}]", one) for index, one in enumerate(_list(path, container, "envFrom")))


def _every(path: str, entry: Raw) -> Every:
    given = {key: one for key, one in entry.items() if one is not None}
    prefix = given.pop("prefix", "") or ""
    if not isinstance(prefix, str) or not _PREFIX.match(prefix):
        raise InvalidObject(f"{path}.prefix", "letters, digits and '_' only")
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    for field in sorted(given.keys() - kinds.keys()):
        raise Untranslated(f"{path}.{field}", "not supported")
    if len(given) != 1:
        raise InvalidObject(path, "one of configMapRef and secretRef is wanted")
    field, reference = next(iter(given.items()))
    reference = _mapping(f"{path}.{field}", reference)
    return Every(_source(f"{path}.{field}", kinds[field], reference), prefix, _optional(f"{path}.{field}", reference))


def mounts(path: str, pod: Raw, cpath: str, container: Raw, place: Place) -> tuple[tuple[Mount, ...], tuple[str, ...]]:
    """The mounts, and the fields without a meaning here."""
    given = {str(one.get("name")): (index, one) for index, one in enumerate(_list(path, pod, "volumes"))}
    found: list[Mount] = []
    ignored: list[str] = []
    for index, entry in enumerate(_list(cpath, container, "volumeMounts")):
        where = f"{cpath}.volumeMounts[{index}]"
        name = str(entry.get("name"))
        if name not in given:
            raise InvalidObject(f"{where}.name", f"there is no volume {name[:64]!r}")
        number, raw = given[name]
        mount = _mount(where, entry, _volume(f"{path}.volumes[{number}]", raw, place))
        _check_place(f"{where}.mountPath", mount, place, found)
        found.append(mount)
        if mount.read_only and not place.read_only and not mount.volume.pieces:
            ignored.append(f"{where}.readOnly")
        ignored += [f"{path}.volumes[{number}].{field}" for field in _without_meaning(raw)]
        if mount.volume.memory and not material_scripts.in_place(mount):
            ignored.append(f"{path}.volumes[{number}].emptyDir.medium")
    used = {mount.volume.name for mount in found}
    ignored += [f"{path}.volumes[{index}]" for name, (index, _) in given.items() if name not in used]
    return tuple(found), tuple(dict.fromkeys(ignored))


def _without_meaning(volume: Raw) -> Iterator[str]:
    for kind, field in (("emptyDir", "sizeLimit"), ("hostPath", "type"), ("persistentVolumeClaim", "readOnly")):
        if isinstance(volume.get(kind), Mapping) and volume[kind].get(field):
            yield f"{kind}.{field}"


def _mount(path: str, entry: Raw, volume: Volume) -> Mount:
    allowed = {"name", "mountPath", "subPath", "readOnly", "recursiveReadOnly", "mountPropagation"}
    _only(path, entry, allowed, {"mountPropagation": "None", "recursiveReadOnly": "Disabled"})
    target = _matching(f"{path}.mountPath", entry.get("mountPath"), _PATH).rstrip("/")
    if not materials.safe(target.lstrip("/")) or any(_within(target, one) for one in _SYSTEM if target != "/dev/shm"):
        raise InvalidObject(f"{path}.mountPath", f"{target[:80]!r} can't be mounted on")
    part = entry.get("subPath") or ""
    if part and (not isinstance(part, str) or not materials.safe(part) or not _PATH.match(f"/{part}")):
        raise InvalidObject(f"{path}.subPath", "a relative path of plain characters is wanted")
    return Mount(volume, target, part, bool(entry.get("readOnly")))


def _check_place(path: str, mount: Mount, place: Place, others: Sequence[Mount]) -> None:
    for other in others:
        if mount.path == other.path:
            raise InvalidObject(path, f"{mount.path} stands twice")
        if not place.contained and (_within(mount.path, other.path) or _within(other.path, mount.path)):
            raise Untranslated(path, f"{mount.path} and {other.path} lie within each other")
    if place.contained or material_scripts.in_place(mount):
        return
    if not any(_within(mount.path, folder) and mount.path != folder for folder in place.mounts.links):
        folders = ", ".join(place.mounts.links) or "none"
        raise Untranslated(
            path, f"jobs run in the pool's own image, and mounts only below jobs.mounts.links: {folders}"
        )


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _volume(path: str, raw: Raw, place: Place) -> Volume:
    name = _matching(f"{path}.name", raw.get("name"), _VOLUME)
    kinds = sorted(key for key, one in raw.items() if key != "name" and one is not None)
    if len(kinds) != 1:
        raise InvalidObject(path, "one kind of volume is wanted")
    kind = kinds[0]
    read = _READERS.get(kind)
    if read is None:
        raise Untranslated(f"{path}.{kind}", "no such volume in Slurm")
    return read(f"{path}.{kind}", name, _mapping(f"{path}.{kind}", raw[kind]), place)


def _files(path: str, name: str, raw: Raw, place: Place) -> Volume:
    """configMap and secret."""
    field = path.rpartition(".")[2]
    _only(path, raw, {"name", "secretName", "items", "optional", "defaultMode"})
    named = {**raw, "name": raw.get("secretName" if field == "secret" else "name")}
    return Volume(name, (_piece(path, _KINDS[field], named, _mode(f"{path}.defaultMode", raw.get("defaultMode"))),))


def _piece(path: str, kind: str, raw: Raw, mode: int) -> Piece:
    items = tuple(_item(f"{path}.items[{i}]", one, mode) for i, one in enumerate(_list(path, raw, "items")))
    return Piece(_source(path, kind, raw), items, _optional(path, raw), mode)


def _item(path: str, raw: Raw, mode: int) -> Item:
    _only(path, raw, {"key", "path", "mode"})
    key = _matching(f"{path}.key", raw.get("key"), _KEY)
    return Item(_file_path(path, raw), _mode(f"{path}.mode", raw.get("mode"), mode), key)


def _file_path(path: str, raw: Raw) -> str:
    given = raw.get("path")
    if not isinstance(given, str) or not materials.safe(given) or not given.isprintable():
        raise InvalidObject(f"{path}.path", "a relative path without '..' is wanted")
    return given


def _projected(path: str, name: str, raw: Raw, place: Place) -> Volume:
    _only(path, raw, {"sources", "defaultMode"})
    mode = _mode(f"{path}.defaultMode", raw.get("defaultMode"))
    pieces = []
    for index, one in enumerate(_list(path, raw, "sources")):
        where = f"{path}.sources[{index}]"
        given = {key: value for key, value in one.items() if value is not None}
        for field in sorted(given.keys() - {*_KINDS, "downwardAPI"}):
            raise Untranslated(f"{where}.{field}", "not supported")
        for field, value in given.items():
            inner = _mapping(f"{where}.{field}", value)
            if field == "downwardAPI":
                pieces.append(_downward_piece(f"{where}.{field}", inner, mode, place))
            else:
                _only(f"{where}.{field}", inner, {"name", "items", "optional"})
                pieces.append(_piece(f"{where}.{field}", _KINDS[field], inner, mode))
    return Volume(name, tuple(pieces))


def _downward(path: str, name: str, raw: Raw, place: Place) -> Volume:
    _only(path, raw, {"items", "defaultMode"})
    return Volume(name, (_downward_piece(path, raw, _mode(f"{path}.defaultMode", raw.get("defaultMode")), place),))


def _downward_piece(path: str, raw: Raw, mode: int, place: Place) -> Piece:
    items = []
    for index, one in enumerate(_list(path, raw, "items")):
        where = f"{path}.items[{index}]"
        _only(where, one, {"path", "fieldRef", "mode"})
        field = str(_mapping(f"{where}.fieldRef", one.get("fieldRef")).get("fieldPath"))
        text = _field(f"{where}.fieldRef.fieldPath", field, place)
        items.append(Item(_file_path(where, one), _mode(f"{where}.mode", one.get("mode"), mode), text=text))
    return Piece(None, tuple(items), optional=False, mode=mode)


def _field(path: str, field: str, place: Place) -> str:
    """As the kubelet writes it into a file; what differs from replica to replica is not there on a node."""
    if field == "metadata.namespace":
        return place.namespace
    for kind, values in (("labels", place.labels), ("annotations", place.annotations)):
        if field == f"metadata.{kind}":
            return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(values.items()))
        if match := re.fullmatch(rf"metadata\.{kind}\['([^']+)'\]", field):
            return values.get(match.group(1), "")
    raise Untranslated(path, f"{field[:80]!r} is not supported in a volume")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _empty(path: str, name: str, raw: Raw, place: Place) -> Volume:
    _only(path, raw, {"medium", "sizeLimit"})
    medium = raw.get("medium") or ""
    if medium not in ("", "Memory"):
        raise Untranslated(f"{path}.medium", f"{str(medium)[:40]!r} is not supported")
    return Volume(name, memory=medium == "Memory")


def _host_path(path: str, name: str, raw: Raw, place: Place) -> Volume:
    _only(path, raw, {"path", "type"})
    folder = _matching(f"{path}.path", raw.get("path"), _PATH).rstrip("/")
    allowed = place.mounts.host_paths
    if not materials.safe(folder.lstrip("/")) or not any(_within(folder, one) for one in allowed):
        raise Untranslated(f"{path}.path", f"{folder[:80]} is not in the admin's jobs.mounts.hostPaths")
    return Volume(name, path=folder)


def _claim(path: str, name: str, raw: Raw, place: Place) -> Volume:
    _only(path, raw, {"claimName", "readOnly"})
    claim = raw.get("claimName")
    for one in place.mounts.claims:
        if (one.namespace, one.name) == (place.namespace, claim):
            return Volume(name, path=one.path.rstrip("/"))
    raise Untranslated(f"{path}.claimName", f"{str(claim)[:64]!r} is not in the admin's jobs.mounts.claims")


_READERS: Final[Mapping[str, Callable[[str, str, Raw, Place], Volume]]] = {
    "configMap": _files,
    "secret": _files,
    "projected": _projected,
    "downwardAPI": _downward,
    "emptyDir": _empty,
    "hostPath": _host_path,
    "persistentVolumeClaim": _claim,
}


def _source(path: str, kind: str, raw: Raw) -> Source:
    return Source(
        kind, _matching(f"{path}.{'secretName' if 'secretName' in raw else 'name'}", raw.get("name"), _OBJECT)
    )


def _optional(path: str, raw: Raw) -> bool:
    value = raw.get("optional") or False
    if not isinstance(value, bool):
        raise InvalidObject(f"{path}.optional", "true or false is wanted")
    return value


def _mode(path: str, value: Any, default: int = MODE) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 0o777:
        raise InvalidObject(path, "a mode from 0 to 0777 is wanted")
    return value


def _matching(path: str, value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise InvalidObject(path, "missing" if value in (None, "") else f"{str(value)[:80]!r} is not accepted")
    return value


def _mapping(path: str, value: Any) -> Raw:
    if not isinstance(value, Mapping):
        raise InvalidObject(path, "an object is wanted")
    return value


def _list(path: str, raw: Raw, field: str) -> Iterator[Raw]:
    value = raw.get(field) or []
    if not isinstance(value, list) or len(value) > MOST or not all(isinstance(one, Mapping) for one in value):
        raise InvalidObject(f"{path}.{field}", f"a list of at most {MOST} objects is wanted")
    return iter(value)


def _only(path: str, raw: Raw, allowed: set[str], harmless: Mapping[str, Any] | None = None) -> None:
    """No other fields than these; of `harmless` ones no other values."""
    for field in sorted(raw):
        value = raw[field]
        if value in (None, "", [], {}):
            continue
        if field not in allowed or (harmless and field in harmless and value != harmless[field]):
            raise Untranslated(f"{path}.{field}", "not supported")


def read(path: str, pod: Raw, cpath: str, container: Raw, place: Place) -> tuple[Materials, tuple[str, ...]]:
    """All of a replica's, and what has no meaning here. Of env entries with one name, the last one counts."""
    entries: dict[str, Variable | None] = {}
    for index, one in enumerate(container.get("env") or ()):
        entries[one["name"]] = variable(f"{cpath}.env[{index}]", one)
    found, ignored = mounts(path, pod, cpath, container, place)
    chosen = tuple(one for one in entries.values() if one is not None)
    return Materials(every(cpath, container), chosen, found), ignored


def of_job(
    job: PyTorchJob, cluster: SlurmCluster | None, template: Raw, path: str
) -> tuple[Materials, tuple[str, ...]]:
    """Those of a role's template, whose pod is at `path`, on this cluster."""
    meta = template.get("metadata") or {}
    runtime = cluster.spec.jobs.container_runtime if cluster else "none"
    place = Place(
        namespace=job.metadata.namespace,
        mounts=cluster.spec.jobs.mounts if cluster else Mounts(),
        contained=runtime != "none",
        read_only=runtime in ("pyxis", "apptainer"),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
    )
    pod = template["spec"]
    return read(path, pod, f"{path}.containers[0]", pod["containers"][0], place)
