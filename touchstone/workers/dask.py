"""Workers of a Dask cluster. Dask keeps the connections, runs the tasks and notices lost workers.

Every worker is set up first, which includes whatever decides that it may be used; one that joins later is set up then.
A task goes to one worker and to no other, so what a lost worker had is known, and given to others.
"""

import queue
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from touchstone.config.workers import WorkerSettings
from touchstone.errors import TouchstoneError, UnreachableError
from touchstone.progress import report_warning
from touchstone.workers import dask_session
from touchstone.workers.assignments import Assignments
from touchstone.workers.cluster import connect, fetched, running_workers
from touchstone.workers.protocol import DIED, Item, Outcomes, Result, WorkerDiedError, WorkerRefusedError, WorkerState

if TYPE_CHECKING:
    from distributed import Client, Future

# How often the cluster is asked who is there, up to a hundred workers and for each further hundred; and how long a run
# waits without any worker.
_LOOK_EVERY_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0
# Each may be a few megabytes.
_FETCHED_AT_ONCE = 20


@dataclass
class _Member:
    """A worker of the cluster: its name, its session, whether that is open, and the names of what it was sent."""

    name: str
    session: "Future[Any]"
    ready: bool = False
    sent: set[str] = field(default_factory=set)


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
        self.settings, self.supply, self.needs, self.patience = settings, supply, needs, patience
        self._setup, self._arguments = setup, arguments
        self._token = uuid.uuid4().hex
        self._submitted = 0
        self._members: dict[str, _Member] = {}
        # By address: the name of the worker, and why it is not used.
        self.refused: dict[str, tuple[str, str]] = {}
        self.events: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._had_workers = False
        self._looked_at = self._alone_since = 0.0

    def map(self, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> Outcomes[Result]:
        """Yield results as they complete. The items of a lost worker go to the others."""
        if not items:
            return
        self._alone_since = time.monotonic()
        mapping = _Mapping(self, function, items)
        try:
            yield from mapping.outcomes()
        except BaseException:
            # Ctrl-C, or the caller stopped iterating: do not wait for the running items.
            mapping.cancel()
            self.close(stop=True)
            raise

    def close(self, *, stop: bool = False) -> None:
        """Leave the cluster, which ends the sessions on its workers; `stop` gives up the items in hand."""
        if stop and self.client.status == "running":
            with suppress(Exception):
                self.client.run(dask_session.stop_sessions, self._token, workers=list(self._members), on_error="ignore")
        self._members.clear()
        with suppress(Exception):
            self.client.close(timeout=5)

    def check(self) -> dict[str, tuple[str, str | None]]:
        """Set up every worker of the cluster; its name and why it is refused, None if it is not, by address."""
        self.look(at_once=True)
        deadline = time.monotonic() + self.patience
        while any(not member.ready for member in self._members.values()) and time.monotonic() < deadline:
            with suppress(queue.Empty):
                self.opened(self.events.get(timeout=_LOOK_EVERY_SECONDS))
            self.look()
        silent = f"it has not answered for {self.patience:.0f} seconds"
        members = {
            address: (member.name, None if member.ready else silent) for address, member in self._members.items()
        }
        return dict(sorted({**members, **self.refused}.items()))

    @property
    def ready(self) -> list[str]:
        """The addresses of the workers that can be given items."""
        return [address for address, member in self._members.items() if member.ready]

    def look(self, *, at_once: bool = False) -> list[str]:
        """Set up workers that have joined; returns those that are gone. The more there are, the less often it asks."""
        now = time.monotonic()
        if not at_once and now - self._looked_at < _LOOK_EVERY_SECONDS * max(1, len(self._members) / 100):
            return []
        self._looked_at = now
        present = running_workers(self.client)
        gone = [address for address in self._members if address not in present]
        for address in gone:
            del self._members[address]
        for address in [address for address in self.refused if address not in present]:
            del self.refused[address]
        for address, name in present.items():
            most = self.settings.count
            if address not in self._members and address not in self.refused and len(self._members) < (most or 10**9):
                arguments = (self._token, self._setup, self._arguments)
                self._members[address] = _Member(name, self.submit(address, dask_session.open_session, *arguments))
        return gone

    def require_workers(self) -> None:
        """Raise an error if there is no worker left to wait for."""
        now = time.monotonic()
        if self._members:
            self._alone_since = now
            return
        reasons = "; ".join(f"worker {name}: {reason}" for name, reason in self.refused.values())
        if self.refused and not self._had_workers:
            raise TouchstoneError(f"{self.settings.address}: no worker can be used ({reasons})")
        if now - self._alone_since > self.patience:
            found = f"no worker is left ({reasons})" if reasons else "the cluster has no worker"
            raise UnreachableError(
                f"{self.settings.address}: {found}; start workers and run again: what was validated is kept"
            )

    def opened(self, future: "Future[Any]") -> None:
        """Take note of a session that is open, or of why it cannot be."""
        address = next((place for place, member in self._members.items() if member.session is future), None)
        if address is None:
            return
        if future.status == "finished":
            self._members[address].ready = self._had_workers = True
        elif future.status == "error":
            error = future.exception()
            known = isinstance(error, WorkerRefusedError)
            self.refuse(address, str(error) if known else f"{type(error).__name__}: {error}")
        else:
            del self._members[address]

    def refuse(self, address: str, reason: str) -> None:
        """Use a worker no more."""
        member = self._members.pop(address, None)
        if member is not None:
            self.refused[address] = (member.name, " ".join(reason.split()))
            report_warning(f"worker {member.name} at {address} is not used: {' '.join(reason.split())}")

    def forget(self, address: str) -> None:
        """Set up a worker again, if it is still there: its session was lost."""
        self._members.pop(address, None)

    def member(self, address: str) -> _Member:
        """A worker that is used."""
        return self._members[address]

    def submit(
        self, address: str, function: Callable[..., Any], *arguments: Any, reported: bool = True
    ) -> "Future[Any]":
        """Start a task on one worker; if `reported`, its future becomes one of the events when it is finished."""
        self._submitted += 1
        key = f"touchstone-{self._token}-{self._submitted}"
        future = self.client.submit(
            function, *arguments, key=key, workers=[address], allow_other_workers=False, pure=False
        )
        if reported:
            future.add_done_callback(self.events.put)
        return future


@dataclass
class _Task:
    """An item on its way to a worker or at work there."""

    item: int
    address: str
    future: "Future[Any]"


class _Mapping(Generic[Item, Result]):
    """One map: hands out items, takes results, and starts again what got lost."""

    def __init__(self, workers: DaskWorkers, function: Callable[[Any, Item], Result], items: Sequence[Item]) -> None:
        self._workers, self._function, self._items = workers, function, items
        self._assignments = Assignments(len(items))
        self._tasks: dict[str, _Task] = {}

    def outcomes(self) -> Outcomes[Result]:
        while not self._assignments.finished:
            for address in self._workers.look():
                yield from self._lose(address)
            self._workers.require_workers()
            for address in self._workers.ready:
                while (item := self._assignments.next_for(address)) is not None:
                    self._start(item, address)
            futures = self._finished_futures()
            keys = [str(future.key) for future in futures if future.status == "finished"]
            answers = fetched(self._workers.client, [key for key in keys if key in self._tasks])
            for future in futures:
                task = self._tasks.pop(str(future.key), None)
                if task is None:
                    # A session, or the result of an item that has gone to another worker since.
                    self._workers.opened(future)
                else:
                    yield from self._take(task, answers.get(str(future.key)))

    def _finished_futures(self) -> "list[Future[Any]]":
        """Every task that has finished by now; waits a moment if there is none."""
        futures: list[Future[Any]] = []
        with suppress(queue.Empty):
            futures.append(self._workers.events.get(timeout=_LOOK_EVERY_SECONDS))
            while len(futures) < _FETCHED_AT_ONCE:
                futures.append(self._workers.events.get_nowait())
        return futures

    def cancel(self) -> None:
        """Cancel every task on the cluster."""
        with suppress(Exception):
            self._workers.client.cancel([task.future for task in self._tasks.values()], force=True)

    def _start(self, item: int, address: str, missing: Sequence[str] = ()) -> None:
        """Send an item, with what it needs that was not sent before or is `missing`."""
        workers, member = self._workers, self._workers.member(address)
        needed = dict.fromkeys(workers.needs(self._items[item]))
        names = list(missing) or [name for name in needed if name not in member.sent]
        member.sent.update(names)
        # The last part, often the only one, goes with the item; those before it are tasks of their own.
        before: list[Future[Any]] = []
        last = None
        for part in workers.supply(names) if names else ():
            if last is not None:
                before.append(workers.submit(address, dask_session.receive, member.session, last, reported=False))
            last = part
        arguments = (member.session, self._function, self._items[item], names, last, *before)
        future = workers.submit(address, dask_session.run_item, *arguments)
        self._tasks[str(future.key)] = _Task(item, address, future)

    def _take(self, task: _Task, answer: Any) -> Outcomes[Result]:
        """What a finished task means for its item. `answer` is the worker's, None if there is none."""
        answer = answer or self._failure(task)
        if isinstance(answer, dask_session.Done):
            if self._assignments.finish(task.item):
                yield task.item, answer.result
        elif isinstance(answer, dask_session.Needs):
            self._start(task.item, task.address, answer.names)
        elif isinstance(answer, dask_session.Refused):
            self._workers.refuse(task.address, answer.reason)
            self._take_back(task, answer.reason)
        elif isinstance(answer, WorkerDiedError):
            self._workers.forget(task.address)
            yield from self._lose(task.address)
        else:
            self._workers.forget(task.address)
            self._take_back(task, f"{type(answer).__name__}: {answer}")

    def _failure(self, task: _Task) -> Any:
        """Why a task has no answer: an exception if its worker was lost, or if Dask did not get as far as asking it."""
        from distributed.scheduler import KilledWorker

        future = task.future
        if future.status == "error":
            error = future.exception()
            if isinstance(error, WorkerRefusedError):
                return dask_session.Refused(str(error))
            return WorkerDiedError(DIED) if isinstance(error, KilledWorker) else error
        return RuntimeError("its result was lost" if future.status == "finished" else f"the task was {future.status}")

    def _take_back(self, task: _Task, reason: str) -> None:
        """The items of a worker wait again: it can do none of them, through no fault of theirs."""
        for item in [task.item, *self._forget_tasks(task.address)]:
            if not self._assignments.give_back(item):
                raise TouchstoneError(
                    f"{self._workers.settings.address}: the cluster fails at the same task again and again "
                    f"({' '.join(reason.split())}); what was validated is kept"
                )

    def _lose(self, address: str) -> Outcomes[Result]:
        """A worker is gone: its items wait again, except one that killed several."""
        self._forget_tasks(address)
        for item in self._assignments.lose(address):
            yield item, WorkerDiedError(DIED)

    def _forget_tasks(self, address: str) -> list[int]:
        tasks = [key for key, task in self._tasks.items() if task.address == address]
        return [self._tasks.pop(key).item for key in tasks]
