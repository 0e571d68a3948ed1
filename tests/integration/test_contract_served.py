"""What slurmrestd serves, in each release and API version, with and without slurmdbd: nothing but what the client knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmrest import SignedTokens, Slurm, Unsupported
from slurmrest.endpoints import ENDPOINTS, RELEASES, Endpoint
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import slurms
from tests.unit.slurmrest.records.__main__ import connected, served

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "slurmdbd"])
def running(request: pytest.FixtureRequest) -> Iterator[Callable[[str], BareSlurm]]:
    """One Slurm per release, without and then with slurmdbd."""
    accounting: bool = request.param
    with slurms(lambda suite: BareSlurm(nodes=1, suite=suite, accounting=accounting), accounting=accounting) as of:
        yield of


@pytest.fixture
def slurm(pair: tuple[BareSlurm, str]) -> Iterator[Slurm]:
    """Root's client of it."""
    bare, version = pair
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as client:
        yield client


def lacks(bare: BareSlurm, version: str) -> list[Endpoint]:
    """The calls of the table that this Slurm doesn't serve in this version."""
    with connected(bare) as http:
        calls = served(http)
    return [one for one in ENDPOINTS if f"{one.method} /{one.api}/{version}/{one.path}" not in calls]


def test_the_client_knows_every_call_that_is_served(pair: tuple[BareSlurm, str]) -> None:
    """A new one would show here."""
    bare, version = pair
    with connected(bare) as http:
        calls = [one for one in served(http) if f"/{version}/" in one]
    known = {f"{one.method} /{one.api}/{version}/{one.path}" for one in ENDPOINTS}
    assert calls
    assert not set(calls) - known


def test_a_call_that_isnt_served_is_unsupported_and_says_why(pair: tuple[BareSlurm, str], slurm: Slurm) -> None:
    """By the first version that has it; without slurmdbd, by the daemon that is missing."""
    bare, version = pair
    for endpoint in lacks(bare, version):
        tail = re.sub(r"\{.*?\}", "1", endpoint.path)
        body: dict[str, Any] | None = {} if endpoint.method == "POST" else None
        with pytest.raises(Unsupported) as caught:
            slurm.request(endpoint.method, tail, api=endpoint.api, body=body)
        if endpoint.missing(version):
            assert f"needs {endpoint.since} (Slurm {RELEASES[endpoint.since]})" in str(caught.value)


def test_slurmdbds_calls_are_there_with_it_and_only_then(bare: BareSlurm, slurm: Slurm) -> None:
    """Asked by the client's own call."""
    if bare.accounting:
        assert {"physics", "chemistry"} <= {one.name for one in slurm.db.accounts()}
    else:
        with pytest.raises(Unsupported):
            slurm.db.accounts()
