"""Coroutines as tests and fixtures, and what is not awaited because no plugin does it.

A coroutine test without a plugin runs in an event loop of its own. What needs a plugin that is not there cannot be
judged: it neither failed nor passed. Which plugins are loaded belongs in `plugins`.
"""

import errno
import inspect
import re
import socket
import unittest
from collections.abc import Callable
from typing import Any

import pytest

_NOT_AWAITED = "async def functions are not natively supported"
_NOT_HANDLED = re.compile(r"requested an async fixture '(\w+)'.* no plugin or hook that handled it")


def needed_by(error: BaseException, item: pytest.Item) -> str | None:
    """The missing part for which a test failed: a network, a plugin that awaits it or that defines its fixture."""
    cause: BaseException | None = error
    while cause is not None:
        number = cause.errno if isinstance(cause, OSError) else None
        denied = isinstance(cause, socket.gaierror) or number == errno.EPERM
        frames = inspect.getinnerframes(cause.__traceback__) if denied and cause.__traceback__ else []
        if number == errno.ENETUNREACH or (frames and frames[-1].filename == socket.__file__):
            return f"{item.name} needs a network that the sandbox does not have; {_LEAVE_OUT}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, pytest.FixtureLookupError):
        return f"{item.name} uses the fixture {error.argname}, which no loaded plugin defines; {_NAME_IT}"
    text = str(error) if isinstance(error, pytest.fail.Exception) else ""
    if found := _NOT_HANDLED.search(text):
        return f"the fixture {found[1]} is asynchronous, and no plugin awaits it; {_hint(item)}"
    if text.startswith(_NOT_AWAITED):
        return f"{item.name} is asynchronous, and no plugin awaits it; {_hint(item)}"
    return None


_LEAVE_OUT = "leave it out of the problem's tests"
_OF_UNITTEST = "coroutines need an unittest.IsolatedAsyncioTestCase"
_NAME_IT = "install its plugin and name it in pytest_plugins of a conftest.py"


def _hint(item: pytest.Item) -> str:
    if item.config.pluginmanager.has_plugin("asyncio"):
        return "with asyncio_mode = strict, pytest-asyncio awaits only what is marked for it"
    return "add pytest-asyncio, or anyio with its marker, to the environment of the problem"


def run_coroutine(item: pytest.Function) -> str | None:
    """Run a coroutine test in an event loop of its own; returns what it needs instead, if it cannot run so."""
    import asyncio

    if item.get_closest_marker("trio") is not None:
        return f"{item.name} needs trio; add pytest-trio to the environment of the problem"
    arguments = {name: item.funcargs[name] for name in inspect.signature(item.obj).parameters}
    finished = []

    async def to_the_end() -> None:
        await item.obj(**arguments)
        finished.append(True)

    # A fix may have replaced what runs it.
    asyncio.run(to_the_end())
    if not finished:
        pytest.fail(f"{item.name} did not run to its end", pytrace=False)
    return None


def watch_unittest(item: pytest.Item, write_needs: Callable[[str], None]) -> None:
    """Fail a coroutine in a plain `unittest.TestCase`, which would pass it without awaiting it."""
    found = getattr(item, "instance", None)
    if not isinstance(found, unittest.TestCase):
        return
    case: Any = found
    kind: Any = type(found)
    plain: Any = unittest.TestCase
    if kind._callTestMethod is not plain._callTestMethod:
        return

    def call(method: Callable[[], object]) -> None:
        if has_not_run(method()):
            needs = f"{item.name} is a coroutine or generator, which unittest.TestCase does not run; {_OF_UNITTEST}"
            write_needs(needs)
            pytest.fail(_NOT_AWAITED, pytrace=False)

    case._callTestMethod = call


def has_not_run(returned: object) -> bool:
    """Whether what a test returned is the test itself, still to be awaited or iterated over.

    >>> has_not_run((number for number in range(3))), has_not_run(None)
    (True, False)
    """
    if inspect.iscoroutine(returned):
        returned.close()  # or Python warns of it
        return True
    return inspect.isgenerator(returned) or inspect.isasyncgen(returned) or inspect.isawaitable(returned)
