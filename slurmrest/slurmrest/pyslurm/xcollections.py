"""Collections that may hold the things of several clusters, and are a dict for who has one.

Base of every collection of this package. Data is kept by cluster, then by key. What always holds: an operation with a
plain key is about the local cluster (about the first one if there is none of the local cluster), a pair (cluster, key)
names both, length and the views go over all clusters; an item's own `cluster` says where `add` puts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast, overload

from slurmrest.pyslurm._fields import Record, plain
from slurmrest.pyslurm._session import local_cluster
from slurmrest.pyslurm.error import PyslurmError, RPCError

K = TypeVar("K", bound="str | int")
V = TypeVar("V")
D = TypeVar("D")
R = TypeVar("R", bound=Record)
C = TypeVar("C", bound="MultiClusterMap[Any, Any]")
_UNSET = object()


class BaseView:
    """What the views share: they follow the collection's changes."""

    def __init__(self, mcm: MultiClusterMap[Any, Any]) -> None:
        self._mcm = mcm

    def __len__(self) -> int:
        return len(self._mcm)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def __iter__(self) -> Iterator[Any]:
        return (entry for _, part in self._parts() for entry in part)

    def __contains__(self, entry: object) -> bool:
        return any(entry == one for one in self)

    def _parts(self) -> list[tuple[str, dict[Any, Any]]]:
        return list(self._mcm.data.items())


class ValuesView(BaseView, Generic[V]):
    """The items of all clusters."""

    def __iter__(self) -> Iterator[V]:
        return (item for _, part in self._parts() for item in part.values())


class ClustersView(BaseView):
    """The names of the clusters."""

    def __len__(self) -> int:
        return len(self._mcm.data)

    def __iter__(self) -> Iterator[str]:
        return (cluster for cluster, _ in self._parts())


class MCKeysView(BaseView, Generic[K]):
    """Pairs (cluster, key)."""

    def __iter__(self) -> Iterator[tuple[str, K]]:
        return ((cluster, key) for cluster, part in self._parts() for key in part)


class KeysView(BaseView, Generic[K]):
    """The keys of all clusters."""

    def __iter__(self) -> Iterator[K]:
        return (key for _, part in self._parts() for key in part)

    def with_cluster(self) -> MCKeysView[K]:
        """Pairs (cluster, key) instead."""
        return MCKeysView(self._mcm)


class ItemsView(BaseView, Generic[K, V]):
    """Pairs (key, item) of all clusters."""

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return ((key, item) for _, part in self._parts() for key, item in part.items())

    def with_cluster(self) -> MCItemsView[K, V]:
        """Triples (cluster, key, item) instead."""
        return MCItemsView(self._mcm)


class MCItemsView(BaseView, Generic[K, V]):
    """Triples (cluster, key, item)."""

    def __iter__(self) -> Iterator[tuple[str, K, V]]:
        return ((cluster, key, item) for cluster, part in self._parts() for key, item in part.items())


class MultiClusterMap(Generic[K, V]):
    """A dict of items by their key, for one cluster or several.

    `data` is nothing, a dict of items by key, a dict of such dicts by cluster, a list of items or keys, or text with keys
    and commas. A subclass says what it holds in `_ITEM` (made of a key by `_ITEM(key)`), `_ID` (the item's attribute that
    is its key) and `_KEY` (what a key is made with).
    """

    _ITEM: ClassVar[type[Any]] = Record
    _ID: ClassVar[str] = "name"
    _KEY: ClassVar[type[Any]] = str

    def __init__(
        self,
        data: Mapping[Any, Any] | Iterable[Any] | str | None = None,
        typ: str | None = None,
        val_type: type[V] | None = None,
    ) -> None:
        self._data: dict[str, dict[K, V]] = {}
        self._typ = typ or type(self).__name__
        self._val_type: Any = val_type or self._ITEM
        if isinstance(data, MultiClusterMap):
            data = data.data
        if isinstance(data, Mapping):
            self.update(data)
            return
        make: Any = self._val_type
        for entry in self._split(data) if isinstance(data, str) else data or ():
            self.add(entry if isinstance(entry, make) else make(self._key(entry)))

    @property
    def data(self) -> dict[str, dict[K, V]]:
        """Everything: items by key, by cluster ("" as long as the local cluster's name isn't known)."""
        home = local_cluster()
        if home and "" in self._data:
            self._data.setdefault(home, {}).update(self._data.pop(""))
        return self._data

    # -- as a dict

    @overload
    def __getitem__(self, key: tuple[str, K]) -> V: ...

    @overload
    def __getitem__(self, key: K) -> V: ...

    @overload
    def __getitem__(self, key: str) -> dict[K, V]: ...

    def __getitem__(self, key: Any) -> Any:
        """The item of a key or a pair (cluster, key); of a cluster's name, its dict."""
        cluster, wanted = self._where(key)
        part = self.data.get(cluster, {})
        if wanted in part:
            return part[wanted]
        if isinstance(key, str) and key in self.data:
            return self.data[key]
        raise KeyError(key)

    def __setitem__(self, key: K | tuple[str, K], item: V) -> None:
        if isinstance(item, dict) and isinstance(key, str):
            self.data[key] = self._part(item)
            return
        cluster, plain_key = self._where(key)
        self.data.setdefault(cluster, {})[plain_key] = self._checked(item)

    def __delitem__(self, key: K | str | tuple[str, K]) -> None:
        cluster, plain_key = self._where(key)
        if plain_key in self.data.get(cluster, {}):
            del self.data[cluster][plain_key]
        elif isinstance(key, str) and key in self.data:
            del self.data[key]
        else:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        """Whether there is an item: of a key, of a pair (cluster, key), or this very item."""
        if isinstance(key, self._val_type):
            return any(key == item for item in self.values())
        try:
            cluster, plain_key = self._where(key)
        except (TypeError, ValueError):
            return False
        return plain_key in self.data.get(cluster, {})

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __len__(self) -> int:
        return sum(map(len, self.data.values()))

    def __bool__(self) -> bool:
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, MultiClusterMap) else NotImplemented

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    def __repr__(self) -> str:
        data: Any = next(iter(self.data.values())) if len(self.data) == 1 else self.data
        return f"pyslurm.{self._typ}({data!r})"

    def copy(self) -> Self:
        """A collection of its own with the same items."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._data = {cluster: dict(part) for cluster, part in self.data.items()}
        return other

    @overload
    def get(self, key: K | tuple[str, K]) -> V | None: ...

    @overload
    def get(self, key: K | tuple[str, K], default: D) -> V | D: ...

    def get(self, key: K | tuple[str, K], default: Any = None) -> Any:
        """The item of a key or of (cluster, key), or `default`."""
        try:
            return self[key]
        except KeyError:
            return default

    def add(self, item: V) -> None:
        """Add an item, to the cluster it names, else to the local one. Raises TypeError for anything else."""
        cluster = getattr(self._checked(item), "cluster", None) or local_cluster()
        self.data.setdefault(cluster, {})[self._key(getattr(item, self._ID))] = item

    def keys(self) -> KeysView[K]:
        """The keys; `.with_cluster()` gives pairs (cluster, key)."""
        return KeysView(self)

    def items(self) -> ItemsView[K, V]:
        """Pairs (key, item); `.with_cluster()` gives triples (cluster, key, item)."""
        return ItemsView(self)

    def values(self) -> ValuesView[V]:
        """The items."""
        return ValuesView(self)

    def clusters(self) -> ClustersView:
        """The names of the clusters."""
        return ClustersView(self)

    def popitem(self) -> tuple[K, V]:
        """Take out the pair (key, item) that came last. Raises KeyError if there is none."""
        for part in reversed(list(self.data.values())):
            if part:
                return part.popitem()
        raise KeyError("the collection is empty")

    def clear(self) -> None:
        """Take out everything."""
        self.data.clear()

    @overload
    def pop(self, key: K | tuple[str, K]) -> V: ...

    @overload
    def pop(self, key: K | tuple[str, K], default: D) -> V | D: ...

    def pop(self, key: K | tuple[str, K], default: Any = _UNSET) -> Any:
        """Take out the item of a key or of (cluster, key) and give it. Raises KeyError if there is no `default`."""
        if key in self:
            cluster, plain_key = self._where(key)
            return self.data[cluster].pop(plain_key)
        if default is _UNSET:
            raise KeyError(key)
        return default

    def update(self, data: Mapping[Any, Any] | MultiClusterMap[K, V] | None = None, **kwargs: V) -> None:
        """Take over items: a dict by key, a dict of dicts by cluster, or another collection."""
        if isinstance(data, MultiClusterMap):
            data = data.data
        for key, value in [*(data or {}).items(), *kwargs.items()]:
            if isinstance(value, dict):
                self.data.setdefault(key, {}).update(self._part(value))
            else:
                self[key] = value

    # -- as data

    def to_dict(self, multi_cluster: bool = False, recursive: bool = False) -> dict[Any, Any]:
        """The local cluster's items by key; `multi_cluster`: those of all, by cluster; `recursive`: items as dicts too."""
        data = {cluster: dict_recursive(part) if recursive else dict(part) for cluster, part in self.data.items()}
        return data if multi_cluster else data.get(self._home(), {})

    def to_json(self, multi_cluster: bool = False) -> str:
        """`to_dict(multi_cluster, recursive=True)` as JSON."""
        return json.dumps(self.to_dict(multi_cluster, recursive=True))

    # -- inside

    def _split(self, text: str) -> list[str]:
        """The keys in a text."""
        return [part.strip() for part in text.split(",") if part.strip()]

    def _home(self) -> str:
        home = local_cluster()
        return home if home in self.data else next(iter(self.data), home)

    def _where(self, key: Any) -> tuple[str, K]:
        if isinstance(key, tuple) and len(key) == 2:
            return key[0], self._key(key[1])
        return self._home(), self._key(key)

    def _key(self, key: Any) -> K:
        """The key as it is kept: job ids may be given as text."""
        if isinstance(key, str):
            key = key.strip()
        try:
            return cast(K, self._KEY(key))
        except (TypeError, ValueError):
            return cast(K, key)

    def _part(self, items: Mapping[Any, V]) -> dict[K, V]:
        return {self._key(key): self._checked(item) for key, item in items.items()}

    def _checked(self, item: V) -> V:
        if not isinstance(item, self._val_type):
            raise TypeError(f"{self._typ} hold {self._val_type.__name__}, not {type(item).__name__}")
        return item


class Loaded(Protocol):
    """A collection that can load itself."""

    def load(self) -> MultiClusterMap[Any, Any]:
        """All of them."""


def multi_reload(cur: C, frozen: bool = True) -> C:
    """Bring a collection up to date in place; gives it back.

    `frozen`: no item is added, and one that Slurm has no more stays as it is; else the collection is what Slurm has now.
    An empty collection is filled either way.
    """
    new = cast(Loaded, cur).load()
    if not cur:
        cur.update(new)
        return cur
    for cluster, key in list(cur.keys().with_cluster()):
        if (cluster, key) in new:
            cur[cluster, key] = new.pop((cluster, key))
        elif not frozen:
            del cur[cluster, key]
    if not frozen:
        for cluster, key, item in list(new.items().with_cluster()):
            cur[cluster, key] = item
    return cur


def dict_recursive(collection: Mapping[Any, Any] | MultiClusterMap[Any, Any], recursive: bool = True) -> dict[Any, Any]:
    """A dict of the items as dicts."""
    return {key: plain(item, recursive) for key, item in collection.items()}


def to_json(collection: Mapping[Any, Any] | MultiClusterMap[Any, Any]) -> str:
    """A collection, or a dict of items, as JSON."""
    return json.dumps(dict_recursive(collection))


def multi_dict_recursive(collection: MultiClusterMap[Any, Any], recursive: bool = True) -> dict[str, dict[Any, Any]]:
    """Items as dicts by key, by cluster."""
    return {cluster: dict_recursive(part, recursive) for cluster, part in collection.data.items()}


def sum_property(collection: MultiClusterMap[Any, V], prop: Any, startval: int = 0) -> int:
    """The sum of an attribute (`Node.free_memory`, or its name) over all items; what isn't a number counts nothing."""
    name = prop if isinstance(prop, str) else prop.name
    values = (getattr(item, name) for item in collection.values())
    return sum((value for value in values if isinstance(value, int)), startval)


def entries(kind: type[R], payload: Mapping[str, Any], field: str, version: str) -> list[R]:
    """The objects of the list `field` of an answer. Raises PyslurmError if it isn't there: nothing was answered then."""
    found = payload.get(field)
    if not isinstance(found, list):
        raise PyslurmError(f"the answer holds no list of {field}")
    return [kind._of(raw, version) for raw in found]


def the_one(kind: type[R], payload: Mapping[str, Any], field: str, name: str, version: str, not_found: int) -> R:
    """The object of this name in an answer about it. Raises RPCError of number `not_found` if it isn't there.

    Of what isn't there, some versions answer without any list, and without an error.
    """
    for one in entries(kind, {field: [], **payload}, field, version):
        if one._raw.get("name") == name:
            return one
    raise RPCError(not_found, f"slurmctld answered without {kind.__name__.lower()} {name}")
