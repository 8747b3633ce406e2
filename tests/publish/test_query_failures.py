"""How a query that ends badly is told, and queries with many columns of one name."""

import signal

import pytest

from touchstone.publish.query import DEFAULT_LIMITS, _failure, _unique_names

MEMORY = "the query needed more than 2 GiB of memory"


@pytest.mark.parametrize(
    ("code", "stderr", "message"),
    [
        (4, "", MEMORY),
        (-signal.SIGKILL, "", MEMORY),
        (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'", MEMORY),
        (-signal.SIGSEGV, "", "the query crashed DuckDB (SIGSEGV); simplify it, or split it into several"),
        (-signal.SIGABRT, "", "the query crashed DuckDB (SIGABRT); simplify it, or split it into several"),
        (3, "warning\nParser Error: x\n", "Parser Error: x"),
        (1, "", "the query could not be started: no reason given"),
    ],
)
def test_only_what_was_memory_is_told_as_memory(code: int, stderr: str, message: str) -> None:
    assert _failure(code, stderr, DEFAULT_LIMITS) == message


def test_equal_names_are_numbered_also_if_there_are_many() -> None:
    """Comparing every name with all others would take hours here."""
    many = 50_000
    named = _unique_names(["a", "a_1", *["a"] * many])
    assert named[:5] == ["a", "a_1", "a_2", "a_3", "a_4"]
    assert len(set(named)) == many + 2
