"""What runs on a Dask worker: a session per client, which holds the state that `setup` made there.

A session is the result of a task and stays in the worker's memory while the client wants it. When the client releases
it, or leaves in whatever way, Dask deletes it, and with it goes everything that it keeps running.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from touchstone.workers.protocol import WorkerRefusedError, WorkerState, portable

# One item at a time in this process, however many threads the worker has: items share warm sandboxes.
_turn = threading.Lock()
_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


@dataclass(frozen=True)
class Done:
    """The result of an item, which is an exception if the function raised one."""

    result: Any


@dataclass(frozen=True)
class Needs:
    """The item was not tried: the worker must receive these first."""

    names: Sequence[str]


@dataclass(frozen=True)
class Refused:
    """The item was not tried: the worker would answer differently."""

    reason: str


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
) -> Done | Needs | Refused:
    """Do one item, after receiving the last part of what it needs. `parts` are the tasks that received the others."""
    with _turn:
        if session.state is None:
            return Refused("its state is gone")
        if received:
            session.state.receive(part)
        try:
            if received:
                session.state.complete(received)
            missing = session.state.missing(item)
            return Needs(missing) if missing else Done(function(session.state, item))
        except WorkerRefusedError as refusal:
            return Refused(str(refusal))
        except Exception as error:
            return Done(portable(error))


def stop_sessions(token: str) -> None:
    """Ask the sessions of a client to give up what they do."""
    for session in list(_sessions):
        if session.token == token and session.state is not None:
            session.state.stop()
