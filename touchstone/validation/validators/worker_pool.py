"""Warm workers by what they were started for, a bounded number of them."""

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Closeable(Protocol):
    """Something that keeps processes running until it is closed."""

    def close(self) -> None:
        """Stop the processes."""


Key = TypeVar("Key", bound=Hashable)
Worker = TypeVar("Worker", bound=Closeable)


class WorkerPool(Generic[Key, Worker]):
    """Workers, made on first use. If there are more than `most`, the least recently used one is closed.

    >>> class Loud:
    ...     def close(self) -> None:
    ...         print("closed")
    >>> pool = WorkerPool(lambda key: Loud(), most=2)
    >>> first, _, again, _ = pool.get("a"), pool.get("b"), pool.get("a"), pool.get("c")
    closed
    >>> pool.get("a") is again is first
    True
    """

    def __init__(self, make: Callable[[Key], Worker], most: int) -> None:
        self._make, self._most = make, most
        # The most recently used one is last.
        self._workers: dict[Key, Worker] = {}

    def get(self, key: Key) -> Worker:
        """The worker for a key."""
        worker = self._workers.pop(key, None) or self._make(key)
        self._workers[key] = worker
        while len(self._workers) > self._most:
            self._workers.pop(next(iter(self._workers))).close()
        return worker

    def workers(self) -> list[Worker]:
        """All workers, the most recently used one last."""
        return list(self._workers.values())

    def close(self) -> None:
        """Close all workers; they start again when they are next used."""
        for worker in self.workers():
            worker.close()
