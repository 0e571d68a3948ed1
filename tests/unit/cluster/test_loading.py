"""How an image archive gets into a node."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import cache, loading
from tests.cluster.engine import StockEngine


class RecordedEngine(StockEngine):
    """An engine whose docker commands are written down, and end with an exit code."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.said: list[tuple[str, ...]] = []

    def docker(self, *args: str, **_: Any) -> subprocess.CompletedProcess[str]:
        self.said.append(args)
        return subprocess.CompletedProcess(args, self.code, "", "")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive in the cache."""
    monkeypatch.setenv("KUBESLURM_CACHE", str(tmp_path))
    return cache.artefact("image-x", "key", lambda path: path.touch())


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that an archive was piped into."""
    nodes: list[str] = []
    monkeypatch.setattr(loading, "_pipe", lambda engine, node, archive: nodes.append(node))
    return nodes


def test_node_reads_an_archive_of_the_cache_by_itself(archive: Path, piped: list[str]) -> None:
    """It is told path, name and key, by which it knows whether it has this one."""
    engine = RecordedEngine(0)
    loading.load(engine, "w", archive)
    assert (engine.said[0][-3:], piped) == (("/kubeslurm-cache/image-x/key", "image-x", "key"), [])


def test_node_without_the_cache_has_the_archive_piped_in(archive: Path, piped: list[str]) -> None:
    """A cluster that was made with another cache takes images all the same."""
    loading.load(RecordedEngine(1), "w", archive)
    assert piped == ["w"]


def test_archive_from_elsewhere_is_piped_in(
    archive: Path, piped: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing is known of its content, so it is loaded each time."""
    engine = RecordedEngine(0)
    loading.load(engine, "w", tmp_path_factory.mktemp("elsewhere") / "x.tar")
    assert (engine.said, piped) == ([], ["w"])


@pytest.mark.parametrize(("before", "imports"), [("", 1), ("old", 1), ("key", 0)])
def test_same_key_is_imported_once(tmp_path: Path, before: str, imports: int) -> None:
    """The node's script imports what it hasn't, also when it has an older one of the name, and remembers the newest."""
    (tmp_path / "ctr").write_text(f"#!/bin/sh\necho import >> {tmp_path}/log\n")
    (tmp_path / "ctr").chmod(0o755)
    (tmp_path / "image-x").write_text(before)
    script = loading._ONCE.replace("/kind/loaded", str(tmp_path))
    for _ in range(2):
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        subprocess.run(["sh", "-c", script, "load", "/archive", "image-x", "key"], env=env, check=True, timeout=10)
    log = tmp_path / "log"
    assert (len(log.read_text().splitlines()) if log.exists() else 0) == imports
