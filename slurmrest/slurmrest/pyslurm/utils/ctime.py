"""Slurm's texts for times: durations ("1-12:00:00") and dates ("2026-12-01T06:00:00", "now+1hour", "noon").

Used by scripts as `pyslurm.utils`, and by every attribute that takes a time. What always holds: `UNLIMITED` and None
come through both ways, and a text that is no time raises ValueError. Forms: sbatch(1), options --time and --begin.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import Final

from slurmrest.pyslurm.constants import UNLIMITED

_ENDLESS: Final = frozenset({"UNLIMITED", "INFINITE", "-1"})
_CLOCK: Final = re.compile(r"(?:(?P<days>\d+)-(?P<h>\d+)(?::(?P<m>\d+)(?::(?P<s>\d+))?)?|(?P<parts>\d+(?::\d+){0,2}))")
_RELATIVE: Final = re.compile(r"now(?:\s*([+-])\s*(\d+)\s*([a-z]*))?")
_TIME: Final = r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*(am|pm)?"
_TIME_ONLY: Final = re.compile(_TIME)
_DATE: Final = re.compile(
    r"(?:(\d{4})-(\d{1,2})-(\d{1,2})|(\d{1,2})[/.](\d{1,2})(?:[/.](\d{2}|\d{4}))?|(\d\d)(\d\d)(\d\d))"
)
_NAMED: Final = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}


def timestr_to_secs(timestr: str | int | None) -> int | str | None:
    """Seconds of a duration: "90" (minutes), "90:30", "1:30:00", "2-12", "2-12:30", "2-12:30:00"; a plain int is seconds.

    >>> timestr_to_secs("1-00:00:30")
    86430
    """
    if timestr is None or isinstance(timestr, int):
        return timestr
    text = timestr.strip().upper()
    if text in _ENDLESS:
        return UNLIMITED
    found = _CLOCK.fullmatch(text)
    if not found:
        raise ValueError(f"{timestr!r:.80} is not a duration")
    if found["days"]:
        return 86400 * int(found["days"]) + 3600 * int(found["h"]) + 60 * int(found["m"] or 0) + int(found["s"] or 0)
    parts = [int(part) for part in found["parts"].split(":")]
    if len(parts) < 3:  # minutes, or minutes:seconds
        parts = [0, *parts, 0][:3]
    return 3600 * parts[0] + 60 * parts[1] + parts[2]


def timestr_to_mins(timestr: str | int | None) -> int | str | None:
    """As `timestr_to_secs`, in minutes: begun ones count, as sbatch counts them; a plain int is minutes."""
    if isinstance(timestr, int):
        return timestr
    seconds = timestr_to_secs(timestr)
    return -(-seconds // 60) if isinstance(seconds, int) else seconds


def secs_to_timestr(secs: int | str | None, default: str | None = None) -> str | None:
    """The text of so many seconds, as Slurm prints it; `default` for None.

    >>> secs_to_timestr(86430)
    '1-00:00:30'
    """
    if secs is None:
        return default
    if isinstance(secs, str):
        return UNLIMITED
    days, rest = divmod(secs, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def mins_to_timestr(mins: int | str | None, default: str | None = None) -> str | None:
    """The text of so many minutes, as Slurm prints it; `default` for None."""
    return secs_to_timestr(mins * 60 if isinstance(mins, int) else mins, default)


def date_to_timestamp(date: str | int | float | datetime | None, on_nodate: int | None = None) -> int | None:
    """Seconds since 1970 of a date, in this machine's time zone; `on_nodate` for None and "".

    Takes what `sbatch --begin` takes: "2026-12-01T06:00[:00]", "12/01/26-06:00", "06:00", "noon", "tomorrow", "today",
    "now+2hours"; a time without a date is the next one of that name.
    """
    if date is None or date == "":
        return on_nodate
    if isinstance(date, datetime):
        return int(date.timestamp())
    if isinstance(date, (int, float)):
        return int(date)
    moment = _moment(date.strip().lower(), datetime.now().replace(microsecond=0))
    if moment is None:
        raise ValueError(f"{date!r:.80} is not a date")
    return int(moment.timestamp())


def timestamp_to_date(timestamp: int | None, on_notime: str | None = None) -> str | None:
    """The text of a time ("2026-12-01T06:00:00", this machine's time zone); `on_notime` for None."""
    if timestamp is None:
        return on_notime
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(timestamp))


def _moment(text: str, now: datetime) -> datetime | None:
    relative = _RELATIVE.fullmatch(text)
    if relative:
        return _moved(now, relative[1] or "+", relative[2] or "0", relative[3])
    try:
        return _absolute(text, now)
    except ValueError:  # 25:00, the 31st of June
        return None


def _moved(now: datetime, sign: str, count: str, unit: str | None) -> datetime | None:
    name = (unit or "").rstrip("s") or "second"
    seconds = next((size for word, size in _UNITS.items() if word.startswith(name)), None)
    if seconds is None or len(count) > 12:
        return None
    step = timedelta(seconds=int(count) * seconds)
    try:
        return now + step if sign == "+" else now - step
    except OverflowError:
        return None


def _absolute(text: str, now: datetime) -> datetime | None:
    clock = _clock(text)
    if clock is not None:
        at = now.replace(hour=clock[0], minute=clock[1], second=clock[2])
        return at if at > now else at + timedelta(days=1)
    # "2026-12-01T06:00" and "120126-06:00": the sign between a date and its time.
    for index in [place for place, sign in enumerate(text) if sign in "t- "] + [len(text)]:
        day, clock = _day(text[:index], now), _clock(text[index + 1 :])
        if day is not None and (clock is not None or index == len(text)):
            hour, minute, second = clock or (0, 0, 0)
            return day.replace(hour=hour, minute=minute, second=second)
    return None


def _clock(text: str) -> tuple[int, int, int] | None:
    if text in _NAMED:
        return _NAMED[text], 0, 0
    found = _TIME_ONLY.fullmatch(text)
    if not found:
        return None
    hour = int(found[1])
    if found[4]:
        if not 1 <= hour <= 12:
            raise ValueError("no such hour")
        hour = hour % 12 + (12 if found[4] == "pm" else 0)
    return hour, int(found[2]), int(found[3] or 0)


def _day(text: str, now: datetime) -> datetime | None:
    if text in ("today", "tomorrow"):
        return now + timedelta(days=text == "tomorrow")
    found = _DATE.fullmatch(text)
    if not found:
        return None
    year = found[1] or found[6] or found[9] or str(now.year)
    month, day = found[2] or found[4] or found[7], found[3] or found[5] or found[8]
    return now.replace(year=int(year) + (2000 if len(year) == 2 else 0), month=int(month), day=int(day))
