"""Calls to slurmctld itself: is it there, read the configuration again.

Used by scripts as `pyslurm.slurmctld`. What always holds: what no version of the REST API has a call for raises
PyslurmError naming the command that does it; what is in the configuration is told from API v0.0.45 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Record, field
from slurmrest.pyslurm._session import impossible, request, session, slurm_errors
from slurmrest.pyslurm.error import PyslurmError
from slurmrest.pyslurm.slurmctld.config import Config
from slurmrest.pyslurm.slurmctld.enums import ShutdownMode
from slurmrest.pyslurm.xcollections import entries


def _primary(raw: object) -> bool:
    """Of a yes or no, or of the mode (versions before v0.0.42)."""
    return raw == "primary" or raw is True


def _responding(raw: object) -> bool:
    return raw == "UP" or raw is True


class PingResponse(Record):
    """One slurmctld's answer. `index` is its place among the controllers, `latency` in microseconds."""

    __slots__ = ("index",)

    hostname = field("hostname", read=forms.text)
    is_primary = field("primary", "mode", read=_primary)
    is_responding = field("responding", "pinged", read=_responding)
    latency = field("latency", read=forms.count)

    def _prepare(self) -> None:
        self.index = 0

    def __repr__(self) -> str:
        return f"pyslurm.slurmctld.PingResponse({self.index}, {self.hostname!r})"

    def to_dict(self, recursive: bool = False) -> dict[str, object]:
        """All attributes by name."""
        return {**super().to_dict(recursive), "index": self.index}


def ping(index: int) -> PingResponse:
    """The answer of the slurmctld at this place: 0 is the primary one. Raises PyslurmError if there is none."""
    found = ping_all()
    if isinstance(index, bool) or not 0 <= index < len(found):
        raise PyslurmError(f"there is no slurmctld {index}: the cluster has {len(found)}")
    return found[index]


def ping_primary() -> PingResponse:
    """The answer of the primary slurmctld."""
    return ping(0)


def ping_backup() -> PingResponse:
    """The answer of the first backup. Raises PyslurmError if the cluster has none."""
    return ping(1)


def ping_all() -> list[PingResponse]:
    """The answers of all, the primary one first."""
    found = entries(PingResponse, request("GET", "ping/").payload, "pings", "")
    for index, one in enumerate(found):
        one.index = index
    return found


def reconfigure() -> None:
    """Have all daemons read their configuration files again."""
    with slurm_errors():
        session().reconfigure()


def shutdown(mode: ShutdownMode | int) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible(f"shutdown({ShutdownMode(mode).name})", "use scontrol shutdown")


def takeover(index: int = 1) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible(f"takeover({int(index)})", "use scontrol takeover")


def add_debug_flags(flags: Iterable[str]) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("add_debug_flags", "use scontrol setdebugflags +FLAG")


def remove_debug_flags(flags: Iterable[str]) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("remove_debug_flags", "use scontrol setdebugflags -FLAG")


def clear_debug_flags() -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("clear_debug_flags", "use scontrol setdebugflags -FLAG")


def get_debug_flags() -> list[str]:
    """The debug flags that are set. Needs API v0.0.45."""
    return Config.load().debug_flags


def set_log_level(level: str | int) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("set_log_level", "use scontrol setdebug LEVEL")


def get_log_level() -> str | None:
    """How much slurmctld logs, such as "info". Needs API v0.0.45."""
    return Config.load().slurmctld_log_level


def enable_scheduler_logging() -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("enable_scheduler_logging", "use scontrol schedloglevel 1")


def is_scheduler_logging_enabled() -> bool:
    """Does the scheduler log? Needs API v0.0.45."""
    return Config.load().scheduler_logging_enabled


def set_fair_share_dampening_factor(factor: int) -> Never:
    """REST can't: raises PyslurmError."""
    raise impossible("set_fair_share_dampening_factor", "use scontrol fsdampeningfactor FACTOR")


def get_fair_share_dampening_factor() -> int:
    """FairShareDampeningFactor. Needs API v0.0.45."""
    return Config.load().fair_share_dampening_factor
