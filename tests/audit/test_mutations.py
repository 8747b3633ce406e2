"""Mutants: each has one mistake where the fix is, compiles, and means something else than the others."""

import ast
import inspect
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.audit import mutations
from touchstone.audit.mutations import Mutant, choose_mutants

FIXED = """
def clamp(value, low, high):
    if value < low and low <= high:
        return low
    return min(value, high)


def other(value):
    return value + 1
"""
BROKEN = FIXED.replace("value < low", "value > low")


def mutants(fixed: str, old: str | None = None, most: int = 1000) -> list[Mutant]:
    before = None if old is None else old.encode()
    return choose_mutants([("a.py", before, fixed.encode())], most)


def mutated_lines(fixed: str, old: str | None = None) -> dict[str, str]:
    """What was changed and the line that it became."""
    found = mutants(fixed, old)
    return {each.change: each.content.decode().split("\n")[each.line - 1].strip() for each in found}


@pytest.mark.parametrize(
    ("code", "change", "becomes"),
    [
        ("return a < b", "< to <=", "return a <= b"),
        ("return a < b", "< to >=", "return a >= b"),
        ("return a is not b", "not to nothing", "return a is  b"),
        ("return (a) not in (b)", "not to nothing", "return (a)  in (b)"),
        ("return (a) + (b)", "+ to -", "return (a) - (b)"),
        ("return a and b", "and to or", "return a or b"),
        ("return not a", "not to nothing", "return  a"),
        ("return b if a else 1", "condition negated", "return b if not (a) else 1"),
        ("return 7", "7 to 6", "return 6"),
        ("return True", "True to False", "return False"),
        ("return a", "returns None", "return None"),
        ("a += b", "+= to -=", "a -= b"),
        ("a.append(b)", "statement removed", "pass"),
        ("a[0] = b", "statement removed", "pass"),
        ("raise ValueError('é')", "statement removed", "pass"),
        ("x = 'é'; return a > b", "> to >=", "x = 'é'; return a >= b"),
    ],
)
def test_every_operator(code: str, change: str, becomes: str) -> None:
    assert mutated_lines(f"def f(a, b):\n    {code}\n")[change] == becomes


@pytest.mark.parametrize(
    "code",
    [
        '"""Doc 1 < 2."""',
        "x: list[1] = a",
        "x = f'{a + 1}'",
        "logger.info('a', 1)",
        "raise_ = 'text'",
        "if __name__ == '__main__':\n        a.run(1)",
    ],
)
def test_what_tests_do_not_mean_to_check_is_left_alone(code: str) -> None:
    assert mutants(f"def f(a, b):\n    {code}\n") == []


def test_of_a_raise_only_the_statement_is_removed() -> None:
    assert set(mutated_lines("def f(a):\n    raise ValueError(a + 1)\n")) == {"statement removed"}


def test_mutants_are_where_the_fix_is() -> None:
    found = mutants(FIXED, BROKEN)
    # The function around the fix, and no other; first the line that the fix wrote.
    assert {each.line for each in found} == {3, 4, 5}
    assert [each.line for each in found[:3]] == [3, 3, 3]
    assert max(place for place, each in enumerate(found) if each.line == 3) < min(
        place for place, each in enumerate(found) if each.line != 3
    )


def test_a_fix_that_only_removes_lines_has_mutants_around_it() -> None:
    assert {each.line for each in mutants(FIXED, FIXED.replace("    return min", "    value = 0\n    return min"))} == {
        3,
        4,
        5,
    }


def test_the_unfixed_file_is_not_a_mutant() -> None:
    old = FIXED.replace("value < low", "value <= low")
    assert old not in {each.content.decode() for each in mutants(FIXED, old)}
    assert old in {each.content.decode() for each in mutants(FIXED, BROKEN)}


def test_the_choice_is_the_same_every_time_and_spread_over_lines() -> None:
    assert mutants(FIXED, None, 4) == mutants(FIXED, None, 4)
    assert len({each.line for each in mutants(FIXED, None, 4)}) == 4
    assert mutants(FIXED, None, 0) == []


@pytest.mark.parametrize(
    "source", ["def f(:\n", f"x = {' + '.join('a' * 3000)}\n", "\ufeffx = 1\n", "x = 1\ry = 2\n", "x = 1\0"]
)
def test_a_file_that_cannot_be_read_has_no_mutants(source: str) -> None:
    assert mutants(source) == []


def test_lines_that_end_as_on_windows() -> None:
    found = mutants(FIXED.replace("\n", "\r\n"), BROKEN.replace("\n", "\r\n"))
    assert [each.change for each in found] and all(each.content.count(b"\r\n") == FIXED.count("\n") for each in found)


SOURCES = [textwrap.dedent(inspect.getsource(each)) for each in (mutations, choose_mutants, test_every_operator)]


@given(st.sampled_from(SOURCES), st.integers(1, 30), st.integers(0, 10_000))
def test_mutants_compile_and_differ(source: str, most: int, place: int) -> None:
    lines = source.split("\n")
    old = "\n".join(line for number, line in enumerate(lines) if number != place % len(lines))
    found = mutants(source, old, most)
    meanings = {ast.dump(ast.parse(each.content)) for each in found}
    assert len(meanings) == len(found) <= most
    assert ast.dump(ast.parse(source)) not in meanings
    for each in found:
        compile(each.content, "mutant", "exec")
        changed = [a != b for a, b in zip(lines, each.content.decode().split("\n"), strict=False)]
        assert changed.index(True) == each.line - 1
