"""Bringing materials: from the job's own namespace, to each node once, and nothing said of what was brought."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm_operator import materials, pod_exec
from kubeslurm_operator.events import Events
from kubeslurm_operator.kube import Kind, Kube, KubeError
from kubeslurm_operator.materials import Bringer
from slurmrest import Job, JobStates
from tests.unit import examples
from tests.unit.examples import Raw, only_master

SECRET: Raw = {"data": {"token": "dDBrM24="}}
JOB = Job(job_id=7, states=JobStates.parse("RUNNING"))
RAW: Raw = {"metadata": {"name": "x", "namespace": "research", "uid": "u"}}


def plan() -> JobPlan:
    """A job with a variable of a Secret."""

    def change(raw: Raw) -> None:
        reference = {"secretKeyRef": {"name": "hub", "key": "token"}}
        only_master(raw)["env"] = [{"name": "TOKEN", "valueFrom": reference}]

    return read_pytorchjob(examples.training(change), examples.cluster(), [examples.nodeset()])


class Api:
    """The few calls of the API server that are needed; notes what was asked for."""

    def __init__(self, secret: Raw | None) -> None:
        self.secret = secret
        self.asked: list[tuple[str, str]] = []
        self.said: list[str] = []

    async def find(self, kind: Kind, namespace: str, name: str) -> Raw | None:
        self.asked.append((namespace, f"{kind.plural}/{name}"))
        return self.secret

    async def warning(self, about: Raw, reason: str, message: str) -> None:
        self.said.append(f"{reason}: {message}")


class Nodes:
    """slurmd pods; `broken` ones don't answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *broken: str) -> None:
        self.broken, self.got = set(broken), list[str]()
        monkeypatch.setattr(materials, "execute", self._execute)

    async def _execute(self, kube: Any, namespace: str, pod: str, *_: Any, stdin: bytes, timeout: float) -> Any:  # noqa: ASYNC109
        assert (namespace, b"t0k3n" in stdin) == ("slurm", True)
        self.got.append(pod)
        return pod_exec.Result(b"t0k3n", b"t0k3n", 1 if pod in self.broken else 0)


def bringer(api: Api) -> Bringer:
    """One that speaks to the stand-in."""
    return Bringer(cast(Kube, api), cast(Events, api))


async def test_it_is_brought_to_each_node_of_a_start_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a requeue, again."""
    nodes, one = Nodes(monkeypatch), bringer(api := Api(SECRET))
    assert one.bare(plan(), JOB, ["n0", "n1"]) == ("n0", "n1")
    await one.bring(RAW, plan(), 7, 0, ["n0", "n1"], "slurm")
    assert one.bare(plan(), JOB, ["n0", "n1"]) == ()
    again = Job(job_id=7, states=JOB.states, restart_count=1)
    assert one.bare(plan(), again, ["n0"]) == ("n0",)
    assert sorted(nodes.got) == ["n0", "n1"]
    assert set(api.asked) == {("research", "secrets/hub")}


async def test_a_node_that_fails_is_tried_again_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others have it; the error and the log hold nothing of what a program there may have said."""
    caplog.set_level(logging.DEBUG)
    nodes, one = Nodes(monkeypatch, "n1"), bringer(Api(SECRET))
    with pytest.raises(KubeError, match="n1") as caught:
        await one.bring(RAW, plan(), 7, 0, ["n0", "n1"], "slurm")
    assert "t0k3n" not in str(caught.value) + caplog.text
    assert one.bare(plan(), JOB, ["n0", "n1"]) == ("n1",)
    nodes.broken.clear()
    await one.bring(RAW, plan(), 7, 0, ["n1"], "slurm")
    assert one.bare(plan(), JOB, ["n0", "n1"]) == ()


async def test_what_went_away_meanwhile_is_told_and_not_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends by itself if it does not come back."""
    nodes, one = Nodes(monkeypatch), bringer(api := Api(None))
    assert await one.missing(RAW, plan()) == ("Secret hub",)
    with pytest.raises(KubeError):
        await one.bring(RAW, plan(), 7, 0, ["n0"], "slurm")
    assert nodes.got == []
    assert api.said == ["MaterialsMissing: waits for Secret hub"]


async def test_nothing_is_asked_for_a_job_that_goes_away() -> None:
    """It must be able to, whatever becomes of its Secrets."""
    one = bringer(api := Api(None))
    going = {"metadata": RAW["metadata"] | {"deletionTimestamp": "2026-12-01T12:00:00Z"}}
    assert await one.missing(going, plan()) == ()
    assert api.asked == []


async def test_a_job_without_materials_asks_for_nothing() -> None:
    """No call at all."""
    plain = read_pytorchjob(examples.training(), examples.cluster(), [examples.nodeset()])
    one = bringer(api := Api(SECRET))
    assert await one.missing(RAW, plain) == ()
    assert one.bare(plain, JOB, ["n0"]) == ()
    assert api.asked == []
