"""What a job's owner may ask for beyond the pod's words, and the bounds that the tenant sets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeslurm import names, requests
from kubeslurm.descriptions import write_description
from kubeslurm.errors import InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from slurmrest import number as wire
from tests.unit import examples
from tests.unit.examples import Raw

BOUNDS: dict[str, Any] = {
    "partitions": ["gpu_partition", "spare"],
    "accounts": ["ml", "vision"],
    "qos": ["normal", "urgent"],
}


def bounded(raw: Raw) -> None:
    """The example cluster with a second partition, and a tenant with a choice."""
    raw["spec"]["partitions"].append({"name": "spare", "nodeSets": ["gpu-node"]})
    raw["spec"]["partitions"].append({"name": "secret", "nodeSets": ["gpu-node"]})
    raw["spec"]["tenants"][0] |= BOUNDS
    raw["spec"]["jobs"] |= {
        "priorityClasses": {"high": "urgent", "system": "root-only"},
        "queues": {"batch": "spare", "vip": "secret"},
    }


def plan(annotations: dict[str, str] | None = None, policy: Raw | None = None, pod: Raw | None = None) -> JobPlan:
    """The example job with these annotations (short names), schedulingPolicy and fields of its pods."""

    def change(raw: Raw) -> None:
        raw["metadata"]["annotations"] = {f"slurm.bridge/{key}": text for key, text in (annotations or {}).items()}
        raw["spec"]["runPolicy"] = {"schedulingPolicy": policy}
        for role in raw["spec"]["pytorchReplicaSpecs"].values():
            role["template"]["spec"] |= pod or {}

    return read_pytorchjob(examples.training(change), examples.cluster(bounded), [examples.nodeset()])


def header(made: JobPlan) -> set[str]:
    """The #SBATCH lines."""
    return {line.removeprefix("#SBATCH ") for line in write_script(made).splitlines() if line.startswith("#SBATCH")}


def test_the_first_of_each_list_is_the_default() -> None:
    """In the header and in REST."""
    made = plan()
    assert {"--partition=gpu_partition", "--account=ml", "--qos=normal"} <= header(made)
    description = write_description(made)
    assert [description[key] for key in ("partition", "account", "qos")] == ["gpu_partition", "ml", "normal"]


@pytest.mark.parametrize(
    ("name", "text", "line", "field"),
    [
        ("partition", "spare", "--partition=spare", {"partition": "spare"}),
        ("partition", "spare,gpu_partition", "--partition=spare,gpu_partition", {"partition": "spare,gpu_partition"}),
        ("account", "vision", "--account=vision", {"account": "vision"}),
        ("qos", "urgent", "--qos=urgent", {"qos": "urgent"}),
        ("time", "2-00:00:00", "--time=48:00:00", {"time_limit": wire(2880)}),
        ("constraint", "[rack1|rack2]", "--constraint=[rack1|rack2]", {"constraints": "[rack1|rack2]"}),
        ("reservation", "course_7", "--reservation=course_7", {"reservation": "course_7"}),
        ("exclusive", "true", "--exclusive", {"shared": ["none"]}),
        ("nodes", "64", "--nodes=64", {"nodes": "64"}),
        ("dependency", "afterok:1:2+5,singleton", "--dependency=afterok:1:2+5,singleton", None),
    ],
)
def test_an_annotation_becomes_its_option(name: str, text: str, line: str, field: Raw | None) -> None:
    """As a line of the header and as a field of the description."""
    made = plan({name: text})
    assert line in header(made)
    assert (field or {"dependency": text}).items() <= write_description(made).items()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("partition", "secret"),
        ("partition", "spare,secret"),
        ("partition", "gpu_partition\n#SBATCH --uid=0"),
        ("partition", ""),
        ("account", "physics"),
        ("account", "ml --uid=0"),
        ("qos", "root-only"),
        ("time", "soon"),
        ("time", "0"),
        ("constraint", "a;reboot"),
        ("constraint", "a b"),
        ("constraint", "x" * 129),
        ("reservation", "a,b"),
        ("exclusive", "user"),
        ("nodes", "0"),
        ("nodes", "63"),
        ("nodes", "1-4"),
        ("dependency", "afterok:other-job"),
        ("dependency", "afterok:1;id"),
        ("dependency", "expand:1"),
        ("uid", "0"),
        ("gid", "0"),
        ("priority", "100"),
        ("nice", "-100"),
        ("admin-comment", "x"),
        ("comment", "x"),
    ],
)
def test_what_is_not_the_tenants_to_choose_is_refused_by_its_path(name: str, text: str) -> None:
    """Another's partition, account or QOS, more lines, and the names that are nobody's to set."""
    with pytest.raises(InvalidObject) as caught:
        plan({name: text})
    assert caught.value.path == f"metadata.annotations[slurm.bridge/{name}]"


@given(st.sampled_from(sorted(names.REQUESTS)), st.text(max_size=200))
def test_no_annotation_writes_a_line_of_its_own(name: str, text: str) -> None:
    """Refused, or one option whose text is all plain characters."""
    short = name.removeprefix("slurm.bridge/")
    try:
        flags = {line.partition("=")[0] for line in header(plan({short: text}))}
    except InvalidObject as error:
        flags = {error.path}
    usual = {line.partition("=")[0] for line in header(plan())}
    assert flags in ({f"metadata.annotations[{name}]"}, usual, usual | {f"--{short}"})


VALUES = st.sampled_from(
    ["", "ml", "vision", "physics", "normal", "urgent", "spare", "secret", "high", "vip", "a,b", "\n"]
)


@given(
    st.dictionaries(st.sampled_from(["partition", "account", "qos", "dependency", "reservation", "uid"]), VALUES),
    st.dictionaries(st.sampled_from(["priorityClass", "queue", "minAvailable", "other"]), VALUES),
    VALUES,
)
def test_whatever_is_asked_for_nothing_outside_the_tenants_bounds_is_sent(
    annotations: dict[str, str], policy: dict[str, str], priority_class: str
) -> None:
    """Refused, or one of what the admin listed."""
    try:
        sent = write_description(plan(annotations, policy, {"priorityClassName": priority_class}))
    except InvalidObject:
        sent = write_description(plan())
    assert set(sent["partition"].split(",")) <= set(BOUNDS["partitions"])
    assert sent["account"] in BOUNDS["accounts"]
    assert sent["qos"] in BOUNDS["qos"]
    assert not sent.keys() & {"user_id", "group_id", "priority", "nice", "admin_comment"}


def test_a_shorter_deadline_wins_over_the_time_asked_for() -> None:
    """Neither promise is broken: the job ends by whichever comes first."""
    request = requests.Request(timed=True, time_minutes=60)
    assert (request.limit(30, 2880), request.limit(90, 2880), request.limit(None, 2880)) == (30, 60, 60)
    assert requests.Request(timed=True).limit(None, 2880) is None
    assert requests.Request().limit(None, 2880) == 2880


def test_a_priority_class_is_a_qos_by_the_admins_table() -> None:
    """From the pods or the scheduling policy; the annotation rules over both."""
    assert plan(pod={"priorityClassName": "high"}).request.qos == "urgent"
    assert plan(policy={"priorityClass": "high"}).request.qos == "urgent"
    assert plan({"qos": "normal"}, policy={"priorityClass": "high"}).request.qos == "normal"


def test_a_queue_is_a_partition_by_the_admins_table() -> None:
    """And the annotation rules over it."""
    assert plan(policy={"queue": "batch"}).partition == "spare"
    assert plan({"partition": "gpu_partition"}, policy={"queue": "batch"}).partition == "gpu_partition"


@pytest.mark.parametrize(
    ("policy", "pod", "path"),
    [
        ({"priorityClass": "low"}, {}, "spec.runPolicy.schedulingPolicy.priorityClass"),
        ({"priorityClass": "system"}, {}, "spec.runPolicy.schedulingPolicy.priorityClass"),
        ({}, {"priorityClassName": "low"}, "spec.pytorchReplicaSpecs.Master.template.spec.priorityClassName"),
        ({}, {"priorityClassName": "system"}, "spec.pytorchReplicaSpecs.Master.template.spec.priorityClassName"),
        ({"queue": "none"}, {}, "spec.runPolicy.schedulingPolicy.queue"),
        ({"queue": "vip"}, {}, "spec.runPolicy.schedulingPolicy.queue"),
        ({"scheduleTimeoutSeconds": 5}, {}, "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"),
    ],
)
def test_a_class_or_queue_outside_the_table_or_the_bounds_is_refused(policy: Raw, pod: Raw, path: str) -> None:
    """By the path of the field that names it."""
    with pytest.raises(InvalidObject) as caught:
        plan(policy=policy, pod=pod)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("annotations", "refused"),
    [
        ({}, None),
        ({"partition": "spare"}, "partition"),
        ({"partition": "spare", "account": "vision"}, None),
        ({"partition": "spare,gpu_partition"}, None),
        ({"qos": "urgent"}, "qos"),
        ({"partition": "spare", "account": "vision", "qos": "urgent"}, None),
    ],
)
def test_what_no_chosen_partition_takes_is_refused(annotations: dict[str, str], refused: str | None) -> None:
    """In Slurm it would wait for ever."""

    def allowing(raw: Raw) -> None:
        bounded(raw)
        raw["spec"]["accounting"] = {"database": {"host": "db", "passwordSecret": {"name": "db"}}}
        raw["spec"]["partitions"][0]["allowQos"] = ["normal"]
        raw["spec"]["partitions"][1]["allowAccounts"] = ["vision"]

    def change(raw: Raw) -> None:
        raw["metadata"]["annotations"] = {f"slurm.bridge/{key}": text for key, text in annotations.items()}

    try:
        read_pytorchjob(examples.training(change), examples.cluster(allowing), [examples.nodeset()])
        found = None
    except InvalidObject as error:
        found = error.path
    assert found == (f"metadata.annotations[slurm.bridge/{refused}]" if refused else None)


def test_a_default_that_only_slurm_knows_is_left_to_slurm() -> None:
    """A tenant without accounts and QOS of its own: what its user has in slurmdbd counts."""

    def allowing(raw: Raw) -> None:
        raw["spec"]["accounting"] = {"database": {"host": "db", "passwordSecret": {"name": "db"}}}
        raw["spec"]["partitions"][0] |= {"allowQos": ["normal"], "allowAccounts": ["ml"]}

    made = read_pytorchjob(examples.training(), examples.cluster(allowing), [examples.nodeset()])
    assert not write_description(made).keys() & {"account", "qos"}


def test_what_a_gang_has_anyway_is_listed_as_ignored() -> None:
    """minAvailable and minResources."""
    made = plan(policy={"minAvailable": 64, "minResources": {"cpu": "1"}})
    assert [one for one in made.ignored if "schedulingPolicy" in one] == [
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "spec.runPolicy.schedulingPolicy.minResources",
    ]


def test_a_tenants_defaults_go_before_the_clusters() -> None:
    """Each by itself."""

    def own(raw: Raw) -> None:
        raw["spec"]["tenants"][0]["defaults"] = {"time": "01:00:00", "cpusPerGpu": 2}

    made = read_pytorchjob(examples.training(), examples.cluster(own), [examples.nodeset()])
    assert (made.time_minutes, made.shapes[0].cpus_per_task, made.shapes[0].memory_mib) == (60, 2, 120 * 1024)


def test_without_a_cluster_the_words_are_taken_as_they_are() -> None:
    """`kubeslurm translate` of a job alone: forms are checked, bounds are not known."""

    def change(raw: Raw) -> None:
        raw["metadata"]["annotations"] = {names.ANNOTATION_ACCOUNT: "any", names.ANNOTATION_PARTITION: "p1,p2"}

    made = read_pytorchjob(examples.training(change))
    assert (made.request.account, made.partition) == ("any", "p1,p2")
