"""Fast path for large, clean files: the histogram of (n, c) from one streaming query, without keeping rows.

The query also counts everything doubtful. After a single doubtful cell, repeated iteration or unknown oid the result
is None, and the caller uses the readers in `fixes`, which find and explain it. So the fast path never decides which
rows are accepted; it only detects files in which every row is.

Repeated iterations are detected without a set per problem: each iteration adds its own power of two, and the sum of n
powers has n one-bits only if all of them differ, because every carry loses one. Whether the fixes cover exactly the
listed problems follows from two sums of 64-bit hashes; if these differ, a second query reads both files together.
"""

import functools
import operator

import polars as pl

from touchstone.ingest.csv_rows import TextTable
from touchstone.ingest.fix_columns import CLASS_COLUMN, outcome_columns
from touchstone.ingest.fixes import rules_for
from touchstone.vocabulary import DEFAULT_TIER, MAX_ID_LENGTH, PASS_CLASS

_BITS = 62
_MAX_WORDS = 8
_DOUBT = 2**32
_HEAD = 10_000
_HASHES = {"hash_1": pl.col("oid").hash(1), "hash_2": pl.col("oid").hash(2)}

Types = dict[str, type[pl.DataType]]


def fast_histogram(problems: TextTable, fixes: TextTable, model: str) -> tuple[pl.DataFrame, int] | None:
    """The histogram of (n, c) and the number of problems, or None if the files need the careful readers."""
    stated = outcome_columns(fixes.columns)
    if not (problems.plain and fixes.plain) or "tier" in fixes.columns or len(stated) != 1:
        return None
    try:
        counted = _count_by_problem(problems, fixes, stated[0])
    except pl.exceptions.PolarsError:
        return None
    return None if counted is None else _histogram(counted, problems.lines - 1, fixes.lines - 1, model)


def _count_by_problem(problems: TextTable, fixes: TextTable, stated: str) -> pl.DataFrame | None:
    """The number of problems per n, tally (passes, plus `_DOUBT` per doubt) and cluster."""
    head = _scan(fixes, {"iteration_id": pl.Int32}).select("iteration_id", stated).head(_HEAD).collect()
    words = (head.select(pl.col("iteration_id").max()).item() or 0) // _BITS + 1
    outcome_type = _type_of(head[stated])
    if outcome_type is None or words > _MAX_WORDS:
        return None
    attempts = _attempt_rows(fixes, stated, outcome_type, words)
    cluster = next((name for name in ("cluster", "project_name") if name in problems.columns), None)
    if cluster is None:
        counted = _count(attempts, words, _HASHES)
        if _same_problems(counted, problems):
            return counted.with_columns(cluster=pl.lit(None, pl.String))
    listed = _problem_rows(problems, cluster, words)
    return _count(pl.concat([attempts, listed], how="diagonal"), words, {"cluster": pl.col("cluster")})


def _type_of(outcomes: pl.Series) -> type[pl.DataType] | None:
    """The type to parse outcomes as, judged by the first rows; Polars raises if a later row does not fit."""
    words = set(outcomes.drop_nulls().str.to_lowercase().unique())
    if words <= {"true", "false"}:
        return pl.Boolean
    return pl.Int64 if words <= {"0", "1"} else None


def _scan(table: TextTable, types: Types) -> pl.LazyFrame:
    schema = {name: types.get(name, pl.String) for name in table.columns}
    return pl.scan_csv(table.path, schema=schema, has_header=False, skip_rows=1, quote_char=None, glob=False)


def _attempt_rows(fixes: TextTable, stated: str, outcome_type: type[pl.DataType], words: int) -> pl.LazyFrame:
    outcome, iteration = pl.col(stated), pl.col("iteration_id")
    yes, no = (outcome, ~outcome) if outcome_type is pl.Boolean else (outcome == 1, outcome == 0)
    tally = pl.when(yes).then(pl.lit(1, pl.Int64)).when(no).then(pl.lit(0, pl.Int64)).otherwise(_DOUBT)
    # Outcomes are parsed here but text in the rules, so the one rule that reads them is restated below.
    own = ("oid", "iteration_id", stated, CLASS_COLUMN)
    doubts = [rule.refused for rule in rules_for(fixes) if rule.column not in own]
    if CLASS_COLUMN in fixes.columns:
        word = pl.col(CLASS_COLUMN).str.strip_chars().str.to_lowercase()
        doubts.append(pl.col(CLASS_COLUMN).is_not_null() & ((word == PASS_CLASS) != yes))
    if fixes.columns[-1] != stated:
        doubts.append(pl.col(fixes.columns[-1]).is_null())
    if doubts:
        # any_horizontal is equivalent and several times slower.
        tally = pl.when(functools.reduce(operator.or_, doubts)).then(_DOUBT).otherwise(tally)
    # An iteration outside all words adds no bit, which the comparison with the number of rows detects.
    bits = {
        f"bits_{place}": pl.when((iteration >= place * _BITS) & (iteration < (place + 1) * _BITS))
        .then(pl.lit(2, pl.Int64).pow(iteration - place * _BITS))
        .otherwise(0)
        for place in range(words)
    }
    rows = _scan(fixes, {"iteration_id": pl.Int32, stated: outcome_type})
    return rows.select("oid", tally=tally, **bits)


def _problem_rows(problems: TextTable, cluster: str | None, words: int) -> pl.LazyFrame:
    tally = pl.when(_doubtful(problems)).then(pl.lit(_DOUBT, pl.Int64)).otherwise(0)
    bits = {f"bits_{place}": pl.lit(0, pl.Int64) for place in range(words)}
    name = pl.col(cluster) if cluster else pl.lit(None, pl.String)
    return _scan(problems, {}).select("oid", tally=tally, cluster=name, **bits)


def _doubtful(problems: TextTable) -> pl.Expr:
    return pl.col(problems.columns[-1]).is_null()


def _count(rows: pl.LazyFrame, words: int, also: dict[str, pl.Expr]) -> pl.DataFrame:
    bits = [f"bits_{place}" for place in range(words)]
    clustered = "cluster" in also
    n = pl.sum_horizontal(pl.col(name).bitwise_count_ones().cast(pl.Int64) for name in bits)
    bad_oid = pl.col("oid").is_null() | (pl.col("oid").str.len_bytes() > MAX_ID_LENGTH)
    return (
        rows.group_by("oid")
        .agg(pl.col("tally", *bits).sum(), *([pl.col("cluster").max()] if clustered else []))
        .select(n=n, tally=pl.when(bad_oid).then(_DOUBT).otherwise("tally"), **also)
        .group_by("n", "tally", *(["cluster"] if clustered else []))
        .agg(pl.len().cast(pl.Int64).alias("problems"), *([] if clustered else [pl.col(list(_HASHES)).sum()]))
        .collect(engine="streaming")
    )


def _same_problems(counted: pl.DataFrame, problems: TextTable) -> bool:
    sums = [pl.col(name).sum() for name in _HASHES]
    seen = counted.select(pl.col("problems").sum(), *sums).row(0)
    listed = _scan(problems, {}).select(_doubtful(problems).alias("doubt"), **_HASHES)
    *there, doubts = listed.select(pl.len(), *sums, pl.col("doubt").sum()).collect(engine="streaming").row(0)
    return seen == tuple(there) and not doubts


def _histogram(counted: pl.DataFrame, problem_rows: int, fix_rows: int, model: str) -> tuple[pl.DataFrame, int] | None:
    groups, distinct = counted.select(pl.col("problems").sum(), (pl.col("n") * pl.col("problems")).sum()).row(0)
    # As many groups as problem rows: no oid is repeated in the problems file, and none is unknown.
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
