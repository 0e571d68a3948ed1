"""Settings of all unit tests: generated examples take as long as they take, since a busy machine is no fault of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kubeslurm", deadline=None)
settings.load_profile("kubeslurm")
