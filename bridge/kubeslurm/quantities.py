"""Kubernetes quantities (`120Gi`, `1500m`) as numbers that Slurm takes. Pure; used by the models and the translation.

Source: apimachinery's resource.Quantity. Memory becomes MiB and CPUs whole CPUs, both rounded up: a job must never get
less than its spec says.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)", re.ASCII)
_SCALE: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
MAX_LENGTH: Final = 64


def parse_quantity(value: str | int | float) -> Decimal:
    """The exact number; ValueError for what is no quantity or below zero."""
    text = str(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(f"{text[:MAX_LENGTH]!r} is no quantity, such as 8, 1500m or 120Gi")
    number, exponent, suffix = match.groups()
    if exponent and abs(int(exponent[1:])) > 30:
        raise ValueError(f"{text!r} is out of range")
    result = Decimal(number + (exponent or "")) * _SCALE[suffix or ""]
    if result < 0:
        raise ValueError(f"{text!r} is below zero")
    return result


def to_mib(value: str | int | float) -> int:
    """Bytes as whole MiB, rounded up."""
    return math.ceil(parse_quantity(value) / (1 << 20))


def to_cpus(value: str | int | float) -> int:
    """CPUs as whole CPUs, rounded up."""
    return math.ceil(parse_quantity(value))


def to_count(value: str | int | float) -> int:
    """A whole number of devices; ValueError for a fraction."""
    number = parse_quantity(value)
    if number != int(number):
        raise ValueError(f"{str(value)[:MAX_LENGTH]!r} is no whole number")
    return int(number)
