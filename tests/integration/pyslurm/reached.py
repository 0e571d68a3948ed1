"""Connects pyslurm's face to a bare Slurm of either suite. Used by the tests next to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest import SignedTokens, Slurm
from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system

OLD, NEW = "trixie", "sid"
"""The suites of Slurm 24.11 (API v0.0.42) and of 26.05 (v0.0.45)."""

_acting: list[tuple[BareSlurm, str, str | None]] = []


@contextmanager
def begun(suite: str) -> Iterator[BareSlurm]:
    """A Slurm of this suite with three nodes, some licences and room for more nodes."""
    need_root_file_system(suite, accounting=False)
    with BareSlurm(nodes=3, suite=suite, config_lines=["MaxNodeCount=10", "Licenses=lic:5"]) as slurm:
        yield slurm


@contextmanager
def acting(slurm: BareSlurm, user: str = "root", version: str | None = None) -> Iterator[None]:
    """pyslurm's face talks to this Slurm as this user (in this API version), and afterwards as it did before."""
    _acting.append((slurm, user, version))
    _connect()
    try:
        yield
    finally:
        _acting.pop()
        _connect()


def _connect() -> None:
    if not _acting:
        pyslurm.disconnect()
        return
    slurm, user, version = _acting[-1]
    pyslurm.connect(client=Slurm(slurm.url, SignedTokens(slurm.jwt_key), user=user, version=version))


def until(look: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition, in Slurm's own time."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def shown(slurm: BareSlurm, *words: str) -> dict[str, str]:
    """What `scontrol show` prints of one thing, by its own names."""
    text = slurm.run("scontrol", "--oneliner", "show", *words).stdout
    pairs = (word.partition("=") for word in text.split())
    return {name: value for name, sign, value in pairs if sign}


def refused(number: int, call: Callable[..., object], *args: object) -> None:
    """The call must end with Slurm's error of this number."""
    with pytest.raises(pyslurm.RPCError) as caught:
        call(*args)
    assert caught.value.errno == number, caught.value
