"""How much of a model's variance comes from its validator: verdicts that change when the same fix is validated again.

Two attempts at a problem get different verdicts because the fixes differ, or because the validator does. If a fix
passes a validation with probability t, and t varies over the fixes of a problem with mean p, the law of total variance
splits the variance of one attempt: p (1 - p) = Var(t) + E[t (1 - t)]. The second term is the validator's. From y passes
in r validations of one fix, y (r - y) / (r (r - 1)) is an unbiased estimate of t (1 - t), as c (n - c) / (n (n - 1)) is
one of p (1 - p) from c passes in n attempts (`variance`). Both are averaged over problems; their ratio is the share.

Twice these variances are the probabilities that two validations, or two attempts, disagree: means of values in [0, 1]
over problems, whose intervals (`inference.uncertainty`) are combined to one of the ratio (`inference.ratios`).
"""

import math

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.ratios import share_interval
from touchstone.inference.uncertainty import Interval, mean_interval
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY
from touchstone.metrics.pass_at_k import problem_counts, shared_clusters
from touchstone.tables import TABLES


def disagreement(n: pl.Expr, c: pl.Expr) -> pl.Expr:
    """Unbiased probability that two of n results differ, if c of them passed; null with fewer than two.

    >>> pl.select(disagreement(pl.lit(4), pl.lit(3))).item(), pl.select(disagreement(pl.lit(1), pl.lit(1))).item()
    (0.5, None)
    """
    return pl.when(n > 1).then(2 * c * (n - c) / (n * (n - 1)))


def validator_variance(
    validator_noise: pl.LazyFrame,
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    settings: IntervalSettings,
    exclude_flaky: bool,
) -> pl.LazyFrame:
    """The table `validator_variance`: how much of the variance of attempts the validator adds, per model and tier.

    The share is null if flaky tests are excluded: the runs that found them cannot show what the other tests add.

    >>> noise = pl.LazyFrame({"oid": ["a", "b"], "validated": "fix", "model": "m", "tier": "T0", "test": None,
    ...     "runs": 4, "passes": [4, 3]}, schema_overrides={"test": pl.String})
    >>> counts = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "b"], "k": 1, "n": [4, 4], "c": [4, 2]})
    >>> problems = pl.LazyFrame({"oid": ["a", "b"], "cluster": [None, None]}, schema_overrides={"cluster": pl.String})
    >>> table = validator_variance(noise, counts, problems, IntervalSettings(), False).collect()
    >>> table.select("flaky", "validator_variance", pl.col("share_from_validator").round(3)).row(0)
    (1, 0.125, 0.75)
    """
    verdicts = validator_noise.filter(pl.col("validated") == "fix", pl.col("test").is_null(), pl.col("runs") > 1)
    runs, passes = pl.col("runs"), pl.col("passes")
    by_problem = verdicts.group_by(PROBLEM_KEY).agg(
        # Sorted, so that the sum does not depend on the order of rows.
        value=disagreement(runs, passes).sort().mean(),
        fixes=pl.len().cast(pl.Int64),
        flaky=((passes > 0) & (passes < runs)).sum().cast(pl.Int64),
    )
    repeated = _with_clusters(by_problem, problems)
    # Few models are validated several times, and most often none.
    models = pl.col("model").is_in(repeated["model"].unique().to_list())
    counts = problem_counts(problem_pass_at_k.filter(models))
    attempted = _with_clusters(counts.select(*PROBLEM_KEY, value=disagreement(pl.col("n"), pl.col("c"))), problems)
    rows = [
        dict(zip(MODEL_TIER, group, strict=True))
        | _figures(part, attempted.filter(pl.col("model") == group[0], pl.col("tier") == group[1]), settings)
        for group, part in repeated.group_by(MODEL_TIER, maintain_order=True)
    ]
    table = pl.LazyFrame(rows, schema=TABLES["validator_variance"].dtypes)
    unknown = pl.col("share_from_validator", "ci_low", "ci_high", "ci_method")
    return table.with_columns(pl.when(pl.lit(not exclude_flaky)).then(unknown))


def _with_clusters(by_problem: pl.LazyFrame, problems: pl.LazyFrame) -> pl.DataFrame:
    """The defined values with their clusters, in a fixed order."""
    joined = by_problem.filter(pl.col("value").is_not_null()).join(shared_clusters(problems), on="oid", how="left")
    return joined.sort(*MODEL_TIER, "cluster", "value", "oid", nulls_last=False).collect()


def _figures(repeated: pl.DataFrame, attempted: pl.DataFrame, settings: IntervalSettings) -> dict[str, object]:
    flips, flip_interval = _mean(repeated, settings)
    differences, difference_interval = _mean(attempted, settings)
    share = None if flips is None or not differences else min(1.0, flips / differences)
    interval = (
        Interval(None, None, None, flip_interval.units)
        if flips is None or not differences
        else share_interval(flips, flip_interval, differences, difference_interval)
    )
    return {
        "problems": repeated.height,
        "fixes": int(repeated["fixes"].sum()),
        "flaky": int(repeated["flaky"].sum()),
        "validator_variance": None if flips is None else flips / 2,
        "sampling_variance": None if differences is None else differences / 2,
        "share_from_validator": share,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "ci_method": interval.method,
        "ci_units": flip_interval.units,
    }


def _mean(by_problem: pl.DataFrame, settings: IntervalSettings) -> tuple[float | None, Interval]:
    values, clusters = by_problem["value"].to_numpy(), by_problem["cluster"].to_list()
    interval = mean_interval(values, np.ones(len(values), dtype=np.int64), clusters, settings)
    return math.fsum(values) / len(values) if len(values) else None, interval
