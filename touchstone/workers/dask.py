"""Workers of a Dask cluster. Dask keeps the connections, runs the tasks and notices lost workers.

Every worker is set up first, which includes whatever decides that it may be used; one that joins later is set up then.
A task goes to one worker and to no other, so what a lost worker had is known, and given to others.
"""

import queue
import threading
import time
import uuid
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from touchstone.config import WorkerSettings
from touchstone.errors import TouchstoneError, UnreachableError
from touchstone.progress import report_warning
from touchstone.workers import (
    DIED,
    TRIES,
    Item,
    Outcomes,
    Result,
    WorkerDiedError,
    WorkerRefusedError,
    WorkerState,
    portable,
)
from touchstone.workers.cluster import connect, fetched, running_workers

if TYPE_CHECKING:
    from distributed import Client, Future

# How often the cluster is asked who is there, up to a hundred workers and for each further hundred; and how long a run
# waits without any worker.
_LOOK_EVERY_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
# Each may be a few megabytes.
_FETCHED_AT_ONCE = 20
# A worker has its next item before it finishes one, so it never waits for the network.
_AT_ONCE = 2
# How often an item may come back, through no death of a worker, before it is given up.
_RETURNS = 10


# On a worker of the cluster: a session per client, which holds the state that `setup` made there. It is the result of a
# task and stays in the worker's memory while the client wants it. When the client releases it, or leaves in whatever
# way, Dask deletes it, and with it goes everything that it keeps running.

# One item at a time in this process, however many threads the worker has: items share warm sandboxes.
_turn = threading.Lock()
_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


class MissingError(Exception):
    """The item was not tried: the worker must receive first what the argument names."""


class Session:
    """The state of one client on this worker. A copy, which Dask may send elsewhere, has none."""

    def __init__(self, token: str, state: WorkerState | None) -> None:
        self.token, self.state = token, state
        if state is not None:
            _sessions.add(self)
            # In a thread of its own: Dask deletes sessions in its event loop, and stopping sandboxes takes time.
            weakref.finalize(self, lambda: threading.Thread(target=_close, args=[state]).start())

    def __reduce__(self) -> tuple[Any, ...]:
        return Session, (self.token, None)


def _close(state: WorkerState) -> None:
    with _turn:
        state.close()


def open_session(token: str, setup: Callable[..., WorkerState], arguments: tuple[Any, ...]) -> Session:
    """Make the state of a client. Raises what keeps the worker from being used."""
    with _turn:
        return Session(token, setup(*arguments))


def receive(session: Session, part: Any) -> None:
    """Keep a part of what an item needs."""
    with _turn:
        if session.state is not None:
            session.state.receive(part)


def run_item(
    session: Session, function: Callable[[Any, Any], Any], item: Any, received: Sequence[str], part: Any, *parts: None
) -> Any:
    """The result of an item, or the exception that the function raised, after receiving the last part of what it needs.

    `parts` are the tasks that received the others. Raises an error only if the item was not tried.
    """
    with _turn:
        if session.state is None:
            raise WorkerRefusedError("its state is gone")
        if received:
            session.state.receive(part)
        try:
            if received:
                session.state.complete(received)
            if missing := session.state.missing(item):
                raise MissingError(missing)
            return function(session.state, item)
        except (MissingError, WorkerRefusedError):
            raise
        except Exception as error:
            return portable(error)


def stop_sessions(token: str) -> None:
    """Ask the sessions of a client to give up what they do."""
    for session in list(_sessions):
        if session.token == token and session.state is not None:
            session.state.stop()


# Here


class Assignments:
    """The items 0 to `count` - 1: waiting, with a worker, or finished.

    When a worker is lost, any of its items may have killed it, so each is tried again by a worker that does nothing
    else, after all others are done.

    >>> items = Assignments(3)
    >>> items.next_for("a"), items.next_for("a"), items.next_for("a"), items.next_for("b")
    (0, 1, None, 2)
    >>> items.finish(0), items.finish(0)
    (True, False)
    >>> items.lose("a"), items.next_for("b")
    ([], None)
    >>> items.finish(2), items.next_for("b"), items.next_for("b")
    (True, 1, None)
    """

    def __init__(self, count: int) -> None:
        self._waiting = deque(range(count))
        self._suspects: deque[int] = deque()
        self._assigned: dict[str, list[int]] = {}
        self._unfinished = set(range(count))
        self._deaths: Counter[int] = Counter()
        self._returns: Counter[int] = Counter()

    @property
    def finished(self) -> bool:
        """Whether every item is finished."""
        return not self._unfinished

    def next_for(self, worker: str) -> int | None:
        """The next item for a worker, which has it from now on; None if it has enough or there is none."""
        assigned = self._assigned.setdefault(worker, [])
        if len(assigned) >= _AT_ONCE or any(self._is_suspect(item) for item in assigned):
            return None
        if self._waiting:
            item = self._waiting.popleft()
        elif self._suspects and not assigned:
            item = self._suspects.popleft()
        else:
            return None
        assigned.append(item)
        return item

    def finish(self, item: int) -> bool:
        """Take a result of an item; False if there was one before, which is the one that counts."""
        self._drop(item)
        if item not in self._unfinished:
            return False
        self._unfinished.remove(item)
        return True

    def lose(self, worker: str) -> list[int]:
        """A worker has died. Returns the items that are given up, because it was not the first one they killed."""
        given_up = []
        for item in self._assigned.pop(worker, []):
            # The first time tells nothing but that it may be the one; after that, the worker did nothing else.
            self._deaths[item] += 1
            if self._deaths[item] <= TRIES:
                self._suspects.append(item)
            elif self.finish(item):
                given_up.append(item)
        return given_up

    def give_back(self, item: int) -> bool:
        """An item was not tried, through no fault of its own, and waits again; False if that happens all the time."""
        self._drop(item)
        self._returns[item] += 1
        if item in self._unfinished:
            (self._suspects if self._is_suspect(item) else self._waiting).appendleft(item)
        return self._returns[item] <= _RETURNS

    def _is_suspect(self, item: int) -> bool:
        return self._deaths[item] > 0

    def _drop(self, item: int) -> None:
        for assigned in self._assigned.values():
            if item in assigned:
                assigned.remove(item)


@dataclass
class _Member:
    """A worker of the cluster: its name, its session, whether that is open, and the names of what it was sent."""

    name: str
    session: "Future[Any]"
    ready: bool = False
    sent: set[str] = field(default_factory=set)


@dataclass
class _Task:
    """An item on its way to a worker or at work there."""

    item: int
    address: str
    future: "Future[Any]"


class DaskWorkers:
    """Maps on a Dask cluster. Sessions on its workers are kept for the next map, until `close`.

    `needs` names what an item needs, and `supply` gives it in parts; a worker gets each once, see `WorkerState`.
    `patience`: how many seconds to wait for a worker when there is none.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        setup: Callable[..., WorkerState],
        arguments: tuple[Any, ...] = (),
        supply: Callable[[Sequence[str]], Iterable[Any]] = lambda names: (),
        needs: Callable[[Any], Iterable[str]] = lambda item: (),
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self.client: Client = connect(settings)
        self._settings, self._supply, self._needs, self._patience = settings, supply, needs, patience
        self._setup, self._arguments = setup, arguments
        self._token = uuid.uuid4().hex
        self._submitted = 0
        self._members: dict[str, _Member] = {}
        # By address: the name of the worker, and why it is not used.
        self._refused: dict[str, tuple[str, str]] = {}
        self._events: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._had_workers = False
        self._looked_at = self._alone_since = 0.0
        # Of the map that runs; the tasks by key.
        self._function: Callable[[Any, Any], Any] | None = None
        self._items: Sequence[Any] = ()
        self._assignments, self._tasks = Assignments(0), dict[str, _Task]()

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield results as they complete. The items of a lost worker go to the others."""
        self._alone_since = time.monotonic()
        self._function, self._items = function, items
        self._assignments, self._tasks = Assignments(len(items)), {}
        try:
            while not self._assignments.finished:
                for address in self._look():
                    yield from self._lose(address)
                self._require_workers()
                for address in [address for address, member in self._members.items() if member.ready]:
                    while (item := self._assignments.next_for(address)) is not None:
                        self._start(item, address)
                yield from self._take_events()
        except BaseException:
            # Ctrl-C, or the caller stopped iterating: do not wait for the running items.
            with suppress(Exception):
                self.client.cancel([task.future for task in self._tasks.values()], force=True)
            self.close(stop=True)
            raise

    def close(self, *, stop: bool = False) -> None:
        """Leave the cluster, which ends the sessions on its workers; `stop` gives up the items in hand."""
        if stop and self.client.status == "running":
            with suppress(Exception):
                self.client.run(stop_sessions, self._token, workers=list(self._members), on_error="ignore")
        self._members.clear()
        with suppress(Exception):
            self.client.close(timeout=5)

    def check(self) -> dict[str, tuple[str, str | None]]:
        """Set up every worker of the cluster; its name and why it is refused, None if it is not, by address."""
        self._look(at_once=True)
        deadline = time.monotonic() + self._patience
        while any(not member.ready for member in self._members.values()) and time.monotonic() < deadline:
            with suppress(queue.Empty):
                self._note_session(self._events.get(timeout=_LOOK_EVERY_SECONDS))
            self._look()
        silent = f"it has not answered for {self._patience:.0f} seconds"
        members = {place: (member.name, None if member.ready else silent) for place, member in self._members.items()}
        return dict(sorted({**members, **self._refused}.items()))

    # The workers

    def _look(self, *, at_once: bool = False) -> list[str]:
        """Set up workers that have joined; returns those that are gone. The more there are, the less often it asks."""
        now = time.monotonic()
        if not at_once and now - self._looked_at < _LOOK_EVERY_SECONDS * max(1, len(self._members) / 100):
            return []
        self._looked_at = now
        present = running_workers(self.client)
        gone = [address for address in self._members if address not in present]
        for address in gone:
            del self._members[address]
        self._refused = {address: known for address, known in self._refused.items() if address in present}
        for address in [place for place in present if place not in self._members and place not in self._refused]:
            if len(self._members) < (self._settings.count or 10**9):
                session = self._submit(address, open_session, self._token, self._setup, self._arguments)
                self._members[address] = _Member(present[address], session)
        return gone

    def _require_workers(self) -> None:
        """Raise an error if there is no worker left to wait for."""
        now = time.monotonic()
        if self._members:
            self._alone_since = now
            return
        reasons = "; ".join(f"worker {name}: {reason}" for name, reason in self._refused.values())
        if self._refused and not self._had_workers:
            raise TouchstoneError(f"{self._settings.address}: no worker can be used ({reasons})")
        if now - self._alone_since > self._patience:
            found = f"no worker is left ({reasons})" if reasons else "the cluster has no worker"
            raise UnreachableError(
                f"{self._settings.address}: {found}; start workers and run again: what was validated is kept"
            )

    def _note_session(self, future: "Future[Any]") -> None:
        """Take note of a session that is open, or of why it cannot be."""
        address = next((place for place, member in self._members.items() if member.session is future), None)
        if address is None:
            return
        if future.status == "finished":
            self._members[address].ready = self._had_workers = True
        elif future.status == "error":
            error = future.exception()
            known = isinstance(error, WorkerRefusedError)
            self._refuse(address, str(error) if known else f"{type(error).__name__}: {error}")
        else:
            del self._members[address]

    def _refuse(self, address: str, reason: str) -> None:
        """Use a worker no more."""
        member = self._members.pop(address, None)
        if member is not None:
            self._refused[address] = (member.name, " ".join(reason.split()))
            report_warning(f"worker {member.name} at {address} is not used: {' '.join(reason.split())}")

    def _submit(
        self, address: str, function: Callable[..., Any], *arguments: Any, reported: bool = True
    ) -> "Future[Any]":
        """Start a task on one worker; if `reported`, its future becomes one of the events when it is finished."""
        self._submitted += 1
        key = f"touchstone-{self._token}-{self._submitted}"
        future = self.client.submit(
            function, *arguments, key=key, workers=[address], allow_other_workers=False, pure=False
        )
        if reported:
            future.add_done_callback(self._events.put)
        return future

    # The items

    def _start(self, item: int, address: str, missing: Sequence[str] = ()) -> None:
        """Send an item, with what it needs that was not sent before or is `missing`."""
        member, given = self._members[address], self._items[item]
        needed = dict.fromkeys(self._needs(given))
        names = list(missing) or [name for name in needed if name not in member.sent]
        member.sent.update(names)
        # The last part, often the only one, goes with the item; those before it are tasks of their own.
        before: list[Future[Any]] = []
        last = None
        for part in self._supply(names) if names else ():
            if last is not None:
                before.append(self._submit(address, receive, member.session, last, reported=False))
            last = part
        future = self._submit(address, run_item, member.session, self._function, given, names, last, *before)
        self._tasks[str(future.key)] = _Task(item, address, future)

    def _take_events(self) -> Outcomes[Any]:
        """Yield the results that are there by now; waits a moment if nothing has happened."""
        futures: list[Future[Any]] = []
        with suppress(queue.Empty):
            futures.append(self._events.get(timeout=_LOOK_EVERY_SECONDS))
            while len(futures) < _FETCHED_AT_ONCE:
                futures.append(self._events.get_nowait())
        keys = [str(future.key) for future in futures if future.status == "finished"]
        results = fetched(self.client, [key for key in keys if key in self._tasks])
        for future in futures:
            task = self._tasks.pop(str(future.key), None)
            if task is None:
                # A session, or the result of an item that has gone to another worker since.
                self._note_session(future)
            elif str(future.key) not in results:
                yield from self._take_failure(task)
            elif self._assignments.finish(task.item):
                yield task.item, results[str(future.key)]

    def _take_failure(self, task: _Task) -> Outcomes[Any]:
        """Decide about the item of a task without a result: the worker did not try it, was lost, or never got it."""
        from distributed.scheduler import KilledWorker

        future = task.future
        error = future.exception() if future.status == "error" else None
        if isinstance(error, MissingError):
            self._start(task.item, task.address, error.args[0])
        elif isinstance(error, WorkerRefusedError):
            self._refuse(task.address, str(error))
            self._take_back(task, str(error))
        else:
            # It is set up again if it is still there.
            self._members.pop(task.address, None)
            if isinstance(error, KilledWorker):
                yield from self._lose(task.address)
            else:
                lost = "its result was lost" if future.status == "finished" else f"the task was {future.status}"
                self._take_back(task, f"RuntimeError: {lost}" if error is None else f"{type(error).__name__}: {error}")

    def _take_back(self, task: _Task, reason: str) -> None:
        """The items of a worker wait again: it can do none of them, through no fault of theirs."""
        for item in [task.item, *self._forget_tasks(task.address)]:
            if not self._assignments.give_back(item):
                raise TouchstoneError(
                    f"{self._settings.address}: the cluster fails at the same task again and again "
                    f"({' '.join(reason.split())}); what was validated is kept"
                )

    def _lose(self, address: str) -> Outcomes[Any]:
        """A worker is gone: its items wait again, except one that killed several."""
        self._forget_tasks(address)
        for item in self._assignments.lose(address):
            yield item, WorkerDiedError(DIED)

    def _forget_tasks(self, address: str) -> list[int]:
        tasks = [key for key, task in self._tasks.items() if task.address == address]
        return [self._tasks.pop(key).item for key in tasks]
