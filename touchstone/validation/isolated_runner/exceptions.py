"""Exceptions across the RPC connection: encoded by class name, and rebuilt from it on the other side."""

import builtins
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from touchstone.validation.isolated_runner.rpc import RpcConnection
from touchstone.validation.isolated_runner.values import NotPlainError

Find = Callable[[str, str], object]
_MAX_POSITION = 2**31 - 1
_CANCELLED = (("asyncio.exceptions", "CancelledError"), ("concurrent.futures._base", "CancelledError"))


class SteeringError(RuntimeError):
    """Raised in the tests in place of an exception of the candidate that would end a loop, generator or task there.

    As in PEP 479: otherwise `all(map(check, cases))` passes because `check` raised StopIteration.
    """

    def __init__(self, original: BaseException) -> None:
        super().__init__(f"the candidate raised {type(original).__name__}")
        self.original = original


def without_steering(error: BaseException) -> BaseException:
    """The exception, or a SteeringError if raising it would end a loop, generator or task without failing a test."""
    found = [find_in_standard_library(module, name) for module, name in _CANCELLED]
    steering = (StopIteration, StopAsyncIteration, GeneratorExit, *(kind for kind in found if isinstance(kind, type)))
    return SteeringError(error) if isinstance(error, steering) else error


class ExceptionTranslator:
    """Encodes exceptions by class name and rebuilds them.

    Built-in classes, classes that `find` returns for a module and name, and classes encoded here before are used as
    they are; any other class becomes a proxy class.
    """

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[str, type[BaseException]] = {}

    def names(self, kind: type[BaseException]) -> list[str]:
        """The names of a class and its bases; built-in classes by bare name."""
        names = [_name(base) for base in kind.__mro__]
        self._known[names[0]] = kind
        return names

    def class_of(self, names: Sequence[str]) -> type[BaseException]:
        """The class for these names, which list it and its bases."""
        if not names or not all(isinstance(name, str) for name in names):
            raise NotPlainError("what came is no exception")
        name = names[0]
        found = getattr(builtins, name, None) if ":" not in name else self._find(*name.split(":", 1))
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        if name not in self._known:
            base = self.class_of(names[1:]) if len(names) > 1 else Exception
            self._known[name] = _proxy_class(name, base)
        return self._known[name]

    def encode(self, rpc: RpcConnection, error: BaseException) -> dict[str, Any]:
        """Encode an exception so that the other side can raise it."""
        try:
            arguments = [rpc.write(argument) for argument in error.args]
            attributes = {name: rpc.write(value) for name, value in vars(error).items() if not name.startswith("__")}
            text = str(error)
        except Exception:
            arguments, attributes, text = [], {}, ""
        job: dict[str, Any] = {"args": arguments, "attributes": attributes, "text": text}
        job["kind"] = self.names(type(error))
        if isinstance(error, SyntaxError):
            job |= {"file": str(error.filename), "message": str(error.msg)}
            job |= {"line": _position(error.lineno), "column": _position(error.offset)}
        return job

    def decode(self, rpc: RpcConnection, error: Any) -> BaseException:
        """Rebuild the exception that the other side encoded."""
        if not isinstance(error, dict):
            raise NotPlainError("what came is no exception")
        kind = self.class_of(error.get("kind", []))
        if issubclass(kind, SyntaxError):
            where = (str(error.get("file")), _position(error.get("line")), _position(error.get("column")), None)
            return kind(str(error.get("message")), where)
        try:
            made = _instantiate(kind, [rpc.read(argument) for argument in error.get("args", [])])
            vars(made).update({name: rpc.read(value) for name, value in error.get("attributes", {}).items()})
            if hasattr(kind, "_touchstone_text"):
                vars(made)["_touchstone_text"] = str(error.get("text"))
        except Exception:
            return RuntimeError(f"{kind.__name__} was raised")
        return made


def find_in_standard_library(module: str, name: str) -> object:
    """A public class of a loaded standard-library module, except unittest, whose exceptions control test runs."""
    package = module.partition(".")[0]
    if package not in sys.stdlib_module_names or package == "unittest" or name.startswith("_"):
        return None
    loaded = sys.modules.get(module)
    return vars(loaded).get(name) if loaded is not None else None


def find_in_loaded_modules(module: str, name: str) -> object:
    """A class of any loaded module, nested classes included."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _position(value: object) -> int | None:
    """A line or column number, if it is one."""
    return value if type(value) is int and 0 < value <= _MAX_POSITION else None


def _name(kind: type) -> str:
    return kind.__name__ if getattr(builtins, kind.__name__, None) is kind else f"{kind.__module__}:{kind.__qualname__}"


def _proxy_class(name: str, base: type[BaseException]) -> type[BaseException]:
    module, _, qualified = name.rpartition(":")
    shown = {"__module__": module, "__qualname__": qualified, "__str__": _proxy_text, "_touchstone_text": None}
    return type(qualified.rpartition(".")[2] or "Error", (base,), shown)


def _proxy_text(error: BaseException) -> str:
    """The text that the original class produced."""
    text = getattr(error, "_touchstone_text", None)
    return text if isinstance(text, str) else BaseException.__str__(error)


def _instantiate(kind: type[BaseException], arguments: list[Any]) -> BaseException:
    """Create an exception without calling its `__init__`, which may take other arguments than `args`."""
    if kind.__module__ == "builtins":
        with suppress(Exception):
            return kind(*arguments)
    made = kind.__new__(kind, *arguments)
    made.args = tuple(arguments)
    return made
