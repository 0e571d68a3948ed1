"""TRES and GRES texts: every form that Slurm writes, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.pyslurm.db.tres import (
    GPU,
    GenericResourceLayout,
    TrackableResource,
    TrackableResourceFilter,
    TrackableResources,
    read_count,
)

ALLOCATED = "cpu=4,mem=16G,node=2,billing=4,gres/gpu=8,gres/gpu:h100=8,fs/disk=0,license/fluent@server=2,bb/datawarp=10"


def tres(text: str) -> TrackableResources:
    """The resources in a text that has some."""
    found = TrackableResources.from_str(text)
    assert found is not None
    return found


def test_a_job_s_resources_are_read_by_type_and_name() -> None:
    """Scalars as numbers (memory in MiB), the rest in its group."""
    read = tres(ALLOCATED)
    assert (read.cpu, read.memory, read.nodes, read.billing, read.energy) == (4, 16384, 2, 4, None)
    assert {name: one.count for name, one in read.gres.items()} == {"gpu": 8, "gpu:h100": 8}
    assert read.gpus == {"h100": GPU(8, "h100")}
    assert read.filesystem["disk"].count == 0
    assert read.license["fluent@server"].count == 2
    assert read.other["bb/datawarp"].type_and_name == "bb/datawarp"


def test_the_text_comes_back_as_it_was() -> None:
    """Slurm's own order of the scalars, then the groups."""
    assert str(tres("cpu=4,mem=16G,node=2,billing=4,gres/gpu=8,gres/gpu:h100=8")) == (
        "cpu=4,mem=16G,node=2,billing=4,gres/gpu=8,gres/gpu:h100=8"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [("16G", 16384), ("1000", 1000), ("7.50T", 7864320), ("512K", 1), ("0", 0), ("1P", 1 << 30), ("-1", -1)],
)
def test_memory_is_mib_whatever_its_unit(text: str, count: int) -> None:
    """Without a unit it is MiB already; less than one is one, as Slurm rounds."""
    assert tres(f"mem={text}").memory == count


@pytest.mark.parametrize(("text", "count"), [("8", 8), ("80G", 80 << 30), ("00:01:40", 100), ("1-00:00:01", 86401)])
def test_other_counts_take_units_and_times(text: str, count: int) -> None:
    """Bytes with a unit of 1024; processor time as sacct writes it."""
    assert read_count(text) == count


def test_ids_stand_for_names() -> None:
    """Slurm's own ids always, others when the cluster's resources are given."""
    assert str(tres("1=4,2=1024,4=1")) == "cpu=4,mem=1G,node=1"
    known = TrackableResources.from_list([{"type": "gres", "name": "gpu:h100", "id": 1001, "count": 0}])
    read = TrackableResources.from_str("1=4,1001=8", known)
    assert read is not None
    assert read.gres["gpu:h100"] == TrackableResource("gres", 8, "gpu:h100", 1001)
    with pytest.raises(ValueError, match="1001"):
        TrackableResources.from_str("1001=8")


@pytest.mark.parametrize("text", ["", None, "  ", "(null)"])
def test_no_resources_are_what_the_caller_says(text: str | None) -> None:
    """None unless another value is given."""
    assert TrackableResources.from_str(text) is None
    assert TrackableResources.from_str(text, on_empty="nothing") == "nothing"


@pytest.mark.parametrize(
    "text", ["cpu", "cpu=", "cpu=x", "=4", "cpu=4,,mem=1", "cpu=4\nmem=1", "c p u=1", "cpu=4;", "\0=1"]
)
def test_what_is_no_list_of_resources_is_refused(text: str) -> None:
    """With a ValueError that shows the part."""
    with pytest.raises(ValueError, match="is not a"):
        TrackableResources.from_str(text)


def test_rest_s_list_is_read_and_written() -> None:
    """The form of slurmdbd's answers, with ids."""
    entries = [
        {"type": "cpu", "name": "", "id": 1, "count": 4},
        {"type": "mem", "name": "", "id": 2, "count": 1000},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 8},
    ]
    read = TrackableResources.from_list(entries)
    assert str(read) == "cpu=4,mem=1000M,gres/gpu=8"
    assert read.gres["gpu"].id == 1001
    assert read.to_list() == [{name: one[name] for name in ("type", "name", "count")} for one in entries]


def test_resources_are_made_by_name() -> None:
    """As a script does to set a limit."""
    made = TrackableResources(cpu=4, memory="16G", gres={"gpu:h100": 8}, other={"bb/x": 1})
    assert made == tres("cpu=4,mem=16G,gres/gpu:h100=8,bb/x=1")
    made.cpu = 5
    assert made != tres("cpu=4,mem=16G,gres/gpu:h100=8,bb/x=1")


def test_dicts_are_nested_or_flat() -> None:
    """Nested with None for what isn't there; flat as limits are written down."""
    read = tres("cpu=4,mem=1G,gres/gpu=8")
    nested = read.to_dict(recursive=True)
    assert (nested["cpu"], nested["memory"], nested["nodes"]) == (4, 1024, None)
    assert nested["gres"]["gpu"] == {"type": "gres", "name": "gpu", "id": None, "count": 8}
    assert read.to_dict()["gres"]["gpu"] is read.gres["gpu"]
    assert read.to_dict(flatten_limits=True) == {"cpu": 4, "mem": 1024, "gres/gpu": 8}


def test_gpus_without_a_type_are_under_gpu() -> None:
    """Their sum is left out where types are known."""
    assert tres("gres/gpu=3").gpus == {"gpu": GPU(3)}
    assert GPU(3).type_and_name == "gres/gpu"
    assert GPU(3, "h100").to_dict() == {"name": "gpu:h100", "gpu_type": "h100", "id": None, "count": 3}
    with pytest.raises(ValueError, match="license/x"):
        GPU.from_tres(TrackableResource("license", 1, "x"))


def test_a_filter_takes_what_fits_all_its_parts() -> None:
    """An empty one takes all."""
    gpu = TrackableResource("gres", 0, "gpu", 1001)
    assert TrackableResourceFilter().takes(gpu)
    assert TrackableResourceFilter(types=["gres"], ids=[1001]).takes(gpu)
    assert not TrackableResourceFilter(types=["gres"], names=["shard"]).takes(gpu)


@pytest.mark.parametrize(
    ("text", "layouts"),
    [
        ("gpu:h100:8(IDX:0-7)", [("gpu", "h100", 8, "0-7")]),
        ("gpu:a100:2(S:0-1),shard:4", [("gpu", "a100", 2, None), ("shard", None, 4, None)]),
        ("gpu:8", [("gpu", None, 8, None)]),
        ("gpu", [("gpu", None, 1, None)]),
        ("gpu:h100", [("gpu", "h100", 1, None)]),
        ("gpu:1g.5gb:2(IDX:0,3-4),gpu:3g.20gb:1(IDX:5)", [("gpu", "1g.5gb", 2, "0,3-4"), ("gpu", "3g.20gb", 1, "5")]),
        ("gpu:h100:0(IDX:N/A)", [("gpu", "h100", 0, None)]),
        ("gres/gpu:h100=4", [("gpu", "h100", 4, None)]),
        ("gres:gpu:2", [("gpu", None, 2, None)]),
        ("bandwidth:lustre:no_consume:4G", [("bandwidth", "lustre", 4 << 30, None)]),
        ("shard:h100:3(1/4,2/4,0/4)", [("shard", "h100", 3, None)]),
        ("gpu:h100:4(S:0),gpu:h100:4(S:1)", [("gpu", "h100", 8, None)]),
        ("(null)", []),
        ("", []),
        (None, []),
    ],
)
def test_generic_resources_are_read_in_all_their_forms(text: str | None, layouts: list[tuple[Any, ...]]) -> None:
    """As gres, gres_used, gres_detail and tres_per_node have them."""
    read = GenericResourceLayout.from_str(text)
    assert [(one.name, one.typ, one.count, one.indexes) for one in read.values()] == layouts
    assert list(read) == [one.key for one in read.values()]


@pytest.mark.parametrize(
    "text", ["gpu:", ":8", "gpu:h100:8:9:x", "gpu(", "gpu:8,", "gpu:8\nx", "gpu:a:b:2", "8", "gpu;x"]
)
def test_what_is_no_generic_resource_is_refused(text: str) -> None:
    """With a ValueError."""
    with pytest.raises(ValueError, match="generic resource"):
        GenericResourceLayout.from_str(text)


NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,8}(:[a-z][a-z0-9_.-]{0,8})?", fullmatch=True)
COUNTS = st.integers(0, 1 << 50)
LISTS = st.builds(
    TrackableResources,
    cpu=st.none() | COUNTS,
    memory=st.none() | COUNTS | st.integers(1, 5).map(lambda power: 1024**power),
    nodes=st.none() | COUNTS,
    billing=st.none() | COUNTS,
    energy=st.none() | COUNTS,
    vmem=st.none() | COUNTS,
    pages=st.none() | COUNTS,
    gres=st.dictionaries(NAMES, COUNTS, max_size=3),
    filesystem=st.dictionaries(NAMES, COUNTS, max_size=2),
    license=st.dictionaries(NAMES, COUNTS, max_size=2),
    other=st.dictionaries(NAMES.map("bb/".__add__), COUNTS, max_size=2),
)


@given(LISTS)
def test_resources_are_the_same_after_a_round_trip(resources: TrackableResources) -> None:
    """By text and by REST's list."""
    assert TrackableResources.from_str(str(resources), on_empty=TrackableResources()) == resources
    assert TrackableResources.from_list(resources.to_list()) == resources


LAYOUTS = st.builds(
    GenericResourceLayout,
    name=st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True),
    typ=st.none() | st.from_regex(r"[a-z][a-z0-9_.-]{0,8}", fullmatch=True).filter(lambda typ: typ != "no_consume"),
    count=COUNTS,
    indexes=st.none() | st.from_regex(r"[0-9]{1,3}(-[0-9]{1,3})?(,[0-9]{1,3})?", fullmatch=True),
)


@given(st.lists(LAYOUTS, max_size=4, unique_by=lambda one: one.key))
def test_layouts_are_the_same_after_a_round_trip(layouts: list[GenericResourceLayout]) -> None:
    """Joined by commas, as Slurm has them."""
    text = ",".join(map(str, layouts))
    assert list(GenericResourceLayout.from_str(text).values()) == layouts


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never another exception than ValueError."""
    for read in (TrackableResources.from_str, GenericResourceLayout.from_str):
        try:
            read(text)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either way is right
