"""The table of endpoints against what real slurmrestds offered, and what a call does that the version lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurmrest import Unsupported
from slurmrest.endpoints import ENDPOINTS, RELEASES, find, offered
from slurmrest.versions import ADAPTERS
from tests.unit.slurmrest.fake import FakeSlurmrestd
from tests.unit.slurmrest.test_versions import RECORDS

_LATER = {("v0.0.42-24.11.5", "DELETE /slurm/reservation/{reservation_name}")}
"""What 26.05 serves in a version that 24.11 serves without it."""


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_the_table_is_what_slurmrestd_serves(record: Path) -> None:
    """No call too many and none too few, in each version, with slurmdbd and without."""
    version, answers = record.name.split("-")[0], json.loads(record.read_text())
    ours = {f"{one.method} /{one.api}/{one.path}" for one in offered(version)}
    ours -= {call for where, call in _LATER if where == record.stem}
    assert {call.replace(f"/{version}/", "/") for call in answers["served"]} == ours
    without = {call.replace(f"/{version}/", "/") for call in answers["served without slurmdbd"]}
    assert without == {call for call in ours if " /slurm/" in call}


def test_each_version_has_an_adapter_and_a_release() -> None:
    """The messages name the release that a version came with."""
    assert list(RELEASES) == list(ADAPTERS)


def test_every_endpoint_is_found_by_a_path_of_its_own() -> None:
    """With names filled in, with a query, with or without the slash at the end."""
    for endpoint in ENDPOINTS:
        filled = endpoint.path.replace("{", "x").replace("}", "")
        for tail in (filled, filled.rstrip("/"), f"{filled}?flags=DETAIL"):
            assert find(endpoint.api, endpoint.method, tail) is endpoint


@pytest.mark.parametrize(("method", "tail"), [("PUT", "jobs/"), ("GET", "jobs/1/x"), ("GET", "nothing")])
def test_what_is_not_in_the_table_is_not_found(method: str, tail: str) -> None:
    """A newer slurmrestd may have it: it is asked then."""
    assert find("slurm", method, tail) is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("POST", "partitions/"), "POST partitions/ needs v0.0.45 (Slurm 26.05); slurmrestd speaks v0.0.42"),
        (("GET", "resources/7"), "GET resources/{job_id} needs v0.0.44 (Slurm 25.11); slurmrestd speaks v0.0.42"),
    ],
)
async def test_a_call_that_the_version_lacks_is_refused_unsent(call: tuple[str, str], words: str) -> None:
    """And the error names the first version that has it."""
    slurmrestd = FakeSlurmrestd()
    async with slurmrestd.client() as slurm:
        with pytest.raises(Unsupported) as caught:
            await slurm.request(*call)
    assert words in str(caught.value)
    assert [one.url.path for one in slurmrestd.requests] == ["/openapi/v3"]


async def test_slurmdbs_calls_are_named_as_such() -> None:
    """Both daemons have a `conf`."""
    async with FakeSlurmrestd().client() as slurm:
        with pytest.raises(Unsupported, match=r"GET slurmdb conf needs v0\.0\.45"):
            await slurm.request("GET", "conf", api="slurmdb")
