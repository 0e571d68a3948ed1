"""Readers of attributes that only jobs have: states, dependencies, frequencies, layouts, resources.

Used in the declarations of `slurmrest.pyslurm.job` and `.step`. Pure. What always holds: as in `slurmrest.pyslurm._forms`.
Numbers of frequencies: slurm/slurm.h, CPU_FREQ_*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from slurmrest.numbers import read_int
from slurmrest.pyslurm._forms import split, text, texts
from slurmrest.pyslurm.db.tres import GenericResourceLayout, GenericResources, TrackableResource, TrackableResources
from slurmrest.states import JobFlag, JobStates

_SHOWN: Final = (
    JobFlag.COMPLETING,
    JobFlag.STAGE_OUT,
    JobFlag.CONFIGURING,
    JobFlag.RESIZING,
    JobFlag.REQUEUED,
    JobFlag.REQUEUE_FED,
    JobFlag.REQUEUE_HOLD,
    JobFlag.SPECIAL_EXIT,
    JobFlag.STOPPED,
    JobFlag.REVOKED,
    JobFlag.RESV_DEL_HOLD,
    JobFlag.SIGNALING,
)
"""Flags that squeue shows instead of the base state, the first of them that is set."""
_KINDS: Final = ("after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok")
_FREQUENCIES: Final = {
    0x80000001: "Low",
    0x80000002: "Medium",
    0x80000003: "High",
    0x80000004: "HighM1",
    0x88000000: "Conservative",
    0x84000000: "OnDemand",
    0x82000000: "Performance",
    0x81000000: "PowerSave",
    0x80800000: "UserSpace",
    0x80400000: "SchedUtil",
}
_NO_THREADS: Final = 0x7FFE
_TIMES: Final = {"TIME=100%": "TIME_LIMIT", "TIME=90%": "TIME_LIMIT_90", "TIME=80%": "TIME_LIMIT_80"} | {
    "TIME=50%": "TIME_LIMIT_50",
    "INVALID_DEPENDENCY": "INVALID_DEPEND",
}


def job_state(raw: Any) -> str:
    """One word, as squeue shows it: "RUNNING", "COMPLETING"."""
    states = JobStates.parse(raw or ())
    return str(next((flag for flag in _SHOWN if flag in states.flags), states.base))


def dependencies(raw: Any) -> dict[str, Any]:
    """Of "afterok:1(unfulfilled),singleton(unfulfilled)": ids by kind, "singleton", and "satisfy": "all" or "any"."""
    found: dict[str, Any] = {kind: [] for kind in _KINDS} | {"singleton": False, "satisfy": "all"}
    joined = text(raw) or ""
    if "?" in joined:
        found["satisfy"] = "any"
    for part in re.split(r"[,?]", joined):
        kind, *ids = re.sub(r"\([^)]*\)", "", part).split(":")
        if kind == "singleton":
            found["singleton"] = True
        elif kind in found:
            found[kind] += [int(one) if one.isdigit() else one for one in ids]
    return found


def frequency(raw: Any) -> int | str | None:
    """kHz, or a word for what Slurm numbers above them: "Low", "OnDemand"."""
    value = read_int(raw)
    return None if value is None else _FREQUENCIES.get(value, value)


def per_core_limit(raw: Any) -> int | None:
    """A count of tasks per socket or core, for which Slurm's "no limit" and 0 stand for not set."""
    return read_int(raw) or None


def threads_reserved(raw: Any) -> int | None:
    """A count; Slurm's own sign for "cores are reserved, not threads" is None."""
    value = read_int(raw)
    return None if value in (None, 0, _NO_THREADS) else value


def mail_types(raw: Any) -> list[str]:
    """As `sbatch --mail-type` has them."""
    return [_TIMES.get(word, word) for word in texts(raw)]


def profiles(raw: Any) -> list[str]:
    """As `sbatch --profile` has them; none if nothing is said."""
    return [word.lower() for word in texts(raw) if word not in ("NOT_SET", "NONE")]


def sharing(raw: Any) -> str | None:
    """As `JobSubmitDescription.resource_sharing` has it; None for the partition's own rule."""
    word = next(iter(texts(raw)), None)
    return "no" if word == "none" else word


def flagged(name: str) -> Callable[[Any], bool]:
    """A reader: is this one among the flags?"""
    return lambda raw: name in texts(raw)


def gres_binding(raw: Any) -> str | None:
    """Of the flags."""
    words = {"GRES_BINDING_ENFORCED": "enforce-binding", "GRES_BINDING_DISABLED": "disable-binding"}
    return next((words[flag] for flag in texts(raw) if flag in words), None)


def per_gpu(raw: Any) -> int | None:
    """The count in "gres/gpu:100" or "gres/gpu=100"."""
    found = re.search(r"gres[/:]gpu[:=](\d+)", text(raw) or "")
    return int(found[1]) if found else None


def resources(raw: Any) -> TrackableResources:
    """Of "cpu=4,mem=16G,gres/gpu:h100:2": a count stands after `=`, or after the last colon."""
    return TrackableResources.of(_resource(part) for part in split(text(raw) or ""))


def _resource(part: str) -> TrackableResource:
    name, equals, count = part.partition("=")
    if not equals:
        name, colon, count = part.rpartition(":")
        if not colon or not count[:1].isdigit():
            name, count = part, "1"
    return TrackableResource.from_type_and_count(name.replace("gres:", "gres/", 1), count)


def layouts(details: Iterable[str]) -> GenericResources:
    """The sum over all nodes of "gpu:h100:8(IDX:0-7)" each: by type, and of each kind in all."""
    counts: dict[str, int] = {}
    for detail in details:
        for one in GenericResourceLayout.from_str(detail).values():
            for key in dict.fromkeys((one.name, one.key)):
                counts[key] = counts.get(key, 0) + one.count
    return TrackableResources(gres=counts).gres


def ranges(numbers: Sequence[int]) -> str:
    """Of [0, 1, 2, 5]: "0-2,5"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def node_layouts(raw: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a job has on each node, of `job_resources` and `gres_detail` (v0.0.41 and newer)."""
    details = texts(raw.get("gres_detail"))
    nodes = ((raw.get("job_resources") or {}).get("nodes") or {}).get("allocation") or []
    found: dict[str, dict[str, Any]] = {}
    for index, node in enumerate(nodes):
        gres = GenericResourceLayout.from_str(details[index]) if index < len(details) else {}
        memory = read_int((node.get("memory") or {}).get("allocated")) or 0
        found[str(node["name"])] = {"cpu_ids": ranges(_cpus(node)), "gres": gres, "memory": memory}
    return found


def _cpus(node: Mapping[str, Any]) -> list[int]:
    """The numbers of the CPUs, in Slurm's order: core by core, the threads of a core together."""
    cores = [core for socket in node.get("sockets") or [] for core in socket.get("cores") or []]
    held = [number for number, core in enumerate(cores) if "ALLOCATED" in texts(core.get("status"))]
    count = read_int((node.get("cpus") or {}).get("count")) or 0
    threads = max(count // len(held), 1) if held else 1
    return [number * threads + thread for number in held for thread in range(threads)]
