"""Root file systems made of Debian packages: the base of every image, and of the bare Slurm.

`archive` gives a tar, `folder` the same unpacked (as root, with owners). No recommends, no documentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import cache, packages
from tests.cluster.shell import run

_SOURCES = (Path("/etc/apt/sources.list.d"), Path("/etc/apt/sources.list"))
_WITHOUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


@dataclass(frozen=True)
class Recipe:
    """What goes into a root file system: a Debian suite, packages, and shell lines run on it with its path as $1."""

    name: str
    suite: str
    packages: Sequence[str]
    hooks: Sequence[str] = ()

    @property
    def key(self) -> str:
        return cache.key_of("rootfs-1", self.suite, *self.packages, "|", *self.hooks)


def mirror() -> str | None:
    """The Debian archive that this machine's apt uses, or None for mmdebstrap's default."""
    files = [f for s in _SOURCES for f in (sorted(s.glob("*")) if s.is_dir() else [s]) if f.is_file()]
    for file in files:
        for uri in re.findall(r"(?m)^(?:URIs:|deb(?:\s+\[[^]]*\])?)\s+(\S+/debian)/?\s", file.read_text() + "\n"):
            return str(uri)
    return None


def _mmdebstrap(recipe: Recipe, path: Path) -> None:
    packages.ensure("mmdebstrap")
    command = [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
        f"--include={','.join(recipe.packages)}",
    ]
    command += ["--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Check-Valid-Until false"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in _WITHOUT]
    command += [f"--customize-hook={hook}" for hook in recipe.hooks]
    command += [recipe.suite, str(path)]
    source = mirror()
    run(command + ([f"deb {source} {recipe.suite} main"] if source else []), timeout=900)


def archive(recipe: Recipe) -> Path:
    """The root file system as a tar."""
    return cache.artefact(f"rootfs-{recipe.name}", recipe.key, lambda path: _mmdebstrap(recipe, path))


def folder(recipe: Recipe) -> Path:
    """The root file system as a folder. Read it only: what writes puts an overlay over it."""

    def build(path: Path) -> None:
        path.mkdir()
        unpack(archive(recipe), path)

    return cache.artefact(f"root-{recipe.name}", recipe.key, build)


def unpack(tar: Path, path: Path) -> None:
    """Unpack a root file system's tar into the folder `path`, owners and modes kept."""
    run(["tar", "-C", path, "--numeric-owner", "--xattrs", "-xpf", tar], timeout=300)
