"""The harness's cache: keys, atomic builds, what stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("KUBESLURM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _write(text: str, built: list[str]) -> Callable[[Path], None]:
    def build(path: Path) -> None:
        built.append(text)
        path.write_text(text)

    return build


def test_key_changes_with_a_file_of_a_folder(tmp_path: Path) -> None:
    """A key covers the content of every file below a folder."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_text("1")
    before = cache.key_of(tmp_path / "src")
    (tmp_path / "src/a").write_text("2")
    assert cache.key_of(tmp_path / "src") != before


def test_key_changes_with_a_file_made_executable(tmp_path: Path) -> None:
    """A key covers the executable bit."""
    (tmp_path / "a").write_text("1")
    before = cache.key_of(tmp_path / "a")
    (tmp_path / "a").chmod(0o755)
    assert cache.key_of(tmp_path / "a") != before


def test_key_keeps_words_apart() -> None:
    """Words don't run into one another."""
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")


def test_artefact_is_built_once() -> None:
    """The second call takes what the first built."""
    built: list[str] = []
    for _ in range(2):
        assert cache.artefact("x", "k", _write("1", built)).read_text() == "1"
    assert built == ["1"]


def test_failed_build_leaves_no_artefact() -> None:
    """What a failed build wrote is not taken for the artefact, and does not hinder the next build."""

    def fail(path: Path) -> None:
        path.mkdir()
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        cache.artefact("x", "k", fail)
    assert cache.artefact("x", "k", _write("whole", [])).read_text() == "whole"


def test_oldest_versions_are_dropped() -> None:
    """Only the newest keys of a name stay."""
    for key in ("a", "b", "c"):
        cache.artefact("x", key, _write(key, []), keep=2)
    assert sorted(p.name for p in (cache.root() / "x").iterdir()) == ["b", "c"]


def test_lock_in_use_is_not_taken() -> None:
    """While others share a lock, nobody gets it alone; afterwards it is free."""
    with cache.locked("x", shared=True), cache.locked("x", shared=True), cache.locked_if_free("x") as held:
        assert not held
    with cache.locked_if_free("x") as held:
        assert held
