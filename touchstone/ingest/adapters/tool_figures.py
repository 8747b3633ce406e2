"""Figures by the rules of other tools, to show that a file was read as the tool itself reads it.

Touchstone's own figures belong in `metrics`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence


def number_of(value: object) -> float | None:
    """A JSON number as a float; None for anything else and for what no float can hold."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def mean(values: Sequence[float]) -> float | None:
    """The plain mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def pass_at_k(attempts: Iterable[tuple[object, bool]], k: int) -> float | None:
    """The unbiased pass@k of Chen et al. (2021), averaged over the problems with at least `k` attempts.

    >>> pass_at_k([("a", True), ("a", False), ("b", False), ("b", False)], 2)
    0.5
    """
    counts: dict[object, list[int]] = {}
    for problem, passed in attempts:
        count = counts.setdefault(problem, [0, 0])
        count[0] += 1
        count[1] += passed
    return mean([1 - math.comb(n - c, k) / math.comb(n, k) for n, c in counts.values() if n >= k])


def reported_pass_at_k(stated: object) -> Mapping[int, float]:
    """The figures of an object such as `{"2": 0.5}`, by k."""
    if not isinstance(stated, dict):
        return {}
    figures = ((key, number_of(value)) for key, value in stated.items())
    # A k of more than four digits is none, and could make the formula above run for hours.
    return {int(key): value for key, value in figures if value is not None and key.isdecimal() and len(key) < 5}


def tokens_without_cache(prompt: str | None, *cached: str | None) -> str | None:
    """The prompt tokens of a tool that counts those read from and written to a cache among them.

    >>> tokens_without_cache("100", "30", None), tokens_without_cache("100", "300"), tokens_without_cache("x", "1")
    ('70', '100', 'x')
    """
    counts = [number_of(each) or 0 for each in cached]
    total = number_of(prompt)
    # More cached tokens than there are in total were counted apart.
    if total is None or not any(counts) or sum(counts) > total:
        return prompt
    return f"{total - sum(counts):.0f}"
