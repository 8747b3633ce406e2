"""Terraform's "Did you mean": the first known name that is fewer than three edits away."""

from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """The sentence to append, with its leading space; empty if no name is close."""
    near = nearest(given, known)
    return f' Did you mean "{near}"?' if near else ""


def nearest(given: str, known: Iterable[str]) -> str:
    """The first close name, or an empty string.

    >>> nearest("defalt", ["description", "default"])
    'default'
    """
    for name in known:
        if abs(len(name) - len(given)) < 3 and _edits(given, name) < 3:
            return name
    return ""


def _edits(left: str, right: str) -> int:
    """The Levenshtein distance, cut off at three."""
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            substituted = previous[column - 1] + (character != other)
            current.append(min(substituted, previous[column] + 1, current[-1] + 1))
        if min(current) > 2:
            return 3
        previous = current
    return previous[-1]
