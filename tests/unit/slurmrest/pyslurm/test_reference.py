"""The table of pyslurm's names is true: each is there, takes what pyslurm takes, and reads real answers."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest.pyslurm import xcollections
from slurmrest.pyslurm._fields import Field, Missing, Record, Setting
from slurmrest.pyslurm.db.stats import JobStepStatistics
from tests import pyslurm_reference
from tests.unit.slurmrest.pyslurm.recorded import Recorded

PAGE = Path(__file__).parents[4] / "docs/pyslurm.md"
CALLABLES = [
    name
    for owner, entry in pyslurm_reference.NAMES.items()
    for name in ([f"{owner}.{method}" for method in entry["methods"]] if entry["kind"] == "class" else [owner])
]


def test_the_page_is_that_of_the_code() -> None:
    """A changed class without `make docs` would leave an old page."""
    assert PAGE.read_text() == pyslurm_reference.page(PAGE.read_text())


def test_every_name_has_a_verdict() -> None:
    """All are there; few can't be had at all."""
    found = pyslurm_reference.verdicts()
    assert len(found) > 1100
    assert sum(verdict.text.startswith("cannot") for verdict in found.values()) < 0.1 * len(found)


@pytest.mark.parametrize("name", CALLABLES)
def test_every_call_takes_pyslurms_arguments_by_name(name: str) -> None:
    """A script may name each of them."""
    owner, _, method = name.rpartition(".")
    target = (
        getattr(pyslurm_reference.resolve(owner), method)
        if owner in pyslurm_reference.NAMES
        else pyslurm_reference.resolve(name)
    )
    taken = inspect.signature(target).parameters
    open_ended = any(one.kind is one.VAR_KEYWORD for one in taken.values())
    for wanted in pyslurm_reference.parameters(name) - {"**kwargs"}:
        assert open_ended or wanted in taken, f"{name} takes no {wanted}"


def things(server: Recorded) -> Iterator[Record]:
    """Objects of every class that is read from answers, out of one version's."""
    yield from pyslurm.Nodes.load().values()
    yield from pyslurm.Partitions.load().values()
    yield from pyslurm.Reservations.load().values()
    yield from pyslurm.Jobs.load().values()
    yield from pyslurm.db.Associations.load().values()
    yield from pyslurm.db.QualitiesOfService.load().values()
    for job in pyslurm.db.Jobs.load().values():
        yield job
        for step in job.steps.values():
            yield from (step, step.stats)
    if server.version >= "v0.0.45":
        yield pyslurm.slurmctld.Config.load()


def test_every_attribute_of_every_class_reads_every_versions_answers(recorded: Recorded) -> None:
    """With a value of its declared type, or an error that says why or since when there is none."""
    seen: set[type[Record]] = set()
    for thing in things(recorded):
        for one in thing._fields.values():
            if one.why or one.since > recorded.version or (one.name == "steps" and type(thing) is pyslurm.Job):
                with pytest.raises(pyslurm.PyslurmError, match=one.name):
                    getattr(thing, one.name)
                continue
            value = getattr(thing, one.name)
            assert fits(value, declared(one)), f"{one.label} is {value!r}, declared {declared(one)}"
            seen.add(type(thing))
    cluster: set[type[Record]] = {pyslurm.Node, pyslurm.Job, pyslurm.Partition, pyslurm.Reservation}
    database: set[type[Record]] = {pyslurm.db.Job, pyslurm.db.JobStep, JobStepStatistics, pyslurm.db.Association}
    assert seen >= cluster | database | {pyslurm.db.QualityOfService}


def test_every_object_can_be_json(recorded: Recorded) -> None:
    """Of every version."""
    for thing in things(recorded):
        assert xcollections.to_json({"thing": thing})


def declared(one: Field[Any]) -> Any:
    """The type that an attribute's reader promises; Any where it doesn't (a lambda)."""
    if isinstance(one.read, type):
        return one.read
    scope = vars(inspect.getmodule(one.read)) if inspect.getmodule(one.read) else {}
    return typing.get_type_hints(one.read, {**_LATE, **scope}).get("return", Any)


_LATE: Mapping[str, Any] = {"JobSteps": pyslurm.JobSteps}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; only the forms that the readers use."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items()
        )
    if origin is list:
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    return isinstance(value, origin or hint) and (hint is not int or not isinstance(value, bool))


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        (1, int, True),
        (True, int, False),
        (None, int | None, True),
        ("x", int | None, False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "1"}, dict[str, int], False),
        (["a"], list[str], True),
        ([1], list[str], False),
    ],
)
def test_the_check_of_types_can_fail(value: object, hint: object, right: bool) -> None:
    """It tells right from wrong."""
    assert fits(value, hint) is right


def test_what_pyslurm_lets_be_set_can_be_set_or_the_table_says_read_only() -> None:
    """And what is missing is nothing that can be set."""
    found = pyslurm_reference.verdicts()
    for name, verdict in found.items():
        owner, _, attribute = name.rpartition(".")
        one = vars(pyslurm_reference.resolve(owner)).get(attribute) if owner in pyslurm_reference.NAMES else None
        if isinstance(one, Missing):
            assert verdict.text.startswith("cannot")
        if isinstance(one, Setting):
            assert "read only" not in verdict.text
