"""The calls about the cluster as a whole: partitions, reservations, licences, shares, slurmctld itself.

Part of `slurmrest.calls.Calls`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurmrest.core import Core, checked, refuse_unwritable, segment
from slurmrest.errors import InvalidRequest, NotFound, ProtocolError
from slurmrest.messages import Steps
from slurmrest.streams import Raw
from slurmrest.values import Diag, License, Partition, Ping, Reservation, Share

NAME: Final = re.compile(r"[A-Za-z0-9_.@+-]{1,200}")
_NO_PARTITION: Final = 2000
_NO_RESERVATION: Final = 2053


class ClusterCalls(Core):
    """The calls about the cluster."""

    def ping(self) -> Steps[list[Ping]]:
        """Each slurmctld of the cluster, and whether it responds to slurmrestd."""
        return (yield from self.stream("ping/", (yield from self.adapt()).each_ping()))

    def diag(self) -> Steps[Diag]:
        """slurmctld's own figures; all of them in `raw`."""
        adapter = yield from self.adapt()
        return adapter.diag((yield from self.get("diag/")).payload)

    def conf(self) -> Steps[Raw]:
        """slurm.conf as slurmctld has it: key -> value (text, number, list or object). API v0.0.45 or newer."""
        found = (yield from self.get("conf")).payload.get("slurm_conf")
        if not isinstance(found, dict):
            raise ProtocolError("the answer holds no slurm_conf", method="GET", path="conf")
        return found

    def reconfigure(self) -> Steps[None]:
        """Have Slurm read its configuration files again. It has not yet done so on all nodes when this returns."""
        yield from self.call("GET", "reconfigure/", repeatable=True, safe=False)

    def partitions(self, *, raw: bool = False) -> Steps[list[Partition]]:
        """All partitions."""
        return (yield from self.stream("partitions/", (yield from self.adapt()).each_partition(raw)))

    def partition(self, name: str) -> Steps[Partition]:
        """One partition with its raw entry, or NotFound."""
        tail = f"partition/{segment(NAME, name, 'partition name')}"
        entries = (yield from self.adapt()).each_partition(raw=True)
        return (yield from self.one(tail, entries, lambda found: found.name == name, name))

    def save_partitions(self, partitions: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Make partitions, or change those that are there. API v0.0.45 or newer.

        Each as `GET partitions/` shows it: `{"name": "gpu", "nodes": {"configured": "n[0-3]"}}`; what isn't given stays,
        or gets Slurm's default.
        """
        bodies = [dict(one) for one in partitions]
        for body in bodies:
            checked(NAME, body.get("name", ""), "partition name")
        yield from self.call("POST", "partitions/", body={"partitions": bodies}, repeatable=True)

    def delete_partition(self, name: str) -> Steps[None]:
        """Delete a partition that no job uses. API v0.0.45 or newer."""
        yield from self._delete(f"partition/{segment(NAME, name, 'partition name')}", _NO_PARTITION)

    def reservations(self, *, raw: bool = False) -> Steps[list[Reservation]]:
        """All reservations."""
        return (yield from self.stream("reservations/", (yield from self.adapt()).each_reservation(raw)))

    def reservation(self, name: str) -> Steps[Reservation]:
        """One reservation with its raw entry, or NotFound."""
        tail = f"reservation/{segment(NAME, name, 'reservation name')}"
        entries = (yield from self.adapt()).each_reservation(raw=True)
        return (yield from self.one(tail, entries, lambda found: found.name == name, name))

    def save_reservation(self, reservation: Mapping[str, Any]) -> Steps[None]:
        """Make a reservation, or change the one of this name. API v0.0.43 or newer.

        Fields as the API has them: name, start_time, end_time, duration, node_list (a list), users (a list), flags ...
        `tres` is refused: slurmrestd 26.05.5 crashes at one that it doesn't know, and without slurmdbd it knows none. Say
        core_count, node_count and licenses instead.
        """
        checked(NAME, reservation.get("name", ""), "reservation name")
        yield from self.call("POST", "reservation", body=dict(reservation), repeatable=True)

    def delete_reservation(self, name: str) -> Steps[None]:
        """Delete a reservation. Slurm 26.05."""
        yield from self._delete(f"reservation/{segment(NAME, name, 'reservation name')}", _NO_RESERVATION)

    def _delete(self, tail: str, unknown: int) -> Steps[None]:
        try:
            yield from self.call("DELETE", tail, repeatable=True)
        except InvalidRequest as error:
            if error.number == unknown:
                raise NotFound(error.text, method=error.method, path=error.path) from error
            raise

    def licenses(self, *, raw: bool = False) -> Steps[list[License]]:
        """All licences."""
        return (yield from self.stream("licenses/", (yield from self.adapt()).each_license(raw)))

    def shares(
        self, *, accounts: Iterable[str] = (), users: Iterable[str] = (), raw: bool = False
    ) -> Steps[list[Share]]:
        """Fair shares: of these accounts and users, or all. Empty without slurmdbd."""
        params = {"accounts": ",".join(accounts), "users": ",".join(users)}
        refuse_unwritable(params)
        adapter = yield from self.adapt()
        chosen = {name: value for name, value in params.items() if value}
        answer = yield from self.call("GET", "shares", params=chosen, repeatable=True, safe=True)
        return adapter.shares(answer.payload, raw)
