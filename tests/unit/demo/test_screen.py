"""What the demo prints where there is no terminal, and the times it keeps."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.demo.screen import Screen


def screen() -> tuple[Screen, io.StringIO]:
    """A screen that writes into a string."""
    out = io.StringIO()
    return Screen(Console(file=out, highlight=False, width=200)), out


def test_a_pipe_gets_plain_lines() -> None:
    """A log holds each thing once, and no control characters."""
    shown, out = screen()
    with shown.phase("pool", "Pool") as say:
        say("1 of 64")
        say("1 of 64")
        say("64 of 64")
    lines = out.getvalue().splitlines()
    assert [line.split(":")[-1].strip() for line in lines[1:3]] == ["1 of 64", "64 of 64"]
    assert lines[3].startswith("✓ Pool")
    assert "\x1b" not in out.getvalue()


def test_the_time_of_a_phase_is_kept() -> None:
    """The bench reads the phases' seconds."""
    shown, _ = screen()
    with shown.phase("pool", "Pool"):
        pass
    assert shown.times["pool"] >= 0


def test_a_phase_that_failed_has_no_time() -> None:
    """A failed phase must not look like a quick one."""
    shown, out = screen()
    with pytest.raises(RuntimeError), shown.phase("pool", "Pool"):
        raise RuntimeError
    assert "pool" not in shown.times
    assert "✓" not in out.getvalue()


def test_output_with_brackets_is_shown_as_it_is() -> None:
    """gpu-node-[0-63] is a host list, no markup."""
    shown, out = screen()
    shown.section("sinfo", "gpu-node-[0-63]")
    assert "gpu-node-[0-63]" in out.getvalue()
