"""A Dask cluster for tests: a scheduler and workers that are forked, so that Dask is imported once for all of them.

    python -m tests.workers.forked_cluster COUNT [THREADS]

Prints the scheduler's address, then the process id of each worker, and ends with its standard input.
"""

import asyncio
import os
import sys

from distributed import Scheduler, Security, Worker

import touchstone.validation.cluster  # noqa: F401
from tests.processes import free_port
from touchstone.workers.cluster import local_security


async def schedule(port: int, workers: list[int], security: Security) -> None:
    served = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}
    async with Scheduler(port=port, **served) as scheduler:
        while len(scheduler.workers) < len(workers):
            await asyncio.sleep(0.01)
        print(scheduler.address, *workers, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def work(address: str, name: str, threads: int, security: Security) -> None:
    served = {"host": "127.0.0.1", "security": security, "dashboard": False}
    worker = Worker(address, name=name, nthreads=threads, death_timeout=60, **served)
    async with worker:
        await worker.finished()


def main(count: int, threads: int) -> None:
    port = free_port()
    workers = []
    with local_security(port) as security:
        for place in range(count):
            child = os.fork()
            if child == 0:
                sys.stdin.close()
                try:
                    asyncio.run(work(f"tls://127.0.0.1:{port}", f"worker-{place}", threads, security))
                finally:
                    os._exit(0)
            workers.append(child)
        asyncio.run(schedule(port, workers, security))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
