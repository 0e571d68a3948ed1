"""What the machine allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import limits


def test_too_few_inotify_instances_are_told_before_anything_is_made() -> None:
    """The error says what runs out, how much is used, and what to do."""
    with pytest.raises(limits.MachineLimitError, match="100 of the 128"):
        limits.need_inotify(2, in_use=100, limit=128)


def test_two_clusters_fit_debians_limit() -> None:
    """Two clusters with two workers each stand side by side on a bare machine."""
    limits.need_inotify(2, in_use=limits.CONTROL_PLANE + 2 * limits.WORKER, limit=128)


def test_open_instances_are_counted_over_processes(tmp_path: Path) -> None:
    """Each open instance counts once; other files, and processes that are gone, count nothing."""
    for pid, target in (("1", "anon_inode:inotify"), ("2", "anon_inode:inotify"), ("3", "/dev/null")):
        (tmp_path / pid / "fd").mkdir(parents=True)
        (tmp_path / pid / "fd/7").symlink_to(target)
    (tmp_path / "4").mkdir()
    assert limits.inotify_in_use(tmp_path) == 2
