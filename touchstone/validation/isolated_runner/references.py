"""The tests' proxy for an object of the candidate.

It behaves like the object behind it, except where the candidate could then decide whether its own answer is right. It
equals only itself and cannot be compared, arithmetic with a test's number never returns a plain number, and it cannot
suppress a failed assertion. An object whose class is not part of the problem may stand where the tests expect a list, a
text or a set: what it contains is copied once and searched, measured and indexed by the tests themselves.
"""

import datetime
import dis
import functools
import numbers
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from touchstone.validation.isolated_runner.exceptions import SteeringError
from touchstone.validation.isolated_runner.operations import CAPABILITIES, OPERATORS, UNARY
from touchstone.validation.isolated_runner.rpc import RpcConnection

_RAISE = dis.opmap["RAISE_VARARGS"]
_CALCULATED = "an object of the candidate made a number of a number here; it is none itself, so test its attributes"
_EQUALITY = "two objects of the candidate's classes were compared"
_COMPARED = "an object of the candidate cannot be compared here; compare plain values such as its attributes"
_ASKED = "the candidate returned an object of its own class, which cannot answer this; return a plain value"
_COLLECTIONS = (str, bytes, bytearray, list, tuple, set, frozenset, dict, deque, range)
# Methods of plain values whose right answer needs no knowledge, such as `startswith`.
_QUESTIONS = {
    *(name for kind in (str, bytes, float, frozenset) for name in dir(kind) if name.startswith("is")),
    *("startswith", "endswith", "is_integer", "count", "index", "rindex", "find", "rfind"),
    *("union", "intersection", "difference", "symmetric_difference"),
}
# Special attributes for which tests ask. Libraries ask for others to look inside an object, such as
# `__array_interface__` with its address in memory, and those are answered only if they are text.
_INTROSPECTION = {
    f"__{name}__"
    for name in (
        *("doc", "annotations", "members", "wrapped", "slots", "all", "defaults", "kwdefaults", "match_args", "mro"),
        *("abstractmethods", "bases", "init", "post_init", "new", "notes", "cause", "context", "self", "func"),
    )
}


@dataclass
class JobState:
    """What the tests' side knows of its job: its folder, and the names that the unmodified problem defines.

    The classes that the tests use by name are added. `changes` counts what the tests did that may have changed an
    object, and `lend` gives the candidate the files that values name.
    """

    classes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    folder: str = ""
    lend: Callable[..., None] = lambda *values: None
    changes: int = 0
    _named: set[str] = field(default_factory=set)

    def add_class(self, attribute: str, classes: Iterable[str]) -> None:
        """Note that the tests used a class as an attribute of a module. A fix may not make a class of a function."""
        named_like_a_class = attribute.lstrip("_")[:1].isupper() and attribute not in self.functions
        if named_like_a_class or attribute in self.classes:
            self._named.update(list(classes)[:1])

    def may_answer(self, classes: Iterable[str], method: str) -> bool:
        """Whether an object of these classes may answer by a method: the tests use its class or the problem has both.

        A nested class counts as the class that contains it.
        """
        names = {name.partition(".")[0] for name in classes}
        return not names.isdisjoint(self._named) or (method in self.methods and not names.isdisjoint(self.classes))

    def of_the_tests(self, module: Mapping[str, Any]) -> bool:
        """Whether these are the names of a test file or of a helper of the tests."""
        file = module.get("__file__")
        return module.get("__touchstone_tests__") is True or (
            isinstance(file, str) and file.startswith(f"{self.folder}/")
        )


@dataclass
class Remote:
    """What a proxy knows about the object behind it, as the candidate described it once."""

    rpc: RpcConnection
    number: int
    state: JobState
    classes: tuple[str, ...] = ()
    is_class: bool = False
    can: frozenset[str] = frozenset()
    calculated: bool = False
    _content: Any = None
    _copied_at: int = -1

    def do(self, name: str, *args: Any) -> Any:
        """Execute an operation on the object."""
        return self.rpc.request("do", on=self.number, name=name, args=[self.rpc.write(value) for value in args])

    def change(self, name: str, *args: Any) -> Any:
        """Execute an operation that may change the object."""
        self.state.changes += 1
        return self.do(name, *args)

    def may_answer(self, method: str) -> bool:
        """Whether the method is part of the problem, so that it is what is tested."""
        return self.state.may_answer(self.classes, method)

    @property
    def is_sized(self) -> bool:
        """Whether the object is a collection."""
        return "__len__" in self.can and not self.can.isdisjoint(("__iter__", "__getitem__"))

    def uses_content(self, method: str) -> bool:
        """Whether the tests use a copy of the content instead of asking the object."""
        return self.is_sized and not self.may_answer(method)

    def content(self) -> Any:
        """A copy of what the object contains, the same until the tests do something that may change it."""
        if not self.is_sized:
            raise TypeError("an object of the candidate has no len()")
        if self._copied_at != self.state.changes:
            content = self.do("content")
            if type(content) not in (str, bytes, dict, list):
                raise TypeError(_ASKED)
            self._content, self._copied_at = content, self.state.changes
        return self._content


def remote(reference: "Reference") -> Remote:
    """The object behind a proxy."""
    found: Remote = object.__getattribute__(reference, "_touchstone")
    return found


class _Proxy:
    """The base of all proxies. Nothing else has it, whatever an object says its class is."""


def is_reference(value: object) -> bool:
    """Whether a value is a proxy for an object of the candidate."""
    return issubclass(type(value), _Proxy)


class Reference(_Proxy):
    """A proxy for an object of the candidate. Create it with `make_reference`, which leaves out what it cannot do."""

    def __init__(self, behind: Remote) -> None:
        object.__setattr__(self, "_touchstone", behind)

    def __getattr__(self, name: str) -> Any:
        behind = remote(self)
        value = behind.rpc.request("get", on=behind.number, name=name)
        if not may_be_answered(name, value):
            raise AttributeError(name)
        if not is_reference(value):
            return value
        if name in _QUESTIONS and not behind.may_answer(name):
            raise TypeError(_ASKED)
        return _resuming(value) if name in ("send", "throw") else value

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return remote(self).rpc.request("get", on=remote(self).number, name="__doc__")

    def __setattr__(self, name: str, value: Any) -> None:
        behind = remote(self)
        behind.state.changes += 1
        behind.state.lend(value)
        behind.rpc.request("set", on=behind.number, name=name, value=behind.rpc.write(value))

    def __delattr__(self, name: str) -> None:
        behind = remote(self)
        behind.state.changes += 1
        behind.rpc.request("del", on=behind.number, name=name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        behind = remote(self)
        behind.state.changes += 1
        behind.state.lend(args, kwargs)
        return behind.rpc.call(behind.number, args, kwargs)

    def __eq__(self, other: object) -> bool:
        if self is not other and is_reference(other):
            remote(self).rpc.doubt = _EQUALITY
        return self is other

    def __hash__(self) -> int:
        return int(remote(self).number)

    def _refuse_comparison(self, other: object) -> bool:
        remote(self).rpc.doubt = _COMPARED
        raise TypeError(_COMPARED)

    __lt__ = __le__ = __gt__ = __ge__ = _refuse_comparison

    def __len__(self) -> int:
        behind = remote(self)
        return int(behind.do("len")) if behind.may_answer("__len__") else len(behind.content())

    def __bool__(self) -> bool:
        behind = remote(self)
        return bool(behind.content() if behind.uses_content("__len__") else behind.do("bool"))

    def __iter__(self) -> Iterator[Any]:
        behind = remote(self)
        found = behind.content() if behind.uses_content("__iter__") else behind.do("iter")
        return found if is_reference(found) else iter(found)

    def __next__(self) -> Any:
        return _stopping(lambda: remote(self).do("next"), StopIteration)

    def __str__(self) -> str:
        return str(remote(self).do("str"))

    def __repr__(self) -> str:
        return str(remote(self).do("repr"))

    def __contains__(self, item: object) -> bool:
        behind = remote(self)
        if behind.may_answer("__contains__"):
            return bool(behind.do("contains", item))
        if behind.is_sized:
            return item in behind.content()
        return any(one is item or one == item for one in self)

    def __instancecheck__(self, instance: object) -> bool:
        return is_reference(instance) and bool(remote(self).do("isinstance", instance))

    def __subclasscheck__(self, kind: object) -> bool:
        of_the_candidate = is_reference(kind) or hasattr(kind, "_touchstone_text")
        return of_the_candidate and bool(remote(self).do("issubclass", kind))

    def __enter__(self) -> Any:
        return remote(self).change("enter")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return _leave(remote(self), "exit", error)

    async def __aenter__(self) -> Any:
        return remote(self).change("aenter")

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return _leave(remote(self), "aexit", error)

    def __aiter__(self) -> Any:
        return remote(self).do("aiter")

    async def __anext__(self) -> Any:
        return _stopping(lambda: remote(self).do("anext"), StopAsyncIteration)

    def __getitem__(self, key: Any) -> Any:
        behind = remote(self)
        if behind.uses_content("__getitem__"):
            content = behind.content()
            if isinstance(key, int | slice) or isinstance(content, dict):
                return content[key]
        return behind.do("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        remote(self).change("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        remote(self).change("delitem", key)

    def __reversed__(self) -> Any:
        behind = remote(self)
        return reversed(behind.content()) if behind.uses_content("__reversed__") else behind.do("reversed")


@functools.cache
def _type_without(missing: frozenset[str]) -> type:
    """The proxy class without some methods, so that `callable` and `collections.abc` tell the truth."""
    kept = {name: value for name, value in vars(Reference).items() if name not in {*missing, "__dict__", "__weakref__"}}
    return type("Reference", (_Proxy,), kept)


def make_reference(behind: Remote) -> Any:
    """The proxy for an object, with the methods that it has."""
    can = set(behind.can)
    if "__getitem__" in can:
        can |= {"__iter__", "__contains__", "__reversed__"}
    if "__iter__" in can:
        can |= {"__contains__", "__reversed__"}
    return _type_without(frozenset(CAPABILITIES) - can)(behind)


def may_be_answered(name: str, value: object) -> bool:
    """Whether an attribute of the candidate's objects is for the tests, rather than for a library that they use."""
    special = name.startswith("__") and name.endswith("__")
    return not special or type(value) is str or name in _INTROSPECTION


def _calculate(name: str) -> Any:
    """An arithmetic operation: in `abs(answer - 0.3) < 0.01` the candidate could otherwise decide the result."""

    def operate(self: Reference, *args: Any) -> Any:
        behind = remote(self)
        others = args if name not in ("round", "format") else ()
        in_place = name[:1] == "i" and name[1:] in OPERATORS
        may_answer = behind.may_answer(f"__{name}__")
        if not may_answer and any(isinstance(value, _COLLECTIONS) for value in others):
            raise TypeError(_ASKED)
        result = behind.change(name, *args) if in_place else behind.do(name, *args)
        if result is self and not in_place and not may_answer:
            # Otherwise `abs(answer) == answer`.
            raise TypeError(_ASKED)
        if behind.calculated or any(
            remote(value).calculated if is_reference(value) else _is_number(value) for value in others
        ):
            if _is_number(result) or name == "format":
                behind.rpc.doubt = _CALCULATED
                raise TypeError(_CALCULATED)
            if is_reference(result):
                remote(result).calculated = True
        return result

    return operate


def _is_number(value: object) -> bool:
    """Whether it is a number, or a time, with which tests calculate in the same way."""
    return isinstance(value, numbers.Number | datetime.date | datetime.time | datetime.timedelta)


for _name in (*OPERATORS, "divmod"):
    for _form in (_name, f"r{_name}", *([f"i{_name}"] if _name in OPERATORS else [])):
        setattr(Reference, f"__{_form}__", _calculate(_form))
for _name in UNARY:
    setattr(Reference, f"__{_name}__", _calculate(_name))


def _stopping(step: Callable[[], Any], stop: type[BaseException]) -> Any:
    """Take a step of an iterator of the candidate: the only place where it may end a loop of the tests."""
    try:
        return step()
    except SteeringError as error:
        if isinstance(error.original, stop):
            raise error.original from None
        raise


def _resuming(method: Reference) -> Callable[..., Any]:
    """A generator's `send` or `throw`."""
    return lambda *args: _stopping(lambda: method(*args), StopIteration)


def _leave(behind: Remote, op: str, error: BaseException | None) -> bool:
    behind.state.changes += 1
    job = None if error is None else behind.rpc.describe_error(error)
    return bool(behind.rpc.request(op, on=behind.number, error=job)) and _may_be_suppressed(error, behind.state)


def _may_be_suppressed(error: BaseException | None, state: JobState) -> bool:
    """Whether a context manager of the candidate may suppress an error: only one that the tests `raise` themselves.

    Otherwise a candidate could fail inside its own context, suppress the error, and skip the assertions that follow.
    """
    trace = error.__traceback__ if isinstance(error, Exception) and not isinstance(error, AssertionError) else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not state.of_the_tests(trace.tb_frame.f_globals):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
