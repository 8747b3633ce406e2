"""Long names shortened in the middle, so that they fit a column and stay distinguishable. Rich is imported only for
names beyond ASCII, because `pass-at-k` takes less time than that import.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

MARK = "…"

# A name as its graphemes, each with its width: an emoji of several characters is never split.
Graphemes = Sequence[tuple[str, int]]


def cell_width(text: str) -> int:
    """Terminal columns that the text occupies."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shortened(names: Iterable[str], width: int) -> dict[str, str]:
    """Each distinct name in at most `width` terminal columns; no two of them become the same.

    >>> list(shortened(["claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", "m"], 13).values())
    ['claude…250929', 'claude…250514', 'm']
    >>> list(shortened(["provider-model-a-20250929", "provider-model-b-20250929"], 13).values())
    ['pr…a-20250929', 'pr…b-20250929']
    """
    distinct = list(dict.fromkeys(names))
    short = {name: name if cell_width(name) <= width else _middle_out(name, width) for name in distinct}
    same = {text for text, times in Counter(short.values()).items() if times > 1}
    for text in sorted(same):
        group = [name for name in distinct if short[name] == text]
        taken = {short[name] for name in distinct if short[name] != text}
        short |= next(
            candidate for candidate in _candidates(group, width) if len({*candidate.values()} - taken) == len(group)
        )
    return short


def _candidates(group: Sequence[str], width: int) -> Iterator[dict[str, str]]:
    """Other ways to shorten names that share beginning and end; the last ones number them, and so always differ."""
    for tail in range(width - 1 - (width - 1) // 2, width):
        yield {name: _middle_out(name, width, tail) for name in group}
    for head in range((width - 1) // 2, width):
        yield {name: _middle_out(name, width, width - 1 - head) for name in group}
    # From a little before the first difference.
    start = max(0, _common_prefix(group) - (width - 1) // 3)
    yield {name: MARK + _head(_graphemes(name)[start:], width - 1) for name in group}
    for first in count(1, len(group)):
        numbers = [f"{MARK}{number}" for number in range(first, first + len(group))]
        yield {
            name: _head(_graphemes(name), max(0, width - len(number))) + number
            for name, number in zip(group, numbers, strict=True)
        }


def _middle_out(name: str, width: int, tail: int | None = None) -> str:
    """The name's beginning and end, by default equally much of both."""
    graphemes = _graphemes(name)
    end = _head(graphemes[::-1], (width - 1) // 2 if tail is None else tail, backwards=True)
    return _head(graphemes, width - 1 - cell_width(end)) + MARK + end


def _head(graphemes: Graphemes, width: int, backwards: bool = False) -> str:
    taken: list[str] = []
    for text, cells in graphemes:
        width -= cells
        if width < 0:
            break
        taken.append(text)
    return "".join(reversed(taken) if backwards else taken)


def _common_prefix(names: Sequence[str]) -> int:
    """How many graphemes all the names begin with."""
    places = zip(*map(_graphemes, names), strict=False)
    return next((place for place, column in enumerate(places) if len(set(column)) > 1), 0)


def _graphemes(name: str) -> Graphemes:
    if name.isascii():
        return [(character, 1) for character in name]
    from rich.cells import split_graphemes

    spans, _ = split_graphemes(name)
    return [(name[start:end], cells) for start, end, cells in spans]
