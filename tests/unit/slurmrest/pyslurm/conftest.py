"""Fixtures of the unit tests of pyslurm's face."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest.pyslurm import _session
from tests.unit.slurmrest.pyslurm.recorded import NAMES, Recorded


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No connection but a test's own, none of the environment, none left behind."""
    for name in ("URL", "TOKEN", "TOKEN_FILE", "KEY_FILE", "USER", "CA_FILE"):
        monkeypatch.delenv(getattr(_session, name), raising=False)
    pyslurm.disconnect()
    yield
    pyslurm.disconnect()


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """Each recorded version in turn, connected."""
    return connected(request.param)


@pytest.fixture
def newest() -> Recorded:
    """The newest recorded version, connected."""
    return connected(NAMES[-1])


@pytest.fixture
def oldest() -> Recorded:
    """The oldest recorded version, connected."""
    return connected(NAMES[0])


def connected(name: str) -> Recorded:
    """A recorded slurmrestd that pyslurm's face talks to."""
    server = Recorded(name)
    pyslurm.connect(client=server.client())
    return server
