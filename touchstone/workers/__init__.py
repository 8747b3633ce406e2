"""Map a function over many items: in this process, in several processes, or on a Dask cluster.

Here is how work is shared out, and nothing about the work itself: what maps, and what a worker process keeps between
two items. `processes` and `dask` implement it; `cluster` connects to a cluster.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# How often an item may kill its worker, while that does nothing else, before it is given up.
TRIES = 2
DIED = "the process that validated it was killed"

Outcomes = Iterator[tuple[int, Result | BaseException]]


class WorkerDiedError(Exception):
    """The process that handled an item died more than once."""


class WorkerRefusedError(Exception):
    """This worker must not be used, because it might answer differently; the message says why."""


class WorkerState:
    """State that a worker process keeps between items, such as warm sandboxes; made once per process by `setup`.

    A worker on another machine has none of our files. What an item needs of them is `missing` there until it was
    received, part by part.
    """

    def missing(self, item: Any) -> Sequence[str]:
        """The names of what the item needs and this worker has not received."""
        return ()

    def receive(self, part: Any) -> None:
        """Keep a part of what was missing. Parts come in any order, and may come again."""

    def complete(self, names: Sequence[str]) -> None:
        """Every part of these was received."""

    def stop(self) -> None:
        """Ask, from another thread, that the item in hand be given up as soon as possible."""

    def close(self) -> None:
        """Stop everything that is kept running."""


class Workers(Protocol):
    """Maps a function over items. If the function raises, its exception is returned as the result.

    The function takes the worker's state and an item, and must be importable by name.
    """

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield the index and the result of each item, in order of completion."""

    def close(self) -> None:
        """Stop what is kept for the next map."""


def portable(error: Exception) -> Exception:
    """The exception if it can be sent to another process, else one of its type and message that can.

    >>> class RefusedError(Exception):
    ...     def __init__(self, message: str, status: str) -> None:
    ...         super().__init__(message)
    >>> portable(ValueError("no")), portable(RefusedError("no", "later"))
    (ValueError('no'), RuntimeError('RefusedError: no'))
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
