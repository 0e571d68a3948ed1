"""Long lists of a real Slurm, with what its users may put into them."""

from __future__ import annotations

import pytest

from slurmrest import SignedTokens, Slurm
from tests.cluster.slurm import BareSlurm

pytestmark = pytest.mark.slurm

NAMES = {b"a\xffb": "a\ufffdb", b"n\nl": "n\nl", b'q"\\': 'q"\\', b"x\x01y": "x\x01y", "ü\u2028".encode(): "ü\u2028"}
SUBMIT = 'exec sbatch --parsable --hold --output=/dev/null --job-name="$(printf "%b" "$1")" --wrap=true'


def test_no_name_that_a_user_can_give_makes_the_list_unreadable(slurm: BareSlurm) -> None:
    """slurmrestd writes a name's bytes as they are, even if they are no UTF-8 and its answer then no JSON."""
    ids = {}
    for name, read in NAMES.items():
        octal = "".join(f"\\0{byte:03o}" for byte in name)
        ids[int(slurm.run("sh", "-c", SUBMIT, "submit", octal, user="alice").stdout)] = read
    with Slurm(slurm.url, SignedTokens(slurm.jwt_key)) as client:
        assert {job.job_id: job.name for job in client.jobs() if job.job_id in ids} == ids
        assert {job_id: client.job(job_id).name for job_id in ids} == ids
        answer = client.request("GET", "jobs/")
    assert {job["job_id"]: job["name"] for job in answer.payload["jobs"] if job["job_id"] in ids} == ids


def test_many_jobs_read_the_same_piece_by_piece_as_at_once(slurm: BareSlurm) -> None:
    """An array of 900 makes an answer of many pieces."""
    array = slurm.run("sbatch", "--parsable", "--hold", "--array=1-900", "--wrap=true", user="alice").stdout.strip()
    with Slurm(slurm.url, SignedTokens(slurm.jwt_key)) as client:
        states = [one for one in client.job_states() if one.job_id == int(array)]
        assert sorted(one.task or 0 for one in states) == list(range(1, 901))
        whole = client.request("GET", "jobs/").payload["jobs"]
        assert [job.raw["job_id"] for job in client.jobs(raw=True)] == [job["job_id"] for job in whole]
