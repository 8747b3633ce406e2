"""Where progress is shown, on standard error: a live display drawn by rich on a terminal, plain lines elsewhere."""

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

from touchstone.progress import Bar, show_on

_LONGEST_BAR, _SHORTEST_BAR = 40, 8
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True)
class Line:
    """A task as one line. Names and figures are never cut: the bar takes the room that is left, if there is any."""

    task: Task

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it as wide as the terminal is, and go on below where that is not enough."""
        spinner = "-" if options.ascii_only else _SPINNER[int(console.get_time() * 10) % len(_SPINNER)]
        head = Text(f"{spinner} {self.task.description}")
        tail = "  ".join(figures(self.task))
        room = options.max_width - head.cell_len - len(tail) - 4
        if self.task.total and room >= _SHORTEST_BAR:
            head.append("  ").append_text(_bar(self.task, min(room, _LONGEST_BAR), options.ascii_only))
        yield head.append(f"  {tail}")


def figures(task: Task) -> list[str]:
    """Done of total, rate and time left of a count; for the stage of a run, steps done and the time since its start."""
    done = [] if task.total is None else [f"{task.completed:,.0f}/{task.total:,.0f}"]
    if not task.fields["counted"]:
        return [*done, _clock(task.elapsed or 0)]
    new = task.completed - task.fields["cached"]
    if new and task.elapsed and task.total is not None:
        # What came from the cache took no time, and says nothing about the rest.
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
    """rich's live progress, with a line of our own for each task."""

    def get_renderables(self) -> Iterable[Line]:
        """A line per task, with the latest count."""
        for task in self.tasks:
            if (made := task.fields["made"]) is not None and task.total is not None:
                latest = min(task.fields["cached"] + made(), task.total)
                self.update(task.id, completed=max(task.completed, latest))
        return [Line(task) for task in self.tasks]


class LiveDisplay:
    """A line for the stage, and one for every count in progress. It disappears when it is closed."""

    def __init__(self, what: str, console: Console | None = None) -> None:
        self._progress = _Lines(console=console or Console(file=_stderr()), transient=True)
        self._stage = ""
        self._task = self._progress.add_task(what, total=None, note="", cached=0, made=None, counted=False)

    def __enter__(self) -> Self:
        self._progress.start()
        show_on(self)
        return self

    def __exit__(self, *error: object) -> None:
        show_on(None)
        self._progress.stop()

    def stage(self, name: str, done: int, total: int) -> None:
        """Name the stage, and count the steps."""
        self._stage = name
        self._progress.update(self._task, description=name, completed=done, total=total, refresh=True)

    def message(self, text: str) -> None:
        """Show it behind the stage."""
        shown = f"{self._stage}: {text}" if self._stage else text
        self._progress.update(self._task, description=shown, refresh=True)

    def bar(self, what: str, total: int, cached: int, made: Callable[[], int] | None) -> Bar:
        """Add a line with a bar."""
        return _LiveBar(self._progress, what, total, cached, made)

    def warn(self, text: str) -> None:
        """Print it above the display."""
        self._progress.console.print(f"[yellow]warning:[/] {escape(text)}", highlight=False, soft_wrap=True)


class _LiveBar:
    def __init__(self, progress: Progress, what: str, total: int, cached: int, made: Callable[[], int] | None) -> None:
        self._progress = progress
        self._kept = f"{cached:,} from cache" if cached else ""
        self._task = progress.add_task(
            what, total=total, completed=cached, note=self._kept, cached=cached, made=made, counted=True
        )
        progress.refresh()

    def show(self, done: int, note: str) -> None:
        noted = "; ".join(part for part in (note, self._kept) if part)
        self._progress.update(self._task, completed=done, note=noted)

    def close(self) -> None:
        # Drawn once more: what was over before the next frame is seen all the same.
        self._progress.refresh()
        self._progress.remove_task(self._task)


class LineDisplay:
    """One line per stage, and one per count in it, for logs and pipes."""

    def __init__(self) -> None:
        self._file = _stderr()
        self._stage = ""
        self._printed: set[str] = set()

    def __enter__(self) -> Self:
        show_on(self)
        return self

    def __exit__(self, *error: object) -> None:
        show_on(None)

    def stage(self, name: str, done: int, total: int) -> None:
        """Print the stage when it begins. A later step of it gets no line."""
        self._stage = name
        if name not in self._printed:
            self._printed.add(name)
            self._print(f"{name}: step {done + 1} of {total}")

    def message(self, text: str) -> None:
        """Not shown: a line per table or model would be many."""

    def bar(self, what: str, total: int, cached: int, made: Callable[[], int] | None) -> Bar:
        """Print how much there is to do."""
        self._print(f"{self._stage}: {what}, {total - cached:,} of {total:,} to do, {cached:,} from cache")
        return _NoBar()

    def warn(self, text: str) -> None:
        """Print it."""
        self._print(f"warning: {text}")

    def _print(self, line: str) -> None:
        print(line, file=self._file, flush=True)


class _NoBar:
    def show(self, done: int, note: str) -> None:
        pass

    def close(self) -> None:
        pass


def _stderr() -> TextIO:
    """Standard error as it is now: Dagster may send its own elsewhere during a run, to capture what assets print."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    except OSError:  # not a file, such as where a test captures it
        return sys.stderr
