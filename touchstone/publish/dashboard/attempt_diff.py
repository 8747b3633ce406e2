"""Two attempts line by line: what only one of them has, and what both have."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from touchstone.publish.attempt_detail import AttemptDetail

# More lines than anybody reads; comparing them takes time with their square.
_MOST_LINES = 3_000


class Line(NamedTuple):
    """A line on the left and right, or nothing, and whether the two are the `same` or have `changed`."""

    left: str | None
    right: str | None
    kind: str


def compared_text(left: AttemptDetail, right: AttemptDetail) -> tuple[str, str, str]:
    """The texts to compare, and what they are: the fixes if both have one, else the raw responses."""
    for name, words in (("fix", "The fixes"), ("raw_response", "The raw responses")):
        texts = getattr(left, name), getattr(right, name)
        if None not in texts:
            return (*texts, words)
    return "", "", ""


def side_by_side_lines(left: str, right: str) -> Iterator[Line]:
    """The lines of two texts, changed ones opposite each other.

    >>> list(side_by_side_lines("a\\nb", "a\\nc\\nd"))[1:]
    [Line(left='b', right='c', kind='changed'), Line(left=None, right='d', kind='changed')]
    """
    old, new = (text.splitlines()[:_MOST_LINES] for text in (left, right))
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        word = "same" if kind == "equal" else "changed"
        yield from (Line(a, b, word) for a, b in zip_longest(old[start:end], new[first:last]))
