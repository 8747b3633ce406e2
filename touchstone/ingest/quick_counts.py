"""A short cut for large, clean files: outcomes counted in one streaming query, without keeping a row.

The query counts what it needs and anything it is not sure of. One doubtful cell, a repeated iteration or an unknown
oid, and the answer is "cannot say": the caller reads the file the careful way, which finds and explains it. So the
short cut never decides what is accepted; it only recognises files where nothing is left to decide.

Repeated iterations are found without a set per problem: each iteration adds its own power of two, and n additions
give n one-bits only where all n were different, because every carry loses one.
"""

import functools
import operator
from collections.abc import Iterable

import polars as pl

from touchstone.ingest.fixes import STATED, rules_for
from touchstone.ingest.text import TextTable
from touchstone.vocabulary import DEFAULT_TIER, MAX_ID_LENGTH

_BITS = 62
_MAX_WORDS = 8
_DOUBT = 2**32
_TRUE = ("True", "true", "1")
_FALSE = ("False", "false", "0")


def quick_histogram(problems: TextTable, fixes: TextTable, model: str) -> tuple[pl.DataFrame, int] | None:
    """The histogram of (n, c) and the number of problems, or None where the files need a careful reader."""
    stated = [name for name in STATED if name in fixes.columns]
    if not (problems.plain and fixes.plain) or "tier" in fixes.columns or len(stated) != 1:
        return None
    cluster = next((name for name in ("cluster", "project_name") if name in problems.columns), None)
    try:
        words = _words_needed(fixes)
        if words is None:
            return None
        rows = pl.concat([_fix_rows(fixes, stated[0], words), _problem_rows(problems, cluster, words)], how="diagonal")
        counted = _count(rows, words).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    return _histogram(counted, problems.lines - 1, fixes.lines - 1, model)


def _words_needed(fixes: TextTable) -> int | None:
    """How many words of bits hold the iterations, going by the first rows."""
    head = _scan(fixes, {"iteration_id": pl.Int32}).select("iteration_id").head(10_000).collect()
    largest = head["iteration_id"].max() or 0
    words = int(str(largest)) // _BITS + 1
    return words if words <= _MAX_WORDS else None


def _scan(table: TextTable, types: dict[str, type[pl.DataType]]) -> pl.LazyFrame:
    schema = {name: types.get(name, pl.String) for name in table.columns}
    return pl.scan_csv(table.path, schema=schema, has_header=False, skip_rows=1, quote_char=None, glob=False)


def _fix_rows(fixes: TextTable, stated: str, words: int) -> pl.LazyFrame:
    word, iteration = pl.col(stated), pl.col("iteration_id")
    yes = _any(word == true for true in _TRUE)
    no = _any(word == false for false in _FALSE)
    tally = pl.when(yes).then(pl.lit(1, pl.Int64)).when(no).then(pl.lit(0, pl.Int64)).otherwise(_DOUBT)
    doubts = [rule.refused for rule in rules_for(fixes) if rule.column not in ("oid", "iteration_id", stated)]
    if fixes.columns[-1] != stated:
        doubts.append(pl.col(fixes.columns[-1]).is_null())
    if doubts:
        tally = pl.when(_any(doubts)).then(_DOUBT).otherwise(tally)
    # An iteration that no word holds adds no bit, and so is found by the count of rows.
    bits = {
        f"bits_{place}": pl.when((iteration >= place * _BITS) & (iteration < (place + 1) * _BITS))
        .then(pl.lit(2, pl.Int64).pow(iteration - place * _BITS))
        .otherwise(0)
        for place in range(words)
    }
    # A number is read as one; whatever else stands there makes Polars refuse the file, and the careful reader take it.
    return _scan(fixes, {"iteration_id": pl.Int32}).select("oid", tally=tally, **bits)


def _problem_rows(problems: TextTable, cluster: str | None, words: int) -> pl.LazyFrame:
    unsure = pl.col(problems.columns[-1]).is_null()
    tally = pl.when(unsure).then(pl.lit(_DOUBT, pl.Int64)).otherwise(0)
    bits = {f"bits_{place}": pl.lit(0, pl.Int64) for place in range(words)}
    clusters = {"cluster": pl.col(cluster)} if cluster else {}
    return _scan(problems, {}).select("oid", tally=tally, **bits, **clusters)


def _any(conditions: Iterable[pl.Expr]) -> pl.Expr:
    # any_horizontal says the same and is several times slower.
    return functools.reduce(operator.or_, conditions)


def _count(rows: pl.LazyFrame, words: int) -> pl.LazyFrame:
    bits = [f"bits_{place}" for place in range(words)]
    clustered = "cluster" in rows.collect_schema()
    n = pl.sum_horizontal(pl.col(name).bitwise_count_ones().cast(pl.Int64) for name in bits)
    bad_oid = pl.col("oid").is_null() | (pl.col("oid").str.len_bytes() > MAX_ID_LENGTH)
    return (
        rows.group_by("oid")
        .agg(pl.col("tally", *bits).sum(), *([pl.col("cluster").max()] if clustered else []))
        .select(
            n=n,
            tally=pl.when(bad_oid).then(_DOUBT).otherwise("tally"),
            cluster="cluster" if clustered else pl.lit(None, pl.String),
        )
        .group_by("n", "tally", "cluster")
        .agg(problems=pl.len().cast(pl.Int64))
    )


def _histogram(counted: pl.DataFrame, problem_rows: int, fix_rows: int, model: str) -> tuple[pl.DataFrame, int] | None:
    groups, distinct = counted.select(pl.col("problems").sum(), (pl.col("n") * pl.col("problems")).sum()).row(0)
    # As many groups as problem rows: no oid is repeated in the problems file, and none is unknown to it.
    if groups != problem_rows or distinct != fix_rows or (counted["tally"] >= _DOUBT).any():
        return None
    members = pl.col("problems").sum().over("cluster")
    histogram = (
        counted.with_columns(cluster=pl.when(members > 1).then("cluster"), c="tally")
        .group_by("cluster", "n", "c")
        .agg(pl.col("problems").sum())
        .select(pl.lit(model).alias("model"), pl.lit(DEFAULT_TIER).alias("tier"), "cluster", "n", "c", "problems")
    )
    return histogram, problem_rows
