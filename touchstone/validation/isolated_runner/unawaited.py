"""Tests that only look as if they ran: a call that returns a coroutine or a generator has not run its body."""

import inspect
import unittest
from collections.abc import Callable
from typing import Any


def has_not_run(returned: object) -> bool:
    """Whether what a test returned is the test itself, still to be awaited or iterated over.

    >>> has_not_run((number for number in range(3))), has_not_run(None)
    (True, False)
    """
    if inspect.iscoroutine(returned):
        returned.close()  # or Python warns of it
        return True
    return inspect.isgenerator(returned) or inspect.isasyncgen(returned) or inspect.isawaitable(returned)


def watch_test_case(case: unittest.TestCase, refuse: Callable[[], None]) -> None:
    """Have `refuse` called for a test that has not run, which a plain `unittest.TestCase` would pass."""
    kind: Any = type(case)
    plain: Any = unittest.TestCase
    instance: Any = case
    if kind._callTestMethod is not plain._callTestMethod:
        return

    def call(method: Callable[[], object]) -> None:
        if has_not_run(method()):
            refuse()

    instance._callTestMethod = call
