"""Real faults of a real Slurm, in each release: tokens, keys and clocks that are wrong, daemons that are away."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurmrest import Authentication, FileToken, SignedTokens, Slurm, SlurmError, StaticToken, Timeouts, Unavailable
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import VERSIONS, slurms

pytestmark = pytest.mark.slurm

SKEW = 120
"""Seconds that two clocks may differ."""
BOUND = 30.0
"""Seconds within which a fault is told."""


@pytest.fixture(scope="module")
def running() -> Iterator[Callable[[str], BareSlurm]]:
    """One Slurm with accounting per release."""
    with slurms(lambda suite: BareSlurm(nodes=1, suite=suite, accounting=True), accounting=True) as of:
        yield of


@pytest.fixture(params=VERSIONS)
def bare(request: pytest.FixtureRequest, running: Callable[[str], BareSlurm]) -> BareSlurm:
    """The Slurm of each release."""
    return running(request.param)


@pytest.fixture
def slurm(bare: BareSlurm) -> Iterator[Slurm]:
    """Root's client of it, of the newest version."""
    with Slurm(bare.url, SignedTokens(bare.jwt_key)) as client:
        yield client


def until_it_works(call: Callable[[], object]) -> None:
    """Ask again until no error comes any more."""
    end = time.monotonic() + BOUND
    while True:
        try:
            call()
        except SlurmError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def restart(bare: BareSlurm, *daemons: str) -> None:
    """End them in order, start them anew."""
    for name in daemons:
        bare.stop(name)
    for name in reversed(daemons):
        bare.start(name)


@pytest.mark.parametrize("age", [3600, 1])
def test_an_expired_token_is_an_authentication_error(bare: BareSlurm, age: int) -> None:
    """Long ago or just now: nothing is answered."""
    with Slurm(bare.url, StaticToken(bare.token("root", lifespan=-age))) as slurm, pytest.raises(Authentication):
        slurm.nodes()


@pytest.mark.parametrize("shift", [-SKEW, SKEW])
def test_two_minutes_between_the_clocks_do_no_harm(bare: BareSlurm, shift: int) -> None:
    """The client's clock is behind or ahead; slurmctld and slurmdbd take its tokens, for any user."""
    with Slurm(bare.url, SignedTokens(bare.jwt_key, clock=lambda: time.time() + shift)) as slurm:
        assert [node.name for node in slurm.nodes()] == ["n0"]
        assert slurm.db.account("physics").name == "physics"


def test_a_rotated_key_is_survived_by_who_reads_it_again(bare: BareSlurm, tmp_path: Path) -> None:
    """The old key's tokens are refused; a token file that was written anew is read, by the same client."""
    path = tmp_path / "token"
    path.write_text(bare.token("root"))
    with (
        Slurm(bare.url, FileToken(path)) as client,
        Slurm(bare.url, SignedTokens(bare.jwt_key)) as left_behind,
    ):
        assert client.nodes()
        bare.jwt_key = secrets.token_bytes(32)
        text = base64.b64encode(bare.jwt_key).decode()
        bare.run("sh", "-c", 'base64 -d > "$1"', "write", bare.jwt_key_path, input=text)
        restart(bare, "slurmrestd", "slurmctld", "slurmdbd")
        bare.wait_ready()
        with Slurm(bare.url, SignedTokens(bare.jwt_key)) as fresh:
            until_it_works(fresh.nodes)
            until_it_works(fresh.db.accounts)
        with pytest.raises(Authentication):
            left_behind.nodes()
        path.write_text(bare.token("root"))
        assert client.nodes()
        assert client.db.accounts()


def test_a_slurmrestd_that_was_restarted_is_not_noticed(bare: BareSlurm, slurm: Slurm) -> None:
    """The connection of the last call is dead; the next call makes another."""
    assert slurm.nodes()
    bare.kill("slurmrestd")
    bare.start("slurmrestd")
    bare.wait_ready()
    assert slurm.nodes()


def test_without_slurmdbd_slurmctlds_calls_go_on(bare: BareSlurm, slurm: Slurm) -> None:
    """slurmdbd's are unavailable, within a bounded time, and come back with it."""
    assert slurm.db.accounts()
    bare.stop("slurmdbd")
    try:
        assert slurm.nodes()
        started = time.monotonic()
        with pytest.raises(Unavailable):
            slurm.db.accounts()
        assert time.monotonic() - started < BOUND
    finally:
        bare.start("slurmdbd")
    until_it_works(slurm.db.accounts)


def test_without_slurmctld_slurmdbds_calls_go_on(bare: BareSlurm, slurm: Slurm) -> None:
    """slurmctld's are unavailable, within a bounded time, and come back with it."""
    assert slurm.nodes()
    bare.stop("slurmctld")
    try:
        with Slurm(bare.url, SignedTokens(bare.jwt_key), timeouts=Timeouts(read=3.0)) as quick:
            assert quick.db.accounts()
            started = time.monotonic()
            with pytest.raises(Unavailable):
                quick.nodes()
            assert time.monotonic() - started < BOUND
    finally:
        bare.start("slurmctld")
    until_it_works(slurm.nodes)
