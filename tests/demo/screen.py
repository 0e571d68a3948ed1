"""What the demo prints while it works: one line per phase, with its time; moving on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

Say = Callable[[str], None]
"""Shows what a phase is at, as one short line."""


class Screen:
    """Shows phases and keeps their times; `times` maps a phase's key to its seconds."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.times: dict[str, float] = {}
        self._start = time.monotonic()

    @property
    def total(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @contextmanager
    def phase(self, key: str, title: str) -> Iterator[Say]:
        """Run one phase; its time counts only when it ends well."""
        start = time.monotonic()
        with self._moving(title) if self.console.is_terminal else self._plain(title) as say:
            yield say
        self.times[key] = round(time.monotonic() - start, 2)
        self.console.print(f"[green]✓[/] {title} [dim]{self.times[key]:.1f} s, at {self.total:.1f} s[/]")

    @contextmanager
    def _moving(self, title: str) -> Iterator[Say]:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("[dim]{task.fields[now]}"))
        with Progress(*columns, TimeElapsedColumn(), console=self.console, transient=True) as progress:
            task: TaskID = progress.add_task(title, total=None, now="")
            yield lambda text: progress.update(task, now=text[:100])

    @contextmanager
    def _plain(self, title: str) -> Iterator[Say]:
        last = ""

        def say(text: str) -> None:
            nonlocal last
            if text != last:
                last = text
                self.line(f"{self.total:7.1f} s  {title}: {text}")

        self.line(f"{self.total:7.1f} s  {title} ...")
        yield say

    def line(self, text: str) -> None:
        """One line as it is, nothing of it taken for markup."""
        self.console.print(text, markup=False, soft_wrap=True)

    def section(self, title: str, text: str) -> None:
        """A command and what it said."""
        self.console.print(f"\n[bold]$ {title}[/]", soft_wrap=True)
        self.line(text.rstrip("\n"))
        sys.stdout.flush()
