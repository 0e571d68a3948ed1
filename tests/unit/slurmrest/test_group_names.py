"""A job's group: a name for it would end slurmrestd, and never reaches it."""

from __future__ import annotations

from typing import Any

import pytest

from slurmrest import InvalidRequest, Slurm, Unsupported
from tests.unit.slurmrest.fake import DESCRIPTION, SCRIPT, FakeSlurmrestd


def submit(client: Slurm, group: Any) -> object:
    """A plain job."""
    return client.submit({**DESCRIPTION, "group_id": group}, SCRIPT)


def submit_parts(client: Slurm, group: Any) -> object:
    """A heterogeneous job, whose second part has the group."""
    return client.submit([DESCRIPTION, {**DESCRIPTION, "group_id": group}], SCRIPT)


def change(client: Slurm, group: Any) -> object:
    """A job that is there."""
    return client.request("POST", "job/7", body={"group_id": group})


@pytest.mark.parametrize("call", [submit, submit_parts, change])
@pytest.mark.parametrize("group", ["daemon", "", "10 00", "-1", "\u0661", 1000])
def test_a_group_that_is_no_number_as_text_is_not_sent(call: Any, group: Any) -> None:
    """slurmrestd 24.11.5 answers nobody any more afterwards."""
    server = FakeSlurmrestd()
    with server.sync_client() as client, pytest.raises(InvalidRequest, match=r"group_id: .* is not a number as text"):
        call(client, group)
    assert [one.method for one in server.requests if one.method != "GET"] == []


def test_a_number_as_text_is_sent() -> None:
    """That is what the API takes."""
    server = FakeSlurmrestd()
    with server.sync_client() as client:
        client.submit({**DESCRIPTION, "comment": "", "group_id": "1000"}, SCRIPT)
    assert len(server.calls("POST", "job/submit")) == 1


@pytest.mark.parametrize("groups", ["physics", ["1000", "physics"], "", ["\u0661"], [-1]])
def test_jobs_of_slurmdbd_are_not_asked_for_by_a_groups_name(groups: Any) -> None:
    """Nothing is sent."""
    server = FakeSlurmrestd()
    with server.sync_client() as client, pytest.raises(InvalidRequest, match="groups"):
        client.request("GET", "jobs/", api="slurmdb", params={"groups": groups})
    assert server.calls("GET", "jobs/") == []


@pytest.mark.parametrize("groups", ["1000", 1000, ["1000", "1001"]])
def test_jobs_of_slurmdbd_are_asked_for_by_a_groups_number(groups: Any) -> None:
    """Which this slurmrestd doesn't serve; the filter itself is no fault."""
    with FakeSlurmrestd().sync_client() as client, pytest.raises(Unsupported):
        client.request("GET", "jobs/", api="slurmdb", params={"groups": groups})
