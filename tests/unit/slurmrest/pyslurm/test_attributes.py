"""How attributes are declared, read, set and sent."""

from __future__ import annotations

import json

import pytest

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Record, computed, field, missing, plain, setting
from slurmrest.pyslurm.error import PyslurmError


class Thing(Record):
    """One of everything."""

    __slots__ = ()

    name = setting("name", read=forms.text, write=forms.to_word)
    size = setting("sizes.big", "size", read=forms.limit, write=forms.to_number)
    fast = setting("flags", read=forms.texts, write=forms.to_texts)
    red = setting("flags", read=forms.texts, write=forms.to_texts)
    memo = setting("note", read=forms.text, write=forms.to_text, why="it is kept")
    owner = missing(forms.text, "nobody knows")
    place = field("place", read=forms.text, since="v0.0.43")

    @computed
    def double(self) -> int:
        """Twice the size."""
        return 2 * self.size if isinstance(self.size, int) else 0


def test_first_path_that_is_there_counts() -> None:
    """A renamed field reads the same in both versions."""
    assert Thing._of({"sizes": {"big": 3}, "size": 4}).size == 3
    assert Thing._of({"size": 4}).size == 4
    assert Thing._of({"sizes": None}).size is None


def test_set_value_reads_back_and_is_sent_at_its_place() -> None:
    """What was set is what is read, and all that is sent."""
    thing = Thing(name="a", size=5)
    assert (thing.size, thing.double) == (5, 10)
    assert thing._body() == {"name": "a", "sizes": {"big": {"set": True, "infinite": False, "number": 5}}}


def test_flags_of_one_list_are_sent_together() -> None:
    """Several attributes may be words of one list."""
    assert Thing(fast="FAST", red="RED")._body() == {"flags": ["FAST", "RED"]}


def test_none_takes_a_change_back() -> None:
    """None means: as it is."""
    thing = Thing(size=5)
    thing.size = None
    assert thing._body() == {}


def test_change_of_nothing_is_refused() -> None:
    """An empty request would say nothing."""
    with pytest.raises(PyslurmError, match="no change of the thing"):
        Thing(name="a")._changed()


@pytest.mark.parametrize(
    ("attribute", "value", "kind"),
    [("size", -1, ValueError), ("size", 1.5, TypeError), ("name", "a\nb", ValueError), ("name", 3, TypeError)],
)
def test_wrong_value_is_refused_by_attribute(attribute: str, value: object, kind: type[Exception]) -> None:
    """Nothing wrong waits to be sent."""
    with pytest.raises(kind, match=rf"^Thing\.{attribute}: "):
        setattr(Thing(), attribute, value)


@pytest.mark.parametrize("attribute", ["owner", "place", "double"])
def test_read_only_attribute_can_not_be_set(attribute: str) -> None:
    """What only tells, only tells."""
    with pytest.raises(AttributeError, match=f"Thing.{attribute} can't be set"):
        setattr(Thing(), attribute, "x")


def test_unknown_attribute_is_refused() -> None:
    """A misspelt name is no silent nothing."""
    with pytest.raises(AttributeError, match="Thing has no attribute 'sise'"):
        Thing(sise=3)
    with pytest.raises(AttributeError):
        Thing().sise = 3  # type: ignore[attr-defined]


def test_missing_attribute_says_why() -> None:
    """What REST can't tell raises, and is None among the others."""
    thing = Thing._of({}, "v0.0.45")
    with pytest.raises(PyslurmError, match=r"Thing\.owner can't be had.*nobody knows"):
        _ = thing.owner
    assert thing.to_dict()["owner"] is None


def test_attribute_that_can_only_be_set_reads_back_what_was_set() -> None:
    """It can be sent, and not be asked for."""
    with pytest.raises(PyslurmError, match="it is kept"):
        _ = Thing._of({"note": "x"}).memo
    assert Thing(memo="x").memo == "x"


def test_attribute_of_a_later_version_says_which() -> None:
    """An older answer doesn't have it; it is not taken for empty."""
    with pytest.raises(PyslurmError, match=r"Thing\.place needs API v0\.0\.43 or newer; the answer is of v0\.0\.42"):
        _ = Thing._of({}, "v0.0.42").place
    assert Thing._of({}, "v0.0.42").to_dict()["place"] is None
    assert Thing._of({"place": "x"}, "v0.0.43").place == "x"


def test_answer_of_another_shape_is_named() -> None:
    """No TypeError reaches a script."""
    with pytest.raises(PyslurmError, match=r"Thing\.name can't be read from the answer: expected text, got list"):
        _ = Thing._of({"name": []}).name
    with pytest.raises(PyslurmError, match="a list where a Thing should be"):
        Thing._of([])  # type: ignore[arg-type]


def test_all_attributes_as_a_dict_can_be_json() -> None:
    """`recursive` leaves nothing that json can't write."""
    flat = Thing(size="UNLIMITED").to_dict(recursive=True)
    assert json.loads(json.dumps(flat))["size"] == "UNLIMITED"
    assert Thing(size=1).as_dict() == Thing(size=1).to_dict()
    assert plain({"things": [Thing(name="a")]}, recursive=True)["things"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("gpu:h100:8", {"gpu:h100": 8}),
        ("gpu:h100:8(S:0-1),shard:2", {"gpu:h100": 8, "shard": 2}),
        ("gpu:h100:0(IDX:N/A)", {"gpu:h100": 0}),
        ("gpu", {"gpu": 1}),
        ("gpu:a:1,gpu:a:2", {"gpu:a": 3}),
        ("cpu=4,mem=2G,gres/gpu=1", {"cpu": 4, "mem": 2048, "gpu": 1}),
        ("bandwidth:2K", {"bandwidth": 2048}),
        ("(null)", {}),
        ("", {}),
        (None, {}),
    ],
)
def test_counts_by_name(raw: object, value: dict[str, int]) -> None:
    """GRES and TRES texts read as counts."""
    assert forms.tallies(raw) == value


def test_commas_in_brackets_part_nothing() -> None:
    """A host list in a list stays whole."""
    assert forms.split("n[1,3],gpu:2(IDX:0,3)") == ["n[1,3]", "gpu:2(IDX:0,3)"]


@pytest.mark.parametrize("value", ["a\0b", "a\x1bb", "\x7f"])
def test_text_with_control_characters_is_refused(value: str) -> None:
    """Slurm would cut it short or print it to a terminal."""
    with pytest.raises(ValueError, match="control characters"):
        forms.to_text(value)


@pytest.mark.parametrize("value", ["", " a", "a,b", "a\tb", "a\nb"])
def test_name_with_separators_is_refused(value: str) -> None:
    """A name is one word of a list."""
    with pytest.raises(ValueError, match="is not a name"):
        forms.to_word(value)
