"""Image archives without a registry or an engine: a writer of docker-archive files.

The format is the one that old and new engines, containerd and podman all load (`docker load`, `ctr images import`).
Equal layers give equal bytes: no time stamps. Layers are streamed, never held in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.shell import run

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """The face of an image: its name:tag and how a container of it starts."""

    name: str
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def config(self, layers: Sequence[str]) -> bytes:
        """The image's configuration, as JSON, for layers with these digests."""
        environment = {"PATH": _PATH, **self.environment}
        settings = {
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Entrypoint": list(self.entrypoint) or None,
            "Cmd": list(self.command) or None,
            "User": self.user,
            "WorkingDir": "/",
        }
        epoch = "1970-01-01T00:00:00Z"
        return json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "created": epoch,
                "config": settings,
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in layers]},
                "history": [{"created": epoch, "created_by": "tests/cluster"} for _ in layers],
            },
            sort_keys=True,
        ).encode()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info


def write(path: Path, image: Image, layers: Sequence[Path]) -> None:
    """Write the archive `path` of an image made of layer tars, lowest first."""
    digests = [_digest(layer) for layer in layers]
    config = image.config(digests)
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{digest}.tar" for digest in digests]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [image.name], "Layers": names}]).encode()
    with tarfile.open(path, "w") as tar:
        for name, layer in dict(zip(names, layers, strict=True)).items():
            with layer.open("rb") as file:
                tar.addfile(_member(name, layer.stat().st_size), file)
        for name, content in ((config_name, config), ("manifest.json", manifest)):
            tar.addfile(_member(name, len(content)), io.BytesIO(content))


def layer_of_files(path: Path, files: Mapping[str, Path], links: Mapping[str, str] | None = None) -> None:
    """Write a layer tar of single files (destination -> source) and symbolic links (destination -> target)."""
    with tarfile.open(path, "w") as tar:
        for folder in _parents([*files, *(links or {})]):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for destination, source in files.items():
            info = _member(destination.strip("/"), source.stat().st_size)
            info.mode = source.stat().st_mode & 0o777
            with source.open("rb") as file:
                tar.addfile(info, file)
        for destination, target in (links or {}).items():
            info = tarfile.TarInfo(destination.strip("/"))
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)


def _parents(destinations: Iterable[str]) -> list[str]:
    """The folders above the destinations, upper ones first."""
    return sorted(
        {str(folder).strip("/") for name in destinations for folder in Path("/" + name.strip("/")).parents} - {""}
    )


def layer_of_folder(path: Path, folder: Path, *, under: str = ".") -> None:
    """Write a layer tar of a folder's content, placed under the path `under`; owner root, no times."""
    rename = [] if under == "." else [f"--transform=s|^\\./|./{under.strip('/')}/|", "--show-transformed-names"]
    fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    run(["tar", "-C", folder, *fixed, *rename, "--exclude=./.*", "-cf", path, "."], timeout=300)
