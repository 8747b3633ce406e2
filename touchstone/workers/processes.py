"""Workers on this machine: in this process, or in several."""

import atexit
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from touchstone.workers import DIED, TRIES, Item, Outcomes, Result, WorkerDiedError, WorkerState, portable

_PR_SET_PDEATHSIG = 1

# In a worker process: what `setup` made there.
_state: WorkerState | None = None


@dataclass
class SerialWorkers:
    """Maps in this process, one item at a time."""

    setup: Callable[..., WorkerState]
    arguments: tuple[Any, ...] = ()
    _state: WorkerState | None = field(default=None, init=False)

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield results in the order of the items."""
        if self._state is None:
            self._state = self.setup(*self.arguments)
        for place, item in enumerate(items):
            try:
                yield place, function(self._state, item)
            except Exception as error:
                yield place, error

    def close(self) -> None:
        """Close what `setup` made."""
        if self._state is not None:
            self._state.close()
            self._state = None


@dataclass
class ProcessWorkers:
    """Maps in several processes, kept for the next map. They die with this process, however it ends."""

    count: int
    setup: Callable[..., WorkerState]
    arguments: tuple[Any, ...] = ()
    _kept: ProcessPoolExecutor | None = field(default=None, init=False)

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield results as they complete. A process that dies is replaced, and its items are retried."""
        left = dict.fromkeys(range(len(items)), 0)
        while left:
            try:
                running = {self._pool.submit(_call, function, items[place]): place for place in left}
                for future in as_completed(running):
                    place = running[future]
                    outcome = _outcome(future)
                    del left[place]
                    yield place, outcome
            except BrokenProcessPool:
                # Any unfinished item may have caused it, so it counts against all; the last tries run one by one.
                self.close()
                for place in left:
                    left[place] += 1
            except BaseException:
                # Ctrl-C, or the caller stopped iterating: do not wait for the running items.
                self.abandon()
                raise
            if left and max(left.values()) >= TRIES:
                yield from self._one_by_one(function, items, list(left))
                return

    def close(self) -> None:
        """Wait for running items, drop the others, and stop the processes."""
        if self._kept is not None:
            self._kept.shutdown(wait=True, cancel_futures=True)
            self._kept = None

    def abandon(self) -> None:
        """Kill the processes immediately."""
        if self._kept is not None:
            for process in list((self._kept._processes or {}).values()):
                process.kill()
            self.close()

    def _one_by_one(
        self, function: Callable[[Any, Item], Result], items: Sequence[Item], places: Sequence[int]
    ) -> Outcomes[Result]:
        for place in places:
            outcome: Result | BaseException = WorkerDiedError(DIED)
            for _ in range(TRIES):
                with suppress(BrokenProcessPool), self._new_pool(1) as pool:
                    outcome = _outcome(pool.submit(_call, function, items[place]))
                    break
            yield place, outcome

    @property
    def _pool(self) -> ProcessPoolExecutor:
        if self._kept is None:
            self._kept = self._new_pool(self.count)
        return self._kept

    def _new_pool(self, count: int) -> ProcessPoolExecutor:
        # Not fork: forking a process with threads, such as those of Polars, may deadlock.
        context = multiprocessing.get_context("spawn")
        initial = (os.getpid(), context.Value("q", 0), self.setup, self.arguments)
        return ProcessPoolExecutor(count, context, initializer=_start, initargs=initial)


def _outcome(future: Future[Result]) -> Result | BaseException:
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        raise error
    return future.result() if error is None else error


def _call(function: Callable[[Any, Item], Result], item: Item) -> Result:
    try:
        return function(_state, item)
    except Exception as error:
        # One that cannot be unpickled would take the whole pool for broken.
        raise portable(error) from None


def _start(
    parent: int, started: "Synchronized[int]", setup: Callable[..., WorkerState], arguments: tuple[Any, ...]
) -> None:
    """Tie the process to its parent and to one processor, then call `setup`. The parent handles Ctrl-C."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with started.get_lock():
        place, started.value = started.value, started.value + 1
    # What an item starts stays there too: however many processes a fix keeps busy, its neighbours keep theirs.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[place % len(processors)]})
    global _state
    _state = setup(*arguments)
    atexit.register(_state.close)
