"""Writes the table of docs/pyslurm.md anew: `python -m tests.pyslurm_reference FILE`, called by `make docs`.

For each public name of pyslurm 25.11 it says whether `slurmrest.pyslurm` has it: works, works since an API version, or
cannot and why. Attributes say so themselves; methods are called, against the records of each version. A test fails when
the page is old.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slurmrest import pyslurm
from slurmrest.pyslurm._fields import Computed, Field, Setting
from slurmrest.pyslurm.error import PyslurmError
from tests.unit.slurmrest.pyslurm.recorded import NAMES as RECORDED
from tests.unit.slurmrest.pyslurm.recorded import Recorded

NAMES: Final[Mapping[str, Any]] = json.loads((Path(__file__).parent / "unit/slurmrest/pyslurm/names.json").read_text())
"""The public names of pyslurm 25.11: classes with their attributes ("rw": may be set) and the parameters of methods
("?": has a default), functions with theirs."""
BEGIN, END = "<!-- the table: made by `make docs` -->", "<!-- the end of the table -->"
WORKS: Final = "works"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `slurmrest.pyslurm` does with a name: WORKS, "since vX", or "cannot: why"."""

    text: str

    @property
    def works(self) -> bool:
        """With every API version."""
        return self.text == WORKS


def since(version: str) -> Verdict:
    """Works with this API version and newer ones."""
    return Verdict(f"since {version}")


def cannot(why: str) -> Verdict:
    """Raises PyslurmError, or isn't there."""
    return Verdict(f"cannot: {why}")


_INTERNAL: Final = cannot("an inner value of pyslurm's C side")
INTERNAL: Final = frozenset(
    {
        "pyslurm.Nodes.tmp_info",
        "pyslurm.Node.passwd",
        "pyslurm.Node.groups",
        "pyslurm.Partitions.tmp_info",
        "pyslurm.Partition.power_save_enabled",
        "pyslurm.Partition.slurm_conf",
        "pyslurm.Reservations.tmp_info",
        "pyslurm.Reservation._reoccurrence",
        "pyslurm.JobSubmitDescription.is_update",
        "pyslurm.db.Job.qos_data",
        "pyslurm.db.Job.tres_data",
        "pyslurm.db.Association.qos_data",
        "pyslurm.db.Association.tres_data",
    }
)
_NEEDS: Final = re.compile(r"needs (?:API )?(v\d+\.\d+\.\d+)")
_NEVER: Final = re.compile(r"no version of the REST API \(up to v[\d.]+\) has a call for it")


def _probes() -> dict[str, Callable[[], object]]:
    """A call of everything that asks slurmrestd, or would have to. What isn't here works without asking."""
    node, part, resv = pyslurm.Node("n0"), pyslurm.Partition("main"), pyslurm.Reservation("window")
    db_job, any_job = pyslurm.db.Job(1, cluster="c"), pyslurm.db.JobFilter()
    comment, assoc = pyslurm.db.Job(comment="x"), pyslurm.db.Association(max_jobs=1)
    found: dict[str, Callable[[], object]] = {
        "pyslurm.Nodes.load": pyslurm.Nodes.load,
        "pyslurm.Nodes.reload": lambda: pyslurm.Nodes.load().reload(),
        "pyslurm.Nodes.modify": lambda: pyslurm.Nodes("n0").modify(pyslurm.Node(comment="x")),
        "pyslurm.Node.load": lambda: pyslurm.Node.load("n0"),
        "pyslurm.Node.create": lambda: pyslurm.Node("new").create(),
        "pyslurm.Node.modify": lambda: node.modify(pyslurm.Node(comment="x")),
        "pyslurm.Node.delete": node.delete,
        "pyslurm.Partitions.load": pyslurm.Partitions.load,
        "pyslurm.Partitions.modify": lambda: pyslurm.Partitions("main").modify(pyslurm.Partition(max_time=1)),
        "pyslurm.Partition.load": lambda: pyslurm.Partition.load("main"),
        "pyslurm.Partition.create": pyslurm.Partition("new", nodes="n0").create,
        "pyslurm.Partition.modify": lambda: part.modify(pyslurm.Partition(max_time=1)),
        "pyslurm.Partition.delete": part.delete,
        "pyslurm.Reservations.load": pyslurm.Reservations.load,
        "pyslurm.Reservation.create": lambda: pyslurm.Reservation(
            "r", start_time="now", duration=1, users="u"
        ).create(),
        "pyslurm.Reservation.modify": lambda: resv.modify(pyslurm.Reservation(comment="x")),
        "pyslurm.Reservation.delete": resv.delete,
        "pyslurm.slurmctld.Statistics.load": pyslurm.slurmctld.Statistics.load,
        "pyslurm.slurmctld.Statistics.reset": pyslurm.slurmctld.Statistics.reset,
        "pyslurm.slurmctld.Config.load": pyslurm.slurmctld.Config.load,
        "pyslurm.db.Jobs.load": pyslurm.db.Jobs.load,
        "pyslurm.db.Jobs.modify": lambda: pyslurm.db.Jobs.modify(any_job, comment),
        "pyslurm.db.Job.modify": lambda: db_job.modify(comment),
        "pyslurm.db.Associations.load": pyslurm.db.Associations.load,
        "pyslurm.db.Associations.modify": lambda: pyslurm.db.Associations.modify(pyslurm.db.AssociationFilter(), assoc),
        "pyslurm.db.QualitiesOfService.load": pyslurm.db.QualitiesOfService.load,
        "pyslurm.db.TrackableResources.load": pyslurm.db.TrackableResources.load,
        "pyslurm.db.Connection.open": pyslurm.db.Connection.open,
        "pyslurm.db.JobFilter.with_env": lambda: pyslurm.db.Jobs.load(pyslurm.db.JobFilter(with_env=True)),
    }
    return (
        found | _job_probes() | _daemon_probes() | {f"{_SUBMISSION}.{name}": _submission(name) for name in _PARTLY_SENT}
    )


def _job_probes() -> dict[str, Callable[[], object]]:
    job, step = pyslurm.Job(1), pyslurm.JobStep(1, 0)
    return {
        "pyslurm.Jobs.load": pyslurm.Jobs.load,
        "pyslurm.Jobs.reload": lambda: pyslurm.Jobs.load().reload(),
        "pyslurm.Jobs.load_steps": lambda: pyslurm.Jobs.load().load_steps(),
        "pyslurm.Jobs.load_stats": lambda: pyslurm.Jobs.load().load_stats(),
        "pyslurm.Job.suspend": job.suspend,
        "pyslurm.Job.unsuspend": job.unsuspend,
        "pyslurm.Job.modify": lambda: job.modify(pyslurm.JobSubmitDescription(comment="x")),
        "pyslurm.Job.hold": job.hold,
        "pyslurm.Job.release": job.release,
        "pyslurm.Job.requeue": job.requeue,
        "pyslurm.Job.notify": lambda: job.notify("x"),
        "pyslurm.Job.load_stats": job.load_stats,
        "pyslurm.Job.get_resource_layout_per_node": job.get_resource_layout_per_node,
        "pyslurm.JobStep.load_stats": step.load_stats,
        "pyslurm.JobStep.send_signal": lambda: step.send_signal(9),
        "pyslurm.JobStep.cancel": step.cancel,
        "pyslurm.JobStep.modify": lambda: step.modify(pyslurm.JobStep()),
    }


_SUBMISSION: Final = "pyslurm.JobSubmitDescription"
_PARTLY_SENT: Final[Mapping[str, Any]] = {
    "cores_per_socket": 1,
    "distribution": "block",
    "segment_size": 1,
    "gres_tasks_per_sharing": "one",
}
"""Attributes of a job description that not every version takes, with a value each."""


def _submission(name: str) -> Callable[[], object]:
    def submit() -> None:
        try:
            pyslurm.JobSubmitDescription(script="#!/bin/sh\n", **{name: _PARTLY_SENT[name]}).submit()
        except pyslurm.RPCError as error:
            if "made no job" not in str(error):  # which is all that the records answer
                raise

    return submit


def _daemon_probes() -> dict[str, Callable[[], object]]:
    ctld = pyslurm.slurmctld
    calls: dict[str, Callable[[], object]] = {
        "ping": lambda: ctld.ping(0),
        "ping_primary": ctld.ping_primary,
        "ping_all": ctld.ping_all,
        "shutdown": lambda: ctld.shutdown(0),
        "reconfigure": ctld.reconfigure,
        "takeover": ctld.takeover,
        "add_debug_flags": lambda: ctld.add_debug_flags(["Gres"]),
        "remove_debug_flags": lambda: ctld.remove_debug_flags(["Gres"]),
        "clear_debug_flags": ctld.clear_debug_flags,
        "get_debug_flags": ctld.get_debug_flags,
        "set_log_level": lambda: ctld.set_log_level("info"),
        "get_log_level": ctld.get_log_level,
        "enable_scheduler_logging": ctld.enable_scheduler_logging,
        "is_scheduler_logging_enabled": ctld.is_scheduler_logging_enabled,
        "set_fair_share_dampening_factor": lambda: ctld.set_fair_share_dampening_factor(1),
        "get_fair_share_dampening_factor": ctld.get_fair_share_dampening_factor,
        "diag": ctld.diag,
    }
    calls |= {kind.__name__: kind for kind in (ctld.MPIConfig, ctld.CgroupConfig, ctld.AccountingGatherConfig)}
    return {f"pyslurm.slurmctld.{name}": call for name, call in calls.items()}


def judge(call: Callable[[], object]) -> Verdict:
    """What the API's versions make of a call, oldest first: the first complaint, else that it works."""
    found = (probe(call, record) for record in RECORDED)
    return next((verdict for verdict in found if not verdict.works), Verdict(WORKS))


def probe(call: Callable[[], object], record: str) -> Verdict:
    """What one version makes of a call."""
    pyslurm.connect(client=Recorded(record).client())
    try:
        call()
    except PyslurmError as error:
        text = str(error)
        if needs := _NEEDS.search(text):
            return since(needs[1])
        if _NEVER.search(text):
            return cannot("no call of the REST API" + text.partition(_NEVER.search(text)[0])[2])  # type: ignore[index]
        raise
    finally:
        pyslurm.disconnect()
    return Verdict(WORKS)


def verdicts() -> dict[str, Verdict]:
    """Of every name, in pyslurm's order: "pyslurm.Node", "pyslurm.Node.name", "pyslurm.Node.load"."""
    found: dict[str, Verdict] = {}
    calls = {name: judge(call) for name, call in _probes().items()}
    for name, entry in NAMES.items():
        if entry["kind"] == "function":
            resolve(name)
            found[name] = calls.get(name, Verdict(WORKS))
            continue
        cls = resolve(name)
        found[name] = made = calls.get(name, Verdict(WORKS))
        members = {f"{name}.{one}": _attribute(cls, name, one, mode) for one, mode in entry["attributes"].items()}
        members |= {one: calls[one] for one in members if one in calls}
        # Attributes that can be read once the object is there, which takes what making or loading it takes.
        loaded = made if not made.works else calls.get(f"{name}.load", made)
        found |= {one: loaded if verdict.works else verdict for one, verdict in members.items()}
        methods = {f"{name}.{one}": _method(cls, f"{name}.{one}", calls) for one in entry["methods"]}
        found |= {one: made if verdict.works else verdict for one, verdict in methods.items()}
    return found


def resolve(name: str) -> Any:
    """The class or function of ours. Raises AttributeError or ImportError if there is none."""
    module, _, last = f"slurmrest.{name}".rpartition(".")
    return getattr(importlib.import_module(module), last)


def parameters(name: str) -> set[str]:
    """The parameters by which pyslurm's users may call a function or a method."""
    found: set[str] = set()
    for one, entry in NAMES.items():
        given = entry.get("parameters") if one == name else entry.get("methods", {}).get(name.removeprefix(f"{one}."))
        found |= {part.rstrip("?") for part in given or ()}
    return found


def _method(cls: type, name: str, calls: Mapping[str, Verdict]) -> Verdict:
    if not callable(getattr(cls, name.rpartition(".")[2])):
        raise TypeError(f"{name} is no method")
    return calls.get(name, Verdict(WORKS))


def _attribute(cls: type, owner: str, name: str, mode: str) -> Verdict:
    if f"{owner}.{name}" in INTERNAL:
        return _INTERNAL
    one = inspect.getattr_static(cls, name, None)
    if not isinstance(one, Field):
        if not _is_kept(cls, name):
            raise AttributeError(f"{owner} has no {name}")
        return Verdict(WORKS)
    if one.why:
        return cannot(one.why)
    if one.since:
        return since(one.since)
    if mode == "rw" and not isinstance(one, (Setting, Computed)):
        return Verdict("works, read only")
    return Verdict(WORKS)


def _is_kept(cls: type, name: str) -> bool:
    """Whether instances have a plain attribute of this name."""
    if hasattr(cls, name):
        return True
    if dataclasses.is_dataclass(cls):
        return name in {one.name for one in dataclasses.fields(cls)}
    return name in getattr(cls(), "__dict__", {})


def table() -> str:
    """The table."""
    found = verdicts()
    counts: dict[str, int] = defaultdict(int)
    for verdict in found.values():
        counts[_word(verdict.text)] += 1
    head = ", ".join(f"{counts[word]} {meaning}" for word, meaning in _MEANINGS.items())
    return "\n".join([f"Of {len(found)} names {head}.\n", *_sections(found)])


_MEANINGS: Final = {
    "works": "work with every version",
    "since": "need a newer version of the API",
    "cannot": "cannot",
}


def _sections(found: Mapping[str, Verdict]) -> Iterator[str]:
    yield "| | | Names |\n| --- | --- | --- |"
    functions: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for name, entry in NAMES.items():
        if entry["kind"] == "class":
            yield from _rows(name, _members(name, entry, found))
        else:
            module, _, last = name.rpartition(".")
            functions[module][f"{last}()"] = found[name]
    for module, members in functions.items():
        yield from _rows(module, members)


def _members(name: str, entry: Mapping[str, Any], found: Mapping[str, Verdict]) -> dict[str, Verdict]:
    members = {one: found[f"{name}.{one}"] for one in entry["attributes"]}
    return members | {f"{one}()": found[f"{name}.{one}"] for one in entry["methods"]}


def _rows(name: str, members: Mapping[str, Verdict]) -> Iterator[str]:
    grouped: dict[str, list[str]] = {} if members else {WORKS: []}
    for member, verdict in members.items():
        grouped.setdefault(verdict.text, []).append(f"`{member}`")
    shown = f"`{name}`"
    for text in sorted(grouped, key=_order):
        yield f"| {shown} | {text} | {', '.join(grouped[text])} |"
        shown = ""


def _order(text: str) -> tuple[int, str]:
    return list(_MEANINGS).index(_word(text)), text


def _word(text: str) -> str:
    return text.partition(" ")[0].strip(":,")


def page(old: str) -> str:
    """The page with its table made anew."""
    before, _, rest = old.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write the file."""
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text()))


if __name__ == "__main__":
    main()
