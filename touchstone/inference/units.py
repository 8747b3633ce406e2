"""From a table of attempts to independent units, and from intervals back to columns of a table.

Attempts at one problem are not independent, nor are problems that share a cluster. So attempts are summed by problem,
and problems by cluster, before any interval is computed. The intervals themselves belong in the other modules of this
package.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from numpy.typing import NDArray

from touchstone.config import IntervalSettings
from touchstone.inference.exact import exact_total, from_fixed_point, to_fixed_point
from touchstone.inference.uncertainty import Interval, unit_interval

GroupKey = tuple[str | None, ...]
Array = NDArray[Any]

UNIT = "unit"
_INTERVAL_TYPES: dict[str, type[pl.DataType]] = {
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "units": pl.Int64,
}


def own_cluster() -> pl.Expr:
    """The cluster of a problem, or one of its own. No name of a cluster starts with this character.

    >>> pl.DataFrame({"oid": ["a", "b"], "cluster": ["x", None]}).select(own_cluster())["cluster"].to_list()
    ['x', '\\x1fb']
    """
    return pl.coalesce("cluster", pl.concat_str(pl.lit("\x1f"), "oid")).alias("cluster")


def with_unit_ids(rows: pl.LazyFrame, problems: pl.LazyFrame) -> pl.LazyFrame:
    """The rows with the column `unit`: the number of their problem, or of the first problem of its cluster.

    The numbers follow the problem ids, not the order of rows. All problems have one, whether or not a row is about
    them, so that the order of a model's units does not depend on which problems other models attempted.

    >>> problems = pl.LazyFrame({"oid": ["a", "b", "c"], "cluster": ["x", "y", "x"]})
    >>> with_unit_ids(pl.LazyFrame({"oid": ["c", "b"]}), problems).sort("unit").collect()["oid"].to_list()
    ['c', 'b']
    """
    named = pl.concat([problems.select("oid", "cluster"), rows.select("oid", cluster=pl.lit(None, pl.String))])
    oids = named.group_by("oid").agg(pl.col("cluster").max()).sort("oid")
    numbers = oids.with_row_index(UNIT).with_columns(pl.col(UNIT).cast(pl.Int64))
    first = pl.when(pl.col("cluster").is_null()).then(UNIT).otherwise(pl.col(UNIT).min().over("cluster"))
    return rows.join(numbers.select("oid", first), on="oid", how="left", maintain_order="left")


def unit_sums(
    attempts: pl.LazyFrame, problems: pl.LazyFrame, group: Sequence[str], figures: Sequence[str | pl.Expr]
) -> pl.DataFrame:
    """The sum of each figure per group and unit, under its name, and the number of its values, as `<name>_size`.

    Sums are exact: the same in any order of rows.

    >>> attempts = pl.LazyFrame({"model": ["m"] * 3, "oid": ["a", "a", "b"], "score": [0.25, 0.5, None]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> unit_sums(attempts, problems, ["model"], ["score"]).sort("unit").rows()
    [('m', 0, 0.75, 2), ('m', 1, 0.0, 0)]
    """
    values = [pl.col(figure) if isinstance(figure, str) else figure for figure in figures]
    names = [value.meta.output_name() for value in values]
    per_problem = attempts.group_by(*group, "oid").agg(
        *(to_fixed_point(value).sum().alias(name) for name, value in zip(names, values, strict=True)),
        *(value.count().cast(pl.Int64).alias(_size(name)) for name, value in zip(names, values, strict=True)),
    )
    return (
        with_unit_ids(per_problem, problems)
        .group_by(*group, UNIT)
        .agg(*(from_fixed_point(pl.col(name).sum()) for name in names), *(pl.col(_size(name)).sum() for name in names))
        .collect(engine="streaming")
    )


def sums_by_unit(
    by_problem: pl.LazyFrame, problems: pl.LazyFrame, group: Sequence[str], figures: Mapping[str, tuple[str, str]]
) -> pl.DataFrame:
    """The same from sums by problem; `figures` has the columns with the sum and the number of values of each figure.

    >>> sums = pl.LazyFrame({"model": ["m"], "oid": ["a"], "score_sum": [0.75], "score_count": [2]})
    >>> problems = pl.LazyFrame({"oid": ["a"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    >>> sums_by_unit(sums, problems, ["model"], {"score": ("score_sum", "score_count")}).rows()
    [('m', 0, 0.75, 2)]
    """
    columns = sorted({column for pair in figures.values() for column in pair})
    return (
        with_unit_ids(by_problem.select(*group, "oid", *columns), problems)
        .group_by(*group, UNIT)
        .agg(
            *(exact_total(pl.col(total)).alias(name) for name, (total, _) in figures.items()),
            *(pl.col(size).sum().alias(_size(name)) for name, (_, size) in figures.items()),
        )
        .collect(engine="streaming")
    )


def mean_intervals(
    units: pl.DataFrame, group: Sequence[str], figure: str, settings: IntervalSettings, prefix: str = ""
) -> pl.DataFrame:
    """The interval of a figure's mean per group, from the result of `unit_sums`."""
    histogram = (
        units.select(*group, figure, _size(figure))
        .group_by(*group, figure, _size(figure))
        .agg(count=pl.len().cast(pl.Int64))
    )
    return group_intervals(
        histogram, group, lambda sums, sizes, counts: unit_interval(sums, sizes, counts, settings), prefix
    )


def group_intervals(
    rows: pl.DataFrame, group: Sequence[str], interval: Callable[..., Interval], prefix: str = ""
) -> pl.DataFrame:
    """One interval per group, as columns: `interval` gets the other columns of the group's rows as arrays."""
    found = {key: interval(*arrays) for key, arrays in arrays_by_group(rows, group)}
    return interval_columns(rows, group, found, prefix)


def arrays_by_group(rows: pl.DataFrame, group: Sequence[str]) -> Iterator[tuple[GroupKey, list[Array]]]:
    """The other columns of each group's rows, as arrays; rows of a group keep their order."""
    ordered = rows.sort(group, nulls_last=False, maintain_order=True)
    sizes = ordered.group_by(group, maintain_order=True).len()
    arrays = [ordered[name].to_numpy() for name in rows.columns if name not in group]
    end = 0
    for *key, size in sizes.iter_rows():
        start, end = end, end + size
        yield tuple(key), [array[start:end] for array in arrays]


def interval_columns(
    keyed: pl.DataFrame, group: Sequence[str], found: Mapping[GroupKey, Interval], prefix: str = ""
) -> pl.DataFrame:
    """Intervals as the columns `<prefix>ci_low`, `_high`, `_method` and `_units`, keyed by group."""
    schema: dict[str, pl.DataType | type[pl.DataType]] = {name: keyed.schema[name] for name in group}
    schema |= {f"{prefix}ci_{end}": dtype for end, dtype in _INTERVAL_TYPES.items()}
    rows = [(*key, *vars(each).values()) for key, each in found.items()]
    return pl.DataFrame(rows, schema=schema, orient="row")


def join_intervals(table: pl.DataFrame, found: pl.DataFrame, group: Sequence[str]) -> pl.DataFrame:
    """The table with the interval columns of its groups; a group without an interval has 0 units."""
    units = [name for name in found.columns if name.endswith("ci_units")]
    joined = table.join(found, on=group, how="left", nulls_equal=True)
    return joined.with_columns(pl.col(units).fill_null(0))


def _size(name: str) -> str:
    return f"{name}_size"
