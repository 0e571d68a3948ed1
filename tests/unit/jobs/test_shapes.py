"""How replicas are laid out on Slurm nodes: differing roles, small replicas, GPU types, CPUs that nobody named."""

from __future__ import annotations

import pytest

from kubeslurm import directives
from kubeslurm.descriptions import components, write_description
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan, Launcher
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import number as wire
from tests.unit import examples
from tests.unit.examples import Change, Raw, container, only_master
from tests.unit.jobs import tasks
from tests.unit.jobs.tasks import SHOW

WORKER = "spec.pytorchReplicaSpecs.Worker.template.spec"
MASTER = "spec.pytorchReplicaSpecs.Master.template.spec"


def plan(change: Change, cluster: Change | None = None, nodeset: Change | None = None) -> JobPlan:
    """The changed example job's plan on the example pool, or on one that is changed, too."""
    return read_pytorchjob(examples.training(change), examples.cluster(cluster), [examples.nodeset(nodeset)])


def roomy(raw: Raw) -> None:
    """Nodes with room for eight replicas of 40Gi."""
    raw["spec"].update(cpus=64, memory="1000Gi")


def workers(count: int, limits: Raw, command: list[str]) -> Change:
    """A job of Workers only."""

    def change(raw: Raw) -> None:
        del raw["spec"]["pytorchReplicaSpecs"]["Master"]
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = count
        container(raw, "Worker").update(command=command, resources={"limits": limits}, workingDir="")

    return change


def two_roles(master: Raw, worker: Raw, command: list[str] | None = None) -> Change:
    """A Master and four Workers that ask for different things."""

    def change(raw: Raw) -> None:
        raw["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 4
        for role, limits in (("Master", master), ("Worker", worker)):
            container(raw, role).update(
                command=command or ["torchrun", "train.py"], resources={"limits": limits}, workingDir=""
            )

    return change


SMALL = {"nvidia.com/gpu": 1, "cpu": 6, "memory": "40Gi"}
DIFFERING = two_roles({"cpu": 4, "memory": "16Gi"}, {"nvidia.com/gpu": 8, "cpu": 32})


def test_small_replicas_share_nodes() -> None:
    """Scenario 9: sixteen replicas of one GPU fill two nodes of eight, each with a GPU of its own."""
    made = plan(workers(16, SMALL, ["torchrun", "train.py"]), nodeset=roomy)
    description = write_description(made)
    assert (description["nodes"], description["tasks"], description["tasks_per_node"]) == ("2", 16, 8)
    assert (description["cpus_per_task"], description["tres_per_node"]) == (6, "gres/gpu:8")
    assert description["memory_per_node"] == wire(327680)
    assert " --gpus-per-task=1 " in write_script(made)


def test_a_node_takes_no_more_replicas_than_it_has_cpus_and_memory_for() -> None:
    """The example's nodes have 32 CPUs and 125 GiB: three replicas of 40Gi fit, spread evenly."""
    shape = plan(workers(16, SMALL, ["torchrun", "train.py"])).shapes[0]
    assert (shape.nodes, shape.replicas_per_node, shape.memory_mib) == (6, 3, 3 * 40 * 1024)


def test_the_default_of_cpus_counts_where_replicas_share_nodes() -> None:
    """One GPU and eight CPUs by default: of the example's 32 CPUs, four replicas can have some."""
    limits = {"nvidia.com/gpu": 1, "memory": "1Gi"}
    made = plan(
        workers(8, limits, ["torchrun", "x.py"]), lambda raw: raw["spec"]["jobs"]["defaults"].update(cpusPerGpu=8)
    )
    assert (made.nodes, made.shapes[0].replicas_per_node) == (2, 4)


def test_replicas_are_spread_evenly() -> None:
    """Nine on nodes of eight: five and four, so that no node is asked for more than it needs."""
    made = plan(workers(9, SMALL, ["torchrun", "train.py"]), nodeset=roomy)
    assert (made.nodes, made.shapes[0].replicas_per_node) == (2, 5)
    assert (write_description(made)["tasks"], "--distribution=block,Pack" in write_script(made)) == (10, True)
    assert [made.node_of(place) for place in range(9)] == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_the_ranks_of_a_node_that_is_not_full_count_themselves() -> None:
    """Slurm tells which tasks run beside each other."""
    made = plan(workers(9, SMALL | {"nvidia.com/gpu": 2}, SHOW), nodeset=roomy)
    assert made.launcher is Launcher.POD
    ranks = plan(lambda raw: workers(3, SMALL | {"nvidia.com/gpu": 4}, ["python3", "t.py"])(raw), nodeset=roomy)
    assert (ranks.launcher, ranks.shapes[0].tasks_per_node, ranks.tasks) == (Launcher.RANK, 8, 12)
    text = tasks.texts(ranks)[0]
    assert 'IFS=, read -ra KUBESLURM_HERE <<< "$SLURM_GTIDS"' in text
    assert "LOCAL_WORLD_SIZE=${#KUBESLURM_HERE[@]}" in text


def test_the_annotation_chooses_the_number_of_nodes() -> None:
    """slurm.bridge/nodes: four replicas without GPUs on two nodes."""

    def change(raw: Raw) -> None:
        workers(4, {"cpu": 2}, ["torchrun", "train.py"])(raw)
        raw["metadata"]["annotations"] = {"slurm.bridge/nodes": "2"}

    assert (plan(change).nodes, plan(change).shapes[0].tasks_per_node) == (2, 2)


@pytest.mark.parametrize(("replicas", "nodes"), [(4, 3), (4, 5), (16, 1)])
def test_a_number_of_nodes_that_can_not_be_is_refused(replicas: int, nodes: int) -> None:
    """Not evenly spread, more nodes than replicas, no room."""

    def change(raw: Raw) -> None:
        workers(replicas, SMALL, ["torchrun", "train.py"])(raw)
        raw["metadata"]["annotations"] = {"slurm.bridge/nodes": str(nodes)}

    with pytest.raises(InvalidObject) as caught:
        plan(change)
    assert caught.value.path == "metadata.annotations[slurm.bridge/nodes]"


def test_differing_roles_become_a_heterogeneous_job() -> None:
    """Scenario 8: a Master without GPUs is a component of its own, and one srun starts both."""
    made = plan(DIFFERING)
    described = components(made)
    assert isinstance(described, list)
    first, second = described
    assert (first["nodes"], "tres_per_node" in first, second["nodes"]) == ("1", False, "4")
    assert (second["tres_per_node"], first["memory_per_node"]) == ("gres/gpu:8", wire(16384))
    script = write_script(made)
    assert script.count("#SBATCH hetjob") == 1
    assert script.count("\nsrun ") == 1
    assert "srun --het-group=0 " in script
    assert " : --het-group=1 " in script
    assert "$SLURM_JOB_NODELIST_HET_GROUP_0" in script


def test_the_header_of_each_component_is_its_own() -> None:
    """Lines before and behind `hetjob` are those of the two descriptions."""
    made = plan(DIFFERING)
    header = [line for line in write_script(made).splitlines() if line.startswith("#SBATCH")]
    cut = header.index("#SBATCH hetjob")
    for part, shape in ((header[:cut], made.shapes[0]), (header[cut + 1 :], made.shapes[1])):
        assert part == [option.line for option in directives.options(made, shape)]


def test_differing_roles_have_one_world() -> None:
    """RANK counts over both components, WORLD_SIZE all replicas."""

    def change(raw: Raw) -> None:
        DIFFERING(raw)
        for role in ("Master", "Worker"):
            container(raw, role).update(command=SHOW)

    made = plan(change)
    for rank, component in ((0, 0), (1, 1), (4, 1)):
        seen = tasks.run(made, rank, component)[1]
        assert (seen["RANK"], seen["WORLD_SIZE"], seen["PET_NNODES"]) == (str(rank), "5", "5")
    assert [made.node_of(place) for place in range(5)] == [0, 1, 2, 3, 4]


def test_ranks_need_equal_roles() -> None:
    """With the launcher rank a differing Master would have another number of ranks."""
    with pytest.raises(InvalidObject) as caught:
        plan(two_roles({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 8}, ["python3", "train.py"]))
    assert caught.value.path == "spec.pytorchReplicaSpecs"


def test_roles_with_other_words_run_on_equal_nodes() -> None:
    """Each task takes its role's program."""

    def change(raw: Raw) -> None:
        two_roles({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8}, SHOW)(raw)
        container(raw, "Master").update(args=["first"])
        container(raw, "Worker").update(args=["other"], env=[{"name": "A", "value": "$(RANK)"}])

    made = plan(change)
    assert len(made.shapes) == 1
    assert tasks.run(made, 0)[0] == ["first"]
    argv, seen = tasks.run(made, 3)
    assert (argv, seen["A"]) == (["other"], "3")


def test_the_type_of_gpu_comes_of_the_node_selector() -> None:
    """Scenario 10: by the admin's table."""
    labels = [{"label": "nvidia.com/gpu.product", "value": "NVIDIA-H100", "gpuType": "h100"}]

    def change(raw: Raw) -> None:
        only_master(raw)
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["nodeSelector"] = {
            "nvidia.com/gpu.product": "NVIDIA-H100"
        }

    made = plan(change, lambda raw: raw["spec"]["jobs"].update(nodeLabels=labels))
    assert write_description(made)["tres_per_node"] == "gres/gpu:h100:8"


def test_a_selected_feature_stands_beside_the_annotations_constraint() -> None:
    """Both must hold, whichever alternative of the annotation does."""
    labels = [{"label": "zone", "value": "a", "feature": "zone_a"}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}

    def change(raw: Raw) -> None:
        only_master(raw)
        raw["metadata"]["annotations"] = {"slurm.bridge/constraint": "x|y"}
        raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["affinity"] = {
            "nodeAffinity": {required: {"nodeSelectorTerms": [term]}}
        }

    made = plan(change, lambda raw: raw["spec"]["jobs"].update(nodeLabels=labels))
    assert write_description(made)["constraints"] == "(x|y)&zone_a"


def limited(limits: Raw) -> Change:
    """A Master with these limits."""
    return lambda raw: only_master(raw).update(resources={"limits": {"cpu": 8, **limits}})


def test_a_mig_device_is_what_the_table_calls_it() -> None:
    """Scenario 10."""
    table = {"nvidia.com/mig-1g.5gb": "gpu:a100_1g.5gb"}
    made = plan(limited({"nvidia.com/mig-1g.5gb": 1}), lambda raw: raw["spec"]["jobs"].update(resources=table))
    assert write_description(made)["tres_per_node"] == "gres/gpu:a100_1g.5gb:1"


@pytest.mark.parametrize(
    ("limits", "resource"),
    [
        ({"nvidia.com/mig-1g.5gb": 1}, "nvidia.com/mig-1g.5gb"),
        ({"nvidia.com/mig-2g.10gb": 2}, "nvidia.com/mig-2g.10gb"),
        ({"nvidia.com/gpu": 1, "amd.com/gpu": 1}, "nvidia.com/gpu"),
        ({"example.com/fpga": 1}, "example.com/fpga"),
        ({"nvidia.com/gpu": "1500m"}, "nvidia.com/gpu"),
    ],
)
def test_devices_that_slurm_can_not_give_are_refused_by_name(limits: Raw, resource: str) -> None:
    """Unmapped, several MIG devices, two kinds of GPU, unknown, half a one."""
    table = {"nvidia.com/mig-2g.10gb": "gpu:a100_2g.10gb"}
    with pytest.raises(InvalidObject) as caught:
        plan(limited(limits), lambda raw: raw["spec"]["jobs"].update(resources=table))
    assert caught.value.path == f"{MASTER}.containers[0].resources.limits[{resource}]"


def test_resources_that_the_nodes_have_anyway_are_listed() -> None:
    """Scenario 11: none is dropped in silence, and none of 0 is told of."""
    limits = {"rdma/hca": 1, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": 64, "nvidia.com/roce_gdr": 0}
    found = [path.partition("limits")[2] for path in plan(limited(limits)).ignored if "limits" in path]
    assert found == ["[hugepages-2Mi]", "[rdma/hca]", "[vpc.amazonaws.com/efa]"]


@pytest.mark.parametrize(
    ("limits", "command", "cpus"),
    [
        ({"cpu": "1500m"}, ["torchrun", "x.py"], 2),
        ({"cpu": 30, "nvidia.com/gpu": 8}, ["python3", "x.py"], 4),
        ({"nvidia.com/gpu": 8}, ["torchrun", "x.py"], 32),
        ({"nvidia.com/gpu": 8}, ["python3", "x.py"], 4),
    ],
)
def test_cpus_are_rounded_up(limits: Raw, command: list[str], cpus: int) -> None:
    """Scenario 7: for each task, and by the default for each GPU where the replica does not say."""
    made = plan(lambda raw: only_master(raw).update(command=command, resources={"limits": limits}))
    assert made.shapes[0].cpus_per_task == cpus


def test_more_cpus_than_were_asked_for_are_told_of() -> None:
    """Scenario 7: 30 CPUs for 8 ranks are 32."""
    made = plan(limited({"cpu": 30, "nvidia.com/gpu": 8}))
    assert made.notes == (f"CPUs rounded up (30 -> 32) at {MASTER}.containers[0].resources",)


def test_without_a_word_on_cpus_the_node_is_taken_whole_or_the_job_refused() -> None:
    """Scenario 7: Slurm would give one CPU."""
    change: Change = lambda raw: only_master(raw).update(command=["torchrun", "x.py"], resources={})  # noqa: E731
    with pytest.raises(InvalidObject) as caught:
        plan(change)
    assert caught.value.path == f"{MASTER}.containers[0].resources.requests.cpu"

    def whole(raw: Raw) -> None:
        raw["spec"]["jobs"]["defaults"].update(exclusive=True)
        del raw["spec"]["jobs"]["defaults"]["memoryPerNode"]

    made = plan(change, whole)
    assert write_description(made)["shared"] == ["none"]
    assert write_description(made)["memory_per_node"] == wire(0)
    assert "cpus0=${SLURM_JOB_CPUS_PER_NODE%%[(,]*}" in write_script(made)
    assert '--cpus-per-task="$((cpus0 / 1))"' in write_script(made)


@pytest.mark.parametrize(
    ("text", "mib"),
    [("120G", 114441), ("700G", 667573), ("1024Gi", 1048576), ("1e9", 954)],
)
def test_memory_is_rounded_up_to_mebibytes(text: str, mib: int) -> None:
    """Scenario 6."""
    assert plan(limited({"memory": text})).shapes[0].memory_mib == mib


def test_a_limit_of_memory_goes_before_the_request() -> None:
    """Scenario 6: Slurm holds a job to it."""

    def change(raw: Raw) -> None:
        resources = {"requests": {"memory": "100Gi", "cpu": 1}, "limits": {"memory": "120Gi"}}
        only_master(raw).update(resources=resources)

    assert plan(change).shapes[0].memory_mib == 122880
