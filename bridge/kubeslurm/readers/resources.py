"""Reads what one replica needs: GPUs and other devices by the names that Slurm has for them, CPUs, memory.

Pure; called by `readers.shapes`. What always holds: numbers are rounded up, never down; a resource is counted, or known to
mean nothing in Slurm and listed as ignored, or refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from kubeslurm import quantities
from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import Jobs
from kubeslurm.errors import InvalidObject, Untranslated
from kubeslurm.plans import is_gpu

Raw = Mapping[str, Any]

GPU: Final = "gpu"
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
_DISK: Final = "ephemeral-storage"
_PLAIN: Final = frozenset({"cpu", "memory", _DISK})
_MIG: Final = "nvidia.com/mig-"


@dataclass(frozen=True, slots=True)
class Replica:
    """What one replica needs; None where it does not say. `gres` by Slurm's name."""

    gres: tuple[tuple[str, int], ...]
    cpus: int | None
    memory_mib: int | None
    ignored: tuple[str, ...] = ()
    gpu_resource: str | None = None

    @property
    def gpus(self) -> int:
        """Of whatever type."""
        return sum(count for name, count in self.gres if is_gpu(name))


def read(path: str, container: Raw, jobs: Jobs, nodesets: Sequence[NodeSet], gpu_type: str | None) -> Replica:
    """`path` is the container's. `gpu_type`: the one that the pod's node selector asks for, in Slurm's words."""
    resources = container.get("resources") or {}
    for field in sorted(resources.keys() - {"limits", "requests"}):
        if resources[field]:
            raise Untranslated(f"{path}.resources.{field}", "not supported")
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    where = f"{path}.resources"
    devices = list(_devices(where, limits, requests, _Known.of(jobs, nodesets)))
    gpu = next((one for one in devices if is_gpu(one.gres)), None)
    return Replica(
        gres=tuple((_typed(one, gpu_type), one.count) for one in devices if one.gres),
        cpus=quantity(f"{where}.requests.cpu", quantities.to_cpus, requests.get("cpu", limits.get("cpu"))),
        memory_mib=quantity(f"{where}.limits.memory", quantities.to_mib, limits.get("memory", requests.get("memory"))),
        ignored=tuple(_ignored(where, devices, resources)),
        gpu_resource=gpu.resource if gpu else None,
    )


def _ignored(path: str, devices: Sequence[_Device], resources: Raw) -> Iterator[str]:
    yield from (one.path for one in devices if not one.gres)
    yield from (f"{path}.{one}[{_DISK}]" for one in ("limits", "requests") if _DISK in (resources.get(one) or {}))


@dataclass(frozen=True, slots=True)
class _Device:
    """`gres` is empty for what means nothing in Slurm."""

    resource: str
    path: str
    gres: str
    count: int


@dataclass(frozen=True, slots=True)
class _Known:
    """What resources are called in Slurm, and those that mean nothing there."""

    gres: Mapping[str, str]
    ignored: Sequence[str]

    @classmethod
    def of(cls, jobs: Jobs, nodesets: Sequence[NodeSet]) -> _Known:
        pool = {one.spec.gpu.resource: GPU for one in nodesets if one.spec.gpu}
        return cls({**dict.fromkeys(GPU_RESOURCES, GPU), **pool, **jobs.resources}, jobs.ignored_resources)

    def means(self, path: str, resource: str) -> str:
        if resource in self.gres:
            return self.gres[resource]
        if any(fnmatchcase(resource, pattern) for pattern in self.ignored):
            return ""
        raise Untranslated(path, "the SlurmCluster's jobs.resources says nothing of it")


def _devices(path: str, limits: Raw, requests: Raw, known: _Known) -> Iterator[_Device]:
    """Each device that is asked for, at most one kind of GPU among them."""
    gpu: str | None = None
    for resource in sorted({*limits, *requests} - _PLAIN):
        where = f"{path}.limits[{resource}]"
        count = quantity(where, quantities.to_count, limits.get(resource, requests.get(resource))) or 0
        if quantity(f"{path}.requests[{resource}]", quantities.to_count, requests.get(resource, count)) != count:
            raise InvalidObject(f"{path}.requests[{resource}]", f"differs from the limit of {count}")
        if not count:
            continue
        found = _Device(resource, where, known.means(where, resource), count)
        if is_gpu(found.gres):
            if gpu:
                raise InvalidObject(where, f"a second kind of GPU beside {gpu}")
            gpu = resource
        if resource.startswith(_MIG) and count > 1:
            raise Untranslated(where, "processes of one job can't speak to each other over several MIG devices")
        yield found


def _typed(device: _Device, gpu_type: str | None) -> str:
    """With the type that the node selector asks for, where the resource itself is of no type."""
    if gpu_type is None or not is_gpu(device.gres):
        return device.gres
    if ":" in device.gres and device.gres != f"{GPU}:{gpu_type}":
        raise InvalidObject(device.path, f"is {device.gres} in Slurm, but the node selector asks for {gpu_type}")
    return f"{GPU}:{gpu_type}"


def quantity(path: str, read_it: Callable[[Any], int], value: Any) -> int | None:
    """The number, None where there is none."""
    if value is None:
        return None
    try:
        return read_it(value)
    except ValueError as error:
        raise InvalidObject(path, str(error)) from None
