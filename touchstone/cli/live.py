"""Displays of progress on standard error: live on a terminal, drawn by rich; plain lines elsewhere.

What is reported to them belongs in `touchstone.text`.
"""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Self, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.progress import Progress, Task
from rich.text import Text

from touchstone.cli.safe_streams import safe
from touchstone.cli.terminal_tables import SafeConsole
from touchstone.progress import Bar, Display

_LONGEST_BAR, _SHORTEST_BAR = 40, 8
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True)
class Line:
    """One task on one line. Names and figures are never cut; the bar gets the remaining width, if there is enough."""

    task: Task

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the line at the width of the terminal, wrapping if it does not fit."""
        spinner = "-" if options.ascii_only else _SPINNER[int(console.get_time() * 10) % len(_SPINNER)]
        head = Text(f"{spinner} {self.task.description}")
        tail = "  ".join(figures(self.task))
        room = options.max_width - head.cell_len - len(tail) - 4
        if self.task.total and room >= _SHORTEST_BAR:
            head.append("  ").append_text(_bar(self.task, min(room, _LONGEST_BAR), options.ascii_only))
        yield head.append(f"  {tail}")


def figures(task: Task) -> list[str]:
    """For a bar: done of total, rate and time left. For the stage of a run: steps done and elapsed time."""
    done = [] if task.total is None else [f"{task.completed:,.0f}/{task.total:,.0f}"]
    if not task.fields["is_bar"]:
        return [*done, _clock(task.elapsed or 0)]
    new = task.completed - task.fields["cached"]
    if new and task.elapsed and task.total is not None:
        # Cached items take no time, so they must not count towards the rate.
        rate = new / task.elapsed
        done += [f"{rate:,.1f}/s", f"{_clock((task.total - task.completed) / rate)} left"]
    return [*done, *([task.fields["note"]] if task.fields["note"] else [])]


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _bar(task: Task, width: int, ascii_only: bool) -> Text:
    full, empty = ("#", "-") if ascii_only else ("━", "─")
    done = int(width * task.completed / (task.total or 1))
    return Text.assemble((full * done, "bar.complete"), (empty * (width - done), "bar.back"))


class _Lines(Progress):
    """Rich's live progress with a `Line` per task."""

    def get_renderables(self) -> Iterable[Line]:
        """Poll the latest counts and draw a line per task."""
        for task in self.tasks:
            if (poll := task.fields["poll"]) is not None and task.total is not None:
                latest = min(task.fields["cached"] + poll(), task.total)
                self.update(task.id, completed=max(task.completed, latest))
        return [Line(task) for task in self.tasks]


class LiveDisplay(Display):
    """A line for the stage and one per bar, on a terminal. They disappear when the display closes."""

    def __init__(self, description: str, console: Console | None = None) -> None:
        self._progress = _Lines(console=console or SafeConsole(_stderr()), transient=True)
        self._stage = ""
        self._task = self._progress.add_task(description, total=None, note="", cached=0, poll=None, is_bar=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._progress.stop()

    def show_stage(self, name: str, done: int, total: int) -> None:
        """Show the stage and how many steps are done."""
        self._stage = name
        self._progress.update(self._task, description=name, completed=done, total=total, refresh=True)

    def show_step(self, text: str) -> None:
        """Show the step after the stage."""
        shown = f"{self._stage}: {text}" if self._stage else text
        self._progress.update(self._task, description=shown, refresh=True)

    def add_bar(self, description: str, total: int, cached: int, poll: Callable[[], int] | None) -> Bar:
        """Add a line with a bar."""
        return _LiveBar(self._progress, description, total, cached, poll)

    def show_warning(self, text: str) -> None:
        """Print the warning above the display."""
        self._progress.console.print(f"[yellow]warning:[/] {escape(text)}", highlight=False, soft_wrap=True)


class _LiveBar:
    def __init__(
        self, progress: Progress, description: str, total: int, cached: int, poll: Callable[[], int] | None
    ) -> None:
        self._progress = progress
        self._cached = _known(cached).removeprefix(", ")
        self._task = progress.add_task(
            description, total=total, completed=cached, note=self._cached, cached=cached, poll=poll, is_bar=True
        )
        progress.refresh()

    def update(self, done: int, note: str) -> None:
        notes = "; ".join(part for part in (note, self._cached) if part)
        self._progress.update(self._task, completed=done, note=notes)

    def close(self) -> None:
        # Redraw, so that a bar that closes before the next frame is seen at all.
        self._progress.refresh()
        self._progress.remove_task(self._task)


class LineDisplay(Display):
    """One line per stage and one per bar, for logs and pipes; a line per table and model would be too many."""

    def __init__(self) -> None:
        self._file = safe(_stderr())
        self._stage = ""
        self._printed: set[str] = set()

    def show_stage(self, name: str, done: int, total: int) -> None:
        """Print the stage when it starts; its later steps print nothing."""
        self._stage = name
        if name not in self._printed:
            self._printed.add(name)
            self._print(f"{name}: step {done + 1} of {total}")

    def add_bar(self, description: str, total: int, cached: int, poll: Callable[[], int] | None) -> Bar:
        """Print how many items there are to do."""
        before = f"{self._stage}: " if self._stage else ""
        self._print(f"{before}{description}, {total - cached:,} of {total:,} to do{_known(cached)}")
        return self

    def show_warning(self, text: str) -> None:
        """Print the warning."""
        self._print(f"warning: {text}")

    def _print(self, line: str) -> None:
        print(line, file=self._file, flush=True)


def _known(cached: int) -> str:
    """How many results are known already: from an earlier run, or because another model's fix gives the same files."""
    return f", {cached:,} already known" if cached else ""


def _stderr() -> TextIO:
    """A duplicate of standard error, because Dagster may redirect the original to capture what assets print."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    except OSError:  # not a file: a test captures it
        return sys.stderr
