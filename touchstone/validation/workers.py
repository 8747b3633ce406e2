"""Doing the same thing to many items: here, or in several processes. A cluster would be a third way to do it.

Results come as they are ready, each with the place of its item. What is mapped must be importable by name, and what
it needs once per process (warm sandboxes) is made by `setup`.
"""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1
# How often an item may take its worker process down with it before it is given up.
_TRIES = 2


class WorkerDiedError(Exception):
    """The process that worked on an item died, more than once."""


class Workers(Protocol):
    """A way to map. Where an item cannot be worked on, its exception stands in place of its result."""

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | BaseException]]:
        """The place of each item and what became of it, in the order in which they are done."""

    def close(self) -> None:
        """End what is kept for the next map."""


@dataclass
class SerialWorkers:
    """In this process, one after the other."""

    setup: Callable[..., None]
    arguments: tuple[Any, ...]
    teardown: Callable[[], None]
    _ready: bool = field(default=False, init=False)

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | BaseException]]:
        """In order."""
        if not self._ready:
            self.setup(*self.arguments)
            self._ready = True
        for place, item in enumerate(items):
            try:
                yield place, function(item)
            except Exception as error:
                yield place, error

    def close(self) -> None:
        """Tear down what was set up."""
        if self._ready:
            self.teardown()
            self._ready = False


@dataclass
class ProcessWorkers:
    """In several processes, which are kept for the next map. They end with this one, however it ends."""

    count: int
    setup: Callable[..., None]
    arguments: tuple[Any, ...]
    _kept: ProcessPoolExecutor | None = field(default=None, init=False)

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result | BaseException]]:
        """As they are done. A process that dies is replaced, and what it had in hand is tried again."""
        left = dict.fromkeys(range(len(items)), 0)
        while left:
            try:
                running = {self._pool.submit(function, items[place]): place for place in left}
                for future in as_completed(running):
                    place = running[future]
                    outcome = _outcome(future)
                    del left[place]
                    yield place, outcome
            except BrokenProcessPool:
                # Nobody knows which item it was, so all unfinished ones count; the last tries go one by one.
                self.close()
                for place in left:
                    left[place] += 1
            except BaseException:
                # Ctrl-C, or nobody wants the rest: what is in hand is not worth waiting for.
                self.abandon()
                raise
            if left and max(left.values()) >= _TRIES:
                yield from self._one_by_one(function, items, list(left))
                return

    def close(self) -> None:
        """Let the processes end; what they have not begun is dropped."""
        if self._kept is not None:
            self._kept.shutdown(wait=True, cancel_futures=True)
            self._kept = None

    def abandon(self) -> None:
        """End the processes at once, whatever they have in hand."""
        if self._kept is not None:
            for process in list((self._kept._processes or {}).values()):
                process.kill()
            self.close()

    def _one_by_one(
        self, function: Callable[[Item], Result], items: Sequence[Item], places: Sequence[int]
    ) -> Iterator[tuple[int, Result | BaseException]]:
        for place in places:
            outcome: Result | BaseException = WorkerDiedError("the process that validated it was killed")
            for _ in range(_TRIES):
                with suppress(BrokenProcessPool), self._new_pool(1) as pool:
                    outcome = _outcome(pool.submit(function, items[place]))
                    break
            yield place, outcome

    @property
    def _pool(self) -> ProcessPoolExecutor:
        if self._kept is None:
            self._kept = self._new_pool(self.count)
        return self._kept

    def _new_pool(self, count: int) -> ProcessPoolExecutor:
        # Not forked: a fork of a process with threads, as Polars has, may hang.
        context = multiprocessing.get_context("spawn")
        initial = (os.getpid(), self.setup, self.arguments)
        return ProcessPoolExecutor(count, context, initializer=_start, initargs=initial)


def _outcome(future: Future[Result]) -> Result | BaseException:
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        raise error
    return future.result() if error is None else error


def _start(parent: int, setup: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Tie the process to its parent, then set it up. Ctrl-C is the parent's to handle."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup(*arguments)
