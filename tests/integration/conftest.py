"""Fixtures of the tests that talk to a real Slurm on this machine, without Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster import images, rootfs
from tests.cluster.shell import CommandError
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import NAMES, PAIRS, RAN


def need_root_file_system(suite: str, *, accounting: bool) -> None:
    """Skip where a bare Slurm can't be: without root rights, or when Debian doesn't give the packages of `suite` today.

    Only Debian's unstable is skipped so. A root file system that is there and a Slurm that doesn't run on it is a failure.
    """
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    try:
        rootfs.folder(images.bare_recipe(suite, accounting=accounting))
    except CommandError as error:
        if suite != "sid":
            raise
        reason = next((line for line in error.output.splitlines() if line.startswith("E: ")), error.reason)
        pytest.skip(f"Debian {suite} gives no root file system today: {reason}")


@pytest.fixture(scope="module")
def slurm() -> Iterator[BareSlurm]:
    """A real Slurm: 4 nodes (n0 to n3) of 8 GPUs, users alice and bob. Shared by the tests of a module."""
    if os.geteuid() != 0:
        pytest.skip("a bare Slurm needs root: it makes namespaces")
    with BareSlurm(nodes=4, gpus=8) as running:
        yield running


@pytest.fixture(params=PAIRS, ids=NAMES)
def pair(request: pytest.FixtureRequest, running: Callable[[str], BareSlurm]) -> tuple[BareSlurm, str]:
    """A Slurm of the module's fixture `running`, and one of the API versions that it speaks: each pair in turn."""
    suite, version = request.param
    slurm = running(suite)
    RAN.add((suite, version, slurm.accounting))
    return slurm, version


@pytest.fixture
def bare(pair: tuple[BareSlurm, str]) -> BareSlurm:
    """The Slurm of the pair."""
    return pair[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line: on how much of what Slurm offers the client was held against a real one."""
    if RAN:
        told = sorted(
            f"{suite} {version}{' with slurmdbd' if accounting else ''}" for suite, version, accounting in RAN
        )
        line = f"slurmrest ran on {len(told)} of {2 * len(PAIRS)} (release, version, slurmdbd): {', '.join(told)}"
        terminalreporter.write_line(line)
