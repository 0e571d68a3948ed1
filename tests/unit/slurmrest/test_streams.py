"""Lists that are read while they arrive: the same as reading the whole, wherever the body is cut."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmrest import ProtocolError
from slurmrest.streams import Entries, Malformed, Splitter, decode
from slurmrest.versions import forced

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(["jobs", "errors", "meta", "", 'a"b\\'])


def same(entry: Any) -> Any:
    """Each entry as it is."""
    return entry


def cut(body: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """The body in pieces."""
    start = 0
    for place in sorted(place % (len(body) + 1) for place in places):
        yield body[start:place]
        start = place
    yield body[start:]


def split(pieces: Iterable[bytes], entries: Entries[Any] | None = None) -> tuple[dict[str, Any], str]:
    """What a splitter makes of the pieces, and its complaint."""
    splitter = Splitter(entries or Entries("jobs", same))
    for piece in pieces:
        splitter.feed(piece)
    return splitter.finish(), splitter.complaint


@given(
    st.dictionaries(KEYS, JSON, max_size=5),
    st.lists(st.integers(0, 100_000), max_size=12),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
)
def test_any_object_cut_anywhere_reads_as_json_reads_the_whole(
    value: dict[str, Any], places: list[int], indent: int | str | None, plain: bool
) -> None:
    """Keys in any order, escapes, white space and characters cut in two make no difference."""
    body = json.dumps(value, indent=indent, ensure_ascii=plain).encode("utf-8", "replace")
    assert split(cut(body, places)) == (json.loads(body), "")


ENTRIES = st.lists(
    st.fixed_dictionaries({"a": st.integers(0, 99), "b": JSON}) | st.integers(0, 99) | JSON, min_size=1, max_size=12
)


@given(ENTRIES, st.lists(st.integers(0, 100_000), max_size=12), st.sampled_from([None, 1, 2]), st.integers(1, 60))
@example([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}], [18, 60], None, 1)
@example([{"a": [{}, {}]}, {"a": [{}, {}]}, {"a": [{}]}], [], None, 1)
def test_entries_are_the_same_whatever_comes_together(
    entries: list[Any], places: list[int], indent: int | None, batch: int
) -> None:
    """Taken one by one, or many at once up to what looks like the end of one."""
    body = json.dumps({"jobs": entries, "errors": []}, indent=indent, separators=(",", ":") if batch % 2 else None)
    with mock.patch("slurmrest.streams._BATCH", batch):
        assert split(cut(body.encode(), places)) == ({"jobs": entries, "errors": []}, "")


ODD = st.sampled_from([float("nan"), "\ud800", 10**400, {"a": "\udfff", "c": [1]}])


@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4) | JSON | ODD, max_size=12), st.integers(1, 60)
)
@example([{"a": 1, "b": 2}, {"a": 3}, {"a": "\ud800", "c": 1}, {"b": 4}], 60)
def test_what_is_skipped_makes_no_difference(entries: list[Any], batch: int) -> None:
    """A reader that says which keys it looks at finds in them what stands there, whatever else does."""

    def looks(entry: Any) -> Any:
        return [repr(entry.get(key)) for key in "ac"] if isinstance(entry, dict) else repr(entry)

    body = json.dumps({"jobs": entries}, indent=2).encode()
    with mock.patch("slurmrest.streams._BATCH", batch):
        assert split([body], Entries("jobs", looks, "a c")) == split([body], Entries("jobs", looks))


@given(st.binary(max_size=60), st.lists(st.integers(0, 100), max_size=5), st.booleans())
def test_any_bytes_are_an_object_or_malformed_as_json_has_it(noise: bytes, places: list[int], wrapped: bool) -> None:
    """What json refuses is refused, what it takes is taken; nothing else is raised."""
    body = b'{"jobs": [' + noise + b"]}" if wrapped else noise
    try:
        wanted = json.loads(decode(body))
    except ValueError:
        wanted = None
    try:
        found = split(cut(body, places))[0]
    except Malformed:
        found = None
    assert repr(found) == repr(wanted if isinstance(wanted, dict) else None)  # NaN isn't equal to itself


@pytest.mark.parametrize(
    "body",
    [
        '{"jobs":[1,2]}x',
        '{"jobs":[1,2]} {}',
        '{"jobs":[1,2',
        '{"jobs":[1,2,]}',
        '{"jobs":[1 2]}',
        '{"jobs":[1,2],}',
        '{"jobs" [1]}',
        '{"jobs":[1.]}',
        '{"jobs":["a\nb"]}',
        "{1:2}",
        "[1]",
        "Unable find requested URL.",
        "",
        "[" * 200_000,
        '{"jobs":[' + "[" * 200_000,
    ],
    ids=lambda body: repr(body[:20]),
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_is_no_object_is_malformed(body: str, size: int) -> None:
    """Half of an answer, or something else, is never taken for an answer."""
    data = body.encode()
    if len(data) > 1000:
        size = 1 << 16
    with pytest.raises(Malformed):
        split(data[start : start + size] for start in range(0, len(data), size))


def test_pieces_of_one_byte_read_like_the_whole() -> None:
    """A server that drips says the same in the end."""
    value = {"errors": [], "jobs": [{"name": "ü\u2028\U0001f600", "n": -1.5e3}, True, None, 12]}
    body = json.dumps(value, ensure_ascii=False).encode()
    assert split([body[at : at + 1] for at in range(len(body))])[0] == value


def test_a_name_that_is_no_utf8_leaves_the_others_readable() -> None:
    """Slurm passes on the bytes of a job's name as they are; anybody can choose such a name."""
    body = b'{"jobs": [{"name": "a\xffb"}, {"name": "c"}], "errors": []}'
    assert split([body])[0] == {"jobs": [{"name": "a\ufffdb"}, {"name": "c"}], "errors": []}


def test_an_entry_longer_than_many_pieces_is_read_once_whole() -> None:
    """The tries grow with the entry: reading takes linear time."""
    body = json.dumps({"jobs": [{"comment": "x" * 5_000_000}, {"comment": ""}]}).encode()
    found = split(body[at : at + 1000] for at in range(0, len(body), 1000))[0]
    assert [len(job["comment"]) for job in found["jobs"]] == [5_000_000, 0]


def test_a_value_without_an_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit per entry, whatever the limit of the answer is."""
    monkeypatch.setattr("slurmrest.streams.LONGEST", 200_000)
    with pytest.raises(Malformed, match="200000"):
        split([b'{"jobs":["', *[b"x" * 10_000] * 100])


def test_entries_become_values_while_they_arrive() -> None:
    """Of the list only the values are kept, and what stands around it stays as it is."""
    entries = Entries("jobs", lambda entry: int(entry["job_id"]))
    found, complaint = split([b'{"errors": [], "jobs": [{"job_id": "1"},', b'{"job_id": "2"}]}'], entries)
    assert (found, complaint) == ({"errors": [], "jobs": [1, 2]}, "")


@pytest.mark.parametrize("entry", ["{}", '{"job_id": "x"}', "null", "[]", '{"job_id": {}}', '"text"'])
def test_an_entry_of_another_form_is_told_and_never_half_a_list(entry: str) -> None:
    """The rest is still read, since errors may stand behind it; the values are gone."""
    entries = Entries("jobs", lambda entry: int(entry["job_id"]))
    body = f'{{"jobs": [{{"job_id": "1"}}, {entry}, {{"job_id": "2"}}], "errors": ["e"]}}'.encode()
    found, complaint = split([body], entries)
    assert complaint.startswith("an entry of jobs has an unexpected form: ")
    assert found == {"jobs": [], "errors": ["e"]}


def test_a_list_of_another_form_stays_what_it_is_and_is_no_list_of_values() -> None:
    """A null where the list should be is not an empty list."""
    found = split([b'{"jobs": null}'])[0]
    with pytest.raises(ProtocolError, match="no list of jobs"):
        Entries("jobs", same).of(found)


def test_memory_stays_flat_while_a_long_answer_passes() -> None:
    """30 MB of entries, of which a number each is kept."""
    entry = json.dumps({"job_id": 7, "comment": "x" * 3000}).encode()
    splitter = Splitter(Entries("jobs", lambda entry: int(entry["job_id"])))
    tracemalloc.start()
    splitter.feed(b'{"jobs": [' + entry)
    for _ in range(10_000):
        splitter.feed(b"," + entry)
    splitter.feed(b"]}")
    assert splitter.finish()["jobs"] == [7] * 10_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "records").glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("tail", "each"), [("nodes/", "each_node"), ("jobs/", "each_job"), ("jobs/state/", "each_job_state")]
)
def test_the_keys_of_a_reader_are_all_that_it_looks_at(path: Path, tail: str, each: str) -> None:
    """On what each version of a real slurmrestd answered: without the other keys the values are the same."""
    entries: Entries[Any] = getattr(forced(path.name.split("-")[0]), each)()
    found = json.loads(path.read_text())[tail][entries.field]
    looked_at = set(entries.keys.split())
    kept = [{key: value for key, value in entry.items() if key in looked_at} for entry in found]
    assert found
    assert [entries.read(entry) for entry in kept] == [entries.read(entry) for entry in found]
