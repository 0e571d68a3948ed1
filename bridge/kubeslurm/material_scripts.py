"""What a task does with its materials: wait for them, take the variables, put files where they are mounted.

Pure; called by `scripts`. What always holds: a value is read from a file of mode 0600 when the task starts, and goes from
there into the environment of the program, without standing in the script or in an argument of ours; a task whose
materials don't come ends with code 125 and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubeslurm.expansion import Ref, Word, shell
from kubeslurm.materials import ROOT, SCRATCH, Materials, Mount

CHOSEN: Final = "KUBESLURM_V_"
"""Before the name of a variable that `env[].valueFrom` gives: a shell variable of the task."""

ALL: Final = "KUBESLURM_F_"
"""Before the name of one that `envFrom` may give."""

FOLDER: Final = f'"{ROOT}/$SLURM_JOB_ID/${{SLURM_RESTART_COUNT:-0}}"'
SECONDS: Final = 60

_WAIT: Final = f"""\
materials={FOLDER}
for ((i = 0; i < {SECONDS * 10}; i++)); do [ -d "$materials" ] && break; sleep 0.1; done
if [ ! -d "$materials" ]; then
  echo "kubeslurm: ConfigMaps and Secrets did not come to $SLURMD_NODENAME within {SECONDS} s" >&2
  exit 125
fi"""

_LOAD: Final = """\
KUBESLURM_PAIRS=() # by names that no user's variable can have
load() { # by bytes: a value need not be text
  local LC_ALL=C pair
  while IFS= read -r -d '' pair; do
    KUBESLURM_PAIRS+=("$pair")
    printf -v "$2${pair%%=*}" %s "${pair#*=}"
  done < "$materials/$1"
}"""

_LINK: Final = """\
taken() { echo "kubeslurm: $2 on $SLURMD_NODENAME can't be a link to $1: somebody else has it" >&2; exit 125; }
link() { # in folders that no other user can change
  mkdir -p -- "${2%/*}" 2> /dev/null
  local folder=${2%/*}
  while [ -n "$folder" ]; do
    case $(stat -c %u -- "$folder") in 0 | "$UID") ;; *) taken "$1" "$2" ;; esac
    folder=${folder%/*}
  done
  ln -sT -- "$1" "$2" 2> /dev/null || [ "$(readlink -- "$2")" = "$1" ] || {
    [ -L "$2" ] && [ ! -e "$2" ] && ln -sfT -- "$1" "$2"
  } || taken "$1" "$2"
  printf '%s\\0' "$2" >> "%ROOT%/$SLURM_JOB_ID/links"
}""".replace("%ROOT%", ROOT)


def late(word: Word) -> bool:
    """Does it hold a value that only the materials have?"""
    return any(isinstance(piece, Ref) and piece.name.startswith((CHOSEN, ALL)) for piece in word)


def ready(materials: Materials, *, folders: bool = True) -> list[str]:
    """Wait for what is brought, and make the folders that are to be empty."""
    new = [f"mkdir -p {_source(mount)}" for mount in materials.mounts if folders and _is_new(mount)]
    return [*new, *([_WAIT] if materials.brought else [])]


def lines(materials: Materials, words: Iterable[Word]) -> list[str]:
    """After that: the variables that are brought, and as shell variables those of their values that `words` refer to."""
    if not materials.brought:
        return []
    refs = {piece.name for word in words for piece in word if isinstance(piece, Ref)}
    names = sorted({name.removeprefix(CHOSEN).removeprefix(ALL) for name in refs if name.startswith((CHOSEN, ALL))})
    found = [_LOAD]
    found += [f"{ALL}{name}={shell((f'$({name})',))}" for name in names]
    found += [f"load from {ALL}"]
    found += [f"{CHOSEN}{name}=${ALL}{name}" for name in names]
    found += [f"load env {CHOSEN}"]
    return found


def exports(materials: Materials, environment: Iterable[tuple[str, Word]], prefix: str = "") -> list[str]:
    """Right before the program: its variables, after which no command of ours may be searched for. `prefix`: of names."""
    if not materials.brought:
        return []
    assigned = [f"export {prefix}{name}={shell(value)}" for name, value in environment if late(value)]
    loop = f'for KUBESLURM_PAIR in "${{KUBESLURM_PAIRS[@]}}"; do export "{prefix}$KUBESLURM_PAIR"; done'
    return [loop, *assigned]


def links(materials: Materials) -> list[str]:
    """Each mount as a symbolic link, where the job runs in the nodes' own file system."""
    wanted = [mount for mount in materials.mounts if not in_place(mount)]
    if not wanted:
        return []
    return [_LINK, *(f"link {_source(mount)} {shell((mount.path,))}" for mount in wanted)]


def in_place(mount: Mount) -> bool:
    """Is it there already? Folders of the nodes at their own path, and memory at /dev/shm, which the nodes have."""
    if mount.volume.memory and mount.path == "/dev/shm":
        return True
    return mount.volume.path is not None and _joined(mount.volume.path, mount.sub_path) == mount.path


def binds(materials: Materials) -> list[tuple[str, str, bool]]:
    """For a container: (source as a shell word, path, read only) of each mount, in the order of their paths."""
    ordered = sorted(materials.mounts, key=lambda mount: mount.path)
    kept = [mount for mount in ordered if not (mount.volume.memory and in_place(mount))]
    return [(_source(mount), mount.path, mount.read_only or bool(mount.volume.pieces)) for mount in kept]


def _is_new(mount: Mount) -> bool:
    return mount.volume.path is None and not mount.volume.pieces and not in_place(mount)


def _source(mount: Mount) -> str:
    """Where the volume is on the node, as one shell word."""
    volume = mount.volume
    if volume.path is not None:
        return shell((_joined(volume.path, mount.sub_path),))
    rest = _joined(volume.name, mount.sub_path)
    if volume.pieces:
        return FOLDER + shell((f"/volumes/{rest}",))
    return f'"{SCRATCH}/$SLURM_JOB_ID"' + shell((f"/{rest}",))


def _joined(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest}" if rest else folder
