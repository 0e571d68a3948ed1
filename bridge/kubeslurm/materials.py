"""Materials: what a job wants of ConfigMaps and Secrets, as variables and files, and of folders on its nodes.

`readers.materials` reads them out of a pod template, `material_scripts` writes what a task does with them, and the operator
brings them: it reads the objects, makes a bundle and unpacks it on each node of the running job. Pure. What always holds:
a plan names objects and keys, never a value; a bundle's paths were checked and stay below the job's own folder.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

ROOT: Final = "/run/kubeslurm"
"""In memory; the Prolog makes `<ROOT>/<job id>` for the job's user alone, and the Epilog removes it."""

SCRATCH: Final = "/var/spool/kubeslurm"
"""The same on the node's disk, for emptyDir volumes."""

MAX_VALUE: Final = 120_000
"""Linux takes no variable of more than 128 KiB."""

MAX_BUNDLE: Final = 16 * 2**20
OWNER_ONLY: Final = 0o700
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_KEPT = """
    UID EUID PPID SHELLOPTS BASHOPTS BASH_VERSINFO BASHPID RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS EPOCHREALTIME
    HISTCMD GROUPS DIRSTACK FUNCNAME BASH_SOURCE BASH_LINENO BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_ALIASES
    BASH_COMMAND BASH_SUBSHELL PIPESTATUS IFS _
"""
SHELL_NAMES: Final = frozenset(_KEPT.split())
"""Variables that bash keeps for itself: one from a Secret would not arrive as it is."""


class Source(NamedTuple):
    """An object in the job's own namespace; `kind` is ConfigMap or Secret."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Variable:
    """env[].valueFrom: one key as one variable."""

    name: str
    source: Source
    key: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Every:
    """envFrom: all keys, each with the prefix before it."""

    source: Source
    prefix: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Item:
    """A file in a volume: a key of the piece's source, or a text that is known already."""

    path: str
    mode: int
    key: str = ""
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Files of one source. No items: all keys, under their own names. No source: all items are texts."""

    source: Source | None
    items: tuple[Item, ...]
    optional: bool
    mode: int


@dataclass(frozen=True, slots=True)
class Volume:
    """Files to bring (`pieces`), a folder that the nodes have (`path`), or else a new empty one."""

    name: str
    pieces: tuple[Piece, ...] = ()
    path: str | None = None
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, or a part of it, at a path."""

    volume: Volume
    path: str
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Materials:
    """All of a replica's: the variables of envFrom and of env[].valueFrom, and its mounts."""

    every: tuple[Every, ...] = ()
    variables: tuple[Variable, ...] = ()
    mounts: tuple[Mount, ...] = ()

    @property
    def volumes(self) -> tuple[Volume, ...]:
        """Each mounted volume once, by name."""
        return tuple(sorted({mount.volume.name: mount.volume for mount in self.mounts}.values(), key=_name))

    @property
    def brought(self) -> bool:
        """Must somebody bring something before a task can begin?"""
        return bool(self.every or self.variables or any(volume.pieces for volume in self.volumes))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The objects to read, each once."""
        return tuple(sorted({source for source, _ in self._references()}))

    def _references(self) -> Iterator[tuple[Source, bool]]:
        yield from ((one.source, one.optional) for one in self.every)
        yield from ((one.source, one.optional) for one in self.variables)
        for piece in (piece for volume in self.volumes for piece in volume.pieces):
            if piece.source is not None:
                yield piece.source, piece.optional


Contents = Mapping[Source, Mapping[str, bytes] | None]
"""The data of each source; None where there is no such object."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A tar of what a node gets, and the keys of envFrom that are no variables for a task."""

    tar: bytes
    skipped: tuple[str, ...]


def _name(volume: Volume) -> str:
    return volume.name


def contents(raw: Mapping[str, Any]) -> dict[str, bytes]:
    """The data of a ConfigMap or Secret; what is not base64 where it must be counts as absent."""
    texts = raw.get("data") or {}
    coded = texts if raw.get("kind") == "Secret" else raw.get("binaryData") or {}
    found = {} if raw.get("kind") == "Secret" else {key: str(value).encode() for key, value in texts.items()}
    for key, value in coded.items():
        try:
            found[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue
    return found


def missing(materials: Materials, found: Contents) -> tuple[str, ...]:
    """What is wanted and not there, in words: a job with any of it waits."""
    words = [str(source) for source, optional in materials._references() if not optional and found[source] is None]
    for source, key, optional in _keys(materials):
        data = found[source]
        if data is not None and key not in data and not optional:
            words.append(f"key {key} of {source}")
    return tuple(dict.fromkeys(words))


def _keys(materials: Materials) -> Iterator[tuple[Source, str, bool]]:
    for one in materials.variables:
        yield one.source, one.key, one.optional
    for piece in (piece for volume in materials.volumes for piece in volume.pieces):
        if piece.source is not None:
            yield from ((piece.source, item.key, piece.optional) for item in piece.items if item.text is None)


def bundle(materials: Materials, found: Contents, taken: Collection[str] = ()) -> Bundle:
    """What to unpack on a node. ValueError, with no value in it, where a task could not take it. `taken`: names that win."""
    every, skipped = _every(materials, found)
    chosen = {one.name: data[one.key] for one in materials.variables if one.key in (data := found[one.source] or {})}
    files = {"from": (0o600, _pairs(every, taken)), "env": (0o600, _pairs(chosen, taken))}
    for volume in materials.volumes:
        files |= {f"volumes/{volume.name}/{path}": what for path, what in _files(volume, found)}
    if sum(len(data) for _, data in files.values()) > MAX_BUNDLE:
        raise ValueError(f"ConfigMaps and Secrets are larger than {MAX_BUNDLE} bytes together")
    folders = [f"volumes/{volume.name}" for volume in materials.volumes if volume.pieces]
    return Bundle(_tar(folders, files), skipped)


def _every(materials: Materials, found: Contents) -> tuple[dict[str, bytes], tuple[str, ...]]:
    pairs: dict[str, bytes] = {}
    skipped: list[str] = []
    for one in materials.every:
        for key, value in sorted((found[one.source] or {}).items()):
            name = one.prefix + key
            if usable(name):
                pairs[name] = value
            else:
                skipped.append(f"{name} of {one.source}")
    return pairs, tuple(skipped)


_TAKEN: Final = re.compile(
    r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SCANCEL|SPANK|PMI|PMIX|PYXIS|ENROOT|APPTAINER|APPTAINERENV|SINGULARITY"
    r"|SINGULARITYENV|KUBESLURM)_|CUDA_VISIBLE_DEVICES\Z"
)


def usable(name: str) -> bool:
    """Can a ConfigMap's or Secret's key be this variable of a task?"""
    return bool(IDENTIFIER.match(name)) and name not in SHELL_NAMES and not _TAKEN.match(name)


def _pairs(values: Mapping[str, bytes], taken: Collection[str]) -> bytes:
    pairs = []
    for name, value in values.items():
        if b"\0" in value or len(value) > MAX_VALUE:
            raise ValueError(f"the value for variable {name} holds NUL, or more than {MAX_VALUE} bytes")
        if name not in taken:
            pairs.append(name.encode() + b"=" + value + b"\0")
    return b"".join(pairs)


def _files(volume: Volume, found: Contents) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for piece in volume.pieces:
        data = (found[piece.source] or {}) if piece.source else {}
        items = piece.items or tuple(Item(key, piece.mode, key) for key in sorted(data) if safe(key))
        for item in items:
            value = item.text.encode() if item.text is not None else data.get(item.key)
            if value is not None:
                yield item.path, (item.mode, value)


def safe(path: str) -> bool:
    """A relative path that stays below its folder."""
    parts = path.split("/")
    return 0 < len(path) <= 1024 and "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def _tar(folders: list[str], files: Mapping[str, tuple[int, bytes]]) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as tar:
        for folder in folders:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o700
            tar.addfile(info)
        for path, (mode, data) in files.items():
            info = tarfile.TarInfo(path)
            # only the job's user reads them: what the group and others may has no meaning in a folder of mode 0700
            info.size, info.mode = len(data), mode & OWNER_ONLY
            tar.addfile(info, io.BytesIO(data))
    return memory.getvalue()


UNPACK: Final = """\
set -eu -o pipefail
umask 077
for ((i = 0; i < 50; i++)); do [ -d "$1" ] && break; sleep 0.1; done # the Prolog is at it
cd -- "$1"
[ ! -d "$2" ] || exit 0
new=.new.$$
trap 'rm -rf -- "$new"' EXIT
mkdir -- "$new"
head -c "$3" | tar -x -f - --no-same-owner -p -C "$new"
mv -T -- "$new" "$2" 2> /dev/null || [ -d "$2" ]
"""
"""Unpacks `$3` bytes of standard input as `$2` in the job's folder `$1`. All or nothing; a second time does nothing."""


def unpack_command(uid: int, gid: int, job_id: int, restart: int, size: int) -> list[str]:
    """Run as the job's user, so that no link in a folder of his leads root anywhere."""
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--"]
    return [*become, "/bin/bash", "-c", UNPACK, "unpack", f"{ROOT}/{job_id}", str(restart), str(size)]


NONE: Final = Materials()
