"""A way for long work to say how far it is, to whoever shows it. Nobody listening costs nothing."""

from collections.abc import Callable

_listeners: list[Callable[[str], None]] = []


def listen(listener: Callable[[str], None]) -> None:
    """Have the listener told of every step, instead of whoever was told before."""
    _listeners[:] = [listener]


def tell(message: str) -> None:
    """Say what is being done now."""
    for listener in _listeners:
        listener(message)
