"""The tests' side: collect tests by name, run each against the candidate, and report one line per test.

Supported: `test_…` functions and methods of `Test…` classes, `unittest.TestCase`, coroutines, `setup_class`,
`setup_method` and their teardowns, and `pytest.mark.parametrize`. A test that needs a fixture fails and says so, and a
skipped test fails.
"""

import gc
import inspect
import itertools
import json
import linecache
import os
import random
import socket
import sys
import traceback
import types
import unittest
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from touchstone.validation.isolated_runner import preload, rehearsal
from touchstone.validation.isolated_runner.candidate import serve_candidate, write_files
from touchstone.validation.isolated_runner.lending import FileLender
from touchstone.validation.isolated_runner.proxies import CandidateFinder, serve_test_objects
from touchstone.validation.isolated_runner.references import JobState
from touchstone.validation.isolated_runner.rpc import ConnectionLostError, RpcConnection
from touchstone.validation.isolated_runner.shadowing import import_candidate_first, installed_modules
from touchstone.validation.isolated_runner.unawaited import has_not_run, watch_test_case
from touchstone.validation.sandbox import fork_server
from touchstone.validation.sandbox.entrypoint import Policy

_MAX_MESSAGE = 500
_MAX_LINE = 2**31
_NOT_RUN = "the test returned a coroutine or generator, which nobody runs"
_ENDED_AT_IMPORT = {"broken": "The process ended while the file was imported.", "kind": "ended at import"}
Case = tuple[str, Callable[[], object]]


def serve(policy: Policy) -> None:
    """The warm worker: one process per job."""
    preload.import_light_modules()
    installed_modules()
    with rehearsal.other_side(lambda connection: serve_candidate(rehearsal.CANDIDATE, connection)) as connection:
        run_tests(rehearsal.TESTS, connection, os.open(os.devnull, os.O_WRONLY))
    fork_server.serve(policy, lambda job, descriptors: run_tests(job, *descriptors))


def serve_heavy(policy: Policy) -> None:
    """The warm worker for tests and fixes that use large modules."""
    preload.import_heavy_modules()
    serve(policy)


def run_tests(job: dict[str, Any], connection: int, report: int) -> None:
    """Run a job's tests against the candidate at the other end of the socket."""
    gc.disable()
    root = f"{os.getcwd()}/work"  # noqa: PTH109
    write_files(job["files"], job["directory"])
    here = os.getcwd()  # noqa: PTH109
    folders = sorted({os.path.normpath(f"{here}/{name}/..") for name in job["tests"]})
    sys.path[:0] = list(dict.fromkeys([*folders, here]))
    random.seed(0)
    rpc = RpcConnection(socket.socket(fileno=connection))
    finder = _give_access(rpc, job, root)

    def write_line(**line: Any) -> None:
        os.write(report, json.dumps(line).encode() + b"\n")

    importable = _import_candidate(rpc, finder, job["main"], write_line)
    cases: list[Case] = []
    for name in job["tests"]:
        prefix = "" if len(job["tests"]) == 1 else f"{name}::"
        if importable:
            cases += [(f"{prefix}{case}", run) for case, run in _collect(name)]
    write_line(collected=[name for name, _ in cases] if importable else [])
    for name, run in cases:
        write_line(test=name, **_run(run, rpc))
    write_line(done=True)


def _give_access(rpc: RpcConnection, job: dict[str, Any], root: str) -> CandidateFinder:
    """Let the tests use the candidate's modules and objects, and the candidate what the tests hand over."""
    lend = FileLender(rpc, root, job["withheld"]).lend
    classes, methods, functions = (set(job[kind]) for kind in ("classes", "methods", "functions"))
    serve_test_objects(rpc, JobState(classes, methods, functions, root, lend))
    finder = CandidateFinder(rpc, job["modules"], os.getcwd())  # noqa: PTH109
    sys.meta_path.insert(0, finder)
    import_candidate_first(finder, root)
    return finder


def _import_candidate(rpc: RpcConnection, finder: CandidateFinder, name: str, write_line: Callable[..., None]) -> bool:
    try:
        finder.keep(name, rpc.request("import", name=name))
    except ConnectionLostError:
        write_line(**_ENDED_AT_IMPORT, memory=False)
        return False
    except BaseException as error:
        # The candidate chooses what the error says about its position.
        where = {"line": _line(error.lineno), "column": _line(error.offset)} if isinstance(error, SyntaxError) else {}
        write_line(broken=_message(error), kind=type(error).__name__, memory=isinstance(error, MemoryError), **where)
        return False
    write_line(imported=True)
    return True


def _line(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MAX_LINE else None


def _collect(path: str) -> list[Case]:
    file = os.path.basename(path)  # noqa: PTH119
    module = types.ModuleType(os.path.splitext(file)[0])  # noqa: PTH122
    module.__dict__.update({"__file__": path, "__touchstone_tests__": True})
    sys.modules[module.__name__] = module
    with open(path, "rb") as reading:  # noqa: PTH123
        source = reading.read()
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except BaseException as error:
        failed = error
        return [(file, lambda: _raise(failed))]
    linecache.checkcache(path)
    return list(_cases(module))


def _raise(error: BaseException) -> None:
    raise error


def _cases(module: types.ModuleType) -> Iterator[Case]:
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and name.startswith("test"):
            yield from _parametrized_cases(name, value, [module, value], in_class=False)
        elif isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == module.__name__:
            for method in unittest.defaultTestLoader.getTestCaseNames(value):
                yield f"{name}::{method}", _unittest(value, method)
        elif isinstance(value, type) and name.startswith("Test"):
            for method, function in _methods(value).items():
                for case, run in _parametrized_cases(method, function, [module, value, function], in_class=True):
                    yield f"{name}::{case}", _with_setup_and_teardown(value, run)


def _methods(owner: type) -> dict[str, Any]:
    """The test methods of a class, those of its bases first."""
    found = {name: value for kind in reversed(owner.__mro__) for name, value in vars(kind).items()}
    return {name: value for name, value in found.items() if name.startswith("test") and callable(value)}


def _parametrized_cases(
    name: str, function: Any, marked: Sequence[object], *, in_class: bool
) -> Iterator[tuple[str, Any]]:
    """One case, or one per row of `pytest.mark.parametrize`. A skipped case fails: it proves nothing."""
    marks = [mark for one in marked for mark in _marks(one)]
    tables = [_rows(*mark.args[:2]) for mark in marks if mark.name == "parametrize"]
    for place, rows in enumerate(itertools.product(*tables)):
        given = {key: value for row, _ in rows for key, value in row.items()}
        label = f"{name}[{place}]" if tables else name
        if any(_skips(mark) for mark in [*marks, *(mark for _, more in rows for mark in more)]):
            yield label, _skipped
        else:
            yield label, _bind_method(function, given) if in_class else _bind(function, given)


def _marks(marked: object) -> list[Any]:
    marks = getattr(marked, "__dict__", {}).get("pytestmark", [])
    return _plain_marks(marks if isinstance(marks, list) else [marks])


def _plain_marks(marks: Iterable[Any]) -> list[Any]:
    return [getattr(mark, "mark", mark) for mark in marks]


def _rows(names: str | Sequence[str], values: Any) -> list[tuple[dict[str, Any], Sequence[Any]]]:
    """Each row's values by name, and its marks. Only a single name given as a string takes its value unpacked."""
    keys = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    lone = isinstance(names, str) and len(keys) == 1
    rows: list[tuple[dict[str, Any], Sequence[Any]]] = []
    for value in values:
        whole = type(value).__name__ == "ParameterSet"
        row = value.values if whole else (value,) if lone else value
        rows.append((dict(zip(keys, row, strict=True)), _plain_marks(value.marks) if whole else ()))
    return rows


def _skips(mark: Any) -> bool:
    return mark.name == "skip" or (mark.name == "skipif" and any(mark.args))


def _skipped(*_: object) -> None:
    raise _unsupported(AssertionError("the test was skipped"))


def _unsupported(error: Exception) -> Exception:
    """Mark an error as one of this runner and not of the candidate."""
    vars(error)["cannot_judge"] = str(error)
    return error


def _bind(function: Callable[..., Any], given: dict[str, Any]) -> Callable[[], object]:
    def run() -> object:
        if missing := _missing(function, given):
            raise _unsupported(TypeError(f"the test needs the fixture {missing[0]!r}, and fixtures are not supported"))
        result = function(**given)
        if inspect.iscoroutine(result):
            return _run_coroutine(result)
        if result is not None and has_not_run(result):
            raise _unsupported(AssertionError(_NOT_RUN))
        return result

    return run


def _missing(function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """The required parameters that have no value."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_argcount == code.co_kwonlyargcount == 0:
        return []
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and name not in given and parameter.kind not in (2, 4)
    ]


def _run_coroutine(coroutine: Coroutine[Any, Any, object]) -> object:
    import asyncio

    return asyncio.run(coroutine)


def _bind_method(function: Callable[..., Any], given: dict[str, Any]) -> Callable[[object], object]:
    return lambda instance: _bind(function.__get__(instance), given)()


def _with_setup_and_teardown(owner: type, run: Callable[[object], object]) -> Callable[[], object]:
    def run_case() -> None:
        instance = owner()
        _call_hook(instance, "setup_class")
        _call_hook(instance, "setup_method")
        try:
            run(instance)
        finally:
            _call_hook(instance, "teardown_method")
            _call_hook(instance, "teardown_class")

    return run_case


def _call_hook(instance: object, name: str) -> None:
    prepare = getattr(instance, name, None)
    if prepare is not None:
        # It may take the test method as an argument, which hardly any uses.
        prepare(*(None for _ in inspect.signature(prepare).parameters))


def _unittest(case: type[unittest.TestCase], method: str) -> Callable[[], object]:
    def run_case() -> None:
        result = unittest.TestResult()
        test, not_run = case(method), list[str]()
        watch_test_case(test, lambda: not_run.append(_NOT_RUN))
        unittest.TestSuite([test]).run(result)
        if not_run:
            raise _unsupported(AssertionError(_NOT_RUN))
        for _, text in [*result.failures, *result.errors]:
            raise AssertionError(text.strip().splitlines()[-1])
        if result.skipped or not result.wasSuccessful() or result.testsRun != 1:
            raise _unsupported(AssertionError("the test was skipped"))

    return run_case


def _run(case: Callable[[], object], rpc: RpcConnection) -> dict[str, Any]:
    failed: BaseException | None = None
    rpc.doubt = ""
    try:
        case()
    except BaseException as error:
        failed = error
    # Regardless of the test's result, a candidate that disconnected has not passed.
    if rpc.lost:
        return {"passed": False, "message": "the candidate ended before it answered"}
    if failed is not None:
        named = getattr(failed, "cannot_judge", None)
        doubt = named if type(named) is str else rpc.doubt
        told = {"cannot_judge": doubt} if doubt else {}
        return {"passed": False, "message": _message(failed), "memory": isinstance(failed, MemoryError), **told}
    return {"passed": True}


def _message(error: BaseException) -> str:
    line = _failed_line(error) if isinstance(error, AssertionError) and not error.args else ""
    said = f"AssertionError: {line}" if line else "".join(traceback.format_exception_only(error)[-1:]).strip()
    # A lone surrogate cannot be encoded when the report is written.
    return said[:_MAX_MESSAGE].encode("utf-8", "replace").decode()


def _failed_line(error: BaseException) -> str:
    """The last line of the tests' files that the error passed through; only their names are relative."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("/"):
            line = linecache.getline(file, trace.tb_lineno).strip()
        trace = trace.tb_next
    return line
