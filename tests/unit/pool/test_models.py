"""SlurmCluster and NodeSet: what is taken, and what is refused by which path."""

from __future__ import annotations

import pytest

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
        (spec("jobs.containerRuntime", "pyxis"), "spec.jobs.containerRuntime"),
        (spec("typo", 1), "spec.typo"),
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
        (spec("template.spec.containers.0.command", ["sh"]), "spec.template.spec.containers[0].command"),
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
