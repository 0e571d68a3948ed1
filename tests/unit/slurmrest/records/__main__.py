"""Records what a real slurmrestd answers, one file per API version: `python -m tests.unit.slurmrest.records [SUITE]`.

Run by hand when a new version comes. The test of the adapters reads the files; so a change of shape between versions is
seen in a diff. What always holds: one failed job and one drained node are in each record, and times are left as found.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from slurmrest import Slurm, SlurmError, StaticToken, number
from slurmrest.versions import ADAPTERS
from tests.cluster.slurm import BareSlurm

CALLS = ("nodes/", "partitions/", "jobs/", "jobs/state/", "ping/", "diag/")
JOB = {
    "name": "failing",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/bin"],
    "tres_per_node": "gres/gpu:2",
    "memory_per_node": number(1000),
    "time_limit": number(5),
    "standard_output": "/tmp/%j.out",
}


def prepare(slurm: Slurm) -> None:
    """A drained node, and a job that has ended with 3."""
    slurm.update_node("n0", state=["DRAIN"], reason="disk", comment="seen")
    job_id = slurm.submit(JOB, "#!/bin/sh\nexit 3\n", key="recorded", user="alice").job_id
    deadline = time.monotonic() + 30
    while not slurm.job(job_id).states.finished:
        if time.monotonic() > deadline:
            raise TimeoutError("the job did not end")
        time.sleep(0.2)


def record(http: httpx.Client, version: str) -> dict[str, Any]:
    """Every call's answer, shortened to what the adapters may read."""
    answers = {call: http.get(f"/slurm/{version}/{call}").json() for call in CALLS}
    for job in answers["jobs/"]["jobs"]:
        job.pop("job_resources")
    for answer in answers.values():
        answer.pop("meta")
    return answers


def main(suite: str = "trixie") -> None:
    """Record all versions that this suite's slurmrestd and the client share."""
    folder = Path(__file__).parent
    with BareSlurm(nodes=2, suite=suite) as bare:
        token = bare.token("root")
        with Slurm(bare.url, StaticToken(token)) as slurm:
            prepare(slurm)
        transport = httpx.HTTPTransport(uds=bare.url.removeprefix("unix://"))
        headers = {"X-SLURM-USER-TOKEN": token}
        with httpx.Client(transport=transport, base_url="http://slurm", headers=headers, timeout=30) as http:
            for version in ADAPTERS:
                try:
                    with Slurm(bare.url, StaticToken(token), version=version) as slurm:
                        release = slurm.slurm_version()
                except SlurmError as error:
                    print(f"{version}: {error}")
                    continue
                text = json.dumps(record(http, version), indent=1, sort_keys=True)
                (folder / f"{version}-{release}.json").write_text(text + "\n")
                print(f"{version}: recorded from {release}")


if __name__ == "__main__":
    main(*sys.argv[1:])
