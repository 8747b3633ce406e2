"""Proxies on the tests' side for the candidate's modules, objects and exceptions.

A proxy behaves like the object behind it, except where the candidate could then decide whether its own answer is
right: it equals only itself and cannot be compared, arithmetic with a test's number never returns a plain number, and
it cannot suppress a failed assertion.
"""

import builtins
import dis
import importlib.abc
import importlib.machinery
import numbers
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from touchstone.validation.isolated_runner.exceptions import ExceptionTranslator, find_in_standard_library
from touchstone.validation.isolated_runner.rpc import OPERATORS, Request, RpcConnection

_RAISE = dis.opmap["RAISE_VARARGS"]
_CALCULATED = "an object of the candidate made a number of a number here; it is none itself, so test its attributes"
_EQUALITY = "two objects of the candidate's classes were compared"
_COMPARED = "an object of the candidate cannot be compared here; compare plain values such as its attributes"


class Reference:
    """A proxy for an object of the candidate."""

    def __init__(self, rpc: RpcConnection, number: int) -> None:
        object.__setattr__(self, "_rpc", rpc)
        object.__setattr__(self, "_object_id", number)
        object.__setattr__(self, "_calculated", False)

    def __getattr__(self, name: str) -> Any:
        return self._rpc.request("get", on=self._object_id, name=name)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._rpc.request("get", on=self._object_id, name="__doc__")

    def __setattr__(self, name: str, value: Any) -> None:
        self._rpc.request("set", on=self._object_id, name=name, value=self._rpc.write(value))

    def __delattr__(self, name: str) -> None:
        self._rpc.request("del", on=self._object_id, name=name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._rpc.call(self._object_id, args, kwargs)

    def _do(self, name: str, *args: Any) -> Any:
        return self._rpc.request("do", on=self._object_id, name=name, args=[self._rpc.write(value) for value in args])

    def __eq__(self, other: object) -> bool:
        if self is not other and type(other) is Reference:
            self._rpc.doubt = _EQUALITY
        return self is other

    def __hash__(self) -> int:
        return int(self._object_id)

    def _refuse_comparison(self, other: object) -> bool:
        self._rpc.doubt = _COMPARED
        raise TypeError(_COMPARED)

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_comparison

    def __len__(self) -> int:
        return int(self._do("len"))

    def __bool__(self) -> bool:
        return bool(self._do("bool"))

    def __iter__(self) -> Iterator[Any]:
        found = self._do("iter")
        return found if isinstance(found, Reference) else iter(found)

    def __next__(self) -> Any:
        return self._do("next")

    def __str__(self) -> str:
        return str(self._do("str"))

    def __repr__(self) -> str:
        return str(self._do("repr"))

    def __contains__(self, item: object) -> bool:
        return bool(self._do("contains", item))

    def __instancecheck__(self, instance: object) -> bool:
        return bool(self._do("isinstance", instance))

    def __subclasscheck__(self, kind: object) -> bool:
        return bool(self._do("issubclass", kind))

    def __enter__(self) -> Any:
        return self._do("enter")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return self._leave("exit", error)

    def _leave(self, op: str, error: BaseException | None) -> bool:
        job = None if error is None else self._rpc.describe_error(error)
        return bool(self._rpc.request(op, on=self._object_id, error=job)) and _may_be_suppressed(error)

    async def __aenter__(self) -> Any:
        return self._do("aenter")

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return self._leave("aexit", error)

    def __aiter__(self) -> Any:
        return self._do("aiter")

    async def __anext__(self) -> Any:
        return self._do("anext")

    def __getitem__(self, key: Any) -> Any:
        return self._do("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._do("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._do("delitem", key)

    def __reversed__(self) -> Any:
        return self._do("reversed")


def _calculate(name: str) -> Any:
    """An arithmetic operation: in `abs(answer - 0.3) < 0.01` the candidate could otherwise decide the result."""

    def operate(self: Reference, *args: Any) -> Any:
        result = self._do(name, *args)
        others = args if name not in ("round", "format") else ()
        if self._calculated or any(
            value._calculated if type(value) is Reference else _is_number(value) for value in others
        ):
            if _is_number(result) or name == "format":
                self._rpc.doubt = _CALCULATED
                raise TypeError(_CALCULATED)
            if type(result) is Reference:
                object.__setattr__(result, "_calculated", True)
        return result

    return operate


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Number)


for _name in (*OPERATORS, "divmod"):
    for _form in (_name, f"r{_name}", *([f"i{_name}"] if _name in OPERATORS else [])):
        setattr(Reference, f"__{_form}__", _calculate(_form))
for _name in ("neg", "pos", "abs", "invert", "int", "float", "index", "round", "format"):
    setattr(Reference, f"__{_name}__", _calculate(_name))


class ModuleProxy(types.ModuleType):
    """A proxy for a module of the candidate: attributes are requested on use."""

    def __init__(self, name: str, rpc: RpcConnection, module: Reference, is_package: bool) -> None:
        super().__init__(name)
        self.__dict__["_rpc"], self.__dict__["_module"] = rpc, module
        if is_package:
            self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return _importable(self._rpc.request("names", on=self._module._object_id), sys._getframe(1).f_globals)
        if name in ("__path__", "__file__"):
            raise AttributeError(name)
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets it on its package; the candidate's package already has the real one.
        if name.startswith("__") or isinstance(value, ModuleProxy):
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


class CandidateFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets the tests import the candidate's modules. Installed before all other finders."""

    def __init__(self, rpc: RpcConnection, modules: Sequence[str]) -> None:
        self._rpc = rpc
        self._modules = set(modules)
        self._packages = {name.rpartition(".")[0] for name in modules if "." in name}

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for modules of the candidate, None for others."""
        if fullname not in self._modules and fullname not in self._packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname in self._packages)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Import the module on the candidate's side and create its proxy."""
        module = self._rpc.request("import", name=spec.name)
        return ModuleProxy(spec.name, self._rpc, module, spec.name in self._packages)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to do: the candidate's side has executed it."""


def serve_test_objects(rpc: RpcConnection) -> None:
    """Set up a connection for the tests' side: proxies for the candidate's objects, and access to the tests' own."""
    exceptions = ExceptionTranslator(find_in_standard_library)

    def adopt(number: int, about: dict[str, Any]) -> Any:
        if "exception" in about:
            return exceptions.class_of(about["exception"])
        reference = Reference(rpc, number)
        return _awaited(reference) if about.get("coroutine") else reference

    def answer(request: Request) -> Any:
        target = rpc.local_object(request["on"])
        match request["op"]:
            case "call" if callable(target):
                return rpc.handle_call(target, request)
            case "next" if isinstance(target, Iterator):
                return next(target)
            case "get" if _is_of_the_tests(target) and not str(request["name"]).startswith("_"):
                return getattr(target, request["name"])
        raise TypeError("that cannot be asked of an object of the tests")

    rpc.make_proxy, rpc.handle = adopt, answer
    rpc.to_exception = lambda error: exceptions.decode(rpc, error)
    rpc.remote_id = lambda value: object.__getattribute__(value, "_object_id") if type(value) is Reference else None
    rpc.describe_error = lambda error: exceptions.encode(rpc, error)
    rpc.describe = lambda value: _describe(value, exceptions)


def _describe(value: object, exceptions: ExceptionTranslator) -> dict[str, Any]:
    """What the candidate learns about an object of the tests: an exception class, or a function's names."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"exception": exceptions.names(value)}
    if isinstance(value, types.FunctionType):
        return {"function": {name: getattr(value, name) for name in ("__name__", "__qualname__", "__doc__")}}
    return {}


async def _awaited(reference: Reference) -> Any:
    return reference._do("run")


def _is_of_the_tests(value: object) -> bool:
    """Whether the tests define the object's class: only those objects cannot expose this process's internals."""
    return _of_the_tests(getattr(sys.modules.get(type(value).__module__), "__dict__", {}))


def _of_the_tests(names: Mapping[str, Any]) -> bool:
    return names.get("__touchstone_tests__") is True


def _may_be_suppressed(error: BaseException | None) -> bool:
    """Whether a context manager of the candidate may suppress an error: only one that the tests `raise` themselves.

    Otherwise a candidate could fail inside its own context, suppress the error, and skip the assertions that follow.
    """
    trace = error.__traceback__ if isinstance(error, Exception) and not isinstance(error, AssertionError) else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _of_the_tests(trace.tb_frame.f_globals):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
