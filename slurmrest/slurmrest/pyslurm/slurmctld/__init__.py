"""slurmctld itself: ping, diag, configuration.

Used by scripts as `pyslurm.slurmctld`. What always holds: what REST can't do raises PyslurmError, with the command that
does it.
"""

from __future__ import annotations

from slurmrest.pyslurm.slurmctld.base import (
    PingResponse,
    add_debug_flags,
    clear_debug_flags,
    enable_scheduler_logging,
    get_debug_flags,
    get_fair_share_dampening_factor,
    get_log_level,
    is_scheduler_logging_enabled,
    ping,
    ping_all,
    ping_backup,
    ping_primary,
    reconfigure,
    remove_debug_flags,
    set_fair_share_dampening_factor,
    set_log_level,
    shutdown,
    takeover,
)
from slurmrest.pyslurm.slurmctld.config import AccountingGatherConfig, CgroupConfig, Config, MPIConfig
from slurmrest.pyslurm.slurmctld.enums import ShutdownMode
from slurmrest.pyslurm.slurmctld.stats import (
    BackfillExitStatistics,
    RPCPending,
    RPCPendingStatistics,
    RPCType,
    RPCTypeStatistics,
    RPCUser,
    RPCUserStatistics,
    ScheduleExitStatistics,
    Statistics,
    diag,
)

__all__ = [
    "AccountingGatherConfig",
    "BackfillExitStatistics",
    "CgroupConfig",
    "Config",
    "MPIConfig",
    "PingResponse",
    "RPCPending",
    "RPCPendingStatistics",
    "RPCType",
    "RPCTypeStatistics",
    "RPCUser",
    "RPCUserStatistics",
    "ScheduleExitStatistics",
    "ShutdownMode",
    "Statistics",
    "add_debug_flags",
    "clear_debug_flags",
    "diag",
    "enable_scheduler_logging",
    "get_debug_flags",
    "get_fair_share_dampening_factor",
    "get_log_level",
    "is_scheduler_logging_enabled",
    "ping",
    "ping_all",
    "ping_backup",
    "ping_primary",
    "reconfigure",
    "remove_debug_flags",
    "set_fair_share_dampening_factor",
    "set_log_level",
    "shutdown",
    "takeover",
]
