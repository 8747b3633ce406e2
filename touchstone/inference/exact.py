"""Sums over groups that are identical to the last digit in any order of rows.

Floats are added as 128-bit fixed-point numbers, and integer addition neither rounds nor depends on order. Sorting first
would not help, because Polars drops a sort before a plain sum or mean. This is as fast as a plain sum.

Overflow is impossible: a value is at most 2^30, which is 2^94 steps of 2^-64; Polars frames have at most 2^32 rows; and
2^126 fits into 128 bits. Input amounts and costs are kept below `vocabulary.MAX_AMOUNT` where they are made.
"""

import polars as pl

# Values with few binary digits, such as 0, 0.5 and 1, are not rounded at all.
_STEP = 2.0**-64
LARGEST = 2.0**30


def exact_sum(values: pl.Expr) -> pl.Expr:
    """The sum of a group; 0 if it has no value, null if a value is beyond `LARGEST` or NaN.

    >>> frame = pl.DataFrame({"x": [0.1, 0.2, None, 0.3]})
    >>> frame.select(exact_sum(pl.col("x"))).item() == frame.reverse().select(exact_sum(pl.col("x"))).item() == 0.6
    True
    """
    return pl.when((values.abs() <= LARGEST).all()).then(from_fixed_point(to_fixed_point(values).sum()))


def exact_mean(values: pl.Expr) -> pl.Expr:
    """The mean of a group; null if it has no value or `exact_sum` is null.

    >>> pl.DataFrame({"x": [1.0, None, 0.5]}).select(exact_mean(pl.col("x"))).item()
    0.75
    """
    return pl.when(values.count() > 0).then(exact_sum(values) / values.count())


def exact_total(sums: pl.Expr) -> pl.Expr:
    """The sum of a group's values that are themselves sums over rows; null if one is null.

    Each may be beyond `LARGEST`, because they cannot overflow together if the rows that they add up could not.

    >>> pl.DataFrame({"x": [2.0**31, 0.5]}).select(exact_total(pl.col("x"))).item() - 2**31
    0.5
    """
    return pl.when(sums.is_not_null().all()).then(from_fixed_point((sums / _STEP).cast(pl.Int128).sum()))


def to_fixed_point(values: pl.Expr) -> pl.Expr:
    """Floats as 128-bit integers, for sums in several stages; null beyond `LARGEST`.

    >>> frame = pl.DataFrame({"x": [1e9, 0.1, -1e9]})
    >>> frame.select(from_fixed_point(to_fixed_point(pl.col("x")).sum())).item()
    0.1
    """
    return pl.when(values.abs() <= LARGEST).then(values / _STEP).cast(pl.Int128)


def from_fixed_point(steps: pl.Expr) -> pl.Expr:
    """The floats that `to_fixed_point` made integers of."""
    return steps.cast(pl.Float64) * _STEP
