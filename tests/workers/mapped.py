"""What the workers of these tests do: a module that their processes import in a moment, unlike pytest."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from touchstone.workers import WorkerRefusedError, WorkerState


class Prefix(WorkerState):
    """What every answer starts with, until it is closed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def close(self) -> None:
        self.text = "closed"


class Farewell(Prefix):
    """Says in a file of its process that it was closed."""

    def close(self) -> None:
        (Path(self.text) / str(os.getpid())).touch()


def shout(prefix: Prefix, item: str) -> str:
    """The mapped function: some items raise, and some kill their process."""
    if item == "bad":
        raise ValueError("a bad item")
    if item == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if item.startswith("deadly once"):
        marker = Path(item.partition(":")[2])
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return f"{prefix.text}{item.upper()}"


def process_id(_: Prefix, item: str) -> int:
    return os.getpid()


def sleep(_: Prefix, item: str) -> None:
    Path(item, str(os.getpid())).touch()
    time.sleep(600)


def processors(_: Prefix, item: str) -> list[int]:
    """The processors that this worker may use, after giving the other workers time to start."""
    time.sleep(0.3)
    return sorted(os.sched_getaffinity(0))


class Shelf(Prefix):
    """A state that must receive what an item needs, and says in a file that it was closed."""

    def __init__(self, text: str, closed: str) -> None:
        super().__init__(text)
        self.closed, self.kept, self.stopped = Path(closed), set[str](), Event()
        self.parts: dict[str, dict[int, str]] = {}
        self.busy = False

    def missing(self, item: str) -> list[str]:
        return [name for name in item.split("+") if name not in self.kept]

    def receive(self, part: tuple[str, int, str]) -> None:
        name, place, letter = part
        self.parts.setdefault(name, {})[place] = letter

    def complete(self, names: Sequence[str]) -> None:
        self.kept.update(names)

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        (self.closed / str(os.getpid())).touch()


def open_shelf(text: str, closed: str, refused: str = "") -> Shelf:
    """A shelf, unless the worker's name is refused."""
    from distributed import get_worker

    if str(get_worker().name) in refused.split():
        raise WorkerRefusedError("its shelf is crooked")
    return Shelf(text, closed)


def read_parts(shelf: Shelf, item: str) -> tuple[int, str]:
    """What was received for an item, and the process that has it. Two items at once are an error."""
    assert not shelf.busy, "another item is at work in this process"
    shelf.busy = True
    time.sleep(0.002)
    shelf.busy = False
    words = ["".join(letter for _, letter in sorted(shelf.parts[name].items())) for name in item.split("+")]
    return os.getpid(), shelf.text + "/".join(words)


def wait_for_stop(shelf: Shelf, item: str) -> None:
    """Say that it is at work, until it is asked to stop."""
    (shelf.closed / f"working-{os.getpid()}").touch()
    shelf.stopped.wait(600)
