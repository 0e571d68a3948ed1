"""The names of mirror pods, as the training operator names its pods: `<job>-<role>-<index>`.

Pure; used by `mirror`, which makes the pods, and by `scripts`, whose tasks are told the names.
"""

from __future__ import annotations

import hashlib
from typing import Final

MAX_LABEL: Final = 63
MAX_NAME: Final = 253


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and a hash where it is too long."""
    if len(text) <= most:
        return text
    return f"{text[: most - 9].rstrip('-.')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def label(job: str) -> str:
    """The job's name as a label's value."""
    return shorten(job, MAX_LABEL)


def pod_prefix(job: str, role: str, replicas: int) -> str:
    """What the names of a role's pods begin with; the index follows."""
    longest = f"{job}-{role.lower()}-{max(0, replicas - 1)}"
    return f"{job if len(longest) <= MAX_NAME else shorten(job, MAX_NAME - 20)}-{role.lower()}-"
