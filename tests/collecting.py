"""Collecting and reporting: every worker of xdist finds all tests and sends each report, so both are kept small."""

import gc
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol

TESTS = Path(__file__).parent

# Collecting makes a million objects that stay: looking among them for garbage takes each worker two seconds.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    if config.args_source is config.ArgsSource.TESTPATHS and hasattr(config, "workerinput"):
        _rewrite_own_share(config, config.workerinput)


def _rewrite_own_share(config: pytest.Config, worker: dict[str, Any]) -> None:
    """Rewrite the assertions of some test files, for all workers: in a new clone, each would rewrite all of them."""
    if sys.dont_write_bytecode:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for path in sorted(TESTS.rglob("test_*.py"))[number :: worker["workercount"]]:
        cached = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not cached.exists() and rewrite.try_makedirs(cached.parent):
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, cached)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples only where there are some, and not in the tests: to search every object takes seconds."""
    found = yield
    if file_path.is_relative_to(TESTS) or b">>> " not in file_path.read_bytes():
        return [collector for collector in found if not isinstance(collector, DoctestModule)]
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no cases of a function whose marker is deselected: each worker would make them for nothing."""
    marks = getattr(obj, "pytestmark", None) if callable(obj) else None
    return [] if isinstance(marks, list) and _is_deselected(marks, collector.config) else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Nor make cases of parameters whose marker is deselected. One stays if all are: without any, pytest would fail."""
    yield
    wanted = [call for call in metafunc._calls if not _is_deselected(call.marks, metafunc.config)]
    metafunc._calls = wanted or metafunc._calls[:1]


def _is_deselected(marks: Iterable[object], config: pytest.Config) -> bool:
    names = [mark.name for mark in marks if isinstance(mark, pytest.Mark)]
    return any(f"not {name}" in config.option.markexpr for name in names)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the browser's tests aside unless they are asked for: their packages take each worker a while to load."""
    return True if collection_path == TESTS / "browser" and "not browser" in config.option.markexpr else None


def pytest_collection_finish() -> None:
    """Let the collector look at what the tests make, and not at what collecting has made."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs first: the longest of them would otherwise be left to one core at the end."""
    long = ("tests/pipelines/test_progress.py", "tests/pipelines/", "tests/comparison/test_gate.py")
    places = {name: place for place, name in enumerate(long)}
    items.sort(key=lambda item: next((places[name] for name in long if item.nodeid.startswith(name)), len(long)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker send one report of a passed test, without its keywords, instead of three and two events."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
    return True
