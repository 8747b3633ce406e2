"""How long work reports its progress. Where no display is set, reporting costs nothing and shows nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """The display of work whose amount is known."""

    def show(self, done: int, note: str) -> None:
        """Show how much is done."""

    def close(self) -> None:
        """Remove the bar."""


class Display(Protocol):
    """Shows progress, on a terminal or as lines of text."""

    def stage(self, name: str, done: int, total: int) -> None:
        """A run is in this stage, and so many of its steps are done."""

    def message(self, text: str) -> None:
        """What is being done now."""

    def bar(self, what: str, total: int, cached: int, made: Callable[[], int] | None) -> Bar:
        """Work of a known amount begins; the cached part of it is done. `made` says how much more is, at any time."""

    def warn(self, text: str) -> None:
        """Something that the user should know."""


_displays: list[Display] = []


def show_on(display: Display | None) -> None:
    """Send progress to this display, instead of the previous one."""
    _displays[:] = [] if display is None else [display]


def stage(name: str, done: int, total: int) -> None:
    """Report the stage of a run, and how many of its steps are done."""
    for display in _displays:
        display.stage(name, done, total)


def tell(message: str) -> None:
    """Report what is being done now."""
    for display in _displays:
        display.message(message)


def warn(message: str) -> bool:
    """Show a warning; returns whether there was a display to show it on."""
    for display in _displays:
        display.warn(message)
    return bool(_displays)


@contextmanager
def counting(
    what: str, total: int, cached: int = 0, made: Callable[[], int] | None = None
) -> Iterator[Callable[..., None]]:
    """Show a bar over `total` things, of which the cached ones are done; yields a function that counts more as done.

    Where that function is called only now and then, `made` says in between how many are done besides the cached ones.

    >>> with counting("validating", 3, cached=1) as advance:
    ...     advance(2)
    """
    bars = [display.bar(what, total, cached, made) for display in _displays if cached < total]
    done = cached

    def advance(more: int, note: str = "") -> None:
        nonlocal done
        done += more
        for bar in bars:
            bar.show(done, note)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.close()
