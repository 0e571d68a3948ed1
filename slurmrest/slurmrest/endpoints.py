"""Every endpoint of slurmctld's and slurmdbd's REST, and the API version that first has it.

The core asks here before it sends anything; docs/slurmrest.md prints the table. What always holds: a call that the
version in use lacks is refused with the first version that has it, a path that isn't in the table passes (a newer
slurmrestd may know it). Source: /openapi/v3 of Slurm 24.11.5 (v0.0.40 to v0.0.42) and 26.05.5 (v0.0.42 to v0.0.45).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Api: TypeAlias = Literal["slurm", "slurmdb"]
"""Which daemon answers: slurmctld, or slurmdbd."""

RELEASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "v0.0.40": "23.11",
        "v0.0.41": "24.05",
        "v0.0.42": "24.11",
        "v0.0.43": "25.05",
        "v0.0.44": "25.11",
        "v0.0.45": "26.05",
    }
)
"""The Slurm release that each API version came with, oldest first: the versions that the client speaks."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call of the API. `path` follows the version; what stands in braces is replaced. `since` is its first version."""

    api: Api
    method: str
    path: str
    since: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}" if self.api == "slurm" else f"{self.method} {self.api} {self.path}"

    def missing(self, version: str) -> str:
        """Why this call can't be made in `version`; "" if it can."""
        return missing(str(self), self.since, version)


def missing(what: str, since: str, version: str) -> str:
    """Why `what` can't be had in `version`, which is older than `since`; "" if it can."""
    if _order(version) >= _order(since):
        return ""
    return f"{what} needs {since} (Slurm {RELEASES[since]}); slurmrestd speaks {version}"


_CHANGES: Final[tuple[tuple[Api, str, str, str], ...]] = (
    ("slurm", "v0.0.40", "GET", "diag/ ping/ licenses/ shares reconfigure/ jobs/ jobs/state/ job/{job_id}"),
    ("slurm", "v0.0.40", "GET", "nodes/ node/{node_name} partitions/ partition/{partition_name}"),
    ("slurm", "v0.0.40", "GET", "reservations/ reservation/{reservation_name}"),
    ("slurm", "v0.0.40", "POST", "job/submit job/{job_id} nodes/ node/{node_name}"),
    ("slurm", "v0.0.40", "DELETE", "job/{job_id} jobs/ node/{node_name}"),
    ("slurm", "v0.0.41", "POST", "job/allocate"),
    # Only 26.05 has it; it serves its v0.0.42 with it too, 24.11 doesn't.
    ("slurm", "v0.0.42", "DELETE", "reservation/{reservation_name}"),
    ("slurm", "v0.0.43", "POST", "reservation reservations/"),
    ("slurm", "v0.0.44", "GET", "resources/{job_id}"),
    ("slurm", "v0.0.44", "POST", "new/node/"),
    ("slurm", "v0.0.45", "GET", "conf job/{job_id}/requeue"),
    ("slurm", "v0.0.45", "POST", "jobs/requeue partitions/"),
    ("slurm", "v0.0.45", "DELETE", "partition/{partition_name}"),
    ("slurmdb", "v0.0.40", "GET", "accounts/ account/{account_name} association/ associations/ clusters/ config"),
    ("slurmdb", "v0.0.40", "GET", "cluster/{cluster_name} diag/ instance/ instances/ job/{job_id} jobs/ qos/"),
    ("slurmdb", "v0.0.40", "GET", "qos/{qos} tres/ user/{name} users/ wckey/{id} wckeys/"),
    ("slurmdb", "v0.0.40", "POST", "accounts/ accounts_association/ associations/ clusters/ config qos/ tres/"),
    ("slurmdb", "v0.0.40", "POST", "users/ users_association/ wckeys/"),
    ("slurmdb", "v0.0.40", "DELETE", "account/{account_name} association/ associations/ cluster/{cluster_name}"),
    ("slurmdb", "v0.0.40", "DELETE", "qos/{qos} user/{name} wckey/{id}"),
    ("slurmdb", "v0.0.42", "GET", "ping/"),
    ("slurmdb", "v0.0.44", "POST", "job/{job_id} jobs/"),
    ("slurmdb", "v0.0.45", "GET", "conf"),
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    Endpoint(api, method, path, since) for api, since, method, paths in _CHANGES for path in paths.split()
)
"""All of them. None has gone so far."""


def find(api: Api, method: str, tail: str) -> Endpoint | None:
    """The endpoint that a call's path (behind the version, with or without a query) belongs to, if it is known."""
    parts = _parts(tail.partition("?")[0])
    for one in _INDEX.get((api, method, len(parts)), ()):
        if all(ours == theirs or ours[0] == "{" for ours, theirs in zip(_parts(one.path), parts, strict=True)):
            return one
    return None


def offered(version: str) -> Iterator[Endpoint]:
    """The endpoints that a version has."""
    return (one for one in ENDPOINTS if not one.missing(version))


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/")


def _order(version: str) -> int:
    return int(version.rpartition(".")[2])


def _index() -> dict[tuple[str, str, int], list[Endpoint]]:
    """By what a path must have in common with its endpoint; fixed paths before those with a name in them."""
    index: dict[tuple[str, str, int], list[Endpoint]] = {}
    for one in sorted(ENDPOINTS, key=lambda endpoint: "{" in endpoint.path):
        index.setdefault((one.api, one.method, len(_parts(one.path))), []).append(one)
    return index


_INDEX: Final = _index()
