"""Progress reporting for long work: the stage of a run, its current step, counts and warnings.

Reports go to the display that is set; without one they do nothing. The displays belong in `touchstone.cli.live`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, Self


class Bar(Protocol):
    """A progress bar."""

    def update(self, done: int, note: str) -> None:
        """Show how many are done."""

    def close(self) -> None:
        """Remove the bar."""


class Display:
    """Takes reports of progress and warnings within its block. This one shows none of them, others show some."""

    def __enter__(self) -> Self:
        set_display(self)
        return self

    def __exit__(self, *error: object) -> None:
        set_display(None)

    def show_stage(self, name: str, done: int, total: int) -> None:
        """Show the stage of a run, and how many of its steps are done."""

    def show_step(self, text: str) -> None:
        """Show the current step."""

    def add_bar(self, description: str, total: int, cached: int, poll: Callable[[], int] | None) -> Bar:
        """Show a bar over `total` items. `cached` are done already; `poll` returns how many more are, at any time."""
        return self

    def show_warning(self, text: str) -> None:
        """Show a warning."""

    def update(self, done: int, note: str) -> None:
        """Show how many items of a bar are done."""

    def close(self) -> None:
        """Remove a bar."""


_displays: list[Display] = []


def set_display(display: Display | None) -> None:
    """Send progress to this display, replacing the previous one; None turns progress off."""
    _displays[:] = [] if display is None else [display]


def report_stage(name: str, done: int, total: int) -> None:
    """Report the stage of a run, and how many of its steps are done."""
    for display in _displays:
        display.show_stage(name, done, total)


def report_step(text: str) -> None:
    """Report what is being done now."""
    for display in _displays:
        display.show_step(text)


def report_warning(text: str) -> bool:
    """Show a warning. Returns whether there was a display to show it on."""
    for display in _displays:
        display.show_warning(text)
    return bool(_displays)


@contextmanager
def track(
    description: str, total: int, cached: int = 0, poll: Callable[[], int] | None = None
) -> Iterator[Callable[..., None]]:
    """Show a bar over `total` items, `cached` of which are done; yields a function that advances it.

    Where that function is called rarely, `poll` is asked in between how many items besides the cached ones are done.

    >>> with track("validating", 3, cached=1) as advance:
    ...     advance(2)
    """
    bars = [display.add_bar(description, total, cached, poll) for display in _displays if cached < total]
    done = cached

    def advance(more: int, note: str = "") -> None:
        nonlocal done
        done += more
        for bar in bars:
            bar.update(done, note)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.close()
