"""How single figures look to people, on the terminal and in the report: rates, intervals, p-values, amounts."""

import math
from collections.abc import Mapping
from typing import Any

from touchstone.text import estimate


def number(value: float | None) -> str:
    """A figure to three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


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
