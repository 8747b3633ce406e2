"""Sums that are the same to the last digit whatever the order of rows.

Floats are added up as whole numbers of a tiny step, a power of two: sums of integers have no rounding and no order.
Polars drops a sort before a plain sum or mean, so sorting first would not help, and this is as fast as a plain sum.

Nothing can overflow: a value is at most 2^30 and so at most 2^94 steps, Polars frames have at most 2^32 rows, and
2^126 fits into 128 bits. Input amounts and costs are kept below `vocabulary.MAX_AMOUNT` where they are made.
"""

import polars as pl

# Of what has few binary digits, such as 0, 1 and a half, nothing is rounded at all.
_STEP = 2.0**-64
LARGEST = 2.0**30


def exact_sum(values: pl.Expr) -> pl.Expr:
    """The sum of a group; 0 where there is no value, null where one is beyond `LARGEST` or not a number.

    >>> frame = pl.DataFrame({"x": [0.1, 0.2, None, 0.3]})
    >>> frame.select(exact_sum(pl.col("x"))).item() == frame.reverse().select(exact_sum(pl.col("x"))).item() == 0.6
    True
    """
    return pl.when((values.abs() <= LARGEST).all()).then(from_fixed_point(to_fixed_point(values).sum()))


def exact_mean(values: pl.Expr) -> pl.Expr:
    """The mean of a group; null where there is no value, or no sum.

    >>> pl.DataFrame({"x": [1.0, None, 0.5]}).select(exact_mean(pl.col("x"))).item()
    0.75
    """
    return pl.when(values.count() > 0).then(exact_sum(values) / values.count())


def to_fixed_point(values: pl.Expr) -> pl.Expr:
    """Numbers as whole steps, for sums in several stages; `from_fixed_point` turns the sum back. Null beyond `LARGEST`.

    >>> frame = pl.DataFrame({"x": [1e9, 0.1, -1e9]})
    >>> frame.select(from_fixed_point(to_fixed_point(pl.col("x")).sum())).item()
    0.1
    """
    return pl.when(values.abs() <= LARGEST).then(values / _STEP).cast(pl.Int128)


def from_fixed_point(steps: pl.Expr) -> pl.Expr:
    """The number that so many steps are."""
    return steps.cast(pl.Float64) * _STEP
