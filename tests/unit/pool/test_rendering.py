"""slurm.conf and gres.conf: right lines, the same bytes for the same pool, small for a large one."""

from __future__ import annotations

import itertools

import pytest

from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.errors import Conflict, InvalidObject
from kubeslurm.layout import plan_pool
from kubeslurm.rendering import render
from tests.unit import examples
from tests.unit.examples import Raw


def named(name: str, replicas: int = 2, **spec: object) -> Raw:
    """The example NodeSet under another name."""

    def change(raw: Raw) -> None:
        raw["metadata"]["name"] = name
        raw["spec"]["replicas"] = replicas
        raw["spec"] |= spec

    return examples.raw("NodeSet", change)


def files(*nodesets: Raw, cluster: Raw | None = None) -> dict[str, str]:
    """The rendered files of the example cluster with these NodeSets."""
    made = SlurmCluster.parse(cluster or examples.raw("SlurmCluster"))
    return dict(render(plan_pool(made, [NodeSet.parse(one) for one in nodesets])).files)


def test_the_reference_pool() -> None:
    """The lines that the reference asks for."""
    made = files(examples.raw("NodeSet"))
    assert made["gres.conf"] == "AutoDetect=off\nName=gpu Type=h100 File=/dev/nvidia[0-7]\n"
    assert (
        "NodeName=gpu-node-[0-63] CPUs=32 Boards=1 SocketsPerBoard=1 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=128000"
        " Gres=gpu:h100:8 State=CLOUD\n" in made["slurm.conf"]
    )
    assert (
        "PartitionName=gpu_partition Nodes=gpu-node-[0-63] Default=YES MaxTime=UNLIMITED State=UP\n"
        in made["slurm.conf"]
    )
    assert "SchedulerParameters=bf_continue,bf_max_job_test=1000,bf_interval=30\n" in made["slurm.conf"]


def test_the_same_bytes_in_any_order() -> None:
    """Order of NodeSets and of keys is no information."""
    sets = [named("a"), named("b", 3), named("c", 1, weight=5)]

    def turned(raw: Raw) -> None:
        raw["spec"]["config"] = dict(reversed(raw["spec"]["config"].items()))

    made = {str(files(*order)) for order in itertools.permutations(sets)}
    made.add(str(files(*sets, cluster=examples.raw("SlurmCluster", turned))))
    assert len(made) == 1


def test_ten_thousand_nodes_are_small() -> None:
    """Ranges, not names."""
    made = files(named("big", 10_000))
    assert "NodeName=big-[0-9999] " in made["slurm.conf"]
    assert sum(map(len, made.values())) < 1 << 20


def test_different_gpus_have_lines_of_their_own() -> None:
    """gres.conf must say which nodes a line is for."""
    made = files(named("a"), named("b", gpu={"type": "a100", "devices": "/dev/dri/renderD[128-135]"}))
    assert "NodeName=a-[0-1] Name=gpu Type=h100 File=/dev/nvidia[0-7]\n" in made["gres.conf"]
    assert "NodeName=b-[0-1] Name=gpu Type=a100 File=/dev/dri/renderD[128-135]\n" in made["gres.conf"]


def test_no_empty_keys() -> None:
    """A pool without nodes has neither node lines nor GresTypes, and no line ends with `=`."""
    made = files(named("a", 0))
    assert "NodeName=" not in made["slurm.conf"]
    assert "GresTypes" not in made["slurm.conf"]
    assert not [line for line in made["slurm.conf"].splitlines() if line.endswith("=")]


def test_ours_and_the_users_list_values_stand_together() -> None:
    """A user can add to SlurmctldParameters, and can't take enable_configless away."""
    raw = examples.raw(
        "SlurmCluster", lambda one: one["spec"]["config"].update(SlurmctldParameters=["max_dbd_msg_action=exit"])
    )
    assert (
        "SlurmctldParameters=enable_configless,max_dbd_msg_action=exit\n"
        in files(named("a"), cluster=raw)["slurm.conf"]
    )


def test_booleans_are_said_as_the_key_takes_them() -> None:
    """slurmctld does not start on JobRequeue=YES."""
    raw = examples.raw("SlurmCluster", lambda one: one["spec"].update(config={"JobRequeue": False, "TrackWCKey": True}))
    lines = files(named("a"), cluster=raw)["slurm.conf"].splitlines()
    assert {"JobRequeue=0", "TrackWCKey=YES"} <= set(lines)


def test_a_nodeset_given_twice_is_refused() -> None:
    """Names of different NodeSets' nodes can't meet; those of one given twice would."""
    first, second = named("a-1", 1), named("a", 11)
    assert "NodeName=a-1-0 " in files(first, second)["slurm.conf"]
    twice = [NodeSet.parse(named("a")), NodeSet.parse(named("a"))]
    with pytest.raises(Conflict):
        plan_pool(examples.cluster(), [twice[0], twice[1]])


def test_padding() -> None:
    """`ordinals.width` fills with zeros, in names and in ranges alike."""
    made = files(named("a", 12, ordinals={"start": 5, "width": 3}))
    assert "NodeName=a-[005-016] " in made["slurm.conf"]


def accounted(raw: Raw) -> None:
    """The example cluster with slurmdbd."""
    database = {"host": "mariadb", "passwordSecret": {"name": "db"}}
    raw["spec"]["accounting"] = {"database": database, "enforce": ["qos", "associations"]}


def test_accounting_is_by_slurmdbd_with_gpus_counted() -> None:
    """Also where no NodeSet has a GPU yet: slurmctld learns of them only when it starts."""
    lines = files(cluster=examples.raw("SlurmCluster", accounted))["slurm.conf"].splitlines()
    assert {
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=ai-cluster-dbd",
        "AccountingStorageEnforce=associations,qos",
        "AccountingStorageTRES=gres/gpu",
        "AccountingStoreFlags=job_comment",
        "GresTypes=gpu",
        "PriorityWeightFairshare=100000",
    } <= set(lines)


def test_all_gpus_of_a_node_cost_what_its_cpus_do() -> None:
    """Whatever the number of nodes; without accounting there is no price."""
    price = 'TRESBillingWeights="CPU=1.0,GRES/gpu=4.0"'
    raw = examples.raw("SlurmCluster", accounted)
    for made in (files(named("gpu-node", 1), cluster=raw), files(named("gpu-node", 9), cluster=raw)):
        (line,) = [line for line in made["slurm.conf"].splitlines() if line.startswith("PartitionName=")]
        assert price in line
    assert "TRESBillingWeights" not in files(named("gpu-node"))["slurm.conf"]
    assert "TRESBillingWeights" not in files(cluster=raw)["slurm.conf"]


def test_a_partition_takes_the_accounts_and_qos_that_it_is_told() -> None:
    """Sorted; all where nothing is said."""

    def change(raw: Raw) -> None:
        accounted(raw)
        raw["spec"]["accounting"]["enforce"] = ["associations", "qos"]
        raw["spec"]["partitions"][0] |= {"allowAccounts": ["vision", "ml"], "allowQos": ["normal"]}

    made = files(cluster=examples.raw("SlurmCluster", change))["slurm.conf"]
    assert " AllowAccounts=ml,vision AllowQos=normal " in made
    assert "Allow" not in files()["slurm.conf"]


@pytest.mark.parametrize(
    ("enforce", "field"),
    [(None, "allowAccounts"), ([], "allowAccounts"), (None, "allowQos"), (["associations"], "allowQos")],
)
def test_lists_that_slurm_would_not_heed_are_refused(enforce: list[str] | None, field: str) -> None:
    """Without slurmdbd's associations and QOS it takes every job."""

    def change(raw: Raw) -> None:
        if enforce is not None:
            accounted(raw)
            raw["spec"]["accounting"]["enforce"] = enforce
        raw["spec"]["partitions"][0][field] = ["ml"]

    with pytest.raises(InvalidObject, match=rf"^spec.partitions\[0\].{field}: of no effect"):
        examples.cluster(change)


def test_the_weights_of_fair_share_are_the_admins_to_change() -> None:
    """Ours are defaults."""

    def change(raw: Raw) -> None:
        accounted(raw)
        raw["spec"]["config"]["PriorityWeightFairshare"] = 5

    lines = files(cluster=examples.raw("SlurmCluster", change))["slurm.conf"].splitlines()
    assert [line for line in lines if line.startswith("PriorityWeightFairshare")] == ["PriorityWeightFairshare=5"]


@pytest.mark.parametrize(("key", "text"), [("AccountingStorageEnforce", "none"), ("AccountingStorageTRES", "gres/gpu")])
def test_accounting_keys_are_not_set_beside_it(key: str, text: str) -> None:
    """One is ours, on the other slurmctld does not start without slurmdbd."""
    with pytest.raises(InvalidObject, match=f"spec.config.{key}: "):
        examples.cluster(lambda raw: raw["spec"]["config"].update({key: text}))
