"""Scores of a single attempt: pass rate, judge's score, cost, cost of pass, composite, code score, accuracy, grade.

Each formula is a function from expressions to an expression. Undefined is null. Aggregates over attempts belong in
`tiers`, `suites` and `aggregates`.

The price of a model's tokens is looked up by its full name, in any spelling ("Claude Opus 4.5" and "claude-opus-4-5"
are the same), optionally followed by a release: a date such as 20251101 or 2025-11-01, or `latest`. Nothing else may
follow, so gpt-4o-mini never gets the price of gpt-4o, nor claude-sonnet-4-5 that of claude-sonnet-4. Of several prices
of a model, the latest that is valid on the day of the attempt counts; without a day, only one without a date.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from touchstone.config.scoring import CodeWeights, CompositeWeights, Price, Scoring, price_key
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.tables import TABLES
from touchstone.vocabulary import MAX_AMOUNT, PASS_CLASS

PRICE_COLUMNS = ("input_price", "output_price", "cache_read_price", "cache_write_price")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_MILLION = 1_000_000
_RELEASE = r"-(20\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])|latest)$"
# The columns that are read of an attempt and of its outcome, apart from their key.
_GIVEN = (
    "run_id",
    "suite",
    "attempted_on",
    "fix_sha",
    "classification",
    "weighted_score",
    "structure_score",
    *TOKENS,
    "cost_usd",
    "duration_seconds",
    "latency_ms",
)
_VERDICT = ("status", "passed", "ruling", "compiled", "tests_passed", "tests_failed", "lint_warnings")


def attempt_scores(attempts: pl.LazyFrame, outcomes: pl.LazyFrame, scoring: Scoring) -> pl.LazyFrame:
    """The table `attempt_scores`: composite, code score, accuracy, grade, cost and cost of pass of every attempt.

    The rows are in the order of the attempts, without those that a ruling excludes.
    """
    rows = _with_verdicts(attempts, outcomes).filter(pl.col("__ruling").ne_missing(pl.lit("exclude")))
    models = attempts.select(pl.col("model").unique()).collect(engine="streaming")["model"]
    priced_as, by_tokens = _prices_by_model(models, scoring)
    with_parts = rows.select(
        *ATTEMPT_KEY,
        "run_id",
        "suite",
        "attempted_on",
        "latency_ms",
        pl.col("fix_sha").str.slice(0, 16),
        classification=agreed_class(pl.col("classification"), pl.col("__passed"), pl.col("__status")),
        pass_rate=pass_rate(pl.col("__passed")),
        impl_rate=impl_rate(pl.col("weighted_score")),
        cost_usd=pl.coalesce("cost_usd", by_tokens),
        priced_as=pl.when(pl.col("cost_usd").is_null() & by_tokens.is_not_null()).then(priced_as),
        duration_seconds="duration_seconds",
        total_tokens=_total_tokens(),
        ran_tests=(pl.col("__tests_passed").fill_null(0) + pl.col("__tests_failed").fill_null(0)) > 0,
        lint_measured=pl.col("__lint_warnings").is_not_null(),
        compilation_score=pl.col("__compiled").cast(pl.Float64),
        test_score=test_score(pl.col("__tests_passed"), pl.col("__tests_failed")),
        lint_score=lint_score(pl.col("__lint_warnings"), scoring.code),
        structure_score="structure_score",
    )
    return with_parts.with_columns(
        cost_of_pass=cost_of_pass(pl.col("cost_usd"), pl.col("pass_rate")),
        composite_score=composite_score(pl.col("pass_rate"), pl.col("impl_rate"), scoring.composite),
        code_score=code_score(
            pl.col("compilation_score"),
            pl.col("test_score"),
            pl.col("lint_score"),
            pl.col("structure_score"),
            scoring.code,
        ),
        accuracy=accuracy(pl.col("classification"), pl.col("pass_rate")),
    ).with_columns(grade=grade(pl.col("composite_score"), scoring))


def _with_verdicts(attempts: pl.LazyFrame, outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """The attempts in their order with the columns of their outcome, which get two underscores.

    A single null stands for a column without values, so that it is neither read again nor computed with.
    """
    given = attempts.select(*ATTEMPT_KEY, *_GIVEN)
    judged = outcomes.select(pl.col(*ATTEMPT_KEY, *_VERDICT).name.prefix("__"))
    side_by_side = pl.concat([given, judged], how="horizontal_extend")
    values = [*_GIVEN, *(f"__{name}" for name in _VERDICT)]
    same_key = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"__{name}")) for name in ATTEMPT_KEY)
    # One after the other, because that takes less memory.
    counts = attempts.select(pl.col(_GIVEN).count()), outcomes.select(pl.col(_VERDICT).count().name.prefix("__"))
    asked = side_by_side.select(same=same_key.all()), *counts
    found = pl.concat([each.collect(engine="streaming") for each in asked], how="horizontal")
    joined = side_by_side
    # Recorded outcomes come in the order of the attempts; a join of four texts takes most of the time.
    if not found["same"].item():
        judged_key = [f"__{name}" for name in ATTEMPT_KEY]
        joined = given.join(judged, left_on=ATTEMPT_KEY, right_on=judged_key, how="left", maintain_order="left")
    dtypes = joined.collect_schema()
    return joined.with_columns(pl.lit(None, dtypes[name]).alias(name) for name in values if not found[name].item())


def _prices_by_model(models: pl.Series, scoring: Scoring) -> tuple[pl.Expr, pl.Expr]:
    """The name of the price of each attempt's model, and the cost of its tokens at that price.

    Looked up once per model: a price is found by its name in any spelling, which takes long for millions of rows.
    """
    names = dict(models.to_frame().select("model", price=price_name(pl.col("model"), scoring)).iter_rows())
    found = list(set(names.values()))
    priced_as = pl.col("model").replace_strict(names, default=None, return_dtype=pl.String)
    if len(found) == 1:
        # To replace values, Polars collects all rows.
        priced_as = pl.lit(found[0], pl.String)
    used = {name: price for name, price in scoring.all_prices.items() if name in found}
    return priced_as, cost_at(priced_as, used)


def pass_rate(passed: pl.Expr) -> pl.Expr:
    """1 if the attempt passed, 0 if it failed, null if undecided."""
    return passed.cast(pl.Float64)


def impl_rate(weighted_score: pl.Expr) -> pl.Expr:
    """The judge's weighted score, clamped to [0, 1]."""
    return weighted_score.clip(0, 1)


def cost_of_pass(cost: pl.Expr, rate: pl.Expr) -> pl.Expr:
    """Cost divided by pass rate, of one attempt or of means; infinite if none passes, null if unknown or negative."""
    return pl.when((cost >= 0) & (rate == 0)).then(float("inf")).when(cost >= 0).then(cost / rate)


def composite_score(rate: pl.Expr, impl: pl.Expr, weights: CompositeWeights) -> pl.Expr:
    """The weighted mean of pass rate and judge's score.

    Null if undecided, or without a judge's score unless `missing` is `zero`.
    """
    judged = impl.fill_null(0.0) if weights.missing == "zero" else impl
    return (rate * weights.pass_rate + judged * weights.impl_rate) / (weights.pass_rate + weights.impl_rate)


def test_score(passed: pl.Expr, failed: pl.Expr) -> pl.Expr:
    """The share of tests that pass; 0 if there are none."""
    ran = passed.fill_null(0) + failed.fill_null(0)
    return pl.when(ran > 0).then(passed.fill_null(0) / ran).otherwise(0.0)


def lint_score(warnings: pl.Expr, weights: CodeWeights) -> pl.Expr:
    """1 minus `per_warning` for each warning, at least 0; 1 if not measured."""
    return (1 - weights.per_warning * warnings).clip(0, 1).fill_null(1.0)


def code_score(compiled: pl.Expr, tests: pl.Expr, lint: pl.Expr, structure: pl.Expr, weights: CodeWeights) -> pl.Expr:
    """The weighted sum of the components; 0 if it does not compile, null if that or a counted structure is unknown."""
    scored = weights.compilation + weights.tests * tests + weights.lint * lint
    scored = scored + weights.structure * structure if weights.structure else scored
    return pl.when(compiled == 1).then(scored).when(compiled == 0).then(0.0)


def agreed_class(recorded: pl.Expr, passed: pl.Expr, status: pl.Expr) -> pl.Expr:
    """The recorded class if it agrees with the outcome, otherwise `pass`, `timeout` or `fail` after the outcome.

    Null if no class was recorded or the attempt is undecided.
    """
    agrees = (recorded == PASS_CLASS) == passed
    ours = pl.when(passed).then(pl.lit(PASS_CLASS)).when(status == "timeout").then(pl.lit("timeout"))
    return pl.when(agrees).then(recorded).when(agrees.is_not_null()).then(ours.otherwise(pl.lit("fail")))


def accuracy(classification: pl.Expr, rate: pl.Expr) -> pl.Expr:
    """1 for the class `pass`, 0 for any other; the pass rate if there is no class."""
    return pl.when(classification.is_not_null()).then((classification == PASS_CLASS).cast(pl.Float64)).otherwise(rate)


def grade(score: pl.Expr, scoring: Scoring) -> pl.Expr:
    """The grade of a composite score; null for null."""
    letter: pl.Expr = pl.when(score.is_not_null()).then(pl.lit(scoring.failing_grade))
    for name, threshold in sorted(scoring.grades.items(), key=lambda item: item[1]):
        letter = pl.when(score >= threshold).then(pl.lit(name)).otherwise(letter)
    return letter


def _total_tokens() -> pl.Expr:
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in TOKENS)
    return pl.when(known).then(pl.sum_horizontal(pl.col(name) for name in TOKENS))


# The cost of tokens


def cost_at(priced_as: pl.Expr, prices: Mapping[str, Sequence[Price]]) -> pl.Expr:
    """The cost of the tokens at the price of that name on the attempt's day; null if there is none."""
    cost = pl.lit(None, pl.Float64)
    for name, of_model in prices.items():
        for price in of_model:
            valid = priced_as == name
            if price.valid_from is not None:
                valid &= pl.col("attempted_on") >= price.valid_from.isoformat()
            cost = pl.when(valid).then(token_cost(price)).otherwise(cost)
    return cost


def prices(attempt_scores: pl.LazyFrame, scoring: Scoring) -> pl.LazyFrame:
    """The table `prices`: every price that was used, for how many attempts, and how old it was by the last of them."""
    priced = attempt_scores.filter(pl.col("priced_as").is_not_null())
    used = priced.group_by("model", "priced_as", "attempted_on").agg(pl.len().alias("attempts")).collect()
    listed, stated_in = scoring.all_prices, {n: where for where, of in reversed(scoring.price_lists) for n in of}
    rows = []
    for model, name, day, attempts in used.iter_rows():
        valid = [each for each in listed[name] if each.valid_from is None or str(each.valid_from) <= (day or "")]
        valid_from = valid[-1].valid_from
        figures = zip(PRICE_COLUMNS, valid[-1].per_million, strict=True)
        row = {"model": model, "priced_as": name, "stated_in": stated_in[name], **dict(figures), "attempts": attempts}
        rows.append(row | {"valid_from": valid_from and str(valid_from), "first_date": day, "last_date": day})
    columns = TABLES["prices"].dtypes
    days = [pl.col(name).str.to_date() for name in ("last_date", "valid_from")]
    return (
        pl.LazyFrame(rows, schema=columns)
        .group_by(list(columns)[:8])
        .agg(pl.col("attempts").sum(), pl.col("first_date").min(), pl.col("last_date").max())
        .with_columns(age_days=(days[0] - days[1]).dt.total_days())
        .sort("model", "priced_as", "valid_from")
    )


def price_name(model: pl.Expr, scoring: Scoring) -> pl.Expr:
    """The name of the model's price, as spelled in the configuration or the defaults; null if it has none.

    >>> pl.select(price_name(pl.lit("claude-opus-4-5-20251101"), Scoring())).item()
    'claude-opus-4.5'
    """
    names = {price_key(name): name for name in scoring.all_prices}
    key = model.str.strip_chars().str.to_lowercase().str.replace_all(r"[\s_.]+", "-")
    released = key.str.replace(_RELEASE, "")
    spelled = [each.replace_strict(names, default=None, return_dtype=pl.String) for each in (key, released)]
    return pl.coalesce(spelled)


def token_cost(price: Price) -> pl.Expr:
    """Tokens times price. Null if tokens or their price are missing, or above `MAX_AMOUNT`."""
    given = pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null()
    total = pl.lit(0.0)
    for tokens, dollars in zip(TOKENS, price.per_million, strict=True):
        count = pl.col(tokens).fill_null(0)
        unpriced = pl.when(count == 0).then(0.0)
        total = total + (unpriced if dollars is None else count * dollars / _MILLION)
    return pl.when(given & (total <= MAX_AMOUNT)).then(total)
