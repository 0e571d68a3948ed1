"""What slurmdbd must hold so that the tenants' jobs are taken and shared fairly, and the steps from what it holds to that.

Pure; called by the operator's accounting loop. What always holds: steps only add (a QOS, an account, a user's association,
a QOS to an association); nothing that is there is deleted or changed in its limits, shares or defaults; and where all is
there, there is no step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from kubeslurm.api.accounting import QosSpec
from kubeslurm.api.slurmcluster import SlurmCluster
from slurmrest import number
from slurmrest.db_values import Association

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Membership:
    """A user's place in an account. `qos` are those that it may use, the first its default."""

    user: str
    account: str
    qos: tuple[str, ...]
    shares: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that must be there. The first membership of a user is in its default account."""

    qos: tuple[QosSpec, ...]
    accounts: tuple[str, ...]
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What slurmdbd holds: names of QOS, and the associations of one cluster."""

    qos: frozenset[str]
    associations: tuple[Association, ...]

    @property
    def accounts(self) -> frozenset[str]:
        """The accounts that have a place on the cluster."""
        return frozenset(one.account for one in self.associations if not one.user)

    def places(self, user: str) -> dict[str, Association]:
        """The user's associations by account, those for one partition only aside."""
        return {one.account: one for one in self.associations if one.user == user and not one.partition}


@dataclass(frozen=True, slots=True)
class MakeQos:
    """Make qualities of service; entries of the API's `qos`."""

    entries: tuple[Raw, ...]


@dataclass(frozen=True, slots=True)
class MakeAccounts:
    """Make accounts and their associations on the cluster."""

    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MakeMember:
    """Put a user into an account, and make the user if need be; `default`: its first account here."""

    membership: Membership
    default: bool


@dataclass(frozen=True, slots=True)
class AddQos:
    """Let an association use more QOS: `entry` is the whole of it, as it was read, with those added."""

    user: str
    account: str
    qos: tuple[str, ...]
    entry: Raw = field(compare=False, repr=False)


Step = MakeQos | MakeAccounts | MakeMember | AddQos


def wanted(cluster: SlurmCluster) -> Wanted:
    """What the tenants name; QOS with what the spec says of them."""
    tenants = cluster.spec.tenants
    given = {one.name: one for one in (cluster.spec.accounting.qos if cluster.spec.accounting else ())}
    named = [name for tenant in tenants for name in tenant.qos] + list(cluster.spec.jobs.priority_classes.values())
    qos = given | {name: QosSpec(name=name) for name in named if name not in given}
    places: dict[tuple[str, str], Membership] = {}
    for tenant in tenants:
        for account in tenant.accounts:
            new = Membership(tenant.user.name, account, tuple(tenant.qos), tenant.shares)
            places[tenant.user.name, account] = _together(places.get((tenant.user.name, account)), new)
    return Wanted(
        qos=tuple(qos[name] for name in sorted(qos)),
        accounts=tuple(sorted({account for _, account in places})),
        memberships=tuple(places.values()),
    )


def _together(one: Membership | None, other: Membership) -> Membership:
    """Two tenants of one user with the same account: what either may use; without a list, Slurm's own default counts."""
    if one is None:
        return other
    either = tuple(dict.fromkeys((*one.qos, *other.qos))) if one.qos and other.qos else ()
    return Membership(one.user, one.account, either, max(one.shares, other.shares))


def steps(want: Wanted, found: Found) -> tuple[Step, ...]:
    """What to do now; ask again after it, until there is nothing."""
    missing_qos = tuple(_makeable(want.qos, found.qos))
    if missing_qos:
        return (MakeQos(tuple(_qos_entry(one) for one in missing_qos)),)
    done: list[Step] = []
    accounts = tuple(name for name in want.accounts if name not in found.accounts)
    if accounts:
        done.append(MakeAccounts(accounts))
    settled = {user: bool(found.places(user)) for user in dict.fromkeys(one.user for one in want.memberships)}
    for member in want.memberships:
        one = replace(member, qos=tuple(name for name in member.qos if name in found.qos))
        place = found.places(one.user).get(one.account)
        if place is None:
            done.append(MakeMember(one, default=not settled[one.user]))
            settled[one.user] = True
        elif more := tuple(name for name in one.qos if name not in place.qos):
            done.append(AddQos(one.user, one.account, more, _with_qos(place, more)))
    return tuple(done)


def unmakeable(want: Wanted, found: Found) -> tuple[str, ...]:
    """QOS that preempt one that will never be: each other in a circle, or one that nobody names."""
    missing = [one for one in want.qos if one.name not in found.qos]
    return tuple(one.name for one in missing) if missing and not any(_makeable(want.qos, found.qos)) else ()


def _makeable(specs: Iterable[QosSpec], found: frozenset[str]) -> Iterable[QosSpec]:
    """A QOS after those that it preempts: slurmdbd wants them to be there."""
    return [one for one in specs if one.name not in found and found.issuperset(one.preempts)]


def _qos_entry(spec: QosSpec) -> Raw:
    entry: Raw = {"name": spec.name, "description": "made by kubeslurm", "priority": number(spec.priority)}
    if spec.preempts:
        entry["preempt"] = {"list": list(spec.preempts)}
    if spec.gpus_per_user is not None:
        limit = [{"type": "gres", "name": "gpu", "count": spec.gpus_per_user}]
        entry["limits"] = {"max": {"tres": {"per": {"user": limit}}}}
    return entry


def _with_qos(place: Association, more: tuple[str, ...]) -> Raw:
    """The whole entry: what is left out of an update, slurmdbd takes away."""
    return {**place.raw, "qos": [*place.qos, *more]}


def explain(step: Step) -> str:
    """The step in words, for the log and the event."""
    match step:
        case MakeQos(entries):
            return f"QOS {', '.join(one['name'] for one in entries)} made"
        case MakeAccounts(accounts):
            return f"accounts {', '.join(accounts)} made"
        case MakeMember(one):
            return f"user {one.user} put into account {one.account}"
        case AddQos(user, account, qos):
            return f"user {user} may use QOS {', '.join(qos)} in account {account}"
