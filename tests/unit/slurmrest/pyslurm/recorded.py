"""A slurmrestd that answers from the records of one version, remembers what it was asked, and refuses what it is told to.

Used by the unit tests of pyslurm's face. A change is answered with "no error" and changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from slurmrest import Slurm, StaticToken, Timeouts
from tests.unit.slurmrest.fake import failed, reply

RECORDS = sorted(Path(__file__).parent.parent.joinpath("records").glob("v*.json"))
NAMES = [path.stem for path in RECORDS]


class Recorded:
    """One recorded version, such as "v0.0.42-24.11.5"."""

    def __init__(self, name: str) -> None:
        self.version = name.partition("-")[0]
        path = next(path for path in RECORDS if path.stem == name)
        self.answers: dict[str, Any] = json.loads(path.read_text())
        self.requests: list[tuple[str, str, Any]] = []
        self.refusals: dict[str, httpx.Response] = {}
        self.effects: dict[str, dict[str, Any]] = {}

    def client(self) -> Slurm:
        """A client of it that speaks this version."""
        transport = httpx.MockTransport(self._answer)
        return Slurm(
            "http://slurm:6820", StaticToken("secret"), version=self.version, timeouts=Timeouts(), transport=transport
        )

    def refuse(self, tail: str, number: int) -> None:
        """Answer this call with Slurm's error of this number from now on."""
        self.refusals[tail] = failed(number)

    def changes(self) -> list[tuple[str, str, Any]]:
        """Method, path and body of each request but reads."""
        return [one for one in self.requests if one[0] != "GET"]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        _, api, _, tail = request.url.path.split("/", 3)
        tail = f"slurmdb/{tail}" if api == "slurmdb" else tail
        body = json.loads(request.content) if request.content else None
        self.requests.append((request.method, tail, body))
        if tail in self.refusals:
            return self.refusals[tail]
        found = self.answers.get(tail) or self._one(tail) if request.method == "GET" else self.effects.get(tail)
        if "WithAssociations" in request.url.params:
            found = self._accounts_with_ids()
        meta = {"slurm": {"release": "24.11.5", "cluster": "recorded"}}
        return reply(200, {"errors": [], "warnings": [], **(found or {}), "meta": meta})

    def _one(self, tail: str) -> dict[str, Any] | None:
        """The entry of this name in the answer that lists all: "node/n0" out of "nodes/"."""
        kind, _, name = tail.partition("/")
        entries = self.answers.get(f"{kind}s/", {}).get(f"{kind}s", [])
        found = [one for one in entries if name in (one["name"], str(one.get("job_id")))]
        return {f"{kind}s": found} if found else None

    def _accounts_with_ids(self) -> dict[str, Any]:
        """The accounts with their associations, which the records leave out: with an id for each that there is."""
        told = self.answers["slurmdb/associations/"]["associations"]
        numbered = [{**one, "id": number} for number, one in enumerate(told, start=1)]
        accounts = self.answers["slurmdb/accounts/"]["accounts"]
        own = {one["name"]: [made for made in numbered if made["account"] == one["name"]] for one in accounts}
        return {"accounts": [{**one, "associations": own[one["name"]]} for one in accounts]}
