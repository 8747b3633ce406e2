"""How busy the scheduler of a thousand Dask workers is, and what the client costs, with validation replaced by a sleep.

    python benchmarks/thousand_workers.py [--workers N] [--rate N] [--fixes N] [--batch N] [--heartbeat SECONDS]

Real are the scheduler (a process of its own), its TCP connections on loopback, and this process, which batches, sends
fixes and problem files, takes reports and caches them, as a run does. The workers are many per process, each with a
thread and connections of its own, and sleep as long as --rate fixes a second take. --batch and --heartbeat replace the
sizes of a run and the interval of Dask. Figures are CPU time, so that other work on the machine matters less.
"""

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dask
import psutil
import python_problems
import ratios
from distributed import Scheduler, Worker, scheduler

import touchstone.workers.dask
from touchstone.config import WorkerSettings
from touchstone.config.validation import ValidationSettings
from touchstone.validation import cluster
from touchstone.validation import session as sessions
from touchstone.validation.protocol import Report
from touchstone.validation.targets import Targets
from touchstone.workers import WorkerState
from touchstone.workers.cluster import connect, running_workers

LOCAL: dict[str, Any] = {"host": "127.0.0.1", "dashboard": False}
# A fix is a whole file of about two kilobytes; its report names five tests.
PADDING = "# a line of a file that is as long as most are in practice\n" * 30
TESTS = {f"test_solution.py::test_{place}": True for place in range(5)}
# A thousand workers would keep these cores busy with figures about themselves.
QUIET = {f"distributed.{name}": "1h" for name in ("admin.system-monitor.interval", "admin.tick.interval")}
QUIET |= {f"distributed.worker.{name}": False for name in ("profile.enabled", "use-file-locking")}


class Sleeper(WorkerState):
    """A worker without a sandbox, which remembers the folders that it was sent."""

    def __init__(self, *_: object) -> None:
        self.received = set[str]()

    def missing(self, item: Any) -> list[str]:
        return [name for name in dict.fromkeys(item.folders) if name not in self.received]

    def complete(self, names: Sequence[str]) -> None:
        self.received.update(names)


async def serve(servers: Sequence[Any]) -> None:
    await asyncio.gather(*servers)
    await asyncio.gather(*(server.finished() for server in servers))


async def schedule(port: int, heartbeat: int) -> None:
    if heartbeat:
        scheduler.heartbeat_interval = lambda workers: heartbeat
    await serve([Scheduler(port=port, dashboard_address="127.0.0.1:0", **LOCAL)])


async def work(address: str, names: Sequence[int], rate: float) -> None:
    # Validation is a sleep, and each report says how large its batch was.
    def validate(_: Sleeper, carried: cluster.CarriedBatch) -> list[Report]:
        size = len(carried.batch.jobs)
        time.sleep(size / rate)
        return [Report("passed", "full", tests=TESTS, compiled=True, lint_warnings=size) for _ in range(size)]

    cluster.open_cluster_worker, cluster.validate_carried = Sleeper, validate
    # Elsewhere a process is one worker, with one item at a time.
    touchstone.workers.dask._turn = contextlib.nullcontext()
    with dask.config.set(QUIET):
        await serve([Worker(address, name=name, nthreads=1, memory_limit=0, **LOCAL) for name in names])


def run(function: Any, *arguments: Any) -> None:
    logging.disable()
    asyncio.run(function(*arguments))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a scheduler with a thousand sleeping workers.")
    defaults = {"workers": 1000, "processes": 4, "rate": 20, "fixes": 400_000, "batch": 0, "heartbeat": 0}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as name, _cluster(given) as (workers, process):
        folder, settings = Path(name), ValidationSettings()
        problems = python_problems.write_problems(folder)
        found = Targets(folder / "clones", settings).find(problem.row for problem in problems)

        def requests(comment: str, count: int) -> list[sessions.Request]:
            each = range(-(-count // len(problems)))
            texts = ((one.oid, f"{one.reference}{PADDING}# {comment} {n}\n".encode()) for one in problems for n in each)
            return [session.request(found[oid], text) for oid, text in texts][:count]

        def now() -> tuple[float, float, float]:
            return sum(process.cpu_times()[:2]), time.process_time(), time.perf_counter()

        with sessions.ValidationSession(settings, folder / "cache", folder / "scratch", workers=workers) as session:
            session.reports(requests("first", given.workers), "opening sessions")
            wanted, before = requests("second", given.fixes), now()
            time.sleep(20)
            idle = (now()[0] - before[0]) / 20
            if given.batch:
                sessions.batch_size = lambda *_, **__: given.batch
            before = now()
            reports = session.reports(wanted, "measured")
            busy, client, wall = (end - start for end, start in zip(now(), before, strict=True))
    tasks = sum(1 / (one.report.lint_warnings or 1) for one in reports.values())
    net, rate = (busy - idle * wall) / given.fixes, given.workers * given.rate
    assert net > 0, "too few fixes to tell the scheduler's work from that with idle workers"
    print(f"{given.fixes:,} fixes in {tasks:,.0f} batches: {given.fixes / wall:,.0f} and {tasks / wall:.1f} a second")
    print(f"scheduler: {busy / wall:.1%} busy, {idle:.1%} with idle workers")
    print(f"scheduler, beyond idle: {1e3 * net * given.fixes / tasks:.2f} CPU ms a batch, {1e6 * net:.1f} µs a fix")
    print(f"client: {1e3 * client / tasks:.2f} CPU ms a batch, {1e6 * client / given.fixes:.1f} µs a fix")
    ratios.add(
        f"scheduler of a Dask cluster at {rate:,} fixes a second: share of time busy", idle + net * rate, at_most=0.5
    )
    print(f"scheduler at {rate:,.0f} fixes a second: {idle + net * rate:.1%}; at 50%: {(0.5 - idle) / net:,.0f} fixes")


@contextlib.contextmanager
def _cluster(given: argparse.Namespace) -> Iterator[tuple[WorkerSettings, psutil.Process]]:
    port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
    settings = WorkerSettings(kind="dask", address=f"tcp://127.0.0.1:{port}")
    shares = [range(first, given.workers, given.processes) for first in range(given.processes)]
    tasks = [(schedule, port, given.heartbeat), *((work, settings.address, names, given.rate) for names in shares)]
    processes = [multiprocessing.get_context("spawn").Process(target=run, args=task) for task in tasks]
    try:
        for process in processes:
            process.start()
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.5)
        with contextlib.closing(connect(settings)) as client:
            while len(running_workers(client)) < given.workers:
                time.sleep(5)
        yield settings, psutil.Process(processes[0].pid)
    finally:
        for process in processes:
            process.terminate()
            process.join()


if __name__ == "__main__":
    main()
