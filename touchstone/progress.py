"""A way for long work to say how far it is, to whoever shows it. Nobody listening costs nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

_listeners: list[Callable[[str], None]] = []


class Bar(Protocol):
    """The display of work whose amount is known."""

    def show(self, done: int, total: int, note: str) -> None:
        """So much is done."""

    def close(self) -> None:
        """It is over."""


_bars: list[Callable[[str, int], Bar]] = []


def listen(listener: Callable[[str], None], bar: Callable[[str, int], Bar] | None = None) -> None:
    """Have the listener told of every step, and bars drawn, instead of by whoever did so before."""
    _listeners[:] = [listener]
    _bars[:] = [bar] if bar is not None else []


def tell(message: str) -> None:
    """Say what is being done now."""
    for listener in _listeners:
        listener(message)


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar over `total` things; call what it gives with how many more are done, and a note.

    >>> with counting("validating", 2) as advance:
    ...     advance(1, "1 passed")
    """
    bars = [draw(what, total) for draw in _bars]
    done = 0

    def advance(more: int, note: str = "") -> None:
        nonlocal done
        done += more
        for bar in bars:
            bar.show(done, total, note)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.close()
