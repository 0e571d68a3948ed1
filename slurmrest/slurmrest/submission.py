"""Submits each job once, whatever is lost on the way: a key in the job's comment, looked for before every request.

Both clients run `Submitter.learn`, once for all who wait, and then `submit` under a lock per key, or `find`. What always
holds: as long as slurmctld remembers a job (MinJobAge after its end), a second `submit` of its key finds it, in whatever
state, in this process or another. A job counts only if it belongs to the user who submits: comments are free text,
anybody may write another one's key. After a lost answer the key isn't sent again for `Timeouts.settle` seconds, since the
first request may still be on its way to slurmctld.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from slurmrest.calls import Calls
from slurmrest.core import checked, refuse_unwritable
from slurmrest.errors import Ambiguous, InvalidRequest, NotFound, SlurmError
from slurmrest.job_calls import made_job
from slurmrest.messages import Pause, Steps
from slurmrest.states import JobBase
from slurmrest.values import Job, Submission

Description: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A job as the API describes it; several make a heterogeneous job of so many parts, the first one its leader."""
PREFIX: Final = "kubeslurm:"
KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,199}")
_ONE_BY_ONE: Final = 32
"""So many unread jobs are read each by itself; more of them in one answer."""


class Index:
    """Job ids already read, with the key (or None) and the time of submission of each: makes the second look cheap.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[int, tuple[str | None, int | None]] = {}
        self._ids: dict[str, set[int]] = {}

    def known(self) -> frozenset[int]:
        """The ids that were read."""
        with self._lock:
            return frozenset(self._read)

    def learn(self, job_id: int, comment: str, submitted: int | None = None) -> None:
        """Remember what a job's comment says."""
        key = comment.removeprefix(PREFIX) if comment.startswith(PREFIX) else None
        with self._lock:
            self._forget(job_id)
            self._read[job_id] = key, submitted
            if key is not None:
                self._ids.setdefault(key, set()).add(job_id)

    def forget(self, job_ids: Iterable[int]) -> None:
        """As if they had never been read."""
        with self._lock:
            for job_id in job_ids:
                self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        key, _ = self._read.pop(job_id, (None, None))
        if key is not None:
            self._ids[key].discard(job_id)
            if not self._ids[key]:
                del self._ids[key]

    def is_another(self, job: Job) -> bool:
        """Has this job the id of one that was read, without being that one?"""
        with self._lock:
            key, submitted = self._read.get(job.job_id, (None, job.submit_time))
        if submitted is None:  # ours, and so far only its id is known
            return job.comment != PREFIX + (key or "")
        return submitted != job.submit_time

    def ids(self, key: str) -> list[int]:
        """The jobs under a key, oldest first."""
        with self._lock:
            return sorted(self._ids.get(key, ()))


class Submitter:
    """Lookups and submissions over one `Core`."""

    def __init__(self, core: Calls, clock: Callable[[], float] = time.monotonic) -> None:
        self._core = core
        self._clock = clock
        self._index = Index()
        self._unsettled: dict[str, float] = {}

    def find(self, key: str, user: str | None = None) -> Steps[Job | None]:
        """The oldest job under this key (of this user, if given) of those that `learn` has read, or None.

        What Slurm refused is no job.
        """
        for job_id in self._index.ids(key):
            try:
                job = yield from self._core.job(job_id)
            except NotFound:
                self._index.forget([job_id])
                continue
            self._index.learn(job_id, job.comment, job.submit_time)
            # slurmctld shows no name for a user it can't resolve just now.
            owned = user is None or job.user_name in (user, "")
            if job.comment == PREFIX + key and owned and not _was_refused(job):
                return job
        return None

    def submit(self, body: Mapping[str, Any], key: str, user: str) -> Steps[Submission]:
        """Send `body`, or find what is there already. Raises Ambiguous if the answer was lost and no job shows up."""
        found = yield from self.find(key, user)
        if found is not None:
            self._unsettled.pop(key, None)
            return Submission(found.job_id, existing=True)
        self._refuse_unsettled(key)
        # Before the request, not after its failure: the caller may be cancelled in the middle of it.
        self._unsettled[key] = self._clock() + self._core.timeouts.settle
        try:
            submission = yield from self.post(body, user)
        except Ambiguous as error:
            self._unsettled[key] = self._clock() + self._core.timeouts.settle
            submission = yield from self._look(key, user, error)
        except SlurmError:
            del self._unsettled[key]
            raise
        self._unsettled.pop(key, None)
        self._index.learn(submission.job_id, PREFIX + key)
        return submission

    def post(self, body: Mapping[str, Any], user: str | None) -> Steps[Submission]:
        """One request, and never a second one. Raises Ambiguous when its answer is lost."""
        answer = yield from self._core.call("POST", "job/submit", user=user, body=body)
        return Submission(made_job(answer, "job/submit"), warnings=answer.warnings)

    def _look(self, key: str, user: str, error: Ambiguous) -> Steps[Submission]:
        """The answer to a POST was lost: the job may show up in a moment."""
        started = self._clock()
        for seconds in self._core.timeouts.looks:
            if self._clock() - started > self._core.timeouts.settle:
                break
            yield Pause(seconds)
            try:
                yield from self.learn()
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

    def learn(self) -> Steps[None]:
        """Read the comments of the jobs that came since the last time.

        slurmctld gives ids anew when its state is lost or restored, or its counter wraps. A job read before is then not
        the one that has its id now, and the newest of those read tells: it is gone, or it is another one.
        """
        known = self._index.known()
        current = {one.job_id for one in (yield from self._core.job_states())}
        if known and not (yield from self._still_there(max(known), current)):
            self._index.forget(known)
        self._index.forget(known - current)
        unread = sorted(current - self._index.known())
        if len(unread) > _ONE_BY_ONE:
            for job in (yield from self._core.jobs()):
                self._index.learn(job.job_id, job.comment, job.submit_time)
            return
        for job_id in unread:
            try:
                job = yield from self._core.job(job_id)
            except NotFound:  # purged in between
                continue
            self._index.learn(job_id, job.comment, job.submit_time)

    def _still_there(self, job_id: int, current: set[int]) -> Steps[bool]:
        if job_id not in current:
            return False
        try:
            job = yield from self._core.job(job_id)
        except NotFound:
            return False
        if self._index.is_another(job):
            return False
        self._index.learn(job_id, job.comment, job.submit_time)
        return True


def checked_key(key: str) -> str:
    """A key, or InvalidRequest: it stands in a comment."""
    return checked(KEY, key, "submission key")


def described(job: Description, script: str, key: str | None) -> dict[str, Any]:
    """The body of a submission; with a key, that is the comment of the job, or of a heterogeneous one's leader."""
    parts = [dict(job)] if isinstance(job, Mapping) else [dict(part) for part in job]
    if not parts:
        raise InvalidRequest("a heterogeneous job without a part")
    if key is not None:
        checked_key(key)
        if "comment" in parts[0]:
            raise InvalidRequest("the job's comment is the key's place")
        parts[0]["comment"] = PREFIX + key
    body = {"script": script, **({"job": parts[0]} if isinstance(job, Mapping) else {"jobs": parts})}
    refuse_unwritable(body)
    return body


def _was_refused(job: Job) -> bool:
    """Is this what a submission leaves behind that slurmctld refused with error 2014: a record that never ran?

    A job that waits and can't be placed any more stays PENDING with the same reason.
    """
    never_ran = not job.nodes and not job.batch_host and job.start_time == job.end_time
    return job.states.base is JobBase.FAILED and job.state_reason == "BadConstraints" and never_ran
