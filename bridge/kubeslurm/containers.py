"""The container that a job's tasks run in, by `SlurmCluster.spec.jobs.containerRuntime`: exact command lines.

Pure; `readers.images` makes a Container of a job's image, `scripts` asks here what to write around the program. What always
holds: an image's name is a checked word; what the user set wins over what the image sets, as in Kubernetes; values that
came of a Secret stand in no argument.

apptainer and charliecloud are programs on the node, which the task starts. pyxis is a plugin of srun: the whole task runs in
the container, so that the image needs bash, and what is mounted has to be there before the step begins.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubeslurm import material_scripts
from kubeslurm.expansion import shell
from kubeslurm.materials import ROOT, Materials

PYXIS: Final = "pyxis"
APPTAINER: Final = "apptainer"
CHARLIECLOUD: Final = "charliecloud"
ENTRYPOINTS: Final = frozenset({PYXIS, APPTAINER})
"""Those that know an image's entrypoint."""


@dataclass(frozen=True, slots=True)
class Container:
    """`image` is what the runtime takes: a reference or a path. `entrypoint`: start the image's, and give it the arguments.

    `gpus` is the option by which apptainer brings a vendor's libraries, such as nv.
    """

    runtime: str
    image: str
    entrypoint: bool
    workdir: str | None
    gpus: str = ""


def image_name(image: str) -> str:
    """A file's name for it, as charliecloud has it: registry.example/a:1 is registry.example%a+1."""
    return image.replace("/", "%").replace(":", "+")


def pyxis_name(image: str) -> str:
    """enroot parts the registry from the name by '#'."""
    first, slash, rest = image.partition("/")
    registry = slash and ("." in first or ":" in first or first == "localhost")
    return f"{first}#{rest}" if registry else image


def srun_flags(container: Container | None, materials: Materials) -> list[str]:
    """pyxis' options; words of the batch script."""
    if container is None or container.runtime != PYXIS:
        return []
    mounts = [
        f"{source}:{path}" + (":ro" if read_only else "")
        for source, path, read_only in material_scripts.binds(materials)
    ]
    if materials.brought:
        mounts.append(f'"{ROOT}/$SLURM_JOB_ID":"{ROOT}/$SLURM_JOB_ID":ro')
    return [
        f"--container-image={shlex.quote(pyxis_name(container.image))}",
        *([f"--container-mounts={','.join(mounts)}"] if mounts else []),
        *([f"--container-workdir={shell((container.workdir,))}"] if container.workdir else []),
        "--container-env=MASTER_ADDR,MASTER_PORT",
        "--no-container-mount-home",
        "--no-container-remap-root",
        "--container-entrypoint" if container.entrypoint else "--no-container-entrypoint",
    ]


def before_step(container: Container | None, materials: Materials) -> str:
    """A step of its own that waits on each node for what pyxis mounts; empty where it mounts nothing new."""
    new = any(mount.volume.path is None for mount in materials.mounts)
    if container is None or container.runtime != PYXIS or not new:
        return ""
    text = "\n".join(material_scripts.ready(materials))
    nodes = "$SLURM_JOB_NUM_NODES"
    flags = f"--nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --mpi=none"
    return f"srun {flags} /bin/bash -c {shlex.quote(text)} || exit 125\n"


def prepare(container: Container | None, materials: Materials) -> list[str]:
    """In the task, while it still has Slurm's variables: the mounts, and the program that makes the container."""
    if container is None:
        return material_scripts.links(materials)
    if container.runtime == PYXIS:
        return []
    program = {APPTAINER: "apptainer", CHARLIECLOUD: "ch-run"}[container.runtime]
    return [
        f'KUBESLURM_RUN=$(type -P {program}) || {{ echo "kubeslurm: no {program} on $SLURMD_NODENAME" >&2; exit 127; }}',
        *(["export USER=$(id -un)"] if container.runtime == CHARLIECLOUD else []),  # ch-run does not start without
        *_image_here(container),
        *_mounts(container, materials),
    ]


def _image_here(container: Container) -> list[str]:
    if "://" in container.image:
        return []
    image = shlex.quote(container.image)
    return [f'[ -e {image} ] || {{ echo "kubeslurm: no image {container.image} on $SLURMD_NODENAME" >&2; exit 125; }}']


def _mounts(container: Container, materials: Materials) -> list[str]:
    """The runtime's options for mounts. charliecloud has no read-only mount, and makes no folder in the node's /tmp."""
    words, lines = [], []
    for source, path, read_only in material_scripts.binds(materials):
        flag = ":ro" if read_only and container.runtime == APPTAINER else ""
        words.append(f"--bind {source}:{path}{flag}")
        if container.runtime == CHARLIECLOUD and path.startswith("/tmp/"):
            lines.append(f"[ ! -d {source} ] || mkdir -p {path}")
    return [*lines, f"KUBESLURM_MOUNTS=({' '.join(words)})"]


_GIVEN: Final = (
    "for name in MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK"
    ' OMP_NUM_THREADS CUDA_VISIBLE_DEVICES ${!PET_@}; do [ -z "${!name+x}" ] || export "APPTAINERENV_$name=${!name}"; done'
)
"""What a task is told by Slurm and by this script wins over the image, too."""

_IMAGE_ENV: Final = """\
[ ! -f {image}/ch/environment ] || while IFS= read -r KUBESLURM_LINE; do
  case ${{KUBESLURM_LINE%%=*}} in
    KUBESLURM_*|MASTER_*|*RANK|*WORLD_SIZE|PET_*|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES|*[!A-Za-z0-9_]*|[!A-Za-z_]*|'') ;;
    *) export "$KUBESLURM_LINE" ;;
  esac
done < {image}/ch/environment"""


def environment(container: Container | None) -> tuple[list[str], str]:
    """Lines before the variables of the user, and what stands before their names."""
    if container is not None and container.runtime == APPTAINER:
        return [_GIVEN], "APPTAINERENV_"
    if container is not None and container.runtime == CHARLIECLOUD:
        image = shlex.quote(container.image)
        return [_IMAGE_ENV.format(image=image)], ""
    return [], ""


def wrap(container: Container | None, words: Sequence[str]) -> list[str]:
    """The program's words with those of the runtime before them; each is one word to bash already."""
    if container is None:
        return list(words)
    if container.runtime == PYXIS:
        return ["/bin/sh", "/etc/rc", *words] if container.entrypoint else list(words)
    place = [shell((container.workdir,))] if container.workdir else []
    image = shlex.quote(container.image)
    mounts = '"${KUBESLURM_MOUNTS[@]}"'
    if container.runtime == APPTAINER:
        gpus = [f"--{container.gpus}"] if container.gpus else []
        start = "run" if container.entrypoint else "exec"
        pwd = ["--pwd", *place] if place else []
        return ['"$KUBESLURM_RUN"', start, "--no-home", *gpus, *pwd, mounts, image, *words]
    return ['"$KUBESLURM_RUN"', "--write-fake", "--cd", *(place or ["/"]), mounts, image, "--", *words]
