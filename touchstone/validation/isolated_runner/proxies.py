"""The tests' side of the connection: the candidate's modules as imports, and what the candidate may ask of the tests.

The proxy for an object of the candidate belongs in `references`.
"""

import builtins
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from touchstone.validation.isolated_runner.exceptions import (
    ExceptionTranslator,
    find_in_standard_library,
    without_steering,
)
from touchstone.validation.isolated_runner.operations import OPERATIONS
from touchstone.validation.isolated_runner.references import (
    JobState,
    Reference,
    Remote,
    is_reference,
    make_reference,
    may_be_answered,
    remote,
)
from touchstone.validation.isolated_runner.rpc import Request, RpcConnection


class ModuleProxy(types.ModuleType):
    """A proxy for a module of the candidate: attributes are requested on use."""

    def __init__(self, name: str, module: Reference, folders: Sequence[str] | None) -> None:
        super().__init__(name)
        self.__dict__["_module"] = module
        if folders is not None:
            # Helpers of the tests may be in a package of the candidate.
            self.__dict__["__path__"] = list(folders)

    def __getattr__(self, name: str) -> Any:
        behind = remote(self._module)
        if name == "__all__":
            return _importable(behind.rpc.request("names", on=behind.number), sys._getframe(1).f_globals)
        if name in ("__path__", "__file__"):
            raise AttributeError(name)
        found = behind.rpc.request("get", on=behind.number, name=name)
        if not may_be_answered(name, found):
            raise AttributeError(name)
        if is_reference(found) and remote(found).is_class:
            behind.state.add_class(name, remote(found).classes)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets it on its package; the candidate's package already has its own.
        if name.startswith("__") or isinstance(value, types.ModuleType):
            super().__setattr__(name, value)
        else:
            setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)


def _importable(names: Any, there: dict[str, Any]) -> list[str]:
    """The names that `from … import *` binds: none that the tests already define. Raises if one shadows a built-in."""
    replaced = [name for name in names if hasattr(builtins, name)]
    if replaced:
        raise ImportError(f"`import *` would replace the built-in {replaced[0]!r} in the tests; import by name")
    return [name for name in names if name not in there and not name.startswith("__")]


class CandidateFinder:
    """Lets the tests import the candidate's modules. Installed before all other finders."""

    def __init__(self, rpc: RpcConnection, modules: Sequence[str], folder: str) -> None:
        self._rpc = rpc
        self._folder = folder
        self.modules = set(modules)
        # Top-level names that only the tests' own files import from the candidate.
        self.hidden: frozenset[str] = frozenset()
        self._packages = {name.rpartition(".")[0] for name in modules if "." in name}

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for modules of the candidate, None for others."""
        if fullname.partition(".")[0] in self.hidden:
            return None
        if fullname not in self.modules and fullname not in self._packages:
            if fullname.partition(".")[0] in self._packages:
                # A helper in the candidate's package: the tests run their own copy, and the candidate may need its.
                with suppress(Exception):
                    self._rpc.request("import", name=fullname)
            return None
        return importlib.machinery.ModuleSpec(fullname, cast(Any, self), is_package=fullname in self._packages)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Import the module on the candidate's side and create its proxy."""
        return self.load(spec.name)

    def keep(self, name: str, module: Any) -> None:
        """Take a module that has been imported on the candidate's side as loaded, as the import system would."""
        if is_reference(module) and "." not in name and name not in self._packages | self.hidden:
            proxy = ModuleProxy(name, module, None)
            spec = importlib.machinery.ModuleSpec(name, cast(Any, self))
            vars(proxy).update(__spec__=spec, __loader__=self, __package__="")
            sys.modules[name] = proxy

    def load(self, name: str) -> ModuleProxy:
        """The proxy for one of the candidate's modules."""
        module = self._rpc.request("import", name=name)
        if not is_reference(module):
            raise ImportError(f"{name} is not a module")
        folders = [f"{self._folder}/{name.replace('.', '/')}"] if name in self._packages else None
        return ModuleProxy(name, module, folders)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to do: the candidate's side has executed it."""


def serve_test_objects(rpc: RpcConnection, state: JobState) -> None:
    """Set up a connection for the tests' side: proxies for the candidate's objects, and access to the tests' own."""
    exceptions = ExceptionTranslator(find_in_standard_library)

    def adopt(number: int, about: dict[str, Any]) -> Any:
        if "exception" in about:
            return exceptions.class_of(about["exception"])
        classes = tuple(name for name in about.get("of", ()) if isinstance(name, str))
        can = frozenset(name for name in about.get("can", ()) if isinstance(name, str))
        reference = make_reference(Remote(rpc, number, state, classes, about.get("class") is True, can))
        return _awaited(reference) if about.get("coroutine") else reference

    def is_of_the_tests(value: object) -> bool:
        """Whether the tests define the object's class: only those objects cannot expose this process's internals."""
        return state.of_the_tests(getattr(sys.modules.get(type(value).__module__), "__dict__", {}))

    def answer(request: Request) -> Any:
        target = rpc.local_object(request["on"])
        match request["op"]:
            case "call" if callable(target):
                return rpc.handle_call(target, request)
            case "next" if isinstance(target, Iterator):
                return next(target)
            case "get" if is_of_the_tests(target) and not str(request["name"]).startswith("_"):
                return getattr(target, request["name"])
            case "set" if is_of_the_tests(target) and _may_be_set(target, str(request["name"])):
                return setattr(target, request["name"], rpc.read(request["value"]))
            case "do" if is_of_the_tests(target) and request["name"] in OPERATIONS:
                return OPERATIONS[request["name"]](target, *(rpc.read(value) for value in request["args"]))
        raise TypeError("that cannot be asked of an object of the tests")

    rpc.make_proxy, rpc.handle = adopt, answer
    rpc.to_exception = lambda error: without_steering(exceptions.decode(rpc, error))
    rpc.remote_id = lambda value: remote(value).number if is_reference(value) else None
    rpc.describe_error = lambda error: exceptions.encode(rpc, error)

    def describe(value: object) -> dict[str, Any]:
        if is_of_the_tests(value):
            return {"instance": True}
        about = _describe(value, exceptions)
        if not about and not _is_usable(value):
            rpc.doubt = f"the tests hand over {type(value).__name__!r} objects, which the candidate cannot use"
        return about

    rpc.describe = describe


def _describe(value: object, exceptions: ExceptionTranslator) -> dict[str, Any]:
    """What the candidate learns about an object of the tests: an exception class, or a function's names."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"exception": exceptions.names(value)}
    if isinstance(value, types.FunctionType):
        return {"function": {name: getattr(value, name) for name in ("__name__", "__qualname__", "__doc__")}}
    return {}


def _is_usable(value: object) -> bool:
    """Whether a proxy can stand for an object that no file of the tests defines: it is called or iterated."""
    of_a_type = isinstance(value, type) or type(value).__module__ in ("types", "typing")
    return isinstance(value, Iterator) or (callable(value) and not of_a_type)


def _may_be_set(target: object, name: str) -> bool:
    """Whether the candidate may set an attribute of an object of the tests: not a private one, and no method."""
    return not name.startswith("_") and not callable(getattr(type(target), name, None))


async def _awaited(reference: Reference) -> Any:
    return remote(reference).do("run")
