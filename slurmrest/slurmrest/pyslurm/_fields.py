"""How attributes of pyslurm's classes read the REST API's payload, and remember what a script sets.

Used by every class with attributes of Slurm's. One declaration per attribute:

    class Node(Record):
        name = setting("name", read=text, write=to_text)      # str | None, may be set
        free_memory = field("free_mem", read=integer)         # int | None, read only
        owner = missing(text, "no call tells it")             # reading raises PyslurmError
        topology = field("topology", read=text, since="v0.0.43")

        @computed
        def idle_cpus(self) -> int: ...

A path is dotted ("nodes.configured"); of several, the first that is there counts: that is how renames between API
versions are told, here and nowhere else. What always holds: an object keeps its payload and reads it when asked, a
payload of another shape raises PyslurmError naming the attribute, `_body()` holds what was set and nothing else, a wrong
value raises ValueError or TypeError naming the attribute before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Never, Self, TypeVar, overload

from slurmrest.pyslurm.error import PyslurmError

T = TypeVar("T")
W = TypeVar("W")
T_co = TypeVar("T_co", covariant=True)
W_contra = TypeVar("W_contra", contravariant=True)


class Field(Generic[T_co]):
    """A read-only attribute: `read` makes its value of what stands at `paths` (None: nothing is there)."""

    def __init__(self, *paths: str, read: Callable[[Any], T_co], since: str = "", doc: str = "") -> None:
        self.paths = tuple(tuple(path.split(".")) for path in paths)
        self.read = read
        self.since = since
        """The first API version that has it, "" for all."""
        self.why = ""
        """Why no version tells it, "" if one does."""
        self.name = ""
        self.owner = ""
        self.__doc__ = doc or None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.owner = name, owner.__name__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: Record, owner: type) -> T_co: ...

    def __get__(self, instance: Record | None, owner: type) -> Self | T_co:
        if instance is None:
            return self
        try:
            return self.value(instance)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise PyslurmError(f"{self.label} can't be read from the answer: {error}") from error

    def __set__(self, instance: Record, value: Never) -> None:
        raise AttributeError(f"{self.label} can't be set")

    @property
    def label(self) -> str:
        """The attribute as messages name it."""
        return f"{self.owner}.{self.name}"

    def value(self, instance: Record) -> T_co:
        """The value. Raises PyslurmError if the version that answered lacks it."""
        if self.name in instance._changes:
            return self.read(instance._changes[self.name])
        if self.why:
            raise PyslurmError(f"{self.label} can't be had from the REST API (up to v0.0.45): {self.why}")
        if self.since and instance._version and instance._version < self.since:
            raise PyslurmError(f"{self.label} needs API {self.since} or newer; the answer is of {instance._version}")
        return self.read(self.find(instance))

    def find(self, instance: Record) -> Any:
        """What `read` makes the value of: what stands at the first path that is there, or None."""
        for path in self.paths:
            found: Any = instance._raw
            for part in path:
                found = found.get(part) if isinstance(found, dict) else None
            if found is not None:
                return found
        return None


class Setting(Field[T_co], Generic[T_co, W_contra]):
    """An attribute that a script may set: `write` makes the API's form of a value, which goes to `to` in a request.

    With `why` it can be set and not be told: then only what was set reads back.
    """

    def __init__(
        self,
        *paths: str,
        read: Callable[[Any], T_co],
        write: Callable[[W_contra], Any],
        to: str = "",
        since: str = "",
        why: str = "",
        doc: str = "",
    ) -> None:
        super().__init__(*paths, read=read, since=since, doc=doc)
        self.write = write
        self.why = why
        self.to = tuple((to or paths[0]).split("."))

    def __set__(self, instance: Record, value: W_contra | None) -> None:
        if value is None:  # as if it had never been set
            instance._changes.pop(self.name, None)
            return
        try:
            instance._changes[self.name] = self.write(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.label}: {error}") from error


class Missing(Field[T_co]):
    """An attribute that pyslurm has and no version of the REST API tells: reading it raises PyslurmError."""

    def __init__(self, read: Callable[[Any], T_co], why: str) -> None:
        super().__init__(read=read)
        self.why = why


class Computed(Field[T_co]):
    """An attribute that is worked out from others."""

    def __init__(self, function: Callable[[Any], T_co], since: str = "") -> None:
        super().__init__(read=function, since=since, doc=function.__doc__ or "")

    def find(self, instance: Record) -> Record:
        return instance


field = Field
setting = Setting
missing = Missing
computed = Computed


class Record:
    """Base of the classes with attributes: a payload as it came, and what was set since."""

    __slots__ = ("_changes", "_raw", "_version")
    _fields: ClassVar[dict[str, Field[Any]]] = {}

    def __init__(self, **kwargs: Any) -> None:
        self._raw: Mapping[str, Any] = {}
        self._changes: dict[str, Any] = {}
        self._version = ""
        for name, value in kwargs.items():
            if name not in self._fields:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r:.80}")
            setattr(self, name, value)

    def __init_subclass__(cls) -> None:
        found = {name: one for base in reversed(cls.__mro__) for name, one in vars(base).items()}
        cls._fields = {name: one for name, one in found.items() if isinstance(one, Field)}

    @classmethod
    def _of(cls, raw: Mapping[str, Any], version: str = "") -> Self:
        """An object of a payload that `version` of the API gave."""
        if not isinstance(raw, dict):
            raise PyslurmError(f"an answer holds a {type(raw).__name__} where a {cls.__name__} should be")
        one = cls.__new__(cls)
        one._raw, one._changes, one._version = raw, {}, version
        one._prepare()
        return one

    def _prepare(self) -> None:
        """For subclasses with slots of their own: called once `_of` has set the payload."""

    def _body(self) -> dict[str, Any]:
        """What was set, in the form and at the place that a request has it."""
        body: dict[str, Any] = {}
        for name, raw in self._changes.items():
            one = self._fields[name]
            if not isinstance(one, Setting):
                raise PyslurmError(f"{one.label} can't be sent")
            *folders, last = one.to
            place = body
            for folder in folders:
                place = place.setdefault(folder, {})
            # Several attributes may be flags of one list.
            place[last] = [*place[last], *raw] if isinstance(raw, list) and last in place else raw
        return body

    def _changed(self) -> dict[str, Any]:
        """As `_body`, without the name, for a change of something that is there. Raises PyslurmError if it is empty."""
        body = {place: raw for place, raw in self._body().items() if place != "name"}
        if not body:
            raise PyslurmError(f"no change of the {type(self).__name__.lower()} is given")
        return body

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """All attributes by name; what can't be had is None. `recursive`: what they hold as dicts and lists too."""
        return {name: plain(self._read(one), recursive) for name, one in self._fields.items()}

    def as_dict(self) -> dict[str, Any]:
        """As `to_dict()`."""
        return self.to_dict()

    def _read(self, one: Field[T]) -> T | None:
        try:
            return one.__get__(self, type(self))
        except PyslurmError:
            if one.why or one.since > self._version:
                return None
            raise


def plain(value: Any, recursive: bool = True) -> Any:
    """`value`, with objects inside as dicts if `recursive`: what json can write."""
    if not recursive:
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict(recursive=True)
    if hasattr(value, "to_list"):
        return value.to_list()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple, set, frozenset)) else value
