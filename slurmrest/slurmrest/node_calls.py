"""The calls about nodes. Part of `slurmrest.calls.Calls`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, Unpack

from slurmrest.core import NODE_NAME, STATE_WORD, Core, checked, refuse_unwritable, segment, written_time
from slurmrest.errors import InvalidRequest, Unavailable
from slurmrest.messages import Steps
from slurmrest.numbers import INFINITE, Infinite, number, read_int
from slurmrest.streams import Raw
from slurmrest.values import Node

NODE_LINE: Final = re.compile(r"[ -~]{1,4000}")


class NodeChanges(TypedDict, total=False):
    """What can be changed of a node; what isn't given, or is None, stays.

    `state` such as ["DRAIN"], ["RESUME"], ["DOWN"], ["UNDRAIN"]; `active_features` are those in force now, `features`
    those that it could have (an empty list takes all away; the active ones must be among them); `resume_after` counts
    seconds after which a DOWN or drained node is resumed; `topology` is of API v0.0.43 or newer.
    """

    state: Iterable[str]
    reason: str | None
    comment: str | None
    extra: str | None
    features: Iterable[str] | None
    active_features: Iterable[str] | None
    gres: str | None
    address: str | None
    hostname: str | None
    weight: int | None
    resume_after: int | Infinite | None
    topology: str | None


_TOPOLOGY: Final = "topology_str"
_NAMES: Final = {"active_features": "features_act", "topology": _TOPOLOGY}
_LISTS: Final = frozenset({"features", "active_features"})


class NodeCalls(Core):
    """The calls about nodes."""

    def nodes(self, *, raw: bool = False) -> Steps[list[Node]]:
        """All nodes; 2.4 KB and 0.17 ms each on the wire. `raw`: each keeps its entry."""
        return (yield from self.stream("nodes/", (yield from self.adapt()).each_node(raw)))

    def nodes_since(self, moment: int | None) -> Steps[tuple[list[Node] | None, int | None]]:
        """All nodes, or None if none has changed since `moment`; and the moment to ask with next time.

        A changed one costs the whole list, none costs nothing. 24.11 fails when nodes have changed but no partition ("Unable
        to query partitions"): then the list is asked for plainly.
        """
        adapter = yield from self.adapt()
        entries = adapter.each_node()
        if moment is not None:
            params = {"update_time": written_time(moment)}
            try:
                answer = yield from self.call("GET", "nodes/", params=params, safe=True, entries=entries, retries=0)
            except Unavailable:
                pass  # if it really is, the plain call tells
            else:
                return (entries.of(answer.payload), _last_update(answer.payload)) if answer.payload else (None, moment)
        answer = yield from self.call("GET", "nodes/", safe=True, entries=entries)
        return entries.of(answer.payload), _last_update(answer.payload)

    def node(self, name: str) -> Steps[Node]:
        """One node with its raw entry, or NotFound."""
        tail = f"node/{segment(NODE_NAME, name, 'node name')}"
        entries = (yield from self.adapt()).each_node(raw=True)
        return (yield from self.one(tail, entries, lambda node: node.name == name, name))

    def update_node(self, name: str, **changes: Unpack[NodeChanges]) -> Steps[None]:
        """Change a node: see `NodeChanges`."""
        tail = f"node/{segment(NODE_NAME, name, 'node name')}"
        yield from self._change(tail, _changes(changes))

    def update_nodes(self, names: Iterable[str], **changes: Unpack[NodeChanges]) -> Steps[None]:
        """Change several nodes alike, in one request. Slurm stops at the first that it refuses."""
        wanted = [checked(NODE_NAME, name, "node name") for name in names]
        if not wanted:
            raise InvalidRequest("no node to change")
        yield from self._change("nodes/", {"name": wanted, **_changes(changes)})

    def _change(self, tail: str, body: Mapping[str, Any]) -> Steps[None]:
        if _TOPOLOGY in body:  # an older version would overlook it
            (yield from self.adapt()).require(f"the topology of POST {tail}", "v0.0.43")
        yield from self.call("POST", tail, body=body, repeatable=True)

    def create_nodes(self, line: str) -> Steps[None]:
        """Make dynamic nodes from a line of slurm.conf: "NodeName=d[0-3] CPUs=64 State=CLOUD". API v0.0.44 or newer.

        slurm.conf's MaxNodeCount must leave room for them.
        """
        yield from self.call("POST", "new/node/", body={"node_conf": checked(NODE_LINE, line, "node line")})

    def delete_node(self, name: str) -> Steps[None]:
        """Delete a dynamic node on which nothing runs. Raises InvalidRequest (2028) for one of slurm.conf's."""
        yield from self.call("DELETE", f"node/{segment(NODE_NAME, name, 'node name')}", repeatable=True)


def _changes(changes: NodeChanges) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, value in changes.items():
        if value is not None:
            body[_NAMES.get(name, name)] = _written(name, value)
    body = {name: value for name, value in body.items() if value != []}
    refuse_unwritable(body)
    return body


def _written(name: str, value: Any) -> Any:
    if name == "state":
        words = [value] if isinstance(value, str) else value
        return [checked(STATE_WORD, word, "node state") for word in words]
    if name in _LISTS:
        return [value] if isinstance(value, str) else list(value) or [""]  # Slurm overlooks an empty list
    if name in ("address", "hostname"):
        return [value]
    if isinstance(value, int) or value is INFINITE:
        return number(value)
    return value


def _last_update(payload: Raw) -> int | None:
    try:
        return read_int(payload.get("last_update"))
    except (KeyError, TypeError, ValueError):
        return None
