"""Reads the image of a job's container into a Container, by what the admin has set for the cluster.

Pure; called by `readers.pytorch`. What always holds: without a container runtime the image is not used and listed as
ignored; with one, an image whose name could be read as anything else is refused, and so is a job that would need an
entrypoint which the runtime does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubeslurm import containers
from kubeslurm.api.fields import IMAGE
from kubeslurm.api.slurmcluster import Jobs
from kubeslurm.containers import Container
from kubeslurm.errors import InvalidObject, Untranslated

Raw = Mapping[str, Any]


def read(path: str, container: Raw, jobs: Jobs, workdir: str | None) -> Container | None:
    """The container, None where jobs run in the pool's own image."""
    runtime = jobs.container_runtime
    check_command(path, container, runtime)
    if runtime == "none":
        return None
    image = str(container.get("image") or "")
    if not re.fullmatch(IMAGE, image):
        raise InvalidObject(f"{path}.image", "missing" if not image else f"{image[:80]!r} is not accepted")
    entrypoint = not container.get("command")
    return Container(runtime, _place(path, image, jobs), entrypoint, workdir, _gpus(container))


def check_command(path: str, container: Raw, runtime: str) -> None:
    """Without a command, the image's entrypoint is wanted."""
    if not container.get("command") and runtime not in containers.ENTRYPOINTS:
        raise Untranslated(f"{path}.command", "missing: the image's entrypoint is not available to a Slurm job")
    if runtime == containers.PYXIS and not container.get("command") and not container.get("args"):
        raise Untranslated(f"{path}.command", "missing, and args, too: pyxis does not start an image's own command")


def _place(path: str, image: str, jobs: Jobs) -> str:
    """What the runtime takes: the admin's path, the one below imageRoot, or the reference itself."""
    runtime = jobs.container_runtime
    if runtime == containers.PYXIS:
        return image
    for one in jobs.images:
        if one.image == image:
            return one.path
    ending = ".sif" if runtime == containers.APPTAINER else ""
    if jobs.image_root:
        return f"{jobs.image_root}/{containers.image_name(image)}{ending}"
    if runtime == containers.APPTAINER:
        return f"docker://{image}"
    raise Untranslated(
        f"{path}.image", f"{image[:80]} is not in the admin's jobs.images, and there is no jobs.imageRoot"
    )


def _gpus(container: Raw) -> str:
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    vendors = {"nvidia.com/": "nv", "amd.com/": "rocm"}
    return next((flag for name in sorted(asked) for vendor, flag in vendors.items() if name.startswith(vendor)), "")
