"""A Dask cluster for tests: a scheduler and workers that are forked, so that Dask is imported once for all of them.

    python -m tests.workers.forked_cluster COUNT [THREADS]

Prints the scheduler's address, then the process id of each worker, and ends with its standard input.
"""

import asyncio
import os
import socket
import sys

from distributed import Scheduler, Worker

import touchstone.validation.cluster_worker  # noqa: F401


async def schedule(port: int, workers: list[int]) -> None:
    async with Scheduler(host="127.0.0.1", port=port, dashboard=False) as scheduler:
        while len(scheduler.workers) < len(workers):
            await asyncio.sleep(0.01)
        print(scheduler.address, *workers, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def work(address: str, name: str, threads: int) -> None:
    worker = Worker(address, name=name, host="127.0.0.1", nthreads=threads, dashboard=False, death_timeout=60)
    async with worker:
        await worker.finished()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(count: int, threads: int) -> None:
    port = free_port()
    workers = []
    for place in range(count):
        child = os.fork()
        if child == 0:
            sys.stdin.close()
            try:
                asyncio.run(work(f"tcp://127.0.0.1:{port}", f"worker-{place}", threads))
            finally:
                os._exit(0)
        workers.append(child)
    asyncio.run(schedule(port, workers))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
