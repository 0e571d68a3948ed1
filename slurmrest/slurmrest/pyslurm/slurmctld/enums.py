"""Words of slurmctld's calls. Used by scripts."""

from __future__ import annotations

from enum import IntEnum


class ShutdownMode(IntEnum):
    """What to shut down: everything, everything with a core file, slurmctld alone."""

    ALL = 0
    CORE_FILE = 1
    CONTROLLER_ONLY = 2
