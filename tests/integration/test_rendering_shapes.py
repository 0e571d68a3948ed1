"""Rendered pools of other shapes than the example's, on a real slurmctld and slurmd."""

from __future__ import annotations

import os

import pytest

from kubeslurm import slurmconf
from kubeslurm.layout import plan_pool
from kubeslurm.rendering import render
from slurmrest import SignedTokens, Slurm
from tests.cluster.slurm import BareSlurm
from tests.unit import examples
from tests.unit.examples import Raw

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(os.geteuid() != 0, reason="a bare Slurm needs root")]


def two_shapes(raw: Raw) -> None:
    """A partition over two NodeSets, with every field that a partition has."""
    raw["spec"]["partitions"][0] |= {
        "nodeSets": ["gpu-node", "cpu"],
        "maxTime": "2-0",
        "defaultTime": "30",
        "priorityTier": 5,
    }
    raw["spec"]["config"] |= {"KillWait": 5, "SlurmctldParameters": ["max_powered_nodes=100"], "JobRequeue": True}


def few(raw: Raw) -> None:
    """Two nodes of two GPUs, their numbers padded."""
    raw["spec"] |= {"replicas": 2, "ordinals": {"start": 9, "width": 3}, "features": ["nvlink", "ib"], "weight": 7}
    raw["spec"]["gpu"]["devices"] = "/dev/nvidia[0,2]"
    raw["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 2


def without_gpus(raw: Raw) -> None:
    """A single node without a GPU."""
    raw["metadata"]["name"] = "cpu"
    raw["spec"] |= {"replicas": 1}
    del raw["spec"]["gpu"]
    del raw["spec"]["template"]["spec"]["containers"][0]["resources"]


def test_nodes_of_two_shapes_register() -> None:
    """Each with its own line in gres.conf, features, weight and padded name."""
    nodesets = [examples.nodeset(few), examples.nodeset(without_gpus)]
    rendered = render(plan_pool(examples.cluster(two_shapes), nodesets))
    with (
        BareSlurm(conf_files=rendered.files, slurmd_options=["-b"]) as running,
        Slurm(running.url, SignedTokens(running.jwt_key)) as rest,
    ):
        found = {node.name: (node.states.base, node.gres) for node in rest.nodes()}
        features = running.run("sinfo", "-h", "-o", "%N %f %w %P %l").stdout.split("\n")
    assert found == {
        "cpu-0": ("IDLE", ""),
        "gpu-node-009": ("IDLE", "gpu:h100:2"),
        "gpu-node-010": ("IDLE", "gpu:h100:2"),
    }
    assert "gpu-node-[009-010] nvlink,ib 7 gpu_partition* 2-00:00:00" in features


def test_a_pool_without_nodes_starts() -> None:
    """A SlurmCluster may be there before its NodeSets: its partition is, with no node in it."""
    rendered = render(plan_pool(examples.cluster(), []))
    with (
        BareSlurm(conf_files=rendered.files) as running,
        Slurm(running.url, SignedTokens(running.jwt_key)) as rest,
    ):
        assert [(one.name, one.node_count) for one in rest.partitions()] == [("gpu_partition", 0)]


def test_slurm_knows_every_key_that_a_spec_may_set() -> None:
    """By the words in its own library: slurmctld does not start on a key that it does not know."""
    with BareSlurm(nodes=1, start=[]) as running:
        found = 'for key; do grep -qaP "$key\\x00" /usr/lib/*/slurm-wlm/libslurmfull.so || echo $key; done'
        unknown = running.run("sh", "-c", found, "sh", *sorted(slurmconf.ALLOWED | {"NoSuchKey"}), timeout=60).stdout
    assert unknown.split() == ["NoSuchKey"]
