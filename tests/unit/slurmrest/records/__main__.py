"""Records what a real slurmrestd answers, one file per API version: `python -m tests.unit.slurmrest.records [SUITE]`.

Run by hand when a new version comes. The tests of the adapters read the files; so a change of shape between versions is
seen in a diff. What always holds: each record has the answer to every reading call that its version offers, by the call's
path (slurmdbd's with "slurmdb/" before it), and the calls that slurmrestd serves with slurmdbd and without; something is in
each answer; times are left as found. See `prepare` for what that Slurm has been through.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

from slurmrest import Slurm, SlurmError, StaticToken, number
from slurmrest.endpoints import offered
from slurmrest.versions import ADAPTERS
from tests.cluster.slurm import BareSlurm

JOB: Final[dict[str, Any]] = {
    "name": "failing",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/bin"],
    "tres_per_node": "gres/gpu:2",
    "memory_per_node": number(1000),
    "time_limit": number(5),
    "standard_output": "/tmp/%j.out",
}
"""What jobs of the record ask for."""
NAMES: Final = {
    "node_name": "n0",
    "partition_name": "main",
    "reservation_name": "window",
    "account_name": "physics",
    "name": "alice",
    "qos": "gpu",
    "id": "ml",
    "cluster_name": "bare",
}
"""What stands in the paths of the calls about one thing; `job_id` is the failed job's, or for resources the running one."""
QUERIES: Final = {
    "slurmdb/association/": {"account": "physics", "user": "alice", "cluster": "bare"},
    "slurmdb/instance/": {"instance_id": "i-1"},
}
_CHANGING: Final = ("reconfigure/", "job/{job_id}/requeue")
_ENTRIES: Final = 3
_METHODS: Final = frozenset({"get", "post", "delete"})


def prepare(bare: BareSlurm, slurm: Slurm) -> dict[str, int]:
    """A drained node, a reservation, a licence in use, a QOS with limits, a coordinator, a wckey, an instance; a job that
    failed with 3, an array of two, a heterogeneous job of two, and one that runs. Gives the failed and the running one."""
    bare.run("sacctmgr", "-iQ", "add", "qos", "gpu", "MaxTRESPerUser=gres/gpu=16", "GrpTRES=cpu=64", "MaxWall=1-0")
    bare.run("sacctmgr", "-iQ", "modify", "user", "alice", "set", "qos+=gpu")
    bare.run("sacctmgr", "-iQ", "add", "coordinator", "account=physics", "names=bob")
    bare.run("sacctmgr", "-iQ", "add", "user", "alice", "wckeys=ml")
    instance = ("nodename=n1", "instanceid=i-1", "instancetype=m1")
    bare.run("scontrol", "update", *instance)
    bare.run("scontrol", "update", "nodename=n1", "state=down", "reason=instance")
    bare.run("scontrol", "update", "nodename=n1", "state=resume")
    window = ("starttime=now+7days", "duration=60", "nodes=n0", "users=alice")
    bare.run("scontrol", "create", "reservation", "reservationname=window", *window)
    script = "#!/bin/sh\nexit 3\n"
    failed = slurm.submit(JOB, script, key="recorded", user="alice").job_id
    ended(slurm, failed)
    ended(slurm, slurm.submit(JOB | {"array": "0-1", "wckey": "ml"}, script, user="alice").job_id)
    ended(slurm, slurm.submit([JOB, JOB | {"tres_per_node": "gres/gpu:1"}], script, user="bob").job_id)
    slurm.update_node("n0", state=["DRAIN"], reason="disk", comment="seen")
    running = JOB | {"name": "running", "licenses": "matlab:2", "qos": "gpu"}
    job_id = slurm.submit(running, "#!/bin/sh\nexec sleep 300\n", user="alice").job_id
    until(lambda: slurm.job(job_id).states.base == "RUNNING")
    until(lambda: bare.run("sacct", "-anXPo", "state").stdout.split().count("FAILED") >= _ENTRIES)
    return {"failed": failed, "running": job_id}


def ended(slurm: Slurm, job_id: int) -> None:
    """Wait for the end of all parts of a job."""
    until(lambda: all(part.states.finished for part in slurm.job_parts(job_id)))


def until(done: Callable[[], bool]) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + 60
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("that Slurm did not come to the state to be recorded")
        time.sleep(0.2)


def record(http: httpx.Client, version: str, jobs: dict[str, int]) -> dict[str, Any]:
    """Every reading call's answer, shortened, by its path."""
    answers: dict[str, Any] = {}
    calls = served(http)
    for endpoint in offered(version):
        known = f"GET /{endpoint.api}/{version}/{endpoint.path}" in calls
        if not known or endpoint.method != "GET" or endpoint.path in _CHANGING:
            continue
        label = endpoint.path if endpoint.api == "slurm" else f"slurmdb/{endpoint.path}"
        job_id = jobs["running" if endpoint.path.startswith("resources") else "failed"]
        path = endpoint.path.format(**NAMES, job_id=job_id)
        answer = http.get(f"/{endpoint.api}/{version}/{path}", params=QUERIES.get(label))
        if answer.status_code != httpx.codes.OK:
            print(f"{version} {label}: {answer.status_code} {answer.text[:300]}")
            continue
        answers[label] = shortened(answer.json())
    return answers


def shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is the same in every answer, what is large, and most of what is only more of the same."""
    answer.pop("meta")
    for job in answer.get("jobs", ()):
        job.pop("job_resources", None)
        job.pop("submit_line", None)
    if (
        "associations" in answer and "tres" in answer
    ):  # slurmdbd's whole configuration: each list is a call of its own, too
        return {name: value[:_ENTRIES] for name, value in answer.items()}
    return answer


def served(http: httpx.Client) -> list[str]:
    """All calls in /openapi/v3: "GET /slurm/v0.0.42/ping/" ..."""
    paths = http.get("/openapi/v3").json()["paths"]
    calls = [(method, path) for path, methods in paths.items() for method in methods if method in _METHODS]
    return sorted(f"{method.upper()} {path}" for method, path in calls)


def connected(bare: BareSlurm) -> httpx.Client:
    """A plain client of that slurmrestd, as root."""
    transport = httpx.HTTPTransport(uds=bare.url.removeprefix("unix://"))
    headers = {"X-SLURM-USER-TOKEN": bare.token("root")}
    return httpx.Client(transport=transport, base_url="http://slurm", headers=headers, timeout=30)


def main(suite: str = "trixie") -> None:
    """Record all versions that this suite's slurmrestd and the client share."""
    folder = Path(__file__).parent
    with BareSlurm(nodes=0, suite=suite) as bare, connected(bare) as http:
        alone = served(http)
    lines = ["Licenses=matlab:10", "SchedulerParameters=bf_interval=1,batch_sched_delay=0"]
    with BareSlurm(nodes=2, suite=suite, accounting=True, config_lines=lines) as bare, connected(bare) as http:
        token = StaticToken(bare.token("root"))
        with Slurm(bare.url, token) as slurm:
            jobs = prepare(bare, slurm)
        both = served(http)
        for version in ADAPTERS:
            try:
                with Slurm(bare.url, token, version=version) as slurm:
                    release = slurm.slurm_version()
            except SlurmError as error:
                print(f"{version}: {error}")
                continue
            ours = {
                name: [one for one in calls if f"/{version}/" in one]
                for name, calls in (("served", both), ("served without slurmdbd", alone))
            }
            answers = record(http, version, jobs) | ours
            text = json.dumps(answers, indent=1, sort_keys=True)
            (folder / f"{version}-{release}.json").write_text(text + "\n")
            print(f"{version}: recorded from {release}, {len(text) // 1024} KB")


if __name__ == "__main__":
    main(*sys.argv[1:])
