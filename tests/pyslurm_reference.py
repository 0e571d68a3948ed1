"""Writes the table of docs/pyslurm.md anew: `python -m tests.pyslurm_reference FILE`, called by `make docs`.

For each public name of pyslurm 25.11 it says whether `slurmrest.pyslurm` has it: works, works since an API version, or
cannot and why. Attributes say so themselves; what methods can't do is listed here, and a test calls each of them to see
it. A test fails when the page is old, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slurmrest.pyslurm._fields import Computed, Field, Setting

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
CALLS: Final[Mapping[str, Verdict]] = {
    "pyslurm.db.Job.modify": since("v0.0.44"),
    "pyslurm.db.Jobs.modify": since("v0.0.44"),
}
"""Methods and functions that can't do all of their work with every API version."""


def verdicts() -> dict[str, Verdict]:
    """Of every name, in pyslurm's order: "pyslurm.Node", "pyslurm.Node.name", "pyslurm.Node.load"."""
    found: dict[str, Verdict] = {}
    for name, entry in NAMES.items():
        if entry["kind"] == "function":
            resolve(name)
            found[name] = CALLS.get(name, Verdict(WORKS))
            continue
        cls = resolve(name)
        found[name] = Verdict(WORKS)
        found |= {f"{name}.{one}": _attribute(cls, name, one, mode) for one, mode in entry["attributes"].items()}
        found |= {f"{name}.{one}": _method(cls, f"{name}.{one}") for one in entry["methods"]}
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


def _method(cls: type, name: str) -> Verdict:
    if not callable(getattr(cls, name.rpartition(".")[2])):
        raise TypeError(f"{name} is no method")
    return CALLS.get(name, Verdict(WORKS))


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
        counts[verdict.text.partition(" ")[0].strip(":,")] += 1
    head = ", ".join(f"{counts[word]} {meaning}" for word, meaning in _MEANINGS.items())
    return "\n".join([f"Of {len(found)} names {head}.\n", *_sections(found)])


_MEANINGS: Final = {
    "works": "work with every version",
    "since": "need a newer version of the API",
    "cannot": "cannot",
}


def _sections(found: Mapping[str, Verdict]) -> Iterator[str]:
    functions: dict[str, list[str]] = defaultdict(list)
    for name, entry in NAMES.items():
        if entry["kind"] == "function":
            functions[name.rpartition(".")[0]].append(name)
    yield from (
        line for name, entry in NAMES.items() if entry["kind"] == "class" for line in _class(name, entry, found)
    )
    for module, names in functions.items():
        yield f"### Functions of `{module}`\n"
        yield from _rows({name.rpartition(".")[2] + "()": found[name] for name in names})


def _class(name: str, entry: Mapping[str, Any], found: Mapping[str, Verdict]) -> Iterator[str]:
    members = {one: found[f"{name}.{one}"] for one in entry["attributes"]}
    members |= {f"{one}()": found[f"{name}.{one}"] for one in entry["methods"]}
    yield f"### `{name}`\n"
    yield from _rows(members or {name.rpartition(".")[2]: found[name]})


def _rows(members: Mapping[str, Verdict]) -> Iterator[str]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for name, verdict in members.items():
        grouped[verdict.text].append(f"`{name}`")
    yield "| | Names |\n| --- | --- |"
    for text in sorted(grouped, key=lambda text: ("works since cannot".find(text.partition(" ")[0].strip(":,")), text)):
        yield f"| {text} | {', '.join(grouped[text])} |"
    yield ""


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
