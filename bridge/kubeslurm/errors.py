"""Every error that the domain raises, in one tree.

    BridgeError
    ├── InvalidObject        an object of the user's is wrong: `path` names the field, `message` says what is wrong
    │   └── Untranslated     the field is valid for Kubernetes, but has no counterpart in Slurm (yet)
    ├── Refused              a request to a virtual node can't be served: `status` is the answer's HTTP status
    └── Conflict             two objects, each right by itself, can't stand side by side

Adapters turn them into one event and one condition (operator) or one line and exit status 2 (command line).
"""

from __future__ import annotations


class BridgeError(Exception):
    """Base of all errors of the domain; its text is one line, fit for a condition's message."""

    def __str__(self) -> str:
        return " ".join(super().__str__().splitlines())


class InvalidObject(BridgeError, ValueError):  # noqa: N818 - a ValueError, so that pydantic carries it
    """A field of a user's object can't be accepted. Nothing has been done with any part of the object."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

    def below(self, prefix: str) -> InvalidObject:
        """The same complaint seen from an outer object: `gpu.count` below `spec` is `spec.gpu.count`."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return type(self)(f"{prefix}{joint}{self.path}", self.message)


class Untranslated(InvalidObject):
    """A field that Kubernetes would honour and this version doesn't bring to Slurm: refused, never dropped."""


class Conflict(BridgeError):  # noqa: N818 - as above
    """Objects that contradict each other, such as one NodeSet given twice."""


class Refused(BridgeError):  # noqa: N818 - as above
    """A request to a virtual node's kubelet endpoint that can't be served. `status` is the HTTP status of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
