"""Submits each job once, whatever is lost on the way: a key in the job's comment, looked for before every request.

Both clients run `Submitter.submit` and `Submitter.find` under a lock per key. What always holds: as long as slurmctld
remembers a job (MinJobAge after its end), a second `submit` of its key finds it, in whatever state, in this process or
another. A job counts only if it belongs to the user who submits: comments are free text, anybody may write another
one's key. After a lost answer the key isn't sent again for `Timeouts.settle` seconds, since the first request may still
be on its way to slurmctld.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from slurmrest.calls import Calls
from slurmrest.core import USER, checked, refuse_nul
from slurmrest.errors import Ambiguous, InvalidRequest, NotFound, SlurmError
from slurmrest.messages import Pause, Steps
from slurmrest.states import JobBase
from slurmrest.values import Job, Submission

PREFIX: Final = "kubeslurm:"
KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,199}")
_ONE_BY_ONE: Final = 32
"""So many unread jobs are read each by itself; more of them in one answer."""


class Index:
    """Job ids already read, and the key of each (or None): what makes the second look cheap."""

    def __init__(self) -> None:
        self._keys: dict[int, str | None] = {}
        self._ids: dict[str, set[int]] = {}

    def unread(self, ids: Iterable[int]) -> list[int]:
        """Those of `ids` not read yet, in order. Ids that slurmctld has forgotten are forgotten here too."""
        current = set(ids)
        for job_id in self._keys.keys() - current:
            self.forget(job_id)
        return sorted(current - self._keys.keys())

    def learn(self, job_id: int, comment: str) -> None:
        """Remember what a job's comment says."""
        self.forget(job_id)
        key = comment.removeprefix(PREFIX) if comment.startswith(PREFIX) else None
        self._keys[job_id] = key
        if key is not None:
            self._ids.setdefault(key, set()).add(job_id)

    def forget(self, job_id: int) -> None:
        """As if it had never been read."""
        key = self._keys.pop(job_id, None)
        if key is not None:
            self._ids[key].discard(job_id)
            if not self._ids[key]:
                del self._ids[key]

    def ids(self, key: str) -> list[int]:
        """The jobs under a key, oldest first."""
        return sorted(self._ids.get(key, ()))


class Submitter:
    """Lookups and submissions over one `Core`."""

    def __init__(self, core: Calls, clock: Callable[[], float] = time.monotonic) -> None:
        self._core = core
        self._clock = clock
        self._index = Index()
        self._unsettled: dict[str, float] = {}

    def find(self, key: str, user: str | None = None) -> Steps[Job | None]:
        """The oldest job under this key (of this user, if given), or None. What Slurm refused is no job."""
        checked(KEY, key, "submission key")
        yield from self._learn()
        for job_id in self._index.ids(key):
            try:
                job = yield from self._core.job(job_id)
            except NotFound:
                self._index.forget(job_id)
                continue
            self._index.learn(job_id, job.comment)
            # slurmctld shows no name for a user it can't resolve just now.
            owned = user is None or job.user_name in (user, "")
            if job.comment == PREFIX + key and owned and not _was_refused(job):
                return job
        return None

    def submit(self, job: Mapping[str, Any], script: str, key: str, user: str) -> Steps[Submission]:
        """Submit, or find what is there already. Raises Ambiguous if the answer was lost and no job shows up."""
        body = _body(job, script, key, user)
        found = yield from self.find(key, user)
        if found is not None:
            self._unsettled.pop(key, None)
            return Submission(found.job_id, existing=True)
        self._refuse_unsettled(key)
        # Before the request, not after its failure: the caller may be cancelled in the middle of it.
        self._unsettled[key] = self._clock() + self._core.timeouts.settle
        try:
            submission = yield from self._post(body, user)
        except Ambiguous as error:
            self._unsettled[key] = self._clock() + self._core.timeouts.settle
            submission = yield from self._look(key, user, error)
        except SlurmError:
            del self._unsettled[key]
            raise
        self._unsettled.pop(key, None)
        self._index.learn(submission.job_id, PREFIX + key)
        return submission

    def _post(self, body: Mapping[str, Any], user: str) -> Steps[Submission]:
        answer = yield from self._core.call("POST", "job/submit", user=user, body=body)
        job_id = answer.payload.get("job_id")
        if not isinstance(job_id, int) or job_id <= 0:
            # What Slurm can't read (a text for a number) it drops with a warning, and then the job with it.
            why = "; ".join(answer.warnings) or "no reason given"
            raise InvalidRequest(f"Slurm made no job of it: {why}", method="POST", path="job/submit")
        return Submission(job_id, warnings=answer.warnings)

    def _look(self, key: str, user: str, error: Ambiguous) -> Steps[Submission]:
        """The answer to a POST was lost: the job may show up in a moment."""
        started = self._clock()
        for seconds in self._core.timeouts.looks:
            if self._clock() - started > self._core.timeouts.settle:
                break
            yield Pause(seconds)
            try:
                found = yield from self.find(key, user)
            except SlurmError as failure:
                error.add_note(f"looking for the job: {failure}")
                continue
            if found is not None:
                return Submission(found.job_id, existing=True)
        raise error

    def _refuse_unsettled(self, key: str) -> None:
        left = self._unsettled.get(key, 0.0) - self._clock()
        if left > 0:
            raise Ambiguous(f"an earlier request under this key may still arrive; not sent again for {left:.0f} s")
        self._unsettled.pop(key, None)

    def _learn(self) -> Steps[None]:
        """Read the comments of the jobs that came since the last time."""
        states = yield from self._core.job_states()
        unread = self._index.unread(one.job_id for one in states)
        if len(unread) > _ONE_BY_ONE:
            for job in (yield from self._core.jobs()):
                self._index.learn(job.job_id, job.comment)
            return
        for job_id in unread:
            try:
                job = yield from self._core.job(job_id)
            except NotFound:  # purged in between
                continue
            self._index.learn(job_id, job.comment)


def _was_refused(job: Job) -> bool:
    """Is this what a submission leaves behind that slurmctld refused with error 2014: a record that never ran?

    A job that waits and can't be placed any more stays PENDING with the same reason.
    """
    never_ran = not job.nodes and not job.batch_host and job.start_time == job.end_time
    return job.states.base is JobBase.FAILED and job.state_reason == "BadConstraints" and never_ran


def _body(job: Mapping[str, Any], script: str, key: str, user: str) -> dict[str, Any]:
    checked(KEY, key, "submission key")
    checked(USER, user, "user name")
    if "comment" in job:
        raise InvalidRequest("the job's comment is the key's place")
    body = {"script": script, "job": {**job, "comment": PREFIX + key}}
    refuse_nul(body)
    return body
