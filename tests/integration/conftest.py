"""Fixtures of the tests that talk to a real Slurm on this machine, without Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import images, rootfs
from tests.cluster.shell import CommandError
from tests.cluster.slurm import BareSlurm


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
