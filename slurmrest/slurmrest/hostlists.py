"""Slurm's host lists: `gpu-node-[0-63]` to names and back. The one module that imports ClusterShell.

Used by whoever reads `Job.nodes` or writes node lists. What always holds: only host names and bracketed ranges are
taken; ClusterShell's node groups (`@`, `*`) and set operators (`!`, `&`, `^`) never reach it, nor its steps (`/`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_LIST: Final = re.compile(r"[A-Za-z0-9_.,\[\]-]*")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_BRACKET: Final = re.compile(r"\[([^\[\]]*)\]")
_EMPTY: Final = frozenset({"", "(null)", "None", "None assigned", "n/a"})
MOST: Final = 100_000
"""The most names that one text may stand for: `n[0-999999999]` would take all memory."""


def expand(text: str) -> list[str]:
    """The names in `text`, in ClusterShell's order (by name, numbers by value). Raises ValueError for anything else.

    >>> expand("n[1-2],login")
    ['login', 'n1', 'n2']
    """
    text = text.strip()
    if text in _EMPTY:
        return []
    _refuse(text)
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ValueError(f"not a host list: {text[:80]!r}") from error


def fold(names: Iterable[str]) -> str:
    """The shortest host list of these names; each once. Raises ValueError for what is no host name.

    >>> fold(["n1", "n0", "login"])
    'login,n[0-1]'
    """
    checked = list(names)
    for name in checked:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a host name: {name[:80]!r}")
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    return str(NodeSet.fromlist(checked, resolver=RESOLVER_NOGROUP))


def _refuse(text: str) -> None:
    if not _LIST.fullmatch(text):
        raise ValueError(f"not a host list: {text[:80]!r}")
    if _BRACKET.sub("", text).strip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-"):
        raise ValueError(f"brackets don't match: {text[:80]!r}")
    total = 1
    for ranges in _BRACKET.findall(text):
        total *= sum(_width(part, text) for part in ranges.split(","))
        if total > MOST:
            raise ValueError(f"more than {MOST} names: {text[:80]!r}")


def _width(part: str, text: str) -> int:
    found = _RANGE.fullmatch(part)
    if not found:
        raise ValueError(f"not a range: {part[:20]!r} in {text[:80]!r}")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f"a range that goes backwards: {part[:20]!r} in {text[:80]!r}")
    return last - first + 1
