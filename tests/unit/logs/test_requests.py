"""The query of containerLogs and the rights that a path takes, as the kubelet reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubeslurm.errors import Refused
from kubeslurm.log_requests import LogRequest, read_query, subresources, verb

NOW = datetime(2026, 12, 7, tzinfo=UTC)


def test_no_query_asks_for_the_whole_log() -> None:
    """The kubelet's defaults."""
    assert read_query({}, NOW) == LogRequest()


def test_every_parameter_is_read() -> None:
    """As kubectl sends them."""
    query = {"follow": "true", "previous": "1", "timestamps": "true", "tailLines": "5", "limitBytes": "9"}
    read = read_query({**query, "sinceSeconds": "60", "stream": "All"}, NOW)
    assert read == LogRequest(True, True, True, 5, NOW - timedelta(seconds=60), 9)


@pytest.mark.parametrize("word", ["false", "False", "0"])
def test_a_flag_can_be_said_to_be_off(word: str) -> None:
    """Any other word is on."""
    assert read_query({"follow": word}, NOW).follow is False


def test_a_since_time_is_taken_in_any_zone() -> None:
    """RFC 3339; in whole seconds for the reader."""
    read = read_query({"sinceTime": "1970-01-01T01:00:10.5+01:00"}, NOW)
    assert read.since_epoch == 10


def test_more_seconds_than_there_were_are_all_of_them() -> None:
    """No overflow."""
    assert read_query({"sinceSeconds": str(2**63 - 1)}, NOW).since_epoch == 0


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("tailLines", "x", 400),
        ("tailLines", "-1", 422),
        ("tailLines", "9" * 30, 400),
        ("tailLines", "१", 400),
        ("limitBytes", "0", 422),
        ("sinceSeconds", "0", 422),
        ("sinceTime", "yesterday", 400),
        ("sinceTime", "2026-12-07T00:00:00", 400),
        ("stream", "Stdout", 400),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(name: str, value: str, status: int) -> None:
    """400 where it can't be read, 422 where it is out of range."""
    with pytest.raises(Refused, match=f"^{name}: ") as caught:
        read_query({name: value}, NOW)
    assert caught.value.status == status


def test_two_ways_to_say_since_are_refused() -> None:
    """As the API server does."""
    with pytest.raises(Refused, match="only one of") as caught:
        read_query({"sinceSeconds": "1", "sinceTime": "2026-12-07T00:00:00Z"}, NOW)
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/logs/x", ("log",)),
        ("/stats/summary", ("stats",)),
        ("/metrics", ("metrics",)),
        ("/pods", ("pods", "proxy")),
        ("/healthz", ("healthz", "proxy")),
        ("/configz", ("configz", "proxy")),
        ("/logsx", ("proxy",)),
        ("", ("proxy",)),
    ],
)
def test_a_path_takes_the_kubelets_right(path: str, wanted: tuple[str, ...]) -> None:
    """What is not known, the right to all."""
    assert subresources(path) == wanted


def test_a_method_without_a_verb_has_none() -> None:
    """So that no right fits it."""
    assert (verb("GET"), verb("POST"), verb("TRACE")) == ("get", "create", "")
