"""`pyslurm.db.QualityOfService` and `QualitiesOfService`.

Used by scripts. What always holds: read only; the key is the name, or the id if `load` is told so.
"""

from __future__ import annotations

from typing import Any

from slurmrest.pyslurm import _session
from slurmrest.pyslurm._fields import Record, field, plain, setting
from slurmrest.pyslurm._forms import text, texts, to_word
from slurmrest.pyslurm.db._forms import identity
from slurmrest.pyslurm.db.connection import Connection, ask
from slurmrest.pyslurm.db.filters import QualityOfServiceFilter
from slurmrest.pyslurm.error import RPCError

_RENAMED = "v0.0.42"


class QualityOfService(Record):
    """One quality of service."""

    name = setting("name", read=text, write=to_word)
    description = field("description", read=text)
    id = field("id", read=identity)
    _preempt_modes = field("preempt.mode", read=texts)

    def __init__(self, name: str | None = None) -> None:
        super().__init__(**({} if name is None else {"name": name}))

    @classmethod
    def load(cls, name: str) -> QualityOfService:
        """The one with this name. Raises RPCError if there is none."""
        found = list(QualitiesOfService.load(QualityOfServiceFilter(names=[name])).values())
        if not found:
            raise RPCError(msg=f"there is no quality of service {name!r:.80}")
        return found[0]

    def __repr__(self) -> str:
        return f"pyslurm.db.QualityOfService({self.name!r})"


class QualitiesOfService(dict[Any, QualityOfService]):
    """Qualities of service by name."""

    @classmethod
    def load(
        cls,
        db_filter: QualityOfServiceFilter | None = None,
        db_connection: Connection | None = None,
        name_is_key: bool = True,
    ) -> QualitiesOfService:
        """Those that fit; without a filter all. `name_is_key=False`: by id."""
        asked = db_filter or QualityOfServiceFilter()
        version = _session.api_version()
        params = (
            {"with_deleted" if version < _RENAMED else "Include deleted QOS": "true"} if asked.with_deleted else None
        )
        found = [QualityOfService._of(raw, version) for raw in ask("qos/", "qos", params, db_connection)]
        found = [one for one in found if asked.takes(one.name, one.id, one.description, one._preempt_modes)]
        return cls((one.name if name_is_key else one.id, one) for one in found)

    def to_dict(self, recursive: bool = False) -> dict[Any, Any]:
        """A plain dict; `recursive`: of plain dicts."""
        return {key: plain(one, recursive) for key, one in self.items()}
