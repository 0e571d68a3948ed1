"""SlurmCluster and NodeSet: what is taken, and what is refused by which path."""

from __future__ import annotations

import pytest

from kubeslurm.api.nodeset import GpuSpec
from kubeslurm.errors import InvalidObject
from tests.unit import examples
from tests.unit.examples import Change, Raw


def spec(path: str, value: object) -> Change:
    """Set a field below spec, given as `a.0.b`."""

    def change(raw: Raw) -> None:
        *way, last = path.split(".")
        place = raw["spec"]
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        place[last] = value

    return change


def limits(value: object) -> Change:
    """Set the container's limits."""
    return spec("template.spec.containers.0.resources", {"limits": value})


def container(field: str, value: object) -> Change:
    """Set a field of the slurmd container."""
    return spec(f"template.spec.containers.0.{field}", value)


def name(value: str) -> Change:
    """Give the object another name."""
    return lambda raw: raw["metadata"].update(name=value)


CONTAINER = "spec.template.spec.containers[0]"


def test_the_example_pool_is_taken() -> None:
    """As it stands: 8 GPUs, 32 CPUs, 128000 MiB."""
    made = examples.nodeset().spec
    assert (made.gpu_count(), made.cpu_count(), made.memory_mib()) == (8, 32, 128000)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (spec("partitions.0.name", "a;b"), "spec.partitions[0].name"),
        (spec("partitions.0.name", "a\nNodeName=x"), "spec.partitions[0].name"),
        (spec("config", {"SchedulerType": "x\nNodeName=evil"}), "spec.config.SchedulerType"),
        (spec("config", {"SchedulerType": "x;y"}), "spec.config.SchedulerType"),
        (spec("config", {"SchedulerType": "a b=c"}), "spec.config.SchedulerType"),
        (spec("config", {"SchedulerParameters": ["fine", "x#y"]}), "spec.config.SchedulerParameters"),
        (spec("config", {"Prolog": "/bin/evil"}), "spec.config.Prolog"),
        (spec("config", {"NoSuchKey": "1"}), "spec.config.NoSuchKey"),
        (spec("config", {"Include /etc/passwd": "1"}), "spec.config[Include /etc/passwd]"),
        (spec("tenants.0.user.uid", 0), "spec.tenants[0].user.uid"),
        (spec("tenants.0.user.name", "root"), "spec.tenants[0].user.name"),
        (spec("tenants.0.user.name", "a:0:0"), "spec.tenants[0].user.name"),
        (spec("tenants.0.partitions", ["nowhere"]), "spec.tenants[0].partitions"),
        (spec("controller.managed.image", "a image"), "spec.controller.managed.image"),
        (spec("jobs.containerRuntime", "docker"), "spec.jobs.containerRuntime"),
        (spec("typo", 1), "spec.typo"),
        (spec("partitions.0.name", "Default"), "spec.partitions[0].name"),
        (spec("partitions.0.nodeSets", ["a\n"]), "spec.partitions[0].nodeSets"),
        (spec("partitions.0.maxTime", "99999999:0:0"), "spec.partitions[0].maxTime"),
        (spec("config", {"SchedulerParameters": []}), "spec.config.SchedulerParameters"),
        (spec("config", {"KillWait": 1, "killwait": 2}), "spec.config.killwait"),
        (spec("config", {"KillWait": float("nan")}), "spec.config.KillWait"),
        (spec("tenants.0.user.uid", 64030), "spec.tenants[0].user.uid"),
        (spec("tenants.0.user.gid", 65534), "spec.tenants[0].user.gid"),
        (spec("tenants.0.namespaces", ["a\nb"]), "spec.tenants[0].namespaces"),
        (name("a\nPartitionName=b"), "metadata.name"),
        (name("a.b"), "metadata.name"),
        (name("a" * 41), "metadata.name"),
    ],
)
def test_a_bad_cluster_is_refused_by_the_path_of_the_field(change: Change, path: str) -> None:
    """One complaint, with the path as the user wrote it."""
    with pytest.raises(InvalidObject) as caught:
        examples.cluster(change)
    assert caught.value.path == path
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (spec("gpu.count", 4), "spec.gpu.count"),
        (spec("gpu.count", 0), "spec.gpu.count"),
        (limits({"nvidia.com/gpu": 0}), "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"),
        (limits({"nvidia.com/gpu": "1.5"}), "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"),
        (limits({}), "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"),
        (spec("features", ["a\nb"]), "spec.features[0]"),
        (spec("features", ["a,b"]), "spec.features[0]"),
        (spec("gpu.type", "h100;x"), "spec.gpu.type"),
        (spec("memory", "12x"), "spec.memory"),
        (spec("replicas", -1), "spec.replicas"),
        (spec("template.spec.hostNetwork", True), "spec.template.spec.hostNetwork"),
        (container("command", ["sh"]), f"{CONTAINER}.command"),
        (container("resources", "x"), f"{CONTAINER}.resources"),
        (limits(["x"]), f"{CONTAINER}.resources.limits"),
        (container("env", "x"), f"{CONTAINER}.env"),
        (container("ports", 5), f"{CONTAINER}.ports"),
        (container("image", 5), f"{CONTAINER}.image"),
        (container("env", [{"name": "SLURM_NODE_NAME", "value": "x"}]), f"{CONTAINER}.env[0].name"),
        (
            container("volumeMounts", [{"name": "program", "mountPath": "/keys/"}]),
            f"{CONTAINER}.volumeMounts[0].mountPath",
        ),
        (spec("template.spec.volumes", [{"name": "kubeslurm-keys"}]), "spec.template.spec.volumes[0].name"),
        (spec("template.metadata", {"labels": ["a"]}), "spec.template.metadata.labels"),
        (spec("template.metadata", {"name": "a"}), "spec.template.metadata.name"),
        (spec("gpu.devices", "/dev/nvidia[0-3]"), "spec.gpu.devices"),
        (spec("gpu.devices", "/dev/../etc/passwd"), "spec.gpu.devices"),
        (spec("memory", "1e30"), "spec.memory"),
        (name("a\nPartitionName=b"), "metadata.name"),
        (name("a.b"), "metadata.name"),
        (name("a" * 51), "metadata.name"),
    ],
)
def test_a_bad_nodeset_is_refused_by_the_path_of_the_field(change: Change, path: str) -> None:
    """Nothing of it is used."""
    with pytest.raises(InvalidObject) as caught:
        examples.nodeset(change)
    assert caught.value.path == path


def test_two_users_of_one_uid_are_refused() -> None:
    """Files would belong to the wrong one."""
    other = {"namespaces": ["b"], "user": {"name": "bob", "uid": 1000, "gid": 1}, "partitions": ["gpu_partition"]}
    with pytest.raises(InvalidObject, match=r"spec.tenants\[1\].user.uid"):
        examples.cluster(lambda raw: raw["spec"]["tenants"].append(other))


@pytest.mark.parametrize(
    ("devices", "count"),
    [("/dev/nvidia0", 1), ("/dev/nvidia[0-7]", 8), ("/dev/nvidia[0,2,4-9]", 8), ("/dev/x[3-1]", 0)],
)
def test_device_files_are_counted(devices: str, count: int) -> None:
    """slurmd refuses a node whose files are not as many as its GPUs."""
    assert GpuSpec(devices=devices).device_count() == count


def test_cpus_and_memory_are_the_containers_when_not_given() -> None:
    """Limits go before requests, and parts of a CPU or MiB count as whole."""

    def change(raw: Raw) -> None:
        del raw["spec"]["cpus"], raw["spec"]["memory"]
        container(
            "resources",
            {"limits": {"nvidia.com/gpu": "8", "cpu": "1500m"}, "requests": {"cpu": 1, "memory": "1000001Ki"}},
        )(raw)

    made = examples.nodeset(change).spec
    assert (made.cpu_count(), made.memory_mib()) == (2, 977)
