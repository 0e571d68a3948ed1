"""The harness's cache: everything it builds, outside the source tree, each thing under a key of its inputs.

`$KUBESLURM_CACHE` or ~/.cache/kubeslurm. `artefact` builds what is missing: into a temporary path, renamed when it is
whole, under a lock, so that a killed build leaves no half thing and two builders don't build twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
FILES = HERE / "files"


def root() -> Path:
    """The cache's folder, made if missing."""
    path = Path(os.environ.get("KUBESLURM_CACHE") or Path.home() / ".cache" / "kubeslurm")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _paths(start: Path) -> Iterator[Path]:
    """The files of `start` (a file or a folder), sorted, without caches."""
    if start.is_file():
        yield start
        return
    yield from sorted(p for p in start.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def key_of(*inputs: str | Path) -> str:
    """A short hash of words and of the content (and relative names) of files and folders."""
    digest = hashlib.sha256()
    for item in inputs:
        if isinstance(item, str):
            digest.update(b"word\0" + item.encode() + b"\0")
            continue
        for path in _paths(item):
            name = path.name if path == item else str(path.relative_to(item))
            digest.update(f"file\0{name}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def locked(name: str, *, shared: bool = False) -> Iterator[None]:
    """Hold the machine-wide lock `name`, alone or `shared`; the kernel frees it when the holder dies."""
    with _lock_file(name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def locked_if_free(name: str) -> Iterator[bool]:
    """Hold the lock `name` alone if nobody has it; gives whether it is held."""
    with _lock_file(name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held


def _lock_file(name: str) -> Path:
    folder = root() / "locks"
    folder.mkdir(exist_ok=True)
    return folder / name


def remove(path: Path) -> None:
    """Delete a file or a folder; nothing happens if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def artefact(name: str, key: str, build: Callable[[Path], None], *, keep: int = 2) -> Path:
    """The file or folder `name` for `key`; `build(path)` makes it at a path given, if it isn't there.

    The `keep` newest keys of a name stay (another checkout may use the one before).
    """
    folder = root() / name
    wanted = folder / key
    if wanted.exists():
        os.utime(wanted)
        return wanted
    folder.mkdir(parents=True, exist_ok=True)
    with locked(name.replace("/", "-")):
        if not wanted.exists():
            _build(wanted, build)
            _prune(folder, keep)
    return wanted


def _build(wanted: Path, build: Callable[[Path], None]) -> None:
    for left in wanted.parent.glob(".new-*"):  # of a builder that was killed: we hold the lock, so nobody uses it
        remove(left)
    partial = wanted.parent / f".new-{wanted.name}"
    build(partial)
    os.utime(partial)  # the newest, whatever time a tar gave it: the oldest are pruned
    partial.rename(wanted)


def _prune(folder: Path, keep: int) -> None:
    versions = sorted((p for p in folder.iterdir() if not p.name.startswith(".")), key=lambda p: p.stat().st_mtime)
    for old in versions[:-keep]:
        remove(old)
