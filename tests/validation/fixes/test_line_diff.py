"""Unified diffs of a fix: what git would write, that apply back exactly, in bounded time."""

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.validation.fixes.line_diff import diff_lines
from touchstone.validation.fixes.patching import apply_patches
from touchstone.validation.fixes.unified_diff import parse_diff
from touchstone.validation.protocol import Tree

FILES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "é\r\n", "--- x\n", "@@\n"]), max_size=30).flatmap(
    lambda lines: st.sampled_from(["".join(lines), "".join(lines).removesuffix("\n")])
)


@given(FILES, FILES)
def test_a_diff_applies_back_to_the_same_bytes(old: str, new: str) -> None:
    diff = "\n".join(diff_lines("a.py", old.encode(), new.encode()))
    if old == new:
        assert diff == ""
        return
    tree = Tree(Path("none"), ("a.py",), {"a.py": old.encode()})
    assert apply_patches(tree, parse_diff(diff)).files == {"a.py": new.encode()}


def test_it_reads_like_difflibs() -> None:
    old = [f"line {number}\n" for number in range(40)]
    new = [*old[:5], "new\n", *old[5:20], *old[21:39], "last\n"]
    expected = difflib.unified_diff(old, new, "a/f", "b/f")
    given_text = ("".join(lines).encode() for lines in (old, new))
    assert list(diff_lines("f", *given_text)) == [line.removesuffix("\n") for line in expected]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [(None, b"x\n", ["--- /dev/null", "+++ b/f"]), (b"x\n", None, ["--- a/f", "+++ /dev/null"])],
)
def test_a_file_that_appears_or_goes(old: bytes | None, new: bytes | None, names: list[str]) -> None:
    assert list(diff_lines("f", old, new))[:2] == names


@pytest.mark.parametrize("lines", [("a", "a"), ("a\nb", "b\na")], ids=["one line repeated", "interleaved"])
def test_hostile_repetition_is_not_compared_line_by_line(lines: tuple[str, str]) -> None:
    old, new = ("\n".join([line] * 20_000 + ["end" + line]) for line in lines)
    shown = list(diff_lines("f", f"head\n{old}".encode(), new.encode()))
    # difflib would take minutes; what is too much work is one change of all lines between the equal ends.
    assert "-head" in shown and sum(line.startswith("@@") for line in shown) == 1
