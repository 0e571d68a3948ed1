"""Reads a replica's output where it is: from a mirror pod to a program on its node, and its words to lines.

Used by `kubelet`. What always holds: a pod's output is looked for only where our own seal says (see `log_places`), or, for
the attempt before, where Slurm says that the job is this object's; nothing is read faster than the client takes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubeslurm import jobs, log_lines, log_places, mirror, names
from kubeslurm.api.nodeset import CONTAINER
from kubeslurm.errors import Refused
from kubeslurm.log_places import Place
from kubeslurm.log_requests import LogRequest
from kubeslurm_operator.kube import POD, PYTORCH_JOB, Kube, KubeError, Raw
from kubeslurm_operator.pod_exec import Stream, execute, stream
from kubeslurm_operator.readings import Readings
from kubeslurm_operator.slurm import nodes_of
from kubeslurm_operator.store import Key, Store
from slurmrest import JobBase, SlurmError

if TYPE_CHECKING:
    from kubeslurm_operator.runtimes import Runtime

FIRST_SECONDS = 30.0
SILENT_SECONDS = 60.0
"""The reader says something every ten."""
LOOK_SECONDS = 0.5
START_TRIES = 20
"""Half seconds that a job which runs may take to make its directory."""


@dataclass(frozen=True, slots=True)
class Source:
    """Whose output is read: a pod of `job`'s, and where that is."""

    runtime: Runtime
    place: Place
    missing: Refused
    """What to say where nothing is there any more."""

    @property
    def ended(self) -> bool:
        """Will no more be written? Not while nobody can tell."""
        states = self.runtime.snapshot.jobs
        if states is None:
            return False
        state = states.get(self.place.job_id)
        return state is None or state.finished or state.base is JobBase.PENDING


class Logs:
    """Finds and reads."""

    def __init__(self, kube: Kube, store: Store, runtimes: Mapping[Key, Runtime]) -> None:
        self._kube = kube
        self._store = store
        self._runtimes = runtimes

    def node(self, key: Key) -> str:
        """The virtual node of a pod; empty where it is on none of ours."""
        node = str(((self._store.get(POD, key) or {}).get("spec") or {}).get("nodeName") or "")
        return node if self._runtime(node) else ""

    async def find(self, key: Key, container: str, *, previous: bool) -> Source:
        """Where its output is. Refused: 404 where there is no such pod, 400 where there is no output to it."""
        pod = self._store.get(POD, key)
        runtime = self._runtime(self.node(key))
        if pod is None or runtime is None:
            raise Refused(404, f'pod "{key.name}" does not exist')
        if container not in [one.get("name") for one in pod["spec"].get("containers") or ()]:
            raise Refused(404, f'container "{container}" not found in pod "{key.name}"')
        what = f'container "{container}" in pod "{key.name}"'
        raw = self._owner(pod, what)
        if previous:
            missing = Refused(400, f"previous terminated {what} not found")
            return Source(runtime, await self._previous(raw, key.name, runtime, missing), missing)
        place = _place(pod, raw, runtime, what)
        days = "its node was made anew, or it is older than the node keeps it"
        return Source(runtime, place, Refused(400, f"{what}: its output on {place.host} is gone: {days}"))

    def _runtime(self, node: str) -> Runtime | None:
        return next((one for one in self._runtimes.values() if node and one.virtual.name == node), None)

    def _owner(self, pod: Raw, what: str) -> Raw:
        for one in pod["metadata"].get("ownerReferences") or ():
            raw = self._store.get(PYTORCH_JOB, Key(pod["metadata"]["namespace"], str(one.get("name"))))
            if one.get("kind") == "PyTorchJob" and raw and raw["metadata"].get("uid") == one.get("uid"):
                return raw
        raise Refused(400, f"{what}: the PyTorchJob that it belongs to is gone")

    async def _previous(self, raw: Raw, pod: str, runtime: Runtime, missing: Refused) -> Place:
        """Of the attempt before: there the same replica was at the same place in the gang."""
        readings = Readings(self._store)
        plan, _ = readings.plan(raw, runtime.key)
        attempt = jobs.attempt_of(raw) - 1
        index = next((one.place for one in mirror.replicas(plan) if one.pod == pod), None) if plan else None
        if plan is None or index is None or attempt < 1 or runtime.slurm is None:
            raise missing
        try:
            job = await runtime.slurm.find(f"{raw['metadata']['uid']}/{attempt}")
            hosts = await nodes_of(job, runtime.slurm) if job and jobs.belongs(raw, job) else ()
        except SlurmError as error:
            raise Refused(500, f"the attempt before can't be looked for: {error}") from None
        node = plan.node_of(index)
        if job is None or node >= len(hosts):
            raise missing
        place = mirror.output_of(plan, job.job_id, index, hosts[node])
        if place is None:
            raise missing
        return place

    @asynccontextmanager
    async def open(self, source: Source, request: LogRequest) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """The output as it is to be shown, piece by piece. Refused where it is not there, or its node not reached."""
        place, runtime = source.place, source.runtime
        tails = await self._tails(source, request.tail)
        tries = 0 if source.ended else START_TRIES
        argv = log_places.read_argv(place, follow=request.follow, since=request.since_epoch, tails=tails, tries=tries)
        try:
            async with stream(self._kube, runtime.key.namespace, place.host, CONTAINER, argv) as program:
                lines = _lines(program)
                if await anext(lines, None) != b"ok":
                    raise source.missing if program.code == log_places.GONE else _unread(place, program.code)
                yield _limited(_shown(source, program, lines, request), request.limit)
        except KubeError as error:
            raise _away(place, error) from None

    async def _tails(self, source: Source, most: int | None) -> list[int | None]:
        """How many of the last lines each file gives."""
        place, files = source.place, len(source.place.files)
        if most is None or most == 0 or files == 1:
            return [most] * files
        argv = log_places.count_argv(place, most)
        try:
            said = await execute(self._kube, source.runtime.key.namespace, place.host, CONTAINER, argv)
        except KubeError as error:
            raise _away(place, error) from None
        counts = [int(word) for word in said.stdout[: 2**12 * files].split() if word.isdigit() and len(word) < 16]
        if said.code == log_places.GONE:
            raise source.missing
        if len(counts) != files:
            raise _unread(place, said.code)
        return list(log_lines.shares(counts, most))


def _place(pod: Raw, raw: Raw, runtime: Runtime, what: str) -> Place:
    """By the pod's status, if we wrote that."""
    said = log_places.container_id(pod)
    if not said:
        waiting = (log_places.container_status(pod).get("state") or {}).get("waiting") or {}
        raise Refused(400, f"{what} is waiting to start: {waiting.get('reason') or 'SlurmPending'}")
    if not runtime.seal:
        raise Refused(503, f"{what}: the keys of SlurmCluster {runtime.key} are not there yet")
    place = log_places.opened(said, runtime.seal, str(raw["metadata"]["uid"]), pod["metadata"]["name"])
    if place is None:
        raise Refused(403, f"{what}: status.containerStatuses[0].containerID was not written by {names.MANAGER}")
    return place


def _unread(place: Place, code: int) -> Refused:
    return Refused(500, f"the output of Slurm job {place.job_id} on {place.host} can't be read (exit code {code})")


def _away(place: Place, error: KubeError) -> Refused:
    if error.gone:
        return Refused(400, f"the output of Slurm job {place.job_id} is gone: there is no pod {place.host} any more")
    return Refused(503, f"the output of Slurm job {place.job_id} on {place.host} can't be reached: {error}")


async def _lines(program: Stream) -> AsyncIterator[bytes]:
    held = bytearray()
    seconds = FIRST_SECONDS
    while piece := await program.read(seconds):
        seconds = SILENT_SECONDS
        held += piece
        *lines, rest = held.split(b"\n")
        held[:] = rest
        if len(held) > log_lines.MOST_FRAME:
            raise Refused(502, "the node's reader said what it never says")
        for line in lines:
            yield bytes(line)


async def _shown(
    source: Source, program: Stream, lines: AsyncIterator[bytes], request: LogRequest
) -> AsyncGenerator[bytes, None]:
    printer = log_lines.Printer(source.place.prefixes, timestamps=request.timestamps)
    watcher = asyncio.create_task(_tell_the_end(source, program)) if request.follow else None
    try:
        async for line in lines:
            frame = log_lines.read_frame(line, len(source.place.files))
            if frame is not None and (text := printer.take(frame)):
                yield text
        if text := printer.rest():
            yield text
        if program.code != 0:
            raise _unread(source.place, program.code)
    finally:
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)


async def _tell_the_end(source: Source, program: Stream) -> None:
    while not source.ended:  # noqa: ASYNC110 - the snapshot is exchanged by a loop of another's
        await asyncio.sleep(LOOK_SECONDS)
    await program.write(b"\n")


async def _limited(pieces: AsyncGenerator[bytes, None], most: int | None) -> AsyncGenerator[bytes, None]:
    left = most
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece[:left]
            if left is not None and (left := left - len(piece)) <= 0:
                return
