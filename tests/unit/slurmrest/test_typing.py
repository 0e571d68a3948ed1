"""What a user's type checker sees: real types from both clients, and no `Any` but for raw payloads."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import slurmrest
from slurmrest import AsyncSlurm, Slurm, db_values, transport, values, watching
from slurmrest.db import AsyncDb, Db

SNIPPET = """
from collections.abc import Mapping
from typing import Any, assert_type

from slurmrest import (
    AsyncSlurm, Job, JobOutcome, JobState, License, Node, Partition, Ping, Reservation, SignedTokens, Slurm, StaticToken,
    Submission, TLS,
)
from slurmrest.db_values import Account, JobRecord, Qos

def sync(slurm: Slurm, job: dict[str, str]) -> None:
    assert_type(slurm.ping(), list[Ping])
    assert_type(slurm.version(), str)
    assert_type(slurm.nodes(raw=True), list[Node])
    assert_type(slurm.node("n0").cpus, int)
    assert_type(slurm.update_node("n0", state=["DRAIN"], reason="disk", weight=5), None)
    assert_type(slurm.partition("main"), Partition)
    assert_type(slurm.reservations(), list[Reservation])
    assert_type(slurm.licenses(), list[License])
    assert_type(slurm.job_states([7, "8_1"]), list[JobState])
    assert_type(slurm.job(7), Job)
    assert_type(slurm.submit(job, "#!/bin/sh", key="k"), Submission)
    assert_type(slurm.find("k"), Job | None)
    assert_type(slurm.cancel_jobs([7]), list[JobOutcome])
    assert_type(slurm.conf(), Mapping[str, Any])
    assert_type(slurm.db.accounts(with_deleted=True), list[Account])
    assert_type(slurm.db.jobs(users=["alice"], start_time="now-1day"), list[JobRecord])
    for change in slurm.watch():
        print(change)

async def asynchronous(slurm: AsyncSlurm, job: dict[str, str]) -> None:
    assert_type(await slurm.ping(), list[Ping])
    assert_type(await slurm.nodes(), list[Node])
    assert_type(await slurm.job(7), Job)
    assert_type(await slurm.submit([job, job], "#!/bin/sh", user="alice"), Submission)
    assert_type(await slurm.cancel_jobs([7]), list[JobOutcome])
    assert_type(await slurm.db.one_qos("normal"), Qos)
    async for change in slurm.watch():
        print(change)

with Slurm("https://slurm", StaticToken("x"), user="alice", tls=TLS(ca="ca.pem")) as one:
    sync(one, {})
tokens = SignedTokens(b"key")
"""
MISTAKES = """
from slurmrest import AsyncSlurm, Slurm

def sync(slurm: Slurm) -> None:
    slurm.node(5)
    slurm.update_node("n0", stat=["DRAIN"])
    slurm.job(7).user_nam
    slurm.submit({}, "#!/bin/sh", ky="k")
    slurm.db.accounts(with_deletd=True)

async def asynchronous(slurm: AsyncSlurm) -> None:
    slurm.nodes()[0]
"""


def mypy(code: str, folder: Path) -> str:
    """What mypy --strict says about a user's file, with the packages as they are installed."""
    file = folder / "snippet.py"
    file.write_text(code)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    argv = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(folder / "cache"), file.name]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def test_a_users_file_sees_the_types_of_every_call(tmp_path: Path) -> None:
    """Of both clients, parameters and results."""
    assert mypy(SNIPPET, tmp_path).startswith("Success")


def test_a_users_mistakes_are_found_before_anything_runs(tmp_path: Path) -> None:
    """Each wrong line, and no other."""
    said = mypy(MISTAKES, tmp_path)
    lines = [int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line]
    assert sorted(set(lines)) == [5, 6, 7, 8, 9, 12], said


FACES = [AsyncSlurm, Slurm, AsyncDb, Db]


def holes(hint: object) -> Iterator[object]:
    """Each `Any` in a type that isn't the value type of a mapping, which is what a payload is."""
    if hint is Any:
        yield hint
    arguments = get_args(hint)
    if typing.get_origin(hint) in (dict, typing.get_origin(typing.Mapping[str, int])):
        arguments = arguments[:1]
    if typing.get_origin(hint) is typing.get_origin(typing.Coroutine[int, int, int]):
        arguments = arguments[2:]  # what a coroutine is sent and yields is nobody's business
    for argument in arguments:
        for one in argument if isinstance(argument, list) else [argument]:
            yield from holes(one)


def public(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods that users call."""
    for name, member in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") or name == "__init__":
            yield name, member


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of parameters and result, also of a bound call of the core, whose own they are."""
    inner = inspect.unwrap(function)
    late = {**vars(transport), **vars(watching)}  # what their modules import for the type checker only
    return typing.get_type_hints(inner, globalns={**late, **inner.__globals__})


@pytest.mark.parametrize("kind", FACES)
def test_no_any_stands_in_a_signature_but_for_payloads(kind: type) -> None:
    """mypy would check nothing behind it. A payload is a mapping of names to whatever the API has."""
    found = [
        f"{name}({parameter})"
        for name, function in public(kind)
        for parameter, hint in hints(function).items()
        if any(holes(hint))
    ]
    assert found == []


def test_no_any_stands_in_a_value_but_for_its_raw_entry() -> None:
    """What a value names, it has a type for."""
    for module in (values, db_values):
        for name, value in inspect.getmembers(module, inspect.isclass):
            if hasattr(value, "__dataclass_fields__"):
                open_ones = [field for field, hint in typing.get_type_hints(value).items() if any(holes(hint))]
                assert open_ones == [], name


def test_everything_public_is_documented() -> None:
    """help() of each name says what it is."""
    for name in slurmrest.__all__:
        thing = getattr(slurmrest, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
    for kind in FACES:
        for name, function in public(kind):
            assert name == "__init__" or inspect.getdoc(function), f"{kind.__name__}.{name}"
