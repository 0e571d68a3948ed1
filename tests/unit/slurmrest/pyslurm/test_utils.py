"""Times, sizes, ranges and host lists of pyslurm's face."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmrest.pyslurm import utils
from slurmrest.pyslurm.constants import UNLIMITED
from slurmrest.pyslurm.utils.helpers import memory_to_mib


@pytest.fixture(autouse=True, params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dates are of this machine's zone, whichever that is."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:00", 5400),
        ("2-12", 216_000),
        ("2-12:30", 217_800),
        ("2-12:30:15", 217_815),
        (" 00:00:30 ", 30),
        ("unlimited", UNLIMITED),
        ("INFINITE", UNLIMITED),
        ("-1", UNLIMITED),
        (45, 45),
        (None, None),
    ],
)
def test_durations_read_as_sbatch_reads_them(text: str | int | None, seconds: int | str | None) -> None:
    """Without a colon they are minutes."""
    assert utils.timestr_to_secs(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1-", "-5", "1:2:3:4", "1h", "1-2:3:4:5", "1.5", "\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With a ValueError that shows it."""
    with pytest.raises(ValueError, match="is not a duration"):
        utils.timestr_to_secs(text)


def test_begun_minutes_count() -> None:
    """30 seconds are a minute to --time."""
    assert utils.timestr_to_mins("00:00:30") == 1
    assert utils.timestr_to_mins("1-00:00:00") == 1440
    assert utils.timestr_to_mins(7) == 7
    assert utils.timestr_to_mins("UNLIMITED") == UNLIMITED


@given(st.integers(0, 10**8))
def test_durations_come_back(seconds: int) -> None:
    """Seconds to text to seconds."""
    assert utils.timestr_to_secs(utils.secs_to_timestr(seconds)) == seconds


@given(st.integers(0, 10**7))
def test_minutes_come_back(minutes: int) -> None:
    """Minutes to text to minutes."""
    assert utils.timestr_to_mins(utils.mins_to_timestr(minutes)) == minutes


def test_durations_without_a_number() -> None:
    """No limit and nothing."""
    assert utils.secs_to_timestr(UNLIMITED) == UNLIMITED
    assert utils.mins_to_timestr(UNLIMITED) == UNLIMITED
    assert utils.secs_to_timestr(None) is None
    assert utils.mins_to_timestr(None, "PartitionLimit") == "PartitionLimit"


@given(st.datetimes(datetime(1971, 1, 1), datetime(2037, 12, 31)))
def test_dates_come_back(moment: datetime) -> None:
    """Seconds to text to seconds; a time that summer time leaves out or has twice is one of two."""
    stamp = int(moment.replace(microsecond=0).timestamp())
    found = utils.date_to_timestamp(utils.timestamp_to_date(stamp))
    assert found is not None
    assert abs(found - stamp) in (0, 3600)
    assert utils.timestamp_to_date(found) == utils.timestamp_to_date(stamp)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-03-01T06:07:08", (2026, 3, 1, 6, 7, 8)),
        ("2026-03-01T06:07", (2026, 3, 1, 6, 7, 0)),
        ("2026-03-01 06:07", (2026, 3, 1, 6, 7, 0)),
        ("2026-03-01", (2026, 3, 1, 0, 0, 0)),
        ("03/01/26-06:07", (2026, 3, 1, 6, 7, 0)),
        ("03/01/2026", (2026, 3, 1, 0, 0, 0)),
        ("030126-6:07pm", (2026, 3, 1, 18, 7, 0)),
        ("2026-03-01Tnoon", (2026, 3, 1, 12, 0, 0)),
    ],
)
def test_dates_read_as_sbatch_reads_them(text: str, date: tuple[int, int, int, int, int, int]) -> None:
    """Each form of `--begin`."""
    assert utils.date_to_timestamp(text) == int(datetime(*date).timestamp())


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("now", timedelta()),
        ("now+90", timedelta(seconds=90)),
        ("now+2minutes", timedelta(minutes=2)),
        ("now + 3 hours", timedelta(hours=3)),
        ("now+1day", timedelta(days=1)),
        ("now-1week", -timedelta(weeks=1)),
    ],
)
def test_relative_dates_count_from_now(text: str, step: timedelta) -> None:
    """Seconds unless another unit is named."""
    found = utils.date_to_timestamp(text)
    assert found is not None
    assert abs(found - (datetime.now() + step).timestamp()) < 5


@pytest.mark.parametrize("text", ["noon", "midnight", "teatime", "00:01", "23:59:59", "11:30pm"])
def test_time_alone_is_the_next_one(text: str) -> None:
    """Today if it is to come, else tomorrow."""
    found = utils.date_to_timestamp(text)
    assert found is not None
    assert 0 < found - time.time() + 1 <= 25 * 3600 + 1


def test_named_days_begin_at_midnight() -> None:
    """Today has begun, tomorrow has not."""
    today, tomorrow = utils.date_to_timestamp("today"), utils.date_to_timestamp("tomorrow")
    assert today is not None
    assert tomorrow is not None
    assert today <= time.time() < tomorrow


@pytest.mark.parametrize(
    "text",
    ["x", "2026-13-01", "2026-02-30", "25:00", "13:00pm", "now+", "now+1fortnight", "now+9999999999999", "1-2-3"],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    """With a ValueError that shows it."""
    with pytest.raises(ValueError, match="is not a date"):
        utils.date_to_timestamp(text)


def test_dates_that_are_none() -> None:
    """Nothing in, nothing out; numbers and datetimes are taken."""
    assert utils.date_to_timestamp(None) is None
    assert utils.date_to_timestamp("", on_nodate=3) == 3
    assert utils.date_to_timestamp(17) == 17
    assert utils.date_to_timestamp(datetime.fromtimestamp(17)) == 17
    assert utils.timestamp_to_date(None, "None") == "None"


@pytest.mark.parametrize(
    ("text", "mib"),
    [("10G", 10240), ("10GB", 10240), ("10GiB", 10240), ("1.5g", 1536), ("1024K", 1), ("1K", 1), ("512", 512), (7, 7)],
)
def test_sizes_read_as_mib(text: str | int, mib: int) -> None:
    """Without a unit they are MiB; a part of one is a whole."""
    assert utils.dehumanize(text) == memory_to_mib(text) == mib


def test_sizes_in_other_units() -> None:
    """The target's letter, and decimals if wanted."""
    assert utils.dehumanize("1G", target="K") == 1024 * 1024
    assert utils.dehumanize("1536M", target="G", decimals=1) == 1.5
    assert memory_to_mib("unlimited") == UNLIMITED
    assert memory_to_mib(None) is None


@pytest.mark.parametrize("text", ["", "G", "10X", "-1G", "1 000", "1e3", "0x10"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """With a ValueError that shows it."""
    with pytest.raises(ValueError, match="is not a size"):
        utils.dehumanize(text)


@given(st.integers(0, 2**40))
def test_sizes_come_back(mib: int) -> None:
    """With decimals enough, MiB to text to MiB."""
    assert utils.dehumanize(utils.humanize(mib, decimals=60) or "") == mib


def test_sizes_for_people() -> None:
    """The largest unit that is below the size."""
    assert [utils.humanize(size) for size in (0, 1023, 1024, 1536 * 1024)] == ["0.0M", "1023.0M", "1.0G", "1.5T"]
    assert utils.humanize(None) is None
    assert utils.humanize(UNLIMITED) == UNLIMITED


@given(st.lists(st.integers(0, 5000), unique=True, min_size=1).map(sorted))
def test_ranges_come_back(numbers: list[int]) -> None:
    """Numbers to a range text to numbers."""
    assert utils.expand_range_str(",".join(map(str, numbers))) == numbers


@pytest.mark.parametrize("text", ["x", "3-1", "1-", "1:2", "1-10:0", "0-99999999", "1;2"])
def test_what_is_no_range_is_refused(text: str) -> None:
    """With a ValueError, however large."""
    with pytest.raises(ValueError, match="is not a range of numbers"):
        utils.expand_range_str(text)


def test_ranges_as_arrays_have_them() -> None:
    """Steps, and the limit of running tasks, which is no number of it."""
    assert utils.expand_range_str("1,3-5,10-20:5") == [1, 3, 4, 5, 10, 15, 20]
    assert utils.expand_range_str("[0-3%2]") == [0, 1, 2, 3]
    assert utils.expand_range_str("") == []


def test_host_lists_fold_and_expand() -> None:
    """Both ways."""
    assert utils.nodelist_from_range_str("n[1-2],a") == ["a", "n1", "n2"]
    assert utils.nodelist_to_range_str(["n1", "n2", "a"]) == utils.nodelist_to_range_str("n1,n2,a") == "a,n[1-2]"


def test_users_and_groups_of_this_machine() -> None:
    """By number and by name; a number is taken as it is."""
    assert utils.uid_to_name(os.getuid()) is not None
    assert utils.user_to_uid("root") == utils.group_to_gid("root") == 0
    assert (utils.user_to_uid(5), utils.group_to_gid(6)) == (5, 6)
    assert utils.gid_to_name(0) == "root"


def test_unknown_users_and_groups() -> None:
    """An error, or None if wanted."""
    for look in (
        lambda strict: utils.uid_to_name(2**31, strict),
        lambda strict: utils.gid_to_name(2**31, strict),
        lambda strict: utils.user_to_uid("no-such", strict),
        lambda strict: utils.group_to_gid("no-such", strict),
    ):
        assert look(False) is None
        with pytest.raises(KeyError):
            look(True)
