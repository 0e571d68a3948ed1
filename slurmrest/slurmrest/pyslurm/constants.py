"""Constants of pyslurm's face.

Used by scripts, and by the modules of this package. What always holds: values are what scripts compare with.
"""

from __future__ import annotations

from typing import Final

UNLIMITED: Final = "UNLIMITED"
"""How a limit reads that is none."""
