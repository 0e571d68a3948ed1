"""One adapter per version of the API (Slurm's data_parser), and the choice among what slurmrestd offers.

Used by the core. What always holds: all that differs between versions for the calls is a field of the adapter or read
by its entries; the values are the same for every version. An entry of another form than the API promises raises
ProtocolError, never TypeError or KeyError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from slurmrest import db_reading, reading
from slurmrest.db_values import Account, Association, Cluster, Instance, JobRecord, Qos, Tres, User, Wckey
from slurmrest.endpoints import RELEASES, Api, missing
from slurmrest.errors import ProtocolError, Unsupported
from slurmrest.streams import Entries, Raw
from slurmrest.values import (
    Diag,
    Job,
    JobOutcome,
    JobState,
    License,
    Node,
    NodeShare,
    Partition,
    Ping,
    Reservation,
    Share,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Adapter:
    """What one version's answers become. With `raw`, each value keeps the entry that it was read from."""

    version: str
    parameters: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Queries of slurmdbd whose parameters are called otherwise than in v0.0.40: (path, name there) -> name here."""
    serves_slurmdb: bool = True
    """Does this slurmrestd know slurmdbd's calls? It may be started without them."""

    def path(self, tail: str, api: Api = "slurm") -> str:
        """The path of a call of this version."""
        return f"/{api}/{self.version}/{tail}"

    def require(self, what: str, since: str) -> None:
        """Raise Unsupported if this version is older than `since`, the first that has `what`."""
        if why := missing(what, since, self.version):
            raise Unsupported(why)

    def each_node(self, raw: bool = False) -> Entries[Node]:
        """Of `GET nodes/` and `GET node/{name}`."""
        return _entries("nodes", reading.node, raw, reading.NODE_KEYS)

    def each_job(self, raw: bool = False) -> Entries[Job]:
        """Of `GET jobs/` and `GET job/{id}`."""
        return _entries("jobs", reading.job, raw, reading.JOB_KEYS)

    def each_job_state(self) -> Entries[JobState]:
        """Of `GET jobs/state/`."""
        return Entries("jobs", reading.job_state, reading.JOB_STATE_KEYS)

    def each_partition(self, raw: bool = False) -> Entries[Partition]:
        """Of `GET partitions/` and `GET partition/{name}`."""
        return _entries("partitions", reading.partition, raw)

    def each_reservation(self, raw: bool = False) -> Entries[Reservation]:
        """Of `GET reservations/` and `GET reservation/{name}`."""
        return _entries("reservations", reading.reservation, raw)

    def each_license(self, raw: bool = False) -> Entries[License]:
        """Of `GET licenses/`."""
        return _entries("licenses", reading.license, raw)

    def each_node_share(self) -> Entries[NodeShare]:
        """Of `GET resources/{job_id}`."""
        return _entries("nodes", reading.node_share, raw=True)

    def each_ping(self) -> Entries[Ping]:
        """Of `GET ping/`, slurmctld's or slurmdbd's."""
        return Entries("pings", reading.ping)

    def each_account(self, raw: bool = False) -> Entries[Account]:
        """Of slurmdbd's `GET accounts/`."""
        return _entries("accounts", db_reading.account, raw)

    def each_user(self, raw: bool = False) -> Entries[User]:
        """Of slurmdbd's `GET users/`."""
        return _entries("users", db_reading.user, raw)

    def each_association(self, raw: bool = False) -> Entries[Association]:
        """Of slurmdbd's `GET associations/`."""
        return _entries("associations", db_reading.association, raw)

    def each_qos(self, raw: bool = False) -> Entries[Qos]:
        """Of slurmdbd's `GET qos/`."""
        return _entries("qos", db_reading.qos, raw)

    def each_wckey(self, raw: bool = False) -> Entries[Wckey]:
        """Of slurmdbd's `GET wckeys/`."""
        return _entries("wckeys", db_reading.wckey, raw)

    def each_tres(self) -> Entries[Tres]:
        """Of slurmdbd's `GET tres/`."""
        return Entries("TRES", db_reading.tres)

    def each_cluster(self, raw: bool = False) -> Entries[Cluster]:
        """Of slurmdbd's `GET clusters/`."""
        return _entries("clusters", db_reading.cluster, raw)

    def each_instance(self) -> Entries[Instance]:
        """Of slurmdbd's `GET instances/`."""
        return _entries("instances", db_reading.instance, raw=True)

    def each_job_record(self, raw: bool = False) -> Entries[JobRecord]:
        """Of slurmdbd's `GET jobs/` and `GET job/{id}`."""
        return _entries("jobs", db_reading.job, raw)

    def parameter(self, tail: str, name: str) -> str:
        """What a query's parameter is called in this version."""
        return self.parameters.get((tail, name), name)

    def nodes(self, payload: Raw) -> list[Node]:
        """All of an answer that is there as a whole."""
        return self.each_node().read_all(payload)

    def partitions(self, payload: Raw) -> list[Partition]:
        """As above."""
        return self.each_partition().read_all(payload)

    def jobs(self, payload: Raw) -> list[Job]:
        """As above."""
        return self.each_job().read_all(payload)

    def job_states(self, payload: Raw) -> list[JobState]:
        """As above."""
        return self.each_job_state().read_all(payload)

    def pings(self, payload: Raw) -> list[Ping]:
        """As above."""
        return self.each_ping().read_all(payload)

    def shares(self, payload: Raw, raw: bool = False) -> list[Share]:
        """Of `GET shares`: a list in an object."""
        inner = payload.get("shares")
        if not isinstance(inner, dict):
            raise ProtocolError("the answer holds no shares")
        return _entries("shares", reading.share, raw).read_all(inner)

    def diag(self, payload: Raw) -> Diag:
        """Of `GET diag/`."""
        return _entries("statistics", reading.diag, raw=True).read_all({"statistics": [payload.get("statistics")]})[0]

    def outcomes(self, payload: Raw) -> list[JobOutcome]:
        """What calls about jobs tell in `status`, next to an empty `errors`; v0.0.40 tells nothing of one job's cancel."""
        told = payload.get("status") or []
        flat = [one for part in told for one in (part if isinstance(part, list) else [part])]
        return Entries("status", reading.outcome).read_all({"status": flat})


_ASSOCIATIONS: Final = {
    "only_defaults": "Filter to only defaults",
    "with_deleted": "Include deleted associations",
    "with_raw_qos": "Include the raw QOS or delta_qos",
    "with_sub_accts": "Include sub acct information",
    "with_usage": "Include usage",
    "without_parent_info": "Exclude parent id/name",
    "without_parent_limits": "Exclude limits from parents",
}
_RENAMED: Final = {
    "accounts/": {"with_assocs": "WithAssociations", "with_coords": "WithCoordinators", "with_deleted": "DELETED"},
    "association/": _ASSOCIATIONS,
    "associations/": _ASSOCIATIONS,
    "qos/": {"with_deleted": "Include deleted QOS"},
}
"""From v0.0.42 on some flags of a query bear the words that only document them elsewhere."""
_PARAMETERS: Final = {(tail, old): new for tail, names in _RENAMED.items() for old, new in names.items()}
_OLD: Final = ("v0.0.40", "v0.0.41")

ADAPTERS: Final[dict[str, Adapter]] = {
    version: Adapter(version) if version in _OLD else Adapter(version, parameters=_PARAMETERS) for version in RELEASES
}
"""The versions that the client speaks, oldest first."""

_OFFERED: Final = re.compile(r"/(slurm|slurmdb)/(v\d+\.\d+\.\d+)/")


def choose(paths: Any) -> Adapter:
    """The newest known version among the paths of an OpenAPI document."""
    if not isinstance(paths, Mapping):
        raise ProtocolError("the OpenAPI document has no paths")
    pairs = {(found[1], found[2]) for found in map(_OFFERED.match, paths) if found}
    offered = {version for api, version in pairs if api == "slurm"}
    for version in reversed(ADAPTERS):
        if version in offered:
            return replace(ADAPTERS[version], serves_slurmdb=("slurmdb", version) in pairs)
    raise Unsupported(f"slurmrestd offers {_listed(offered)}; known are {_listed(ADAPTERS)}")


def forced(version: str) -> Adapter:
    """The adapter of the version that the caller wants."""
    if version not in ADAPTERS:
        raise Unsupported(f"version {version!r} is not one of {_listed(ADAPTERS)}")
    return ADAPTERS[version]


def _listed(versions: set[str] | Mapping[str, Adapter]) -> str:
    return ", ".join(sorted(versions)) or "no version"


def _entries(name: str, read: Callable[[Raw], T], raw: bool, keys: str = "") -> Entries[T]:
    """The list `name` of an answer, read by `read`, which looks at `keys`; with `raw`, each value keeps its entry."""
    if not raw:
        return Entries(name, read, keys)

    def keeping(entry: Raw) -> T:
        value = read(entry)
        object.__setattr__(value, "raw", entry)  # nobody else has the new value yet
        return value

    return Entries(name, keeping)
