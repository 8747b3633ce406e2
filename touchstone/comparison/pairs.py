"""Paired comparison of two models, two tiers or two evaluations, called a and b.

Both attempt the same problems, so the statistic is the difference of pass@1 within each problem, b - a. Pairing
removes the difficulty of the problems and detects differences that two separate intervals would hide. The unit is the
problem, or the cluster if compared problems share one (`inference.paired_moments`).

- Test, two-sided and named in every result: `mcnemar` for one attempt per problem in both, a sign-flip permutation
  test for equal numbers of attempts, else the larger p of two permutation tests; see `inference.paired_tests`.
- Correction for the number of pairs: `inference.multiplicity`.
- Confidence intervals, per pair and simultaneous: `inference.paired_intervals`.
- Minimum detectable effect at the corrected level: `inference.detectable`.
- Verdict: `compare.verdicts`.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from touchstone.comparison.families import ComparisonSettings, PairList, compare_family, pair_results
from touchstone.comparison.verdicts import PairResult, sentence, with_ranks
from touchstone.config import EvaluationConfig, require_baseline_model
from touchstone.inference.arrays import Integers
from touchstone.inference.paired_moments import OutcomeMatrix, outcome_matrix
from touchstone.metrics.keys import ModelTier
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.progress import track
from touchstone.tables import TABLES

__all__ = [
    "ComparisonSettings", "PairResult", "compare_counts", "compare_pairs", "sentence",
]  # fmt: skip

# From this many pairs on, progress is shown.
_PROGRESS_FROM = 500
# Of more pairs, only those that matter have a sentence.
_MOST_SENTENCES = 10_000
# Columns of the table that have another name in a result.
_RENAMED = {"problems_only_a": "only_a", "problems_only_b": "only_b", "method": "ci_method", "units": "ci_units"}


def compare_pairs(pairs: Sequence[pl.DataFrame], settings: ComparisonSettings) -> list[PairResult]:
    """Compare b with a in each pair, corrected for their number.

    A pair has attempts n and passes c per problem: oid, n_a, c_a, n_b, c_b, cluster. A problem without a decided
    attempt of a or of b (null or 0) is left out and counted.

    >>> flips = pl.DataFrame({"oid": list("abcdefghij"), "n_a": 1, "c_a": [0] * 9 + [1], "n_b": 1,
    ...                       "c_b": [1] * 9 + [0], "cluster": None})
    >>> [result] = compare_pairs([flips], ComparisonSettings())
    >>> result.difference, result.test, result.p_value, result.verdict
    (0.8, 'mcnemar', 0.021484375, 'better')
    """
    if not pairs:
        return []
    first, second = np.array([0]), np.array([1])
    lists = [PairList(pair_matrix(pair), first, second) for pair in pairs]
    return list(pair_results(compare_family(lists, settings)))


def compare_counts(
    counts: pl.LazyFrame,
    problems: pl.LazyFrame,
    settings: ComparisonSettings,
    counts_of_b: pl.LazyFrame | None = None,
    *,
    sentences: bool = True,
) -> pl.DataFrame:
    """Compare all pairs of models within each tier, and of tiers within each model, corrected for their number.

    `counts` has model, tier, oid, n, c; `problems` has oid and cluster. In the family `baseline`, only the
    baseline model as a with every other model of each tier as b. `counts_of_b` has other n and c of the same models
    and tiers, for whichever of a pair is b. Without `sentences`, which take a third of the time, that column is null.

    >>> counts = pl.LazyFrame({"model": ["atlas"] * 8 + ["cedar"] * 8, "tier": "T0", "oid": list("abcdefgh") * 2,
    ...                        "n": 1, "c": [1] * 8 + [0] * 7 + [1]})
    >>> problems = pl.LazyFrame({"oid": list("abcdefgh"), "cluster": None})
    >>> print(compare_counts(counts, problems, ComparisonSettings())["sentence"][0])
    cedar is worse than atlas by 87.5 points (95% CI 57.9 to 100.0, p = 0.016, 8 problems)
    """
    schema = TABLES["model_comparison"].dtypes
    each = [counts] if counts_of_b is None else [counts, counts_of_b]
    names = counts.select("model", "tier").unique().sort("model", "tier").collect(engine="streaming").rows()
    within_tiers, across_tiers = _pairs(names, settings)
    pairs = np.concatenate([within_tiers, across_tiers], axis=1)
    many = pairs.shape[1]
    if not many:
        return pl.DataFrame(schema=schema)
    _, sides = count_matrices(problems, *each)
    # The rows of all b are after those of all a.
    rows = np.array([[0], [len(names) * (len(each) - 1)]])
    lists = [PairList(sides, *(within_tiers + rows))] if within_tiers.size else []
    if across_tiers.size:
        lists.append(PairList(count_matrices(*_across_tiers(problems, *each))[1], *(across_tiers + rows)))
    with track("comparing", many) if many >= _PROGRESS_FROM else nullcontext() as advance:
        results = compare_family(lists, settings, advance)
    kinds = pl.Series(["models", "tiers"]).gather(np.repeat([0, 1], [within_tiers.shape[1], across_tiers.shape[1]]))
    sides_of = {
        f"{column}_{end}": pl.Series([name[part] for name in names]).gather(places)
        for end, places in zip("ab", pairs, strict=True)
        for part, column in enumerate(("model", "tier"))
    }
    described = np.full(many, sentences)
    if sentences and many > _MOST_SENTENCES:
        rates = (sides.c / np.maximum(1, sides.n)).sum(axis=1) / np.maximum(1, sides.decided.sum(axis=1))
        best_first = [names[place] for place in np.argsort(-rates[: len(names)], kind="stable")]
        described = with_ranks(pl.LazyFrame(sides_of), best_first).collect()["matters"].to_numpy()
    words = pl.Series([None], dtype=pl.String).new_from_index(0, many)
    words = words.scatter(np.flatnonzero(described), _sentences(results.filter(described), names, pairs[:, described]))
    table = results.rename(_RENAMED).with_columns(kind=kinds, sentence=words, **sides_of)
    return table.select(schema.names()).cast(schema)


def _sentences(results: pl.DataFrame, names: Sequence[ModelTier], pairs: Integers) -> pl.Series:
    """A sentence on each pair, with its tiers if there are several."""
    show_tier = len({tier for _, tier in names}) > 1
    labels = [f"{model} ({tier})" if show_tier else model for model, tier in names]
    named = zip(pair_results(results), *pairs.tolist(), strict=True)
    return pl.Series([sentence(result, labels[a], labels[b]) for result, a, b in named], dtype=pl.String)


def _across_tiers(problems: pl.LazyFrame, *counts: pl.LazyFrame) -> list[pl.LazyFrame]:
    """Problems and counts for comparing tiers: problems that belong to a single tier are pooled by cluster.

    Different tiers attempt different configurations of a task as separate problems; they share the task.
    """
    if "only_tier" not in problems.collect_schema():
        return [problems, *counts]
    bound = pl.col("only_tier").is_not_null() & pl.col("cluster").is_not_null()
    # No oid starts with this character, so a task never collides with a problem of the same name.
    task = pl.when(bound).then(pl.concat_str(pl.lit("\x1f"), "cluster")).otherwise("oid").alias("task")
    tasks = problems.select("oid", task, cluster=pl.when(~bound).then("cluster"))
    pooled = (
        each.join(tasks, on="oid", how="left")
        .group_by("model", "tier", oid=pl.coalesce("task", "oid"))
        .agg(pl.col("n", "c").sum())
        for each in counts
    )
    return [tasks.select("cluster", oid="task").unique(), *pooled]


def count_matrices(problems: pl.LazyFrame, *counts_of: pl.LazyFrame) -> tuple[list[ModelTier], OutcomeMatrix]:
    """Every model and tier, sorted, and their counts n and c as matrices: the rows of each of the given counts."""
    clusters = problems.select("oid", pl.col("cluster").cast(pl.String))
    columns_of = ("model", "tier", "oid", pl.col("n", "c").cast(pl.Int64))
    counts = pl.concat(each.select(*columns_of, of=pl.lit(place)) for place, each in enumerate(counts_of))
    # In the order of their names, because the last digits of sums of floats depend on the order.
    columns = counts.select("oid").unique().join(clusters, on="oid", how="left").sort("oid").collect(engine="streaming")
    rows = counts.select("model", "tier").unique().sort("model", "tier").collect(engine="streaming")
    placed = (
        counts.join(columns.lazy().select("oid").with_row_index("column"), on="oid")
        .join(rows.lazy().with_row_index("row"), on=["model", "tier"])
        .select("row", "column", "of", "n", "c")
        .collect(engine="streaming")
    )
    places = (placed["row"] + placed["of"] * rows.height).to_numpy(), placed["column"].to_numpy()
    n, c = np.zeros((2, rows.height * len(counts_of), columns.height), dtype=np.int64)
    n[places], c[places] = placed["n"].fill_null(0).to_numpy(), placed["c"].fill_null(0).to_numpy()
    return [(str(model), str(tier)) for model, tier in rows.iter_rows()], outcome_matrix(
        n, c, _cluster_codes(columns["cluster"])
    )


def pair_matrix(counts: pl.DataFrame) -> OutcomeMatrix:
    """The counts of one pair, given as to `compare_pairs`."""
    counts = counts.sort("oid")
    columns = [[f"{count}_a", f"{count}_b"] for count in ("n", "c")]
    n, c = (counts.select(pl.col(names).cast(pl.Int64).fill_null(0)).to_numpy().T for names in columns)
    return outcome_matrix(n, c, _cluster_codes(counts["cluster"].cast(pl.String)))


def _cluster_codes(clusters: pl.Series) -> Integers:
    """Clusters as integer codes from 1 in the order of their names; 0 is no cluster."""
    return clusters.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def _pairs(sides: Sequence[ModelTier], settings: ComparisonSettings) -> tuple[Integers, Integers]:
    """The pairs of models within a tier, and of tiers within a model: the places of all a, and those of all b."""
    pairs = np.stack(np.triu_indices(len(sides), 1))
    models, tiers = (np.array([side[part] for side in sides], dtype=object)[pairs] for part in (0, 1))
    within_tiers = pairs[:, tiers[0] == tiers[1]]
    if settings.family == "baseline":
        require_baseline_model(settings.baseline_model, {model for model, _ in sides})
        first, second = models[:, tiers[0] == tiers[1]] == settings.baseline_model
        return np.concatenate([within_tiers[:, first], within_tiers[::-1, second]], axis=1), pairs[:, :0]
    return within_tiers, pairs[:, models[0] == models[1]]


def model_comparison(problem_pass_at_k: pl.LazyFrame, problems: pl.LazyFrame, *settings: Any) -> pl.LazyFrame:
    """All pairs of models in a tier and of tiers of a model, compared problem by problem, with a verdict on each."""
    return compare_counts(problem_counts(problem_pass_at_k), problems, ComparisonSettings(*settings)).lazy()


def comparison_settings(config: EvaluationConfig) -> ComparisonSettings:
    """The settings of `model_comparison` as a configuration has them."""
    return ComparisonSettings(*(attrgetter(key)(config) for key in TABLES["model_comparison"].settings))
