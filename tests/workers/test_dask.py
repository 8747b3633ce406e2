"""Mapping on a Dask cluster: the same results as in this process, also when workers die, differ, join or are few."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.workers.conftest import Cluster, forked_cluster
from tests.workers.mapped import Prefix, open_shelf, read_parts, shout, wait_for_stop
from tests.workers.test_processes import outcomes, serial, until
from touchstone.config import WorkerSettings
from touchstone.errors import TouchstoneError
from touchstone.workers import WorkerDiedError
from touchstone.workers.dask import DaskWorkers

ITEMS = ["a", "bad", "b", "bad", *"cdefghij"]
DIED = f"{WorkerDiedError.__name__}: the process that validated it was killed"


def supply(names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Every letter of every name."""
    yield from ((name, place, letter) for name in names for place, letter in enumerate(name))


def shelves(cluster: Cluster, folder: Path, refused: str = "") -> DaskWorkers:
    return DaskWorkers(cluster.settings, open_shelf, ("> ", str(folder), refused), supply)


def closed(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()}


@pytest.mark.services
def test_results_are_those_of_this_process(cluster: Cluster) -> None:
    assert outcomes(DaskWorkers(cluster.settings, Prefix, ("> ",)), ITEMS) == outcomes(serial(), ITEMS)


@pytest.mark.services
def test_workers_receive_what_items_need_keep_it_for_the_next_map_and_close_when_the_client_leaves(
    cluster: Cluster, tmp_path: Path
) -> None:
    items = ["left+right", "left", "right+left"] * 4
    with contextlib.closing(shelves(cluster, tmp_path)) as workers:
        first = dict(workers.map(read_parts, items))
        again = dict(workers.map(read_parts, items))
    assert [first[place][1] for place in range(3)] == ["> left/right", "> left", "> right/left"]  # type: ignore[index]
    assert {text for _, text in again.values()} == {text for _, text in first.values()}  # type: ignore[misc]
    used = {process for process, _ in first.values()} | {process for process, _ in again.values()}  # type: ignore[misc]
    assert until(lambda: used <= closed(tmp_path)), "a session outlived its client"


@pytest.mark.services
def test_what_an_item_is_known_to_need_is_sent_with_it_once_per_worker(cluster: Cluster, tmp_path: Path) -> None:
    sent: list[str] = []

    def supply_once(names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
        sent.extend(names)
        return supply(names)

    arguments = ("> ", str(tmp_path), "")
    workers = DaskWorkers(cluster.settings, open_shelf, arguments, supply_once, lambda item: item.split("+"))
    with contextlib.closing(workers):
        done = [*dict(workers.map(read_parts, ["x", "x+y"] * 12)).values()]
        done += dict(workers.map(read_parts, ["y+x"] * 6)).values()
    assert {text for _, text in done} == {"> x", "> x/y", "> y/x"}  # type: ignore[misc]
    used = {process for process, _ in done}  # type: ignore[misc]
    assert sent.count("x") == len(used) >= sent.count("y") > 0


@pytest.mark.services
def test_a_worker_that_differs_is_refused_by_name_and_gets_no_item(cluster: Cluster, tmp_path: Path) -> None:
    with contextlib.closing(shelves(cluster, tmp_path, "worker-0")) as workers:
        done = dict(workers.map(read_parts, ["x"] * 12))
        reasons = {name: reason for name, reason in workers.check().values() if reason}
    assert reasons == {"worker-0": "its shelf is crooked"}
    assert cluster.workers[0] not in {process for process, _ in done.values()}  # type: ignore[misc]


@pytest.mark.services
def test_if_every_worker_is_refused_the_error_names_them(cluster: Cluster, tmp_path: Path) -> None:
    everybody = "worker-0 worker-1 worker-2"
    with (
        contextlib.closing(shelves(cluster, tmp_path, everybody)) as workers,
        pytest.raises(TouchstoneError, match=r"no worker can be used \(.*worker worker-1: its shelf is crooked"),
    ):
        list(workers.map(read_parts, ["x"]))


def test_an_address_without_a_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("touchstone.workers.cluster._CONNECT_SECONDS", 0.5)
    nobody = WorkerSettings(kind="dask", address="tcp://127.0.0.1:9")
    with pytest.raises(TouchstoneError, match=r"^tcp://127.0.0.1:9: no Dask scheduler answers \(.*\); start one"):
        DaskWorkers(nobody, Prefix, ("",))


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(TouchstoneError, match=r"^Dask is not installed; install touchstone\[dask\]$"):
        DaskWorkers(WorkerSettings(kind="dask", address="tcp://127.0.0.1:9"), Prefix, ("",))


@pytest.mark.nightly
@pytest.mark.parametrize("refused", ["", "late"])
def test_a_worker_that_joins_later_is_set_up_before_it_gets_items(tmp_path: Path, refused: str) -> None:
    with forked_cluster(1) as cluster, contextlib.closing(shelves(cluster, tmp_path, refused)) as workers:
        list(workers.map(read_parts, ["x"] * 4))
        command = [Path(sys.executable).parent / "dask", "worker", cluster.address, "--name", "late", "--no-nanny"]
        command += cluster.tls_options
        late = subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard"], cwd=PROJECT, stderr=subprocess.DEVNULL)
        try:
            assert until(lambda: "late" in dict(workers.check().values()))
            done = dict(workers.map(read_parts, ["x"] * 60))
        finally:
            late.terminate()
            late.wait()
    used = {process for process, _ in done.values()}  # type: ignore[misc]
    assert used == ({cluster.workers[0]} if refused else {cluster.workers[0], late.pid})


@pytest.mark.nightly
def test_a_worker_that_is_killed_takes_only_the_item_that_kills_it_every_time(tmp_path: Path) -> None:
    once = f"deadly once:{tmp_path / 'marker'}"
    with forked_cluster(6) as cluster:
        found = outcomes(DaskWorkers(cluster.settings, Prefix, ("> ",)), [*"abcdef", "deadly", once, "bad", *"ghi"])
    assert found[6] == DIED
    assert found[:6] == [f"> {letter}" for letter in "ABCDEF"]
    assert found[7:] == [f"> {once.upper()}", "ValueError: a bad item", "> G", "> H", "> I"]


@pytest.mark.nightly
def test_without_any_worker_left_the_run_ends_with_one_line() -> None:
    with forked_cluster(1) as cluster:
        workers = DaskWorkers(cluster.settings, Prefix, ("",), patience=1.0)
        with (
            contextlib.closing(workers),
            pytest.raises(TouchstoneError, match="the cluster has no worker; start workers and run again"),
        ):
            list(workers.map(shout, ["deadly"]))


@pytest.mark.nightly
def test_a_scheduler_that_is_gone_ends_the_run_with_one_line() -> None:
    with forked_cluster(1) as cluster:
        workers = DaskWorkers(cluster.settings, Prefix, ("> ",))
        with contextlib.closing(workers):
            results = workers.map(shout, [*"abcdefgh"])
            next(results)
            os.kill(cluster.scheduler, signal.SIGKILL)
            with pytest.raises(TouchstoneError, match="the connection to the Dask scheduler was lost"):
                list(results)


@pytest.mark.nightly
def test_one_item_at_a_time_in_a_worker_of_many_threads(tmp_path: Path) -> None:
    with forked_cluster(1, threads=4) as cluster, contextlib.closing(shelves(cluster, tmp_path)) as workers:
        done = dict(workers.map(read_parts, ["x"] * 60))
    assert {text for _, text in done.values()} == {"> x"}  # type: ignore[misc]


@pytest.mark.nightly
def test_whoever_stops_listening_stops_the_work_on_the_cluster(tmp_path: Path) -> None:
    with forked_cluster(2) as cluster:
        results = shelves(cluster, tmp_path).map(wait_for_stop, ["x"] * 8)
        with pytest.raises(KeyboardInterrupt):
            interrupt_when(tmp_path, results)
        assert until(lambda: set(cluster.workers) <= closed(tmp_path)), "a session is left"


def interrupt_when(folder: Path, results: Iterator[object]) -> None:
    """Wait for results, and send this process Ctrl-C when the work has begun."""
    code = "import os, pathlib, sys, time\n"
    code += "while not list(pathlib.Path(sys.argv[1]).glob('working-*')): time.sleep(0.05)\n"
    code += "os.kill(int(sys.argv[2]), 2)"
    with subprocess.Popen([sys.executable, "-c", code, folder, str(os.getpid())]):
        next(results)


@pytest.mark.nightly
def test_a_client_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from tests.workers.conftest import Cluster; "
    code += "from tests.workers.mapped import read_parts, sleep; from tests.workers.test_dask import shelves; "
    code += "workers = shelves(Cluster(sys.argv[1], []), Path(sys.argv[2])); "
    code += "print(len(list(workers.map(read_parts, ['x'] * 12))), flush=True); input()"
    with forked_cluster(2) as cluster:
        command = [sys.executable, "-c", code, cluster.address, str(tmp_path)]
        client = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert client.stdout is not None and client.stdout.readline() == b"12\n"
        client.send_signal(signal.SIGKILL)
        client.communicate()
        assert until(lambda: set(cluster.workers) <= closed(tmp_path)), "a session outlived its client"
