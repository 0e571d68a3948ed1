"""What a user may not do to others' jobs, and ids that begin again, on a real Slurm of each release and API version.

slurmctld 24.11.5 and 26.05.5 answer nobody any more once they have refused a cancel: each test ends with a question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmrest import (
    InvalidRequest,
    PermissionDenied,
    SignedTokens,
    Slurm,
    SlurmError,
    Unavailable,
    Unsupported,
    number,
)
from tests.cluster.slurm import BareSlurm
from tests.integration.pairs import slurms

pytestmark = pytest.mark.slurm

SLEEP = "#!/bin/sh\nexec sleep 300\n"
JOB: dict[str, Any] = {
    "name": "held",
    "current_working_directory": "/tmp",
    "environment": ["PATH=/usr/bin:/bin"],
    "standard_output": "/dev/null",
    "time_limit": number(10),
    "hold": True,
}


@pytest.fixture(scope="module")
def running() -> Iterator[Callable[[str], BareSlurm]]:
    """One Slurm per release."""
    with slurms(lambda suite: BareSlurm(nodes=1, gpus=8, suite=suite)) as of:
        yield of


@pytest.fixture
def root(pair: tuple[BareSlurm, str]) -> Iterator[Slurm]:
    """Root's client of it."""
    bare, version = pair
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as slurm:
        yield slurm
        slurm.cancel_jobs(filters={"user_name": "alice"})


ATTEMPTS: list[Callable[[Slurm, int], object]] = [
    lambda slurm, job: slurm.cancel(job, user="bob"),
    lambda slurm, job: slurm.signal(job, "USR1", user="bob"),
    lambda slurm, job: slurm.update_job(job, {"comment": "bob was here"}, user="bob"),
    lambda slurm, job: slurm.hold(job, user="bob"),
    lambda slurm, job: slurm.release(job, user="bob"),
    lambda slurm, job: slurm.requeue(job, user="bob"),
    lambda slurm, job: slurm.request("DELETE", f"job/{job}", user="bob"),
    lambda slurm, job: slurm.request("DELETE", "jobs/", body={"jobs": [str(job)]}, user="bob"),
    lambda slurm, job: slurm.request("POST", f"job/{job}", body={"comment": "bob was here"}, user="bob"),
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nobody_touches_anothers_job_and_slurmctld_goes_on(
    attempt: Callable[[Slurm, int], object], root: Slurm
) -> None:
    """Cancel, signal, update, hold, release and requeue, by their names and by raw requests."""
    job = root.submit(JOB, SLEEP, user="alice").job_id
    with pytest.raises((PermissionDenied, InvalidRequest, Unsupported)) as caught:
        attempt(root, job)
    assert not isinstance(caught.value, Unsupported) or "requeue" in str(caught.value)
    found = root.job(job)
    assert (found.states.finished, found.comment, found.state_reason) == (False, "", "JobHeldUser")


def test_of_a_list_only_the_own_jobs_are_cancelled(root: Slurm) -> None:
    """What became of the others is told, and slurmctld goes on."""
    alices, bobs = (root.submit(JOB, SLEEP, user=user).job_id for user in ("alice", "bob"))
    told = {one.job_id: one.number for one in root.cancel_jobs([alices, bobs], user="bob")}
    assert told == {alices: 2172, bobs: 0}
    assert [one.states.finished for one in root.job_states([alices, bobs])] == [False, True]
    root.cancel(alices, user="alice")
    assert root.job(alices).states.finished


def test_a_heterogeneous_job_and_an_array_are_cancelled_whole_by_their_owner(root: Slurm) -> None:
    """And by nobody else; each is found under its key."""
    parts = [JOB, JOB | {"comment": "second"}]
    mixed = root.submit(parts, SLEEP, key=f"mixed-{root.version()}", user="alice").job_id
    array = root.submit(JOB | {"array": "0-2"}, SLEEP, key=f"array-{root.version()}", user="alice").job_id
    assert root.submit(parts, SLEEP, key=f"mixed-{root.version()}", user="alice").job_id == mixed
    for job in (mixed, array):
        with pytest.raises(PermissionDenied):
            root.cancel(job, user="bob")
        root.cancel(job, user="alice")
        assert all(part.states.finished for part in root.job_parts(job))
    assert [part.het_job_offset for part in root.job_parts(mixed)] == [0, 1]


def test_jobs_under_ids_that_begin_again_are_found_under_their_keys(bare: BareSlurm, root: Slurm) -> None:
    """slurmctld has lost its state and given the ids to others, while a client remembers the old ones."""
    version = root.version()
    for name in ("a", "b", "c"):
        root.submit(JOB, SLEEP, key=f"old-{name}-{version}", user="alice")
    bare.stop("slurmctld")
    bare.run("sh", "-c", "rm -rf $(sed -n 's/^StateSaveLocation=//p' /etc/slurm/slurm.conf)/*")
    bare.start("slurmctld")
    with Slurm(bare.url, SignedTokens(bare.jwt_key), version=version) as other:
        made = [_patiently(other, f"new-{number_}-{version}") for number_ in range(20)]
    again = root.submit(JOB, SLEEP, key=f"new-3-{version}", user="alice")
    assert (again.job_id, again.existing) == (made[3], True)
    assert root.find(f"old-a-{version}") is None
    assert len(root.job_states()) == 20


def _patiently(slurm: Slurm, key: str) -> int:
    """Submit to a slurmctld that has just been started."""
    failure: SlurmError | None = None
    for _ in range(20):
        try:
            return slurm.submit(JOB, SLEEP, key=key, user="alice").job_id
        except Unavailable as error:
            failure = error
    raise AssertionError(f"slurmctld doesn't come back: {failure}")
