"""Whether the problems of a benchmark can be trusted, from the outcomes of many models.

A sound problem is passed more often by better models. Its discrimination is Kendall's tau-b between its pass rate
per model and the models' pass@1 on all other problems; "other", because a problem always agrees with itself. A problem
is suspect if better models fail it more often: tau-b is negative, and significantly so over all problems of the tier.

- The test is one-sided. A wrong label, a broken test or an ambiguous task shows in one direction only, and the other
  one is what every sound problem has. For a sound problem the p-value is therefore larger than uniform.
- The p-value comes from the normal approximation of Kendall's S with the variance for ties in both rankings (Kendall
  1970) and his correction for continuity: most pass rates are 0 or 1, and nothing has to be permuted.
- The test takes models as independent once their strength is known, but those of one family fail alike. If models
  hardly differ in strength, that alone makes many problems look inverted. So where a quarter of the problems or more
  are negative, these show how far the statistic spreads by chance, and if that is further than in theory, the p-value
  is from a normal distribution as wide (an empirical null, Efron 2004).
- The p-values of a tier are adjusted by Benjamini and Hochberg (1995).
- With fewer than six models no order of them would be significant over several problems: nothing is judged.

References: Kendall (1970), "Rank correlation methods", 4th edition. Efron (2004), "Large-scale simultaneous hypothesis
testing: the choice of a null hypothesis", Journal of the American Statistical Association 99(465). Benjamini and
Hochberg (1995), "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57(1).
"""

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from touchstone.comparison.pairs import ComparisonSettings, compare_counts
from touchstone.inference.arrays import Booleans, Floats, Integers
from touchstone.inference.exact import exact_mean
from touchstone.inference.multiplicity import benjamini_hochberg
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.tables import TABLES

# As `vocabulary.PROBLEM_VERDICTS` says in words.
FEWEST_MODELS = 6
# Pass rates are sums of fractions: a smaller difference is a tie.
_DECIMALS = 12
# Pairs of models at a time, over some problems.
_MOST_PAIRS = 2_000_000
# Share of problems with a negative z from which on these show how far z spreads by chance.
_MANY_NEGATIVE = 0.25
_PAIR = ("kind", "model_a", "tier_a", "model_b", "tier_b")
_MOST_NAMED = 5


# One row per problem


def problem_audit(
    problem_pass_at_k: pl.LazyFrame, validator_noise: pl.LazyFrame, baselines: pl.LazyFrame, alpha: float
) -> pl.LazyFrame:
    """The table `problem_audit`: figures from the outcomes and the validation of each problem, and a verdict."""
    counts = problem_counts(problem_pass_at_k).filter(pl.col("n") > 0)
    schema = TABLES["problem_audit"].dtypes
    tiers = counts.select(pl.col("tier").unique().sort()).collect(engine="streaming")["tier"]
    if tiers.is_empty():
        return pl.LazyFrame(schema=schema)
    rows = pl.concat(_audit_tier(counts.filter(pl.col("tier") == tier)) for tier in tiers)
    audited = rows.lazy().join(_validated(validator_noise, baselines), on="oid", how="left", maintain_order="left")
    return audited.with_columns(verdict=_verdict(alpha)).select(schema.names())


def _audit_tier(counts: pl.LazyFrame) -> pl.DataFrame:
    """Figures of the problems of one tier, from n and c per model and problem."""
    n, c = pl.col("n"), pl.col("c")
    by_problem = counts.group_by("tier", "oid").agg(
        models=pl.len(),
        share_of_models=(c > 0).mean(),
        attempts=n.sum(),
        share_of_attempts=c.sum() / n.sum(),
        solved_by_all=(c == n).all(),
        solved_by_none=(c == 0).all(),
    )
    # A model may have the name of a column.
    column = pl.concat_str(pl.lit("model "), "model").alias("model")
    models = counts.select(column.unique().sort()).collect(engine="streaming")["model"].to_list()
    every = counts.select("oid", column, rate=c / n).pivot("model", on_columns=models, index="oid", values="rate")
    rates = every.sort("oid").collect(engine="streaming")
    first = rates.select("oid", first=pl.col("oid").first().over(models))
    # The same problems in the same order.
    shares = by_problem.sort("oid").collect(engine="streaming").with_columns(first["first"])
    # Problems with the same outcomes have the same figures.
    distinct = rates.filter(first["oid"] == first["first"])
    measured = _figures(distinct.select(models).to_numpy(), rates.select(models).to_numpy())
    figures = pl.DataFrame({"first": distinct["oid"], **measured}, nan_to_null=True)
    same_as = pl.when(pl.col("first") != pl.col("oid"), ~pl.col("solved_by_all"), ~pl.col("solved_by_none"))
    rows = (
        shares.lazy()
        .join(figures.lazy(), on="first", how="left", maintain_order="left")
        .with_columns(same_as=same_as.then("first"))
        .collect(engine="streaming")
    )
    p_values = pl.DataFrame(_p_values(rows["z"].to_numpy()), nan_to_null=True)
    return rows.drop("first", "z").hstack(p_values)


def _p_values(z: Floats) -> dict[str, Floats]:
    """The p-values of the problems of a tier from their z, and adjusted; NaN: undefined."""
    p_value, p_adjusted = np.full((2, len(z)), np.nan)
    known = ~np.isnan(z)
    p_value[known] = [math.erfc(-each / math.sqrt(2)) / 2 for each in z[known] / _null_spread(z[known])]
    p_adjusted[known] = benjamini_hochberg(p_value[known])
    return {"p_value": p_value, "p_adjusted": p_adjusted}


def _null_spread(z: Floats) -> float:
    """The standard deviation of z for problems that do not depend on strength, from the negative z; at least 1."""
    negative = -z[z < 0]
    if len(negative) < _MANY_NEGATIVE * len(z) or not len(negative):
        return 1.0
    return max(1.0, float(np.median(negative)) / NormalDist().inv_cdf(0.75))


def _figures(problems: Floats, every: Floats) -> dict[str, Any]:
    """Discrimination, its z, and what changes without the problem, of `problems` among `every`; NaN: undefined.

    Both have a row per problem and a column per model with its pass rate, NaN without a decided attempt.
    """
    totals = np.array([math.fsum(rates[~np.isnan(rates)]) for rates in every.T])
    attempted = np.count_nonzero(~np.isnan(every), axis=0)
    blocks = [_figures_of_block(rates, totals, attempted) for rates in _blocks(problems)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _blocks(problems: Floats) -> Iterator[Floats]:
    many = max(1, _MOST_PAIRS // problems.shape[1] ** 2)
    return (problems[start : start + many] for start in range(0, len(problems), many))


def _figures_of_block(rates: Floats, totals: Floats, attempted: Integers) -> dict[str, Any]:
    others = attempted - ~np.isnan(rates)
    with np.errstate(invalid="ignore"):
        all_problems = np.round(totals / attempted, _DECIMALS)
        without = np.round((totals - np.nan_to_num(rates)) / others, _DECIMALS)
    ranked, is_better = ~np.isnan(without), _exceeds(without)
    moved = np.where(ranked, np.abs(is_better.sum(axis=1) - _exceeds(all_problems[None]).sum(axis=1)), 0)
    judged = ranked & ~np.isnan(rates)
    discrimination, z = _kendall(rates, is_better, judged)
    can_judge = judged.sum(axis=1) >= FEWEST_MODELS
    undefined = ~ranked.any(axis=1)
    return {
        "can_judge": can_judge,
        "discrimination": np.where(can_judge, discrimination, np.nan),
        "z": np.where(can_judge, z, np.nan),
        "models_reranked": np.where(undefined, np.nan, np.count_nonzero(moved, axis=1)),
        "largest_rank_change": np.where(undefined, np.nan, moved.max(axis=1)),
        "largest_pass_at_1_change": np.where(
            undefined, np.nan, np.max(np.abs(without - all_problems), axis=1, where=ranked, initial=0)
        ),
    }


def _exceeds(values: Floats) -> Booleans:
    """For every row of values, whether the i-th is larger than the j-th; never, if one is NaN."""
    return np.asarray(values[:, :, None] > values[:, None, :])


def _kendall(rates: Floats, is_better: Booleans, judged: Booleans) -> tuple[Floats, Floats]:
    """tau-b of every row of rates with the order of the models, and Kendall's S divided by its standard deviation."""
    passes_more = _exceeds(np.where(judged, rates, np.nan))
    if not judged.all():
        is_better = is_better & judged[:, :, None] & judged[:, None, :]
    agree = np.count_nonzero(passes_more & is_better, axis=(1, 2))
    differ = np.count_nonzero(passes_more & is_better.transpose(0, 2, 1), axis=(1, 2))
    m = judged.sum(axis=1)
    untied, ties = zip(*(_ties(exceeds, judged, m) for exceeds in (passes_more, is_better)), strict=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        s = agree - differ
        tau = s / np.sqrt(untied[0] * untied[1])
        (linear_a, square_a, cubic_a), (linear_b, square_b, cubic_b) = ties
        pairs = m * (m - 1)
        variance = (pairs * (2 * m + 5) - linear_a - linear_b) / 18 + square_a * square_b / (2 * pairs)
        variance += np.where(m > 2, cubic_a * cubic_b / (9 * pairs * (m - 2)), 0)
        # Towards 0 where it is negative, by Kendall's correction for continuity.
        z = (s + 1) / np.sqrt(variance)
    return tau, np.where(np.isnan(tau), np.nan, z)


def _ties(exceeds: Booleans, judged: Booleans, m: Integers) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """The pairs that are not tied, and the sums over tied groups of size t in the variance of Kendall's S."""
    above, below = np.count_nonzero(exceeds, axis=2), np.count_nonzero(exceeds, axis=1)
    # A group of t models adds f(t) / t for each of them.
    t = np.where(judged, m[:, None] - above - below, 1).astype(np.float64)
    sums = ((t - 1) * (2 * t + 5), t - 1, (t - 1) * (t - 2))
    linear, square, cubic = (each.sum(axis=1) for each in sums)
    return above.sum(axis=1).astype(np.float64), (linear, square, cubic)


def _validated(validator_noise: pl.LazyFrame, baselines: pl.LazyFrame) -> pl.LazyFrame:
    """Findings of validation on each problem; null if it did not run."""
    noise = validator_noise.group_by("oid").agg(pl.col("flaky").any())
    checked = baselines.select(
        "oid", reference_fails=pl.col("reference_status") != "passed", baseline_passes=~pl.col("fails_as_recorded")
    )
    return noise.join(checked, on="oid", how="full", coalesce=True)


def _verdict(alpha: float) -> pl.Expr:
    """The first that holds."""
    inverted = (pl.col("discrimination") < 0) & (pl.col("p_adjusted") <= alpha)
    return (
        pl.when(inverted | pl.col("reference_fails") | pl.col("baseline_passes"))
        .then(pl.lit("suspect"))
        .when("flaky")
        .then(pl.lit("flaky"))
        .when(~pl.col("can_judge"))
        .then(pl.lit("not judged"))
        .when("solved_by_all")
        .then(pl.lit("saturated"))
        .when("solved_by_none")
        .then(pl.lit("unsolved"))
        .when(pl.col("same_as").is_not_null())
        .then(pl.lit("redundant"))
        .otherwise(pl.lit("ok"))
    )


# The models without the suspects


def audited_leaderboard(
    problem_audit: pl.LazyFrame,
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    model_comparison: pl.LazyFrame,
    *settings: Any,
) -> pl.LazyFrame:
    """The table `audited_leaderboard`: pass@1, ranks and verdicts with and without the suspect problems."""
    suspects = problem_audit.filter(pl.col("verdict") == "suspect").select("tier", "oid", suspect=True).collect().lazy()
    counts = problem_counts(problem_pass_at_k).join(suspects, on=["tier", "oid"], how="left")
    counts = counts.with_columns(pl.col("suspect").fill_null(False), rate=pl.col("c") / pl.col("n"))
    # Without an attempt rather than left out, so that the same pairs are compared.
    trusted = counts.with_columns(pl.col("n", "c") * ~pl.col("suspect"))
    rates, kept = pl.col("rate").filter(pl.col("n") > 0), ~pl.col("suspect").filter(pl.col("n") > 0)
    board = counts.group_by(MODEL_TIER).agg(
        problems=rates.len(),
        suspects=(~kept).sum(),
        pass_at_1=exact_mean(rates),
        pass_at_1_without_suspects=exact_mean(rates.filter(kept)),
    )
    ranks = {
        name: pl.col(figure).round(_DECIMALS).rank("min", descending=True).over("tier")
        for name, figure in (("rank", "pass_at_1"), ("rank_without_suspects", "pass_at_1_without_suspects"))
    }
    if suspects.select(pl.len()).collect().item():
        without = compare_counts(trusted, problems, ComparisonSettings(*settings), sentences=False).lazy()
    else:
        without = model_comparison
    changes = _changes(model_comparison, without)
    return (
        board.with_columns(**ranks)
        .join(changes, on=MODEL_TIER, how="left")
        .with_columns(pl.col("changed_verdicts").fill_null(0))
        .select(TABLES["audited_leaderboard"].dtypes.names())
        .sort(MODEL_TIER)
    )


def _changes(before: pl.LazyFrame, after: pl.LazyFrame) -> pl.LazyFrame:
    """How many verdicts on pairs with a model and tier changed, and the first of them in words."""
    both = before.select(*_PAIR, "verdict").join(after.select(*_PAIR, now="verdict"), on=_PAIR)
    changed = both.filter(pl.col("verdict") != pl.col("now"))

    def of_side(own: str, other: str, turned: dict[str, str]) -> pl.LazyFrame:
        """A row per model and tier of one side of the pairs, whose verdict is on b."""
        where = pl.when(pl.col("tier_a") != pl.col("tier_b")).then(pl.concat_str(pl.lit(" "), f"tier_{other}"))
        verdicts = (pl.col(name).replace(turned) for name in ("verdict", "now"))
        words = pl.format("{}{}: {} → {}", f"model_{other}", where.otherwise(pl.lit("")), *verdicts)
        return changed.select(model=f"model_{own}", tier=f"tier_{own}", words=words)

    sides = pl.concat([of_side("a", "b", {"better": "worse", "worse": "better"}), of_side("b", "a", {})])
    first = pl.col("words").sort().head(_MOST_NAMED).str.join("; ")
    return sides.group_by(MODEL_TIER).agg(changed_verdicts=pl.len(), changes=first)
