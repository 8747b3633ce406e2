"""The candidate's side: write its files to a private folder and execute the requests of the tests on them.

The tests do not trust this process: whatever it answers is only ever decoded as a plain value.
"""

import functools
import importlib
import os
import random
import socket
import sys
import types
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from touchstone.validation.isolated_runner import preload, rehearsal
from touchstone.validation.isolated_runner.exceptions import ExceptionTranslator, find_in_loaded_modules
from touchstone.validation.isolated_runner.first_import import find_first
from touchstone.validation.isolated_runner.lending import receive
from touchstone.validation.isolated_runner.operations import CAPABILITIES, COMPARISONS, OPERATIONS, OPERATORS, UNARY
from touchstone.validation.isolated_runner.rpc import ConnectionLostError, Request, RpcConnection
from touchstone.validation.isolated_runner.shadowing import forget_shadowed, installed_modules
from touchstone.validation.sandbox import fork_server
from touchstone.validation.sandbox.entrypoint import Policy


@functools.cache
def _loop() -> Any:
    # Imported only if a candidate needs it: asyncio makes every process larger and slower to start.
    import asyncio

    return asyncio.Runner()


def _awaited(value: Awaitable[Any]) -> Any:
    """Await a value in this process's only event loop, which persists between requests of the tests."""

    async def wait() -> Any:
        return await value

    return _loop().run(wait())


def _content(value: Any) -> Any:
    """A plain copy of what an object contains."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    return dict(value.items()) if isinstance(value, Mapping) else list(value)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    **OPERATIONS,
    "next": next,
    "content": _content,
    "enter": lambda value: type(value).__enter__(value),
    "run": lambda value: _awaited(value),
    "aiter": aiter,
    "anext": lambda value: _awaited(anext(value)),
    "aenter": lambda value: _awaited(type(value).__aenter__(value)),
    "isinstance": lambda value, instance: isinstance(instance, value),
    "issubclass": lambda value, kind: issubclass(kind, value),
}


def serve(policy: Policy) -> None:
    """The warm worker: one process per candidate."""
    preload.import_light_modules()
    installed_modules()
    with rehearsal.other_side(rehearsal.ask_as_tests) as connection:
        serve_candidate(rehearsal.CANDIDATE, connection)
    fork_server.serve(policy, lambda job, descriptors: serve_candidate(job, descriptors[0]))


def serve_heavy(policy: Policy) -> None:
    """The warm worker for code that uses large modules."""
    preload.import_heavy_modules()
    serve(policy)


def serve_candidate(job: dict[str, Any], descriptor: int) -> None:
    """Write the candidate's files and serve requests of the tests until they disconnect."""
    root = f"{os.getcwd()}/work"  # noqa: PTH109
    write_files(job["files"], job["directory"])
    sys.path[:0] = [os.getcwd()]  # noqa: PTH109
    forget_shadowed(job["modules"])
    find_first(job["main"], job["files"], job["directory"])
    random.seed(0)
    rpc = RpcConnection(socket.socket(fileno=descriptor))
    exceptions = ExceptionTranslator(find_in_loaded_modules)
    rpc.handle = lambda request: receive(root, request) if request["op"] == "file" else _do(rpc, request)
    rpc.describe = lambda value: _describe(value, exceptions)
    rpc.describe_error = lambda error: exceptions.encode(rpc, error)
    rpc.to_exception = lambda error: exceptions.decode(rpc, error)
    rpc.make_proxy = lambda number, about: _adopt(rpc, exceptions, number, about)
    rpc.remote_id = lambda value: value._object_id if isinstance(value, _TestObject) else None
    try:
        rpc.listen()
    except ConnectionLostError:
        return


def write_files(files: dict[str, str], directory: str) -> None:
    """Write a tree to the folder `work` and change to one of its directories.

    Bytes that are not UTF-8 are encoded as surrogates. Plain os calls, because this runs for every job and every object
    that a forked process touches is copied.
    """
    made = {"work"}
    os.mkdir("work")  # noqa: PTH102
    for name, text in files.items():
        path = f"work/{name}"
        parent = path.rpartition("/")[0]
        if parent not in made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            made.add(parent)
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        content = memoryview(text.encode("utf-8", "surrogateescape"))
        while content:
            content = content[os.write(target, content) :]
        os.close(target)
    if directory:
        os.makedirs(f"work/{directory}", exist_ok=True)  # noqa: PTH103
    os.chdir(f"work/{directory}")


def _do(rpc: RpcConnection, request: Request) -> Any:
    match request["op"]:
        case "import":
            return importlib.import_module(request["name"])
        case "names":
            module = rpc.local_object(request["on"])
            return list(getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")]))
        case "get":
            return getattr(rpc.local_object(request["on"]), request["name"])
        case "set":
            return setattr(rpc.local_object(request["on"]), request["name"], rpc.read(request["value"]))
        case "del":
            return delattr(rpc.local_object(request["on"]), request["name"])
        case "exit":
            error = None if request["error"] is None else rpc.to_exception(request["error"])
            manager = rpc.local_object(request["on"])
            return bool(type(manager).__exit__(manager, error and type(error), error, None))
        case "aexit":
            error = None if request["error"] is None else rpc.to_exception(request["error"])
            manager = rpc.local_object(request["on"])
            return bool(_awaited(type(manager).__aexit__(manager, error and type(error), error, None)))
        case "call":
            return rpc.handle_call(rpc.local_object(request["on"]), request)
        case "do":
            return _OPERATIONS[request["name"]](
                rpc.local_object(request["on"]), *(rpc.read(value) for value in request["args"])
            )
    raise ValueError(f"unknown request {request['op']}")


def _describe(value: Any, exceptions: ExceptionTranslator) -> dict[str, Any]:
    """What the tests need to know to build a proxy: an exception class, a coroutine, or the names of its classes."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"exception": exceptions.names(value)}
    if isinstance(value, types.CoroutineType):
        return {"coroutine": True}
    kind = value if isinstance(value, type) else type(value)
    classes = [base.__qualname__ for base in kind.__mro__ if base.__module__ != "builtins"]
    return {"of": classes, "class": isinstance(value, type), "can": _capabilities(type(value))}


def _capabilities(kind: type) -> list[str]:
    """The methods of a class that tell what its instances can be used for."""
    # Not `getattr`, which would also find the methods of the metaclass.
    spaces = [vars(base) for base in kind.__mro__]
    return [name for name in CAPABILITIES if _first(spaces, name) is not None]


def _first(spaces: Iterable[Mapping[str, Any]], name: str) -> Any:
    for space in spaces:
        if name in space:
            return space[name]
    return None


def _adopt(rpc: RpcConnection, exceptions: ExceptionTranslator, number: int, about: dict[str, Any]) -> Any:
    if "exception" in about:
        return exceptions.class_of(about["exception"])
    if "function" not in about:
        return _TestInstance(rpc, number) if "instance" in about else _TestObject(rpc, number)
    function = _TestFunction(rpc, number)
    vars(function).update(about["function"])
    return function


class _TestObject:
    """A proxy for an object of the tests: it can be called, iterated, or asked for a public attribute."""

    def __init__(self, rpc: RpcConnection, number: int) -> None:
        self._rpc, self._object_id = rpc, number

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._rpc.call(self._object_id, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._rpc.request("get", on=self._object_id, name=name)

    def __iter__(self) -> "_TestObject":
        return self

    def __next__(self) -> Any:
        return self._rpc.request("next", on=self._object_id)


class _TestFunction(_TestObject):
    """A proxy for a function of the tests. Assigned to a class, it becomes a method."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


class _TestInstance(_TestObject):
    """A proxy for an object whose class the tests define: it supports what that class supports."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self._rpc.request("set", on=self._object_id, name=name, value=self._rpc.write(value))


def _forwarded(name: str) -> Callable[..., Any]:
    return lambda self, *args: self._rpc.request(
        "do", on=self._object_id, name=name, args=[self._rpc.write(value) for value in args]
    )


for _name in (
    *("len", "iter", "bool", "str", "repr", "hash", "getitem", "setitem", "delitem", "contains", "reversed"),
    *(*COMPARISONS, *UNARY, "divmod", "rdivmod"),
    *(f"{form}{name}" for name in OPERATORS for form in ("", "r", "i")),
):
    setattr(_TestInstance, f"__{_name}__", _forwarded(_name))
