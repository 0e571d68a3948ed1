"""Frames to lines: prefixes, times, unfinished and endless lines, and readers that lie."""

from __future__ import annotations

import pytest

from kubeslurm.errors import Refused
from kubeslurm.log_lines import MOST_HELD, Frame, Printer, read_frame, shares

TIME = "2026-12-07T00:00:00.000000001Z"


def shown(printer: Printer, *pieces: tuple[int, bytes]) -> bytes:
    """All that is shown of these pieces."""
    return b"".join(printer.take(Frame(index, TIME, data)) for index, data in pieces) + printer.rest()


def test_a_frame_is_read() -> None:
    """Index, time of the last write, bytes."""
    assert read_frame(b"1 1796601600.000000001 YQo=", 2) == Frame(1, TIME, b"a\n")


def test_an_empty_line_says_that_the_reader_lives() -> None:
    """It is no frame."""
    assert read_frame(b"", 2) is None


@pytest.mark.parametrize(
    "line", [b"x", b"2 1.000000000 YQ==", b"0 1.000000000 YQ", b"0 999999999999.000000000 YQ==", b"0 1.0 YQ==", b"\xff"]
)
def test_what_is_no_frame_ends_the_stream(line: bytes) -> None:
    """An index that is not there, broken base64, a time that is none."""
    with pytest.raises(Refused, match="never says"):
        read_frame(line, 2)


def test_one_file_is_passed_on_as_it_comes() -> None:
    """Also without the end of a line: a progress bar moves."""
    assert Printer([""], timestamps=False).take(Frame(0, TIME, b"50%\r")) == b"50%\r"


def test_lines_of_several_files_are_whole_and_prefixed() -> None:
    """However the pieces were cut."""
    printer = Printer(["[0] ", "[1] "], timestamps=False)
    assert shown(printer, (0, b"a"), (1, b"x\ny"), (0, b"b\n"), (1, b"z")) == b"[1] x\n[0] ab\n[1] yz\n"


def test_a_message_begins_its_own_line() -> None:
    """Though the program left one unfinished."""
    printer = Printer(["", "[batch] "], timestamps=False)
    assert shown(printer, (0, b"50%"), (1, b"why\n"), (0, b"more\n")) == b"50%\n[batch] why\nmore\n"


def test_each_line_has_its_time_first() -> None:
    """As the kubelet writes it, before the prefix."""
    printer = Printer(["[0] "], timestamps=True)
    assert shown(printer, (0, b"a\n\n")) == f"{TIME} [0] a\n{TIME} [0] \n".encode()


def test_an_endless_line_is_cut() -> None:
    """No more of it is held than that."""
    printer = Printer(["[0] "], timestamps=False)
    out = [printer.take(Frame(0, TIME, b"x" * 40_000)) for _ in range(4)]
    assert [len(piece) > MOST_HELD for piece in out] == [False, True, False, True]


@pytest.mark.parametrize(
    ("counts", "most", "wanted"),
    [
        ([5, 5, 5], 6, [2, 2, 2]),
        ([5, 5, 5], 7, [3, 2, 2]),
        ([20, 0, 0], 10, [10, 0, 0]),
        ([1, 9, 9], 10, [1, 5, 4]),
        ([1, 1], 10, [1, 1]),
        ([3, 3], 0, [0, 0]),
        ([], 5, []),
    ],
)
def test_last_lines_are_dealt_out(counts: list[int], most: int, wanted: list[int]) -> None:
    """Evenly; what one file has not, the others give; never more than asked for."""
    assert shares(counts, most) == wanted
