"""Sums that are the same to the last digit whatever the order of rows.

Floats are added up as whole numbers of a tiny step, a power of two: sums of integers have no rounding and no order.
Polars drops a sort before a plain sum or mean, so sorting first would not help, and this is as fast as a plain sum.
"""

import polars as pl

# Of what has few binary digits, such as 0, 1 and a half, nothing is rounded at all.
_STEP = 2.0**-64


def exact_sum(values: pl.Expr) -> pl.Expr:
    """The sum of a group; 0 where there is no value.

    >>> frame = pl.DataFrame({"x": [0.1, 0.2, None, 0.3]})
    >>> frame.select(exact_sum(pl.col("x"))).item() == frame.reverse().select(exact_sum(pl.col("x"))).item() == 0.6
    True
    """
    return of_steps(as_steps(values).sum())


def exact_mean(values: pl.Expr) -> pl.Expr:
    """The mean of a group; null where there is no value.

    >>> pl.DataFrame({"x": [1.0, None, 0.5]}).select(exact_mean(pl.col("x"))).item()
    0.75
    """
    return pl.when(values.count() > 0).then(exact_sum(values) / values.count())


def as_steps(values: pl.Expr) -> pl.Expr:
    """Finite numbers as whole steps, for sums in several stages; `of_steps` turns the sum back.

    >>> frame = pl.DataFrame({"x": [1e16, 0.1, -1e16]})
    >>> frame.select(of_steps(as_steps(pl.col("x")).sum())).item()
    0.1
    """
    return (values / _STEP).cast(pl.Int128)


def of_steps(steps: pl.Expr) -> pl.Expr:
    """The number that so many steps are."""
    return steps.cast(pl.Float64) * _STEP
