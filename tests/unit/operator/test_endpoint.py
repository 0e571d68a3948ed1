"""Where the kubelet endpoint is, by the environment, and what the virtual node says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubeslurm import job_model, log_places, virtual
from kubeslurm_operator.__main__ import endpoint
from kubeslurm_operator.job_actions import _sealed
from slurmrest import Job, JobStates


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None),
        ({"POD_IP": "10.0.0.1"}, ("10.0.0.1", 10250)),
        ({"POD_IP": "fd00::1", "KUBESLURM_KUBELET_PORT": "10255"}, ("fd00::1", 10255)),
    ],
)
def test_the_environment_says_where(environment: dict[str, str], wanted: tuple[str, int] | None) -> None:
    """Nowhere without an address."""
    assert endpoint(environment) == wanted


@pytest.mark.parametrize(
    ("environment", "named"),
    [({"POD_IP": "here"}, "POD_IP"), ({"POD_IP": "::1", "KUBESLURM_KUBELET_PORT": "0"}, "KUBESLURM_KUBELET_PORT")],
)
def test_nonsense_in_the_environment_ends_the_start(environment: dict[str, str], named: str) -> None:
    """By the variable's name."""
    with pytest.raises(SystemExit, match=named):
        endpoint(environment)


@pytest.mark.parametrize(
    ("where", "addresses", "port"),
    [(("10.0.0.1", 10250), [{"type": "InternalIP", "address": "10.0.0.1"}], 10250), (None, [], 0)],
)
def test_the_node_says_where_its_logs_are(
    where: tuple[str, int] | None, addresses: list[dict[str, str]], port: int
) -> None:
    """By an address alone: a host name would be looked up. Without an endpoint, an older one is taken back."""
    now = datetime(2026, 12, 7, tzinfo=UTC)
    status = virtual.status(ready=True, message="", resources={}, version="", now=now, endpoint=where)
    assert (status["addresses"], status["daemonEndpoints"]["kubeletEndpoint"]["Port"]) == (addresses, port)


@pytest.mark.parametrize(("comment", "ours"), [("kubeslurm:u1/1", True), ("kubeslurm:u2/1", False), ("", False)])
def test_only_the_output_of_an_objects_own_job_is_sealed(comment: str, ours: bool) -> None:
    """By the submission key in the job's comment."""
    job = Job(job_id=7, states=JobStates.parse("RUNNING"), comment=comment)
    raw: dict[str, Any] = {"metadata": {"uid": "u1"}}
    status = {"containerStatuses": [{"containerID": "slurm://7/n/0-0", "state": {}}]}
    made = _sealed(raw, job, {"pod": status}, b"key")["pod"]["containerStatuses"][0]["containerID"]
    assert job_model.belongs(raw, job) is ours
    assert (log_places.opened(made, b"key", "u1", "pod") is not None) is ours
