"""What the watches have told us: the raw objects of the kinds that decisions read, and who wants to hear of changes.

Filled by the kopf handlers and, once at start and then now and again, by a full listing: a watch tells nothing of an
object that went away between two connections. Read by the loops. What always holds: an older version of an object
never replaces a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubeslurm_operator.kube import Kind, Raw


class Key(NamedTuple):
    """The name of a namespaced object."""

    namespace: str
    name: str

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Key:
        """The key of this object."""
        return cls(raw["metadata"].get("namespace", ""), raw["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


Listener = Callable[[Kind, Raw], None]


class Store:
    """The objects by kind and key."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._objects: dict[Kind, dict[Key, Raw]] = {kind: {} for kind in kinds}
        self._owned: dict[tuple[Kind, str], set[Key]] = {}
        self._listeners: list[Listener] = []

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds held."""
        return tuple(self._objects)

    def subscribe(self, listener: Listener) -> None:
        """Call it with each change: the kind and the object as last seen (it may be gone by now)."""
        self._listeners.append(listener)

    def get(self, kind: Kind, key: Key) -> Raw | None:
        """The object, or None."""
        return self._objects[kind].get(key)

    def all(self, kind: Kind) -> list[Raw]:
        """All objects of the kind, by name."""
        return [raw for _, raw in sorted(self._objects[kind].items())]

    def labelled(self, kind: Kind, labels: Mapping[str, str]) -> Iterator[Raw]:
        """The objects that carry these labels."""
        for raw in self._objects[kind].values():
            found = raw["metadata"].get("labels") or {}
            if all(found.get(label) == value for label, value in labels.items()):
                yield raw

    def owned(self, kind: Kind, owner: str) -> list[Raw]:
        """The objects that an owner of this uid has; the cost is theirs alone."""
        return [self._objects[kind][key] for key in sorted(self._owned.get((kind, owner), ()))]

    def _index(self, kind: Kind, key: Key, before: Raw | None, now: Raw | None) -> None:
        for uid in _owners(before) - _owners(now):
            keys = self._owned[kind, uid]
            keys.discard(key)
            if not keys:
                del self._owned[kind, uid]
        for uid in _owners(now) - _owners(before):
            self._owned.setdefault((kind, uid), set()).add(key)

    def put(self, kind: Kind, raw: Raw) -> None:
        """The object as it is now."""
        key = Key.of(raw)
        known = self._objects[kind].get(key)
        if known is not None and _version(known) >= _version(raw) and _uid(known) == _uid(raw):
            return
        self._objects[kind][key] = raw
        self._index(kind, key, known, raw)
        self._tell(kind, raw)

    def drop(self, kind: Kind, raw: Raw) -> None:
        """The object is gone. A successor of the same name stays."""
        key = Key.of(raw)
        known = self._objects[kind].get(key)
        if known is not None and _uid(known) == _uid(raw):
            del self._objects[kind][key]
            self._index(kind, key, known, None)
            self._tell(kind, known)

    def replace(self, kind: Kind, objects: Iterable[Raw], seen_before: Mapping[Key, str]) -> None:
        """A full listing. `seen_before`: keys and uids held when it was asked for; what it lacks, goes."""
        listed = {Key.of(raw): raw for raw in objects}
        for raw in listed.values():
            self.put(kind, raw)
        for key, uid in seen_before.items():
            known = self._objects[kind].get(key)
            if known is not None and key not in listed and _uid(known) == uid:
                self.drop(kind, known)

    def uids(self, kind: Kind) -> dict[Key, str]:
        """What is held now, for `replace`."""
        return {key: _uid(raw) for key, raw in self._objects[kind].items()}

    def _tell(self, kind: Kind, raw: Raw) -> None:
        for listener in self._listeners:
            listener(kind, raw)


def _version(raw: Mapping[str, Any]) -> int:
    return int(raw["metadata"].get("resourceVersion") or 0)


def _owners(raw: Mapping[str, Any] | None) -> set[str]:
    found = (raw or {"metadata": {}})["metadata"].get("ownerReferences") or ()
    return {str(one.get("uid", "")) for one in found}


def _uid(raw: Mapping[str, Any]) -> str:
    return str(raw["metadata"].get("uid", ""))
