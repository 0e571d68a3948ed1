"""How each rank of a failed job ended, by what srun said of them: slurmctld keeps no codes of single tasks.

Pure; the operator reads srun's messages on the job's first node (`scripts` puts them into srun.err there) and `job_ends` and
`mirror` tell users. What always holds: whatever the text is, what is not understood of it is left out.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

OOM: Final = "Out Of Memory"
MAX_RANKS: Final = 1_000_000
_LINE: Final = re.compile(r"srun: error: ([^\s:]+): tasks? ([0-9][0-9,-]*): (.+)")
_STOP: Final = re.compile(r"srun: (Terminating StepId|Job step aborted)")
_CODE: Final = re.compile(r"Exited with exit code (\d{1,3})")
_SIGNALS: Final[Mapping[str, int]] = {
    text: number for number in signal.valid_signals() if (text := signal.strsignal(number) or "")
}


@dataclass(frozen=True, slots=True)
class RankEnd:
    """An end that was not well: its code as Kubernetes counts, was it for want of memory; `ended`: because others failed."""

    code: int
    oom: bool = False
    ended: bool = False


def read(text: str, tasks: int, first: Mapping[str, int] | None = None) -> dict[int, RankEnd]:
    """The ranks below `tasks` that did not end with 0, in the order in which srun told of them.

    `first`: the rank from which srun counts on a node, where that is not 0: it counts each component's tasks for itself.
    """
    found: dict[int, RankEnd] = {}
    ended = False
    for line in text.splitlines():
        if _STOP.match(line):
            ended = True
        elif match := _LINE.fullmatch(line):
            end, before = _end(match.group(3), ended=ended), (first or {}).get(match.group(1), 0)
            for rank in _ranks(match.group(2), tasks - before) if end else ():
                found.setdefault(before + rank, end or RankEnd(1))
    return found


def _end(words: str, *, ended: bool) -> RankEnd | None:
    if match := _CODE.match(words):
        return RankEnd(int(match.group(1)), ended=ended)
    if words.startswith(OOM):
        return RankEnd(137, oom=True)
    number = _SIGNALS.get(words.removesuffix(" (core dumped)"))
    return None if number is None else RankEnd(128 + number, ended=ended)


def _ranks(ranges: str, tasks: int) -> Iterator[int]:
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not dash) and len(first) < 8 and len(last) < 8:
            yield from range(int(first), min(int(last or first) + 1, tasks, MAX_RANKS))


def of_replica(ends: Mapping[int, RankEnd], place: int, replicas: int, tasks: int) -> RankEnd | None:
    """How the replica at this place ended: as the first of its ranks that failed by itself, else as one that was ended."""
    each = max(1, tasks // max(1, replicas))
    own = [end for rank, end in ends.items() if rank // each == place]
    return next((end for end in own if not end.ended), next(iter(own), None))
