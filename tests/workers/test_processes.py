"""Mapping over many items, in this process or several: the same results, even if workers die."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import is_zombie
from tests.workers.mapped import Farewell, Prefix, process_id, processors, shout, sleep
from touchstone.workers import WorkerDiedError, Workers
from touchstone.workers.processes import ProcessWorkers, SerialWorkers

_of_other_tests: set[int] = set()


@pytest.fixture(autouse=True)
def _other_tests_may_keep_processes() -> Iterator[None]:
    """Sandboxes and servers that other tests in this process still need are no workers of a test here."""
    _of_other_tests.update(children(os.getpid()))
    yield
    _of_other_tests.clear()


def serial() -> SerialWorkers:
    return SerialWorkers(Prefix, ("> ",))


def processes(count: int) -> ProcessWorkers:
    return ProcessWorkers(count, Prefix, ("> ",))


def outcomes(workers: Workers, items: list[str]) -> list[str]:
    """What became of each item, in the items' order; every place must come once."""
    with contextlib.closing(workers):
        found = list(workers.map(shout, items))
    workers.close()
    assert sorted(place for place, _ in found) == list(range(len(items)))
    return [f"{type(one).__name__}: {one}" if isinstance(one, BaseException) else one for _, one in sorted(found)]


@pytest.mark.parametrize(
    "workers", [serial(), pytest.param(processes(1), marks=pytest.mark.nightly), processes(2)], ids=["here", "1", "2"]
)
def test_results_are_the_same_whoever_works(workers: Workers) -> None:
    items = ["a", "bad", "b", "bad", "c", "d"]
    assert outcomes(workers, items) == ["> A", "ValueError: a bad item", "> B", "ValueError: a bad item", "> C", "> D"]
    assert outcomes(workers, []) == []


def test_every_process_closes_what_it_set_up(tmp_path: Path) -> None:
    """Else a sandbox outlives its worker, whose control group can then not be removed."""
    with contextlib.closing(ProcessWorkers(2, Farewell, (str(tmp_path),))) as workers:
        found = {
            int(outcome) for _, outcome in workers.map(process_id, ["a"] * 20) if not isinstance(outcome, BaseException)
        }
    assert found and {int(closed.name) for closed in tmp_path.iterdir()} >= found


def test_here_items_come_in_order_and_what_was_set_up_stays_until_it_is_closed() -> None:
    made: list[Prefix] = []
    workers = SerialWorkers(lambda text: made.append(Prefix(text)) or made[-1], ("> ",))
    assert list(workers.map(shout, ["b", "a"])) == [(0, "> B"), (1, "> A")]
    assert next(workers.map(shout, ["c", "d"])) == (0, "> C")
    assert [each.text for each in made] == ["> "]
    workers.close()
    assert [each.text for each in made] == ["closed"]
    workers.close()


def test_processes_are_kept_for_the_next_map_and_end_when_they_are_closed() -> None:
    workers = processes(2)
    with contextlib.closing(workers):
        assert sorted(workers.map(shout, ["a", "b"])) == [(0, "> A"), (1, "> B")]
        kept = set(children(os.getpid()))
        assert len(kept) in (1, 2)
        assert sorted(workers.map(shout, ["a", "b"])) == [(0, "> A"), (1, "> B")]
        assert kept <= set(children(os.getpid()))
    assert until(lambda: children(os.getpid()) == []), "a worker is left"
    workers.close()


@pytest.mark.nightly
@pytest.mark.parametrize(("count", "killer"), [(1, "deadly"), (2, "deadly"), (2, "a")])
def test_a_process_that_is_killed_takes_only_the_item_that_kills_it_every_time(
    tmp_path: Path, count: int, killer: str
) -> None:
    """One that killed a process once is done in the end, whether or not another kills every time."""
    once = f"deadly once:{tmp_path / 'marker'}"
    died = f"{WorkerDiedError.__name__}: the process that validated it was killed"
    first = died if killer == "deadly" else "> A"
    assert outcomes(processes(count), [killer, once, "bad", "b"]) == [
        *(first, f"> {once.upper()}", "ValueError: a bad item", "> B")
    ]


def test_a_process_that_is_killed_between_two_maps_is_replaced() -> None:
    workers = processes(1)
    with contextlib.closing(workers):
        assert list(workers.map(shout, ["a"])) == [(0, "> A")]
        for process in children(os.getpid()):
            os.kill(process, signal.SIGKILL)
        assert until(lambda: children(os.getpid()) == [])
        time.sleep(0.2)
        assert list(workers.map(shout, ["a"])) == [(0, "> A")]


@pytest.mark.services
def test_every_process_keeps_to_a_processor_of_its_own() -> None:
    """What an item starts stays there, so that it takes no time from its neighbours."""
    ours = sorted(os.sched_getaffinity(0))
    with contextlib.closing(processes(len(ours))) as workers:
        found = [used for _, used in workers.map(processors, ["x"] * 4 * len(ours)) if isinstance(used, list)]
    assert all(len(used) == 1 for used in found)
    assert sorted({used[0] for used in found}) == ours


def test_workers_end_with_their_parent_however_it_ends(tmp_path: Path) -> None:
    code = "import sys; from tests.workers.mapped import Prefix, sleep; "
    code += "from touchstone.workers.processes import ProcessWorkers; "
    code += "list(ProcessWorkers(2, Prefix, ('',)).map(sleep, [sys.argv[1]] * 4))"
    parent = subprocess.Popen([sys.executable, "-c", code, tmp_path])
    try:
        assert until(lambda: len(list(tmp_path.iterdir())) == 2), "the workers did not start"
        workers = {int(path.name) for path in tmp_path.iterdir()}
        assert workers <= set(children(parent.pid))
    finally:
        parent.kill()
        parent.wait()
    assert until(lambda: all(is_zombie(worker) for worker in workers)), "a worker outlived its parent"


def until(holds: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def children(process: int) -> list[int]:
    """The worker processes of a process; Python's helper that watches over semaphores is none, nor is a cluster."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended since
            found += [int(child) for child in (task / "children").read_text().split()]
    others = ("resource_tracker", "forked_cluster")
    mine = [child for child in found if not is_zombie(child) and child not in _of_other_tests]
    return [child for child in mine if not any(name in command_line(child) for name in others)]


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def test_whoever_stops_listening_need_not_wait_for_what_is_in_hand(tmp_path: Path) -> None:
    workers = processes(2)
    results = workers.map(sleep_unless_first, ["first", str(tmp_path), str(tmp_path)])
    assert next(results) == (0, None)
    started = time.monotonic()
    results.close()
    assert children(os.getpid()) == []
    assert time.monotonic() - started < 500, "the items sleep for ten minutes"


def sleep_unless_first(prefix: Prefix, item: str) -> None:
    if item != "first":
        sleep(prefix, item)
