"""Applying fixes: worked examples, line endings, refusals, and the lines that a fix occupies."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validation.fixes.support import applied_fix, refused_fix
from touchstone.validation.fixes.apply_fix import (
    MAX_FIX_BYTES,
    AppliedFix,
    Fix,
    FixKind,
    NotApplied,
    apply_fix,
    choose_fix,
)
from touchstone.validation.protocol import Problem, Tree


def problem(start: int | None = None, end: int | None = None) -> Problem:
    return Problem("a", "main.tf", Path("clones"), line_start=start, line_end=end)


def tree(original: bytes) -> Tree:
    return Tree(Path("clones"), ("main.tf",), {"main.tf": original})


def apply_to(original: bytes, fix: Fix, problem: Problem) -> AppliedFix:
    return applied_fix(tree(original), fix, problem)


def one_file(content: bytes, first_line: int, last_line: int) -> AppliedFix:
    return AppliedFix({"main.tf": content}, (first_line, last_line))


def content_of(applied: AppliedFix) -> bytes:
    return applied.changes["main.tf"] or b""


def block(original: bytes, text: str, start: int, end: int) -> AppliedFix:
    return apply_to(original, Fix(text, "block"), problem(start, end))


def test_a_block_takes_the_place_of_the_block_and_not_of_the_error() -> None:
    within = replace(problem(3, 3), block_start=2, block_end=4)
    assert apply_to(b"a\nb\nc\nd\ne\n", Fix("B", "block"), within) == one_file(b"a\nB\ne\n", 2, 2)


@pytest.mark.parametrize(
    ("original", "text", "start", "end", "expected"),
    [
        (b"a\nb\nc\n", "B", 2, 2, one_file(b"a\nB\nc\n", 2, 2)),
        (b"a\nb\nc\n", "B\n", 2, 2, one_file(b"a\nB\nc\n", 2, 2)),
        (b"a\nb\nc\n", "  B\n\tb\n", 2, 3, one_file(b"a\n  B\n\tb\n", 2, 3)),
        (b"a\nb\nc\n", "B\n\n", 2, 2, one_file(b"a\nB\n\nc\n", 2, 3)),
        (b"a\nb", "B\n", 2, 2, one_file(b"a\nB", 2, 2)),
        (b"a\nb", "B\n\n", 1, 2, one_file(b"B", 1, 1)),
        (b"a\r\nb\r\n", "B\nb", 2, 2, one_file(b"a\r\nB\r\nb\r\n", 2, 3)),
        (b"a\r\nb", "B\nb\n", 2, 2, one_file(b"a\r\nB\r\nb", 2, 3)),
        (b"a\r\nb\r\n", "A\r\n", 1, 1, one_file(b"A\r\nb\r\n", 1, 1)),
        (b"a\nb\n", "B\r\nb\r\n", 2, 2, one_file(b"a\nB\nb\n", 2, 3)),
        (b"\xff\nb\n\xfe\n", "B", 2, 2, one_file(b"\xff\nB\n\xfe\n", 2, 2)),
        (b"a {\n", "}", 2, 2, one_file(b"a {\n}\n", 2, 2)),
        (b"a {\nb\n", "B\n}", 2, 3, one_file(b"a {\nB\n}\n", 2, 3)),
        (b"", "a", 1, 1, one_file(b"a\n", 1, 1)),
        (b"a\nb\n", "```hcl\nB\n```", 2, 2, one_file(b"a\nB\n", 2, 2)),
    ],
)
def test_a_block_takes_the_place_of_its_lines(
    original: bytes, text: str, start: int, end: int, expected: AppliedFix
) -> None:
    assert block(original, text, start, end) == expected


NOWHERE = "the fix is a block and the problem has no line range to put it in"


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        *((start, end, NOWHERE) for start, end in ((None, None), (1, None), (None, 1))),
        *(
            (start, end, f"the fix is for lines {start} to {end} and the file has 3")
            for start, end in ((0, 1), (-1, 1), (2, 1), (1, 5), (4, 5), (9, 9))
        ),
    ],
)
def test_a_block_needs_lines_that_the_file_has(start: int | None, end: int | None, reason: str) -> None:
    answer = refused_fix(tree(b"a\nb\nc\n"), Fix("x", "block"), problem(start, end))
    assert answer == NotApplied("validator_unavailable", reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *(
            (text, "the fix is empty")
            for text in ("", " \n\t", "```\n```", "<![CDATA[]]>", "<![CDATA[```hcl\n\n```]]>")
        ),
        ("a\0b", "the fix has NUL bytes"),
        ("a\ud800", "the fix has lone surrogates, which are no text"),
        ("é" * 1_000_001, "the fix has 2,000,002 bytes; at most 2,000,000 are allowed"),
    ],
)
@pytest.mark.parametrize("kind", ["file", "block"])
def test_what_is_empty_or_no_text_is_a_failed_attempt(text: str, reason: str, kind: FixKind) -> None:
    assert refused_fix(tree(b"a\n"), Fix(text, kind), problem()) == NotApplied("failed", reason)


def test_the_largest_fix_is_allowed() -> None:
    apply_to(b"a\n", Fix("x" * MAX_FIX_BYTES, "file"), problem())


@pytest.mark.parametrize(
    ("new", "start", "end", "expected"),
    [
        ("1\n2\n3\n4\n5\n", 2, 3, (2, 3)),
        ("0\n1\n2\n3\n4\n5\n", 2, 3, (3, 4)),
        ("1\n2\nx\ny\n4\n5\n", 3, 3, (3, 4)),
        ("1\n2\n3\nnew\n4\n5\n", 2, 3, (2, 4)),
        ("1\n4\n5\n", 2, 3, (2, 2)),
        ("1\n2\n3\n", 4, 5, (3, 3)),
        ("x\n", 2, 3, (1, 1)),
        ("1\r\nx\r\n3\r\n4\r\n5\r\n", 2, 2, (2, 2)),
        ("a\nb\n", None, None, (1, 2)),
        ("a\nb\n", 7, 9, (1, 2)),
    ],
)
def test_the_problems_lines_in_a_whole_new_file(
    new: str, start: int | None, end: int | None, expected: tuple[int, int]
) -> None:
    answer = apply_to(b"1\n2\n3\n4\n5\n", Fix(new, "file"), problem(start, end))
    assert answer == one_file(new.encode(), *expected)


def test_a_file_that_repeats_one_line_takes_no_time() -> None:
    started = time.process_time()
    apply_to(b"a\n" + b"x\n" * 20_000 + b"b\n", Fix("c\n" + "x\n" * 200_000, "file"), problem(5, 9))
    assert time.process_time() - started < 60, "comparing every pair of lines takes minutes"


def test_a_long_file_full_of_equal_lines_is_still_mapped_closely() -> None:
    before = [line for number in range(2_000) for line in (f"item {number} {{", "  on = true", "}")]
    after = [*before[:10], "new", *before[10:4_000], "changed", *before[4_001:5_990], "new", *before[5_990:]]
    answer = apply_to("\n".join(before).encode(), Fix("\n".join(after), "file"), problem(4_000, 4_002))
    assert answer.lines == (4_001, 4_003)


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("original", "text", "expected"),
    [
        (b"a\n", "\ufeffb\n", b"b\n"),
        (BOM + b"a\n", "\ufeffb\n", BOM + b"b\n"),
        (BOM + b"a\n", "b\n", b"b\n"),
        (b"a\n", "\ufeff```\nb\n```", b"b\n"),
    ],
    ids=["of the text", "of both", "of the file, replaced as any program would", "before a fence"],
)
def test_a_bom_stays_if_both_the_file_and_the_fix_have_one(original: bytes, text: str, expected: bytes) -> None:
    answer = apply_to(original, Fix(text, "file"), problem())
    assert content_of(answer) == expected
    assert block(b"a\nb\n", text, 2, 2) == block(b"a\nb\n", text.removeprefix("\ufeff"), 2, 2)


ROW = {"fixed_file": "f", "fixed_block_content": "b", "fixed_code": "c"}


@pytest.mark.parametrize(
    ("columns", "how", "has_range", "expected"),
    [
        (("fixed_file", "fixed_block_content", "fixed_code"), "auto", True, Fix("f", "file")),
        (("fixed_block_content", "fixed_code"), "auto", True, Fix("b", "block")),
        (("fixed_block_content",), "auto", False, Fix("b", "block")),
        (("fixed_code",), "auto", True, Fix("c", "block")),
        (("fixed_code",), "auto", False, Fix("c", "file")),
        (("fixed_file", "fixed_code"), "file", True, Fix("f", "file")),
        (("fixed_block_content", "fixed_code"), "file", True, Fix("c", "file")),
        (("fixed_file", "fixed_block_content", "fixed_code"), "block", True, Fix("b", "block")),
        (("fixed_file", "fixed_code"), "block", False, Fix("c", "block")),
        (("fixed_file",), "block", True, None),
        (("fixed_block_content",), "file", True, None),
        ((), "auto", True, None),
    ],
)
@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_the_first_column_that_holds_a_fix_is_taken(
    columns: tuple[str, ...], how: str, has_range: bool, expected: Fix | None, blank: str | None
) -> None:
    row = {column: ROW[column] for column in columns}
    assert choose_fix(row, how, has_range) == expected  # type: ignore[arg-type]
    if expected:
        with_blanks = dict.fromkeys(ROW, blank) | row
        assert choose_fix(with_blanks, how, has_range) == expected  # type: ignore[arg-type]
        all_blank = dict.fromkeys(columns, blank)
        empty = choose_fix(all_blank, how, has_range)  # type: ignore[arg-type]
        assert empty is not None and empty.text == ""


lines_of_text = st.text(st.sampled_from("ab{} \té"), max_size=4)
contents = st.builds(
    lambda lines, end, last: end.join(lines).encode() + (end.encode() if last else b""),
    st.lists(lines_of_text, min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
blocks = st.lists(lines_of_text, min_size=1, max_size=5).map("\n".join).filter(str.strip)


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, str, int, int]:
    original = draw(contents)
    count = len(original.removesuffix(b"\n").split(b"\n"))
    start = draw(st.integers(1, count))
    return original, draw(blocks), start, draw(st.integers(start, count))


@given(edits())
def test_only_the_blocks_lines_change(edit: tuple[bytes, str, int, int]) -> None:
    original, text, start, end = edit
    answer = block(original, text, start, end)
    before, after = original.split(b"\n"), content_of(answer).split(b"\n")
    assert content_of(answer).endswith(b"\n") == original.endswith(b"\n") or not original
    first, last = answer.lines
    assert first == start
    assert after[: start - 1] == before[: start - 1]
    if original:
        assert after[last:] == before[end:]
    inside = b"\n".join(line.removesuffix(b"\r") for line in after[start - 1 : last]).decode()
    assert inside.rstrip("\n") == text.rstrip("\n")
    ends = content_of(answer).count(b"\n") if b"\r\n" in original else 0
    assert content_of(answer).count(b"\r\n") == content_of(answer).count(b"\r") == ends, "line ends stay of one kind"


@given(edits())
def test_putting_the_same_lines_back_changes_nothing(edit: tuple[bytes, str, int, int]) -> None:
    original, _, start, end = edit
    text = b"\n".join(line.removesuffix(b"\r") for line in original.split(b"\n")[start - 1 : end]).decode()
    answer = apply_fix(tree(original), Fix(text + "\n", "block"), problem(start, end))
    if isinstance(answer, AppliedFix) and not (end == original.count(b"\n") + 1 and text.endswith("\n")):
        assert content_of(answer) == original


@given(edits(), contents.filter(lambda content: bool(content.strip())))
def test_a_whole_file_is_taken_as_it_is_and_its_range_lies_in_it(edit: tuple[bytes, str, int, int], new: bytes) -> None:
    original, _, start, end = edit
    answer = apply_to(original, Fix(new.decode(), "file"), problem(start, end))
    assert content_of(answer) == new
    assert 1 <= answer.lines[0] <= answer.lines[1] <= len(new.removesuffix(b"\n").split(b"\n"))


@given(edits().filter(lambda edit: bool(edit[0].strip())))
def test_an_unchanged_file_keeps_the_problems_lines(edit: tuple[bytes, str, int, int]) -> None:
    original, _, start, end = edit
    answer = apply_to(original, Fix(original.decode(), "file"), problem(start, end))
    assert answer == one_file(original, start, end)
