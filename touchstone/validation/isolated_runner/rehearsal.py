"""A small job that every warm worker runs once before its first fork.

What Python makes on first use (specialised code, caches, classes of proxies) then exists before the fork. Made in a
job, it is thrown away with the job's process, and each page of memory that it changes is copied first.
"""

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from touchstone.validation.isolated_runner.rpc import RpcConnection
from touchstone.validation.sandbox.folders import remove_folder

_MODULE, _TESTS = "rehearsed", "test_rehearsed"
_CODE = """
class Total:
    def __init__(self, values):
        self.values = values

    def add(self, value):
        self.values.append(value)
        return sum(self.values)


def total(values):
    if not values:
        raise ValueError("nothing to add")
    return float(sum(values))
"""
_TEST_CODE = """
from rehearsed import Total, total


def test_that_passes():
    assert total([1, 2]) == 3.0
    assert Total([1]).add(2) == 3


def test_that_fails():
    try:
        total([])
    except ValueError as error:
        assert str(error) == "nothing to add"
    assert total([1]) == "1"
"""
CANDIDATE: dict[str, Any] = {
    "files": {f"{_MODULE}.py": _CODE},
    "directory": "",
    "modules": [_MODULE],
    "main": _MODULE,
}
TESTS: dict[str, Any] = {
    **CANDIDATE,
    "files": {f"{_TESTS}.py": _TEST_CODE},
    "tests": [f"{_TESTS}.py"],
    **{name: [] for name in ("withheld", "classes", "methods", "functions")},
}


@contextmanager
def other_side(serve: Callable[[int], None]) -> Iterator[int]:
    """A connection to a forked process that serves it. What the job changes in this process is undone afterwards."""
    here, path, finders = os.getcwd(), list(sys.path), list(sys.meta_path)  # noqa: PTH109
    folder = Path(here, "rehearsal")
    (folder / "other").mkdir(parents=True)
    ours, theirs = socket.socketpair()
    process = os.fork()
    if process == 0:
        try:
            ours.close()
            os.chdir(folder / "other")
            serve(theirs.detach())
        finally:
            os._exit(0)
    theirs.close()
    try:
        os.chdir(folder)
        yield ours.detach()
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.chdir(here)
        remove_folder(folder)
        sys.path[:], sys.meta_path[:] = path, finders
        for name in (_MODULE, _TESTS):
            sys.modules.pop(name, None)
        for place in [place for place in sys.path_importer_cache if place.startswith(str(folder))]:
            del sys.path_importer_cache[place]
        gc.enable()


def ask_as_tests(connection: int) -> None:
    """Make the requests that tests typically make."""
    rpc = RpcConnection(socket.socket(fileno=connection))
    rpc.make_proxy = lambda number, about: number
    module = rpc.request("import", name=_MODULE)
    total = rpc.request("get", on=module, name="total")
    rpc.call(total, [[1, 2]], {})
    with suppress(RuntimeError):
        rpc.call(total, [[]], {})
    instance = rpc.call(rpc.request("get", on=module, name="Total"), [[1]], {})
    rpc.call(rpc.request("get", on=instance, name="add"), [2], {})
