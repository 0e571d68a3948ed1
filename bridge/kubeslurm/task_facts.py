"""What a running task knows of its place: shell variables that its script sets before the program starts.

Pure; readers refer to them in words, `scripts` asks for the lines. What always holds: only what is referred to is set, and
none of it is exported: it reaches the program in the values that refer to it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from kubeslurm import mirror_names
from kubeslurm.expansion import Ref, Word
from kubeslurm.plans import JobPlan, Shape

PLACE: Final = "KUBESLURM_PLACE"
"""Which replica of the gang this is."""

POD: Final = "KUBESLURM_POD"
"""The name of the replica's pod."""

ROLE: Final = "KUBESLURM_ROLE"
"""master or worker."""

INDEX: Final = "KUBESLURM_INDEX"
"""Which of its role the replica is."""

ADDRESS: Final = "KUBESLURM_ADDRESS"
"""The node's own address, by which the other nodes reach it."""

NODES: Final = "KUBESLURM_NODES"
"""How many nodes the job got."""

HOSTS: Final = "KUBESLURM_HOSTS"
"""1 on the first node, else 0."""

NODE: Final = "SLURMD_NODENAME"
"""The node's name; Slurm sets it."""

ADDRESSES: Final = "KUBESLURM_ADDRESSES"
"""Of all nodes, in their order: set by the batch script."""


def used(words: Iterable[Word]) -> frozenset[str]:
    """The variables that the words refer to."""
    return frozenset(piece.name for word in words for piece in word if isinstance(piece, Ref))


def lines(plan: JobPlan, shape: Shape, names: Collection[str], *, place: bool) -> Iterator[str]:
    """Set what is wanted of them; `place`: the script itself asks which replica this is."""
    told = {POD, ROLE, INDEX} & set(names)
    if place or told:
        each = shape.tasks_per_replica
        yield f"{PLACE}=" + ("$SLURM_PROCID" if each == 1 else f"$((SLURM_PROCID / {each}))")
    if told:
        yield from _role(plan)
    if ADDRESS in names:
        yield f'read -ra {ADDRESSES} <<< "${ADDRESSES}"'
        yield f"{ADDRESS}=${{{ADDRESSES}[SLURM_NODEID]}}"
    if NODES in names:
        yield f"{NODES}=$SLURM_JOB_NUM_NODES"
    if HOSTS in names:
        yield f"{HOSTS}=$((SLURM_NODEID == 0))"


def _role(plan: JobPlan) -> Iterator[str]:
    first, last = plan.roles[0], plan.roles[-1]
    if first is not last:
        yield f'if [ "${PLACE}" -lt {first.replicas} ]; then'
        yield f"  {ROLE}={first.name.lower()} {INDEX}=${PLACE} {POD}={_prefix(plan, 0)}${PLACE}"
        yield "else"
        yield f"  {ROLE}={last.name.lower()} {INDEX}=$(({PLACE} - {first.replicas}))"
        yield f"  {POD}={_prefix(plan, 1)}${INDEX}"
        yield "fi"
    else:
        yield f"{ROLE}={first.name.lower()} {INDEX}=${PLACE} {POD}={_prefix(plan, 0)}${PLACE}"


def _prefix(plan: JobPlan, number: int) -> str:
    role = plan.roles[number]
    return shlex.quote(mirror_names.pod_prefix(plan.name, role.name, role.replicas))
