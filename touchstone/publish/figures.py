"""How single figures look to people, on the terminal and in the report: rates, intervals, p-values, amounts."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from touchstone.text import estimate, significant

_MOST_DECIMALS = 8


def number(value: float | None) -> str:
    """A figure to three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def percent(share: float) -> str:
    """A confidence level as people write it.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.4g}%"


def decimals(values: Iterable[float], *, money: bool = False) -> int:
    """How many decimals all figures of a column get, so that their points are below one another.

    Shares get three, like `number`. Amounts of money get what the smallest needs for three significant digits.

    >>> decimals([0.4, 0.45678]), decimals([0.0004, 0.12], money=True), decimals([412.0, 88.25]), decimals([3.0, 8.0])
    (3, 6, 1, 0)
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes or all(size.is_integer() for size in sizes):
        return 4 if money else 3 if max(sizes, default=0) <= 1 else 0
    if money:
        return min(_MOST_DECIMALS, max(4, 2 - math.floor(math.log10(min(sizes)))))
    return max(1, 3 - len(f"{max(sizes):.0f}") + (max(sizes) <= 1))


def in_column(value: float, places: int, *, money: bool = False) -> str:
    """A figure of a column with so many decimals; one that they would show as 0 gets its own digits.

    >>> in_column(0.4, 3), in_column(1234.5, 1), in_column(-0.02, 4, money=True), in_column(math.inf, 3)
    ('0.400', '1,234.5', '-$0.0200', '∞')
    >>> in_column(0.0000123, 3)
    '1.23e-05'
    """
    sign, unit = "-" if value < 0 else "", "$" if money else ""
    if not math.isfinite(value):
        return f"{sign}∞"
    size = abs(value)
    rounds_to_zero = value and round(size, places) == 0
    return sign + unit + (significant(size, 3) if rounds_to_zero else f"{size:,.{places}f}")


def p_value(value: float | None) -> str:
    """A p-value to three decimals, or `< 0.001`."""
    return "< 0.001" if value is not None and value < 0.001 else number(value)


def interval(row: Mapping[str, Any], prefix: str) -> str:
    """A confidence interval with signs, or a dash."""
    low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    return "-" if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"


def with_interval(row: Mapping[str, Any], figure: str, prefix: str, style: str) -> str:
    """A figure with its confidence interval, if it has one; an end that is unknown is an ellipsis."""
    return estimate(row[figure], row[f"{prefix}ci_low"], row[f"{prefix}ci_high"], style.format)


def dollars(value: float | None) -> str:
    """An amount in dollars, with at least three significant digits."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "never passes"
    # A fix by a small model costs a fraction of a cent, of which four decimals would keep one digit.
    decimals = 4 if value <= 0 else max(4, 2 - math.floor(math.log10(value)))
    return f"${value:.{decimals}f}"
