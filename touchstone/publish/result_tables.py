"""Every table of results that people read, declared once: its columns, in their order, under which header and format.

The terminal, the report, the comment of a pull request and the Dagster UI show these declarations: a column added here
appears in all of them. How a medium draws a table belongs in `touchstone.tables.presentation` and
`touchstone.cli.terminal_tables`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from touchstone.comparison.verdicts import BEST_MODELS, Look, describe_shortage, with_ranks
from touchstone.metrics.attempts import PRICE_COLUMNS
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.publish.audit import problem_sentences
from touchstone.publish.reported_run import ReportedRun
from touchstone.tables import TABLES
from touchstone.tables.presentation import (
    MAX_ROWS,
    REDUNDANT,
    Cell,
    Column,
    ResultTable,
    Row,
    bar,
    count,
    dollars,
    estimate,
    figure,
    interval,
    label,
    name,
    number,
    p_value,
    percent,
    prose,
    share,
    signed,
    sparkline,
    text,
    verdict,
    with_interval,
)
from touchstone.text import counted, significant, visible
from touchstone.trends.figures import figure_name
from touchstone.vocabulary import GATE_ANSWERS, OUTCOME_WORDS, PROBLEM_VERDICTS, RESOURCES, VERSION

_MAX_SUITES = 6
# Budgets of each resource that are shown as figures, and models and tiers whose curves are compared.
_BUDGETS, _MAX_CROSSED = 5, 6
_MAX_QUARANTINE = 200
_MAX_FLAGS = 200
_MAX_SHORTAGES = 3
# Of more pairs, a page shows those that matter.
_MANY_PAIRS = 1_000
_LATE = REDUNDANT - 10
# Of 100 points.
HALF_A_POINT = 0.005
_SIDE_K = ["model", "tier", "k"]
_BOUNDS = ["pass_at_k_low", "pass_at_k_high"]

CODE_FIGURES = {
    "avg_compilation_rate": "compile rate",
    "avg_test_pass_rate": "tests passed",
    "avg_lint_score": "lint",
    "avg_code_score": "code score",
}
CROSS_TIER_SENTENCES = (
    "Low variance of pass rates (near 0): the tier hardly matters. High (at most 0.25): results depend on the tier.",
    "Medians of pass rates are often all 1; then the variance of the means tells more.",
    "Cost variance and delta compare the tiers' median costs: 0 if all cost the same, high if some cost far more.",
)


def _sides(run: ReportedRun) -> list[Column]:
    """Model and tier: the tier tells rows apart only if there are several."""
    return [name("model"), name("tier", rank=0 if run.has_tiers else REDUNDANT)]


def _ranked(run: ReportedRun, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order of the leaderboard."""
    places = pl.DataFrame(run.sides, schema={"model": pl.String, "tier": pl.String}, orient="row").with_row_index("at")
    keys = [key for key in ("model", "tier") if key in rows.columns]
    first = places.group_by(keys).agg(pl.col("at").min())
    return rows.join(first, on=keys, how="left", maintain_order="left").sort("at", nulls_last=True, maintain_order=True)


def _level(run: ReportedRun) -> str:
    return f"[{run.confidence} confidence interval]"


def _yes_or_no(key: str) -> Callable[[Row], Cell]:
    return lambda row: Cell("-" if row[key] is None else "yes" if row[key] else "no")


def _significant(value: float | None) -> str:
    return "-" if value is None else significant(value, 3)


# Single models


def leaderboard(run: ReportedRun) -> ResultTable:
    """Models with their pass@k, best first; on a page, a model's name leads to its problems."""
    places = {side: place for place, side in enumerate(run.sides)}
    return leaderboard_of(
        run.table("pass_at_k"),
        f"pass@k: mean over problems {_level(run)}",
        lambda model, tier: f"#model-{places[model, tier]}",
        run.table("pass_at_k_readings"),
    )


def leaderboard_of(
    pass_at_k: pl.DataFrame,
    title: str = "",
    link: Callable[[str, str], str] = lambda model, tier: "",
    readings: pl.DataFrame | None = None,
) -> ResultTable:
    """The same from the table alone, with the bounds of undecided attempts where they matter in `readings`.

    >>> row = {"model": "m", "tier": "T0", "k": 1, "pass_at_k": 2 / 3, "ci_low": .5, "ci_high": .75,
    ...        "attempted": 9, "problems": 10, "ci_method": "wilson"}
    >>> [cell.text for cell in leaderboard_of(pl.DataFrame([row])).cells()[0] if "█" not in cell.text]
    ['m', 'T0', '0.667 [0.500, 0.750]', '9/10', 'wilson']
    """
    ks = pass_at_k["k"].unique().sort().to_list()
    tiers = pass_at_k["tier"].n_unique() > 1

    def at(k: int) -> Callable[[Row], Cell]:
        return lambda row: Cell(with_interval(row["at"][k], "pass_at_k", "", "{:.3f}"), row["at"][k]["pass_at_k"])

    columns = [
        Column("model", lambda row: Cell(visible(row["model"]), link=link(row["model"], row["tier"])), "name"),
        name("tier", rank=0 if tiers else REDUNDANT),
        *(Column(f"pass@{k}", at(k), rank=rank) for rank, k in enumerate(ks)),
        share("attempted", "attempted", "problems", "{}/{}", rank=_LATE + 1),
        label("CI method", "ci_method", rank=_LATE + 2),
    ]
    columns.insert(3, Column("", lambda row: Cell(bar(row["at"][ks[0]]["pass_at_k"])), "bar", rank=_LATE))
    bounds = [] if readings is None else _bounds(readings)
    columns[-2:-2] = [replace(column, rank=_LATE - 1) for column in bounds]
    notes = (
        ["if undecided: pass@k if every undecided attempt had failed, and if every one had passed"] if bounds else []
    )
    by_side: dict[Any, list[dict[str, Any]]] = pass_at_k.sort("k").rows_by_key(
        ["model", "tier"], named=True, include_key=True
    )
    best_first = pass_at_k.filter(pl.col("k") == min(ks, default=1)).sort(
        "pass_at_k", "model", "tier", descending=[True, False, False], nulls_last=True
    )
    rows = [
        by_side[side][0] | {"at": {row["k"]: row for row in by_side[side]}}
        for side in best_first.select("model", "tier").iter_rows()
    ]
    return ResultTable("leaderboard-table", title, columns, rows, "pass_at_k", notes)


def _bounds(readings: pl.DataFrame) -> list[Column]:
    """A column per k for which undecided attempts could move the pass@k of some model by more than half a point."""
    apart = readings.filter((pl.col("pass_at_k_high") - pl.col("pass_at_k_low")).fill_null(0) > HALF_A_POINT)
    ends = {row[:3]: row[3:] for row in readings.select(_SIDE_K + _BOUNDS).iter_rows()}

    def at(k: int) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            low, high = ends.get((row["model"], row["tier"], k), (None, None))
            return Cell("-" if low == high else f"{number(low)} to {number(high)}", low)

        return cell

    return [Column(f"pass@{k} if undecided", at(k)) for k in apart["k"].unique().sort()]


def reliability(run: ReportedRun) -> ResultTable:
    """Flip rate, consistency, and what the variance of pass@1 comes from."""
    split = run.table("variance_split").select("model", "tier", "share_from_problems", "samples")
    rows = run.table("reliability").filter(pl.col("repeated") > 0).join(split, on=["model", "tier"], how="left")
    columns = [
        *_sides(run),
        count("repeated problems", "repeated"),
        count("always solved", "always"),
        count("never solved", "never"),
        estimate("flip rate", "flip_rate", "flip_rate_"),
        estimate("consistency", "consistency", "consistency_"),
        figure("attempts per problem", "samples", lambda value: "-" if value is None else f"{value:.3g}"),
        figure("variance from problems", "share_from_problems", lambda value: "-" if value is None else f"{value:.0%}"),
    ]
    title = "Reliability of repeated attempts, per model"
    return ResultTable("reliability-table", title, columns, _ranked(run, rows), "reliability")


def reliability_curve(run: ReportedRun) -> ResultTable:
    """pass@k and pass^k by k, of models that attempted a problem repeatedly."""
    repeated = run.table("reliability").filter(pl.col("repeated") > 0).height
    rows = run.table("reliability_curve") if repeated else run.table("reliability_curve").clear()
    columns = [
        *_sides(run),
        count("k"),
        figure("pass@k", "pass_at_k"),
        estimate("pass^k", "pass_hat_k"),
        count("eligible problems", "eligible"),
    ]
    return ResultTable("curve-table", "pass@k and pass^k by k", columns, _ranked(run, rows), "reliability_curve")


def tiers(run: ReportedRun) -> ResultTable:
    """Grade, uplift and cost of pass per tier, as far as they are known; marks the cheapest tier that passes."""
    rows = run.table("tiers")
    frontier = dict(run.table("cross_tier").select("model", "frontier_tier").iter_rows())
    graded, priced = rows["composite_median"].count() > 0, rows["cost_of_pass"].count() > 0
    lifted = graded and rows["tier"].n_unique() > 1
    notes = ["* the model's cheapest tier that passes"] if priced and any(frontier.values()) else []
    if lifted:
        notes.append("uplift: change of the composite from T0; a wide interval says that the size is not known")

    def cost(row: Row) -> Cell:
        mark = " *" if frontier.get(row["model"]) == row["tier"] else "  "
        return Cell(dollars(row["cost_of_pass"]) + mark, row["cost_of_pass"])

    scores = [
        label("grade", "grade_range"),
        share("scored", "scored", "attempts", rank=5),
        estimate("composite", "composite_median"),
    ]
    uplifts = [
        estimate("uplift", "uplift", "uplift_", "{:+.1%}", rank=4),
        figure("Cliff's delta", "cliffs_delta", signed, rank=6),
    ]
    columns = [
        *_sides(run),
        *(scores if graded else []),
        *(uplifts if lifted else []),
        estimate("passed attempts", "pass_rate", "pass_rate_", rank=3),
        *([Column("cost of pass", cost, rank=2)] if priced else []),
    ]
    title = f"tiers: grade of the median composite score {_level(run)}" if graded else "tiers: cost"
    # A grade with the range of its confidence interval, such as `B, F to B`.
    spread = pl.format("{}, {} to {}", "grade", "grade_low", "grade_high")
    grades = pl.when(pl.col("grade_low") == pl.col("grade_high")).then("grade").otherwise(spread)
    return ResultTable(
        "tiers-table", title, columns, _ranked(run, rows.with_columns(grade_range=grades)), "tiers", notes
    )


def graded_tiers(run: ReportedRun) -> ResultTable:
    """The same, empty if no attempt has a composite score."""
    return _if_known(tiers(run), ["composite_median"])


def _if_known(table: ResultTable, keys: Iterable[str]) -> ResultTable:
    """The table, without rows if they have none of these figures."""
    assert isinstance(table.rows, pl.DataFrame)
    return table if any(table.rows[key].count() for key in keys) else replace(table, rows=table.rows.clear())


def cross_tier(run: ReportedRun) -> ResultTable:
    """How much a model's tiers differ in pass rate, score and cost; no row for models of one tier."""
    columns = [
        name("model"),
        count("tiers", rank=5),
        figure("pass rate variance", "pass_rate_variance", _significant),
        figure("of means", "pass_rate_variance_of_means", _significant, rank=3),
        figure("score variance", "score_variance", _significant, rank=4),
        figure("cost variance", "cost_variance", _significant, rank=2),
        figure("cost delta", "cost_delta", dollars, rank=1),
    ]
    rows = _ranked(run, run.table("cross_tier").filter(pl.col("tiers") > 1))
    title = "across tiers: variance of the tiers' medians"
    return ResultTable("cross-tier-table", title, columns, rows, "cross_tier", CROSS_TIER_SENTENCES)


def statistics(run: ReportedRun) -> ResultTable:
    """Compile rate, tests, lint, code score, cost and latency per model and tier; only what the data have."""
    rows = run.table("model_statistics")
    has = {key for key in (*CODE_FIGURES, "total_cost_usd", "avg_latency_ms") if rows[key].count()}
    code = [key for key in CODE_FIGURES if key in has]
    figures = [
        *(estimate(CODE_FIGURES[key], key, f"{key}_", rank=rank) for rank, key in enumerate(code)),
        *([figure("total cost", "total_cost_usd", dollars, rank=len(code))] if "total_cost_usd" in has else []),
        *([figure("latency", "avg_latency_ms", _latency, rank=len(has) - 1)] if "avg_latency_ms" in has else []),
    ]
    title = f"code, cost and latency: mean over attempts {_level(run)}" if code else "cost and latency"
    shown = _ranked(run, rows) if has else rows.clear()
    return ResultTable("statistics-table", title, [*_sides(run), *figures], shown, "model_statistics")


def _latency(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"


def code_statistics(run: ReportedRun) -> ResultTable:
    """The same, empty if nothing is known about code."""
    return _if_known(statistics(run), CODE_FIGURES)


def problem_statistics(run: ReportedRun, most: int = MAX_ROWS) -> ResultTable:
    """pass@k and code scores of the first problems, models and tiers that have a code score."""
    key = ["model", "tier", "oid"]
    scored = run.scan("problem_statistics").filter(pl.col("avg_score").is_not_null())
    first = scored.select(*key, "n", "c", "avg_score", "best_score").sort("oid", "model", "tier").head(most).collect()
    at_k = run.scan("problem_pass_at_k").join(first.lazy(), on=key, how="semi").select(*key, "k", "pass_at_k").collect()
    ks = at_k["k"].unique().sort().to_list()
    wide = at_k.group_by(key).agg(pl.col("pass_at_k").filter(pl.col("k") == k).first().alias(f"pass@{k}") for k in ks)
    columns = [
        name("problem", "oid"),
        *_sides(run),
        figure("avg. score", "avg_score"),
        figure("best score", "best_score", rank=1),
        *(figure(f"pass@{k}", f"pass@{k}", rank=rank) for rank, k in enumerate(ks, 2)),
        share("passed", "c", "n", rank=len(ks) + 2),
    ]
    rows = first.join(wide, on=key, how="left", maintain_order="left")
    total = int(scored.select(pl.len()).collect().item())
    title = "code score and pass@k per problem"
    return ResultTable("problem-statistics-table", title, columns, rows, "problem_statistics", full_height=total)


def suites(run: ReportedRun) -> ResultTable:
    """Suite scores side by side and their unweighted mean, per model, tier and run."""
    runs, scores = run.table("run_scores"), run.table("suite_scores")
    every = scores["suite"].unique().sort().to_list()
    shown, hidden = every[:_MAX_SUITES], len(every) - _MAX_SUITES
    notes = [f"{counted(hidden, 'more suite')}: SELECT * FROM suite_scores"] if hidden > 0 else []
    undecided = int((runs["cases"] - runs["decided"]).sum())
    if undecided:
        notes.append(
            f"{counted(undecided, 'case without an outcome counts', 'cases without an outcome count')} as not passed; "
            "decided_score leaves them out"
        )
    keys = ("model", "tier", "run_id", "suite")
    by_key = {row[:4]: row[4] for row in scores.select(*keys, "score").iter_rows()}

    def score(suite: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            value = by_key.get((row["model"], row["tier"], row["run_id"], suite))
            return Cell(number(value), value)

        return cell

    columns = [
        *_sides(run),
        *([name("run", "run_id")] if runs["run_id"].count() else []),
        *(Column(visible(suite), score(suite), rank=rank) for rank, suite in enumerate(shown, 1)),
        estimate("overall", "overall_score"),
    ]
    title = "suites: mean accuracy, and the unweighted mean over suites"
    rows = _ranked(run, runs) if every else runs.clear()
    return ResultTable("suites-table", title, columns, rows, "run_scores", notes)


def classes(run: ReportedRun) -> ResultTable:
    """Attempts by outcome class; empty if no attempt has one."""
    scores = run.table("suite_scores")
    keys = [key for key in scores.columns if key.startswith("class_")]
    totals = scores.group_by("model", "tier").agg(pl.col(keys).sum()).sort("model", "tier")
    shown = [key for key in keys if totals[key].sum()]
    columns = [*_sides(run), *(count(key.removeprefix("class_").replace("_", " "), key) for key in shown)]
    rows = _ranked(run, totals if set(shown) - {"class_none"} else totals.clear())
    return ResultTable("classes-table", "Attempts by outcome class", columns, rows, "suite_scores")


def slices(run: ReportedRun) -> ResultTable:
    """pass@1 per value of every sliced column, the best model of each first."""
    best_first = ["column", "value", "pass_at_1", "model", "tier"]
    rows = run.table("slices").sort(best_first, descending=[key == "pass_at_1" for key in best_first], nulls_last=True)
    columns = [
        name("column"),
        name("value"),
        *_sides(run),
        estimate("pass@1", "pass_at_1"),
        count("problems"),
        count("attempts"),
    ]
    return ResultTable("slices-table", f"pass@1 per slice {_level(run)}", columns, rows, "slices")


def factors(run: ReportedRun) -> ResultTable:
    """pass@1 per level of every factor."""
    columns = [
        name("factor"),
        name("level"),
        *_sides(run),
        estimate("pass@1", "pass_at_1"),
        count("problems", rank=2),
        count("attempts", rank=1),
    ]
    return ResultTable("factors-table", f"pass@1 by factor {_level(run)}", columns, run.table("factors"), "factors")


def factor_effects(run: ReportedRun) -> ResultTable:
    """Effects of levels against the first level of their factor, and how they depend on another factor."""
    columns = [
        Column("effect", lambda row: text(effect_words(row)), "name"),
        *_sides(run),
        figure("difference", "difference", signed),
        Column(f"{run.confidence} CI", lambda row: Cell(interval(row, ""), row["ci_low"])),
        figure("adjusted p", "p_adjusted", p_value),
        figure("p", "p_value", p_value, rank=3),
        count("problems", rank=1),
        label("test", "test", rank=4),
    ]
    notes = ["within problems, other factors held equal; ×: how much larger the difference is (Holm-adjusted)"]
    title, rows = "effects of factors on pass@1, paired by problem", run.table("factor_effects")
    return ResultTable("factor-effects-table", title, columns, rows, "factor_effects", notes)


def effect_words(row: Row) -> str:
    """An effect in words.

    >>> main = {"factor": "effort", "level": "high", "reference": "low", "other_factor": None}
    >>> effect_words(main)
    'effort high - low'
    >>> effect_words(main | {"other_factor": "prompt", "other_level": "b", "other_reference": "a"})
    'effort high - low × prompt b - a'
    """
    other = f" × {row['other_factor']} {row['other_level']} - {row['other_reference']}" if row["other_factor"] else ""
    return f"{row['factor']} {row['level']} - {row['reference']}{other}"


def costs(run: ReportedRun) -> ResultTable:
    """Cost per attempt and per working fix."""
    rows = run.table("economics").filter(pl.col("cost_per_attempt").is_not_null())
    columns = [
        *_sides(run),
        Column("cost of pass", _cost_of_pass),
        figure("cost per attempt", "cost_per_attempt", dollars),
        figure("pass rate", "pass_rate"),
        Column("Pareto optimal", _yes_or_no("pareto"), "label"),
    ]
    return ResultTable("costs-table", f"cost of pass {_level(run)}", columns, _ranked(run, rows), "economics")


def _cost_of_pass(row: Row) -> Cell:
    value, ends = row["cost_of_pass"], (row["ci_low"], row["ci_high"])
    if value is None or None in ends or value == float("inf"):
        return Cell(dollars(value), value)
    low, high = ("∞" if end == float("inf") else dollars(end) for end in ends)
    return Cell(f"{dollars(value)} [{low}, {high}]", value)


def budgets(run: ReportedRun) -> ResultTable:
    """The share of problems solved within a few budgets of each resource, and where curves cross."""
    # It loads numpy, which the results of a run on a terminal do without.
    from touchstone.metrics.budgets import budget_text, crossing_sentences

    curves = run.table("budget_curves").drop_nulls("share_solved")
    place, budgets = pl.col("budget").rank("dense").over("resource"), pl.col("budget").n_unique().over("resource")
    shown = curves.filter(place * _BUDGETS // budgets > (place - 1) * _BUDGETS // budgets)
    columns = [
        Column("budget per problem", lambda row: Cell(budget_text(row["resource"], row["budget"])), "label"),
        *_sides(run),
        estimate("solved", "share_solved"),
        count("problems"),
    ]
    rows = _ranked(run, shown).sort(pl.col("resource").cast(pl.Enum([*RESOURCES])), "budget", maintain_order=True)
    title = f"share of problems solved within a budget {_level(run)}"
    notes = crossing_sentences(curves, run.sides[:_MAX_CROSSED])
    return ResultTable("budgets-table", title, columns, rows, "budget_curves", notes)


def prices(run: ReportedRun) -> ResultTable:
    """The prices that costs were computed with, and how old they were."""
    columns = [
        name("model"),
        name("price", "priced_as"),
        name("stated in", "stated_in"),
        label("valid from", "valid_from"),
        *(name(column.removesuffix("_price").replace("_", " "), column, kind="number") for column in PRICE_COLUMNS),
        count("attempts"),
        label("first attempt", "first_date"),
        label("last attempt", "last_date"),
        count("age in days", "age_days"),
    ]
    title = "prices of tokens, in US dollars per million, and how old each was at the last attempt"
    return ResultTable("prices-table", title, columns, _ranked(run, run.table("prices")), "prices")


def routing(run: ReportedRun) -> ResultTable:
    """Savings by choosing the cheapest model."""
    words = {"single": "one model for all", "suite": "the cheapest per suite", "problem": "the cheapest per problem"}
    columns = [
        Column("policy", lambda row: text(words.get(row["policy"], row["policy"])), "name"),
        figure("cost of pass", "cost_of_pass", dollars),
        figure("pass rate", "pass_rate"),
        estimate("saving", "saving", style="{:+.1%}"),
        count("problems"),
    ]
    rows = run.table("routing_policies").filter(pl.col("cost_of_pass").is_not_null())
    title = "What choosing the cheapest model saves, on attempts not used to choose it"
    return ResultTable("routing-table", title, columns, rows, "routing_policies")


# Comparisons

# The columns behind the table of pairs: a row has twice as many, which would be read for thousands of rows.
_PAIR_COLUMNS = (
    *("model_a", "tier_a", "model_b", "tier_b", "verdict", "difference", "p_value", "p_adjusted", "pairs"),
    *("correction", "ci_low", "ci_high", "adjusted_ci_low", "adjusted_ci_high", "minimum_detectable_effect"),
    "detectable_on_few",
    *("wins", "losses", "fell", "rose", "problems"),
)


def pairs(run: ReportedRun, most: int = MAX_ROWS) -> ResultTable:
    """Pairs of models and of tiers with their verdicts: those of the best model first, with the next best first.

    Of many pairs, only those that matter.
    Figures adjusted for the number of pairs come first, so that a narrow terminal hides the unadjusted ones.
    """
    every = run.scan("model_comparison")
    total = int(every.select(pl.len()).collect().item())
    best_first = _best_pairs_first(run, every.select(_PAIR_COLUMNS))
    rows = best_first.filter(pl.col("matters") | (total <= _MANY_PAIRS)).head(most).collect()
    many = int(rows["pairs"].max() or 0)  # type: ignore[arg-type]
    own = [Column(f"{run.confidence} CI", lambda row: Cell(interval(row, ""))), figure("p", "p_value", p_value)]
    adjusted = [
        Column(f"adjusted {percent(1 - run.alpha)} CI", lambda row: Cell(interval(row, "adjusted_"))),
        figure("adjusted p", "p_adjusted", p_value),
    ]
    effects = [
        figure("min. detectable effect", "minimum_detectable_effect"),
        figure("on few problems", "detectable_on_few"),
    ]
    further = [*(adjusted if many > 1 else own), *effects, *(own if many > 1 else [])]
    further += [count("wins"), count("losses"), *_changed(rows), count("problems")]
    depends = _what_verdicts_depend_on(run)
    columns = [
        Column("model", _side_of_pair(run, "b"), "name"),
        Column("baseline", _side_of_pair(run, "a"), "name"),
        verdict("verdict"),
        *([Column("depends on", lambda row: Cell(depends.get(_pair(row), "-")), "label")] if depends else []),
        figure("difference", "difference", signed),
        *(Column(each.header, each.cell, rank=rank) for rank, each in enumerate(further, 1)),
    ]
    title = "paired comparison by problem: difference in pass@1"
    notes = _pair_notes(run, many) if total else []
    if rows.height < min(most, total):
        notes.append(f"shown: pairs of the {BEST_MODELS} best models, and every model with the next in rank")
    return ResultTable("comparison-table", title, columns, rows, "model_comparison", notes, total)


READING_WORDS = {
    "undecided_favour_a": "undecided attempts",
    "undecided_favour_b": "undecided attempts",
    "measured": "rulings",
    "unflagged": "flagged passes",
}


def _pair(row: Row) -> tuple[str, ...]:
    return row["model_a"], row["tier_a"], row["model_b"], row["tier_b"]


def _what_verdicts_depend_on(run: ReportedRun) -> dict[tuple[str, ...], str]:
    """For each pair whose verdict does not hold in every reading, the reasons."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for row in run.table("verdict_readings").filter(~pl.col("holds")).iter_rows(named=True):
        found.setdefault(_pair(row), {})[READING_WORDS.get(row["reading"], row["reading"])] = None
    return {pair: ", ".join(words) for pair, words in found.items()}


def _side_of_pair(run: ReportedRun, end: str) -> Callable[[Row], Cell]:
    model, tier = f"model_{end}", f"tier_{end}"
    return lambda row: text(run.side_name(row[model], row[tier]))


def _best_pairs_first(run: ReportedRun, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Pairs by the place of their better side on the leaderboard, then of the other, and whether each `matters`.

    With many models nearly every p-value is below 0.001 and orders nothing.
    """
    better, other = pl.min_horizontal("place_a", "place_b"), pl.max_horizontal("place_a", "place_b")
    return with_ranks(rows, run.sides).sort(better, other, nulls_last=True).drop("place_a", "place_b")


def _pair_notes(run: ReportedRun, many: int) -> list[str]:
    """The number of pairs that figures are adjusted for, and the pairs with too few units for any verdict."""
    units = run.scan("model_comparison").filter(pl.col("units_needed").is_not_null())
    clustered = pl.col("ci_units") < pl.col("problems")
    short = units.select("ci_units", "units_needed", clustered=clustered).unique().sort(pl.all()).head(_MAX_SHORTAGES)
    correction = run.scan("model_comparison").select(pl.col("correction").first()).collect().item()
    rule = "Holm" if correction == "holm" else "false discovery rate, Benjamini-Yekutieli"
    return [
        *([f"adjusted for {many:,} pairs ({rule})"] if many > 1 else []),
        *(
            describe_shortage(have, needed, pairs=many, alpha=run.alpha, clustered=in_clusters)
            for have, needed, in_clusters in short.collect().iter_rows()
        ),
    ]


def _changed(rows: pl.DataFrame) -> list[Column]:
    """Problems that fell and rose beyond chance, if attempts are enough to tell."""
    possible = rows.select(pl.any_horizontal(pl.col("fell", "rose") > 0).any()).item()
    tested = "p_changed" in rows.columns and rows["p_changed"].count() > 0
    of_test = [figure("p of that", "p_changed", p_value)] if tested else []
    return [count("fell"), count("rose"), *of_test] if possible or tested else []


def baseline_verdicts(run: ReportedRun) -> ResultTable:
    """Every model against its pinned baseline."""
    rows = run.table("baseline_verdicts").sort("p_adjusted", "model", "tier", nulls_last=True)
    columns = [
        *_sides(run),
        verdict("verdict"),
        estimate("baseline", "rate_baseline", "rate_baseline_"),
        estimate("this run", "rate_current", "rate_current_"),
        figure("difference", "difference", signed),
        Column("adjusted CI", lambda row: Cell(interval(row, "adjusted_"))),
        figure("adjusted p", "p_adjusted", p_value),
        count("problems"),
        *_changed(rows),
    ]
    title = "This run against the baseline"
    for baseline, *look in rows.head(1).select("baseline", "look", "looks", "level").iter_rows():
        title += f" {visible(baseline)}, {Look(*look)}, with {percent(1 - look[-1])} confidence intervals"
    return ResultTable("verdicts-table", title, columns, rows, "baseline_verdicts")


def trends(run: ReportedRun) -> ResultTable:
    """Every headline figure over the snapshots, one row per line; empty with a single snapshot."""
    series = ["model", "tier", "table", "item", "figure"]
    ordered = run.scan("trends").sort("made_at", "snapshot").group_by(series, maintain_order=True)
    last = (pl.col(column).last() for column in ("value", "ci_low", "ci_high", "level"))
    rows = ordered.agg(*last, values="value", gaps="after_gap", nights=pl.len(), first=pl.col("value").first())
    columns = [
        *_sides(run),
        Column("figure", lambda row: Cell(figure_name(row["table"], row["figure"], row["item"])), "label"),
        Column("line", lambda row: Cell(sparkline(row["values"], row["gaps"])), "label", rank=2),
        count("snapshots", "nights", rank=3),
        figure("first", "first", rank=1),
        estimate("latest", "value"),
        figure("level", "level"),
    ]
    title = "Headline figures over the snapshots; the level is the mean since the last change"
    return ResultTable(
        "trends-table", title, columns, _ranked(run, rows.filter(pl.col("nights") > 1).collect()), "trends"
    )


def change_points(run: ReportedRun) -> ResultTable:
    """Changes in the level of headline figures, the latest first."""
    columns = [
        Column("since", lambda row: Cell(row["made_at"][:16].replace("T", " ")), "label"),
        *_sides(run),
        prose("change", "sentence"),
        prose("changed there", "changed"),
        figure("p at most", "p_value", p_value, rank=2),
        label("seen in", "seen_in", rank=3),
    ]
    rows = run.table("change_points").sort("made_at", "model", "tier", "table", "item", descending=[True] + [False] * 4)
    return ResultTable("change-points-table", "Changes of level, the latest first", columns, rows, "change_points")


def comparability(run: ReportedRun) -> ResultTable:
    """In what the sides of comparisons agree."""
    columns = [
        name("compared", "kind"),
        name("dimension"),
        verdict("agreement"),
        Column("must agree", _yes_or_no("required"), "label"),
        prose("baseline, or most models", "value_a"),
        prose("this run, or the other models", "value_b"),
    ]
    title = "The run and its baseline, and the models of the run"
    return ResultTable("comparability-table", title, columns, run.table("comparability"), "comparability")


def registered_plan(run: ReportedRun) -> ResultTable:
    """The plan beside what was done."""
    columns = [name("item"), name("planned"), name("used"), Column("as planned", _yes_or_no("as_planned"), "label")]
    return ResultTable(
        "plan-table", "The plan and what was done", columns, run.table("registered_plan"), "registered_plan"
    )


def gate_results(run: ReportedRun) -> ResultTable:
    """Every gate with its answer, those that do not hold first."""
    columns = [
        name("gate"),
        *_sides(run),
        verdict("answer"),
        estimate("figure", "figure", style="{:.3g}"),
        name("would settle it", "needed", rank=_LATE, kind="text"),
    ]
    rows = run.table("gate_results").rename({"low": "ci_low", "high": "ci_high"}).to_dicts()
    rows.sort(key=lambda row: GATE_ANSWERS.index(row["answer"]))
    return ResultTable("gates-table", "Gates: what must hold", columns, rows, "gate_results")


def regressions(run: ReportedRun) -> ResultTable:
    """The cases that changed against the baseline, the largest drop first."""
    columns = [
        Column("problem", _problem(run), "name"),
        *_sides(run),
        verdict("change", "kind"),
        figure("baseline", "baseline_score"),
        figure("this run", "current_score"),
        figure("delta", "delta", signed),
        name("what changed", "category"),
    ]
    rows = run.table("regressions").sort("delta", "model", "tier", "oid", nulls_last=True)
    title = "Cases that changed, the largest drop first"
    return ResultTable("regressions-table", title, columns, rows, "regressions")


def failure_modes(run: ReportedRun) -> ResultTable:
    """Why attempts fail, the most common reason first; each leads to a case that the page shows, if it shows one."""
    rows = run.table("failure_modes").filter((pl.col("attempts") > 0) | (pl.col("mode_change") == "gone"))
    cases = run.scan("failures").select("fingerprint", "model", "tier", "oid").sort(pl.all()).collect().iter_rows()
    shown = ((mode, run.case_links[key]) for mode, *key_of in cases if (key := tuple(key_of)) in run.case_links)
    links: dict[str, str] = {}
    for mode, link in shown:
        links.setdefault(mode, link)
    has_changes = rows["mode_change"].count() > 0
    columns = [
        Column("reason", lambda row: Cell(visible(row["fingerprint"]), link=links.get(row["fingerprint"], "")), "text"),
        count("attempts"),
        count("problems", rank=1),
        count("models", rank=2),
        *([verdict("change", "mode_change")] if has_changes else []),
        label("first seen", "first_snapshot", rank=4),
        label("last seen", "last_snapshot", rank=3),
        prose("for example", "example"),
    ]
    return ResultTable("failure-modes-table", "Failed attempts by reason", columns, rows, "failure_modes")


def _problem(run: ReportedRun) -> Callable[[Row], Cell]:
    """A problem's id, which leads to the attempts at it if the page shows them."""
    return lambda row: Cell(visible(row["oid"]), link=run.case_links.get((row["model"], row["tier"], row["oid"]), ""))


# Evidence behind the figures


def rulings(run: ReportedRun) -> ResultTable:
    """Every ruling of a person."""
    what = {"model": "every model", "tier": "every tier", "oid": "-", "iteration_id": "every attempt"}

    def named(key: str) -> Callable[[Row], Cell]:
        return lambda row: text(row[key] or (what[key] if row["oid"] else "-"))

    def measured(row: Row) -> Cell:
        return Cell("-" if row["model"] is None or not row["tier"] else OUTCOME_WORDS[row["measured"]])

    columns = [
        count("line"),
        *(
            Column(header, named(key), "name")
            for header, key in (("model", "model"), ("tier", "tier"), ("problem", "oid"), ("attempt", "iteration_id"))
        ),
        label("ruling"),
        Column("measured", measured, "label"),
        Column(
            "applied", lambda row: Cell("yes" if row["applied"] else f"no: {visible(row['why_not'] or '')}"), "text"
        ),
        prose("reason"),
        name("by"),
        label("at"),
    ]
    rows = run.table("rulings").sort("line", *ATTEMPT_KEY, nulls_last=False)
    return ResultTable("rulings-table", "Rulings by people", columns, rows, "rulings")


def pass_audit(run: ReportedRun) -> ResultTable:
    """How many passes were audited and flagged, beside pass@k with and without the flagged ones."""
    table = run.table("pass_at_k_readings")
    first = table.filter(pl.col("k") == pl.col("k").min()).select(
        "model", "tier", "k", "pass_at_k", "pass_at_k_unflagged"
    )
    rows = run.table("pass_audit").filter(pl.col("passes") > pl.col("not_audited")).join(first, on=["model", "tier"])
    k = rows["k"][0] if rows.height else 1
    columns = [
        *_sides(run),
        count("passes"),
        count("fixes read", "fixes_read"),
        count("transcripts read", "transcripts_read"),
        count("not audited", "not_audited"),
        count("flagged"),
        count("worth a look", "worth_a_look"),
        figure(f"pass@{k}", "pass_at_k"),
        figure("if flagged passes failed", "pass_at_k_unflagged"),
    ]
    return ResultTable("pass-audit-table", "Audited passes", columns, _ranked(run, rows), "pass_audit")


def audit_flags(run: ReportedRun) -> ResultTable:
    """The flags of the audit, passes and high severity first."""
    flags = run.scan("audit_flags")
    order = flags.sort(~pl.col("passed").fill_null(False), "severity", *ATTEMPT_KEY, maintain_order=True).head(
        _MAX_FLAGS
    )
    rows, total = pl.collect_all([order, flags.select(pl.len())])
    columns = [
        *_sides(run),
        Column("problem", _problem(run), "name"),
        name("attempt", "iteration_id"),
        Column("verdict", lambda row: Cell(OUTCOME_WORDS[row["passed"]]), "label"),
        name("rule"),
        label("severity"),
        name("place"),
        prose("evidence"),
    ]
    return ResultTable("audit-flags-table", "Flags", columns, rows, "audit_flags", full_height=total.item())


def readings(run: ReportedRun) -> ResultTable:
    """pass@k of the models for which outcomes could be read otherwise, in every reading."""
    read = [name for name in TABLES["pass_at_k_readings"].dtypes if name.startswith("pass_at_k_")]
    table = run.table("pass_at_k_readings")
    differ = pl.any_horizontal(pl.col(each).ne_missing(pl.col("pass_at_k")) for each in read)
    words = {
        "pass_at_k_low": "if undecided failed",
        "pass_at_k_high": "if undecided passed",
        "pass_at_k_measured": "without rulings",
        "pass_at_k_unflagged": "if flagged passes failed",
    }
    changed = table.filter(differ)
    used = [each for each in read if changed[each].ne_missing(changed["pass_at_k"]).any()]
    columns = [
        *_sides(run),
        count("k"),
        figure("pass@k", "pass_at_k"),
        *(figure(words.get(each, each), each) for each in used),
    ]
    title = "pass@k if outcomes are read otherwise"
    return ResultTable("readings-table", title, columns, _ranked(run, changed), "pass_at_k_readings")


def verdict_readings(run: ReportedRun) -> ResultTable:
    """The pairs whose verdict does not hold in some reading."""
    words = {
        "undecided_favour_a": "undecided attempts passed for the baseline and failed for the model",
        "undecided_favour_b": "undecided attempts failed for the baseline and passed for the model",
        "measured": "no ruling counted",
        "unflagged": "flagged passes had failed",
    }
    columns = [
        Column("model", _side_of_pair(run, "b"), "name"),
        Column("baseline", _side_of_pair(run, "a"), "name"),
        verdict("verdict"),
        Column("if", lambda row: Cell(words.get(str(row["reading"]), str(row["reading"]))), "text"),
        verdict("then", "verdict_then"),
        figure("difference", "difference", signed),
        figure("adjusted p", "p_adjusted", p_value),
    ]
    rows = _best_pairs_first(run, run.table("verdict_readings").filter(~pl.col("holds")).lazy()).collect()
    title = "Verdicts that do not hold if outcomes are read otherwise"
    return ResultTable("verdict-readings-table", title, columns, rows, "verdict_readings")


def problems(run: ReportedRun, most: int = MAX_ROWS) -> ResultTable:
    """The hardest problems, the hardest first."""
    every, hardest_first = run.scan("problem_frontier"), ("mean_pass_rate", "oid")
    first = every.sort(hardest_first, nulls_last=True).head(most).collect(engine="streaming")
    flips = (
        run.scan("problem_statistics")
        .join(first.lazy(), on="oid", how="semi")
        .group_by("oid")
        .agg(flipping=((pl.col("c") > 0) & (pl.col("c") < pl.col("n"))).sum())
    )
    suites = run.scan("problems").join(first.lazy(), on="oid", how="semi").select("oid", "suite")
    rows = first.lazy().join(flips, on="oid", how="left").join(suites, on="oid", how="left")
    ordered = rows.sort(hardest_first, nulls_last=True).with_columns(sides=pl.lit(len(run.sides)))
    total = int(every.select(pl.len()).collect().item())
    links = {oid: link for (_, _, oid), link in reversed(run.case_links.items())}
    columns = [
        Column("problem", lambda row: Cell(visible(row["oid"]), link=links.get(row["oid"], "")), "name"),
        name("suite"),
        figure("mean pass rate", "mean_pass_rate"),
        count("models solving it", "models_solving"),
        share("flipping", "flipping", "sides"),
        figure("lowest cost of pass", "cost_of_pass", dollars),
    ]
    title = "Problems, the lowest mean pass rate first"
    shown = ordered.collect(engine="streaming")
    return ResultTable("problems-table", title, columns, shown, "problem_frontier", full_height=total)


def problem_verdicts(run: ReportedRun) -> ResultTable:
    """How many problems have each verdict of the audit, its meaning, and the consequences."""
    audit, board = run.scan("problem_audit"), run.table("audited_leaderboard")
    found = (
        audit.group_by("tier", "verdict")
        .len()
        .with_columns(
            order=pl.col("verdict").replace_strict(
                {word: at for at, word in enumerate(PROBLEM_VERDICTS)}, default=None
            ),
            meaning=pl.col("verdict").replace_strict(PROBLEM_VERDICTS, default=None),
        )
    )
    columns = [*([name("tier")] if run.has_tiers else []), label("verdict"), count("problems", "len"), prose("meaning")]
    title = "Verdicts on the problems, from outcomes and validation"
    notes = [visible(sentence) for sentence in problem_sentences(audit, board)]
    rows = found.sort("tier", "order").collect(engine="streaming")
    return ResultTable("problem-verdicts-table", title, columns, rows, "problem_audit", notes)


def audited_problems(run: ReportedRun, most: int = MAX_ROWS) -> ResultTable:
    """The first problems about which the audit says something, the most suspect first."""
    quiet = ("ok", "not judged")
    suspect = pl.col("verdict") == "suspect"
    rows = run.scan("problem_audit").filter(~pl.col("verdict").is_in(quiet))
    validated = {"reference_fails": "reference fails", "baseline_passes": "unmodified passes"}
    known = rows.select(pl.len(), pl.col(*validated).count()).collect(engine="streaming").row(0, named=True)
    columns = [
        name("problem", "oid"),
        *([name("tier")] if run.has_tiers else []),
        label("verdict"),
        figure("discrimination", "discrimination", signed),
        figure("adjusted p", "p_adjusted", p_value),
        figure("models that pass", "share_of_models"),
        figure("attempts that pass", "share_of_attempts"),
        count("models reranked without it", "models_reranked"),
        name("same outcomes as", "same_as"),
        *(Column(header, _yes_or_no(key), "label") for key, header in validated.items() if known[key]),
    ]
    ordered = rows.sort(~suspect, "p_value", "tier", "oid", nulls_last=True).head(most).collect(engine="streaming")
    title = "Problems that are not plainly ok, the most suspect first"
    return ResultTable("audited-problems-table", title, columns, ordered, "problem_audit", full_height=known["len"])


def audited_leaderboard(run: ReportedRun) -> ResultTable:
    """The leaderboard without the suspect problems; empty if there are none."""
    rows = run.table("audited_leaderboard")
    rows = (
        rows.sort("tier", "rank_without_suspects", "model", nulls_last=True) if rows["suspects"].sum() else rows.clear()
    )
    columns = [
        *_sides(run),
        count("rank", "rank_without_suspects"),
        figure("pass@1", "pass_at_1_without_suspects"),
        count("rank with suspects", "rank"),
        figure("pass@1 with suspects", "pass_at_1"),
        count("changed verdicts", "changed_verdicts"),
        prose("verdict on this model, with and without", "changes"),
    ]
    title = "The leaderboard without the suspect problems"
    return ResultTable("audited-leaderboard-table", title, columns, rows, "audited_leaderboard")


def flaky_tests(run: ReportedRun) -> ResultTable:
    """Tests that gave different results on the same files."""
    rows = run.scan("validator_noise").filter(pl.col("flaky"), pl.col("test").is_not_null())
    columns = [
        name("problem", "oid"),
        name("test"),
        name("validated"),
        count("passes"),
        count("runs"),
        Column("left out of verdicts", _yes_or_no("excluded"), "label"),
    ]
    title = "Flaky tests: some validations of the same files passed and others did not"
    return ResultTable(
        "flaky-table", title, columns, rows.sort("oid", "test", "validated").collect(), "validator_noise"
    )


def test_strength(run: ReportedRun) -> ResultTable:
    """The kill rate of every problem's tests, the weakest first."""
    columns = [
        name("problem", "oid"),
        estimate("kill rate", "kill_rate"),
        count("killed"),
        count("survived"),
        count("undecided"),
        Column("more than a third survive", _yes_or_no("weak"), "label"),
        prose("not judged because", "reason"),
    ]
    rows = run.table("test_strength").sort("kill_rate", "oid", nulls_last=True)
    title = f"mutants of the reference fix that the tests kill {_level(run)}"
    return ResultTable("strength-table", title, columns, rows, "test_strength")


def surviving_mutants(run: ReportedRun) -> ResultTable:
    """The mistakes that no test noticed."""

    def lines(sign: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            changed = (line[1:].strip() for line in row["diff"].split("\n")[2:] if line.startswith(sign))
            return text(" ".join(changed))

        return cell

    columns = [
        name("problem", "oid"),
        Column("file", lambda row: text(f"{row['path']}:{row['line']}"), "name"),
        prose("mistake", "change"),
        Column("reference fix", lines("-"), "text"),
        Column("mutant that passes", lines("+"), "text"),
    ]
    rows = run.scan("mutants").filter(pl.col("result") == "survived").sort("oid", "mutant").collect()
    return ResultTable(
        "survivors-table", "Mutants that pass: read them before you trust a pass", columns, rows, "mutants"
    )


def contamination(run: ReportedRun) -> ResultTable:
    """pass@1 before and after each model's training cutoff."""
    columns = [
        *_sides(run),
        name("column"),
        verdict("finding"),
        figure("before", "pass_at_1_before"),
        figure("after", "pass_at_1_after"),
        figure("before less after", "difference", signed),
        Column("CI", lambda row: Cell(interval(row, ""))),
        figure("adjusted p", "p_adjusted", p_value),
        count("problems before", "problems_before"),
        count("problems after", "problems_after"),
    ]
    title = f"pass@1 before and after the cutoff, with {run.confidence} confidence intervals"
    return ResultTable("cutoff-table", title, columns, _ranked(run, run.table("contamination")), "contamination")


def reference_overlap(run: ReportedRun) -> ResultTable:
    """How much of what fixes add is in the reference fix too."""
    columns = [
        *_sides(run),
        figure("passing fixes", "overlap_passed"),
        figure("failing fixes", "overlap_failed"),
        figure("difference", "difference", signed),
        Column("CI", lambda row: Cell(interval(row, ""))),
        count("passing", "fixes_passed"),
        count("failing", "fixes_failed"),
        count("problems"),
    ]
    title = f"share of the added 5-grams that the reference fix adds too, with {run.confidence} confidence intervals"
    rows = _ranked(run, run.table("reference_overlap"))
    return ResultTable("overlap-table", title, columns, rows, "reference_overlap")


def outcomes(run: ReportedRun) -> ResultTable:
    """How attempts ended, per model, and what decided it."""
    rows = run.outcome_counts
    statuses = rows["status"].unique().sort().to_list()
    wide = rows.group_by("model", "tier").agg(
        *(pl.col("len").filter(pl.col("status") == status).sum().alias(status) for status in statuses),
        undecided=pl.col("len").filter(pl.col("passed").is_null()).sum(),
        validators=pl.col("validator").drop_nulls().unique().sort().str.join(", "),
        fidelities=pl.col("fidelity").drop_nulls().unique().sort().str.join(", "),
    )
    columns = [
        *_sides(run),
        *(count(status.replace("_", " "), status) for status in statuses),
        count("undecided"),
        name("decided by", "validators"),
        name("fidelity", "fidelities"),
    ]
    title = "Attempts by how their validation ended"
    return ResultTable("outcomes-table", title, columns, wide.sort("model", "tier"), "outcomes")


def checks(run: ReportedRun) -> ResultTable:
    """The checks, those that did not pass first."""
    rows = [
        {
            "check": check.name,
            "result": "passed" if check.passed else "failed" if check.error else "warning",
            "found": check.message,
        }
        for check in sorted(run.checks, key=lambda check: (check.passed, not check.error))
    ]
    columns = [name("check"), verdict("result"), prose("what it found", "found")]
    return ResultTable("checks-table", "Checks of this run", columns, rows)


def quarantine(run: ReportedRun) -> ResultTable:
    """The first refused rows."""
    rows, total = pl.collect_all(
        [run.scan("quarantine").drop("raw").head(_MAX_QUARANTINE), run.scan("quarantine").select(pl.len())]
    )
    columns = [name("file", "source_file"), count("line"), name("kind"), prose("reason")]
    return ResultTable("quarantine-table", "Refused rows", columns, rows, "quarantine", full_height=total.item())


def inputs(run: ReportedRun) -> ResultTable:
    """The files that were read, and their hashes."""
    columns = [
        name("file", "source_file"),
        name("model"),
        name("status"),
        count("rows"),
        count("accepted"),
        count("refused", "quarantined"),
        name("format"),
        label("SHA-256", "sha256"),
    ]
    rows = run.table("sources").sort("source_file", "model", nulls_last=True)
    return ResultTable("inputs-table", "Input files", columns, rows, "sources")


# How each figure was made

# Figure, formula and table; docs/metrics.md has the same at length.
_FORMULAS = (
    (
        "pass@k",
        "1 - C(n - c, k) / C(n, k) per problem with n decided and c passed attempts, then the mean over problems; "
        "undefined where n < k",
        "pass_at_k",
    ),
    ("pass^k", "C(c, k) / C(n, k) per problem, then the mean over problems", "reliability_curve"),
    (
        "confidence interval",
        "the unit is the problem, or the cluster where problems share one, never the attempt; the method is named "
        "beside each figure",
        "pass_at_k",
    ),
    (
        "verdict",
        "a two-sided paired test of the differences per problem, adjusted for all pairs; otherwise no relevant "
        "difference (the adjusted interval lies within the margin), or inconclusive; a run and its baseline are also "
        "tested by how many problems fell",
        "model_comparison",
    ),
    (
        "min. detectable effect",
        "the smallest true difference that the test finds with the configured power at the adjusted level, if it is "
        "spread over all problems, and if it is on few of them",
        "model_comparison",
    ),
    ("composite score", "weighted mean of pass rate and judge's score per attempt; the tier's median", "tiers"),
    ("grade", "the band of the median composite score", "tiers"),
    ("uplift", "(composite median - that of the baseline tier) / that of the baseline tier", "tiers"),
    ("suite score", "passed cases / all cases; overall: the unweighted mean over suites", "suite_scores"),
    ("cost of pass", "mean cost / mean pass rate of decided attempts; infinite if nothing passes", "economics"),
    ("solved within a budget", "attempts at a problem are tried in turn until one passes", "budget_curves"),
    ("flip rate", "share of problems with several attempts that some attempts solve and others do not", "reliability"),
    (
        "suspect problem",
        "Kendall's tau-b between its pass rate per model and their pass@1 on all other problems is negative, one-sided "
        "and adjusted for all problems (Benjamini-Hochberg)",
        "problem_audit",
    ),
    (
        "regression",
        "a case whose score fell by more than the threshold; expected by chance: if attempts are assigned to the two "
        "runs at random",
        "regressions",
    ),
)


def method(run: ReportedRun) -> Iterator[ResultTable]:
    """Formulas, settings, versions and input files."""
    yield _listed("formulas-table", "Formulas", ("figure", "formula", "table"), _FORMULAS)
    if run.settings:
        settings = run.table("settings").sort("key").rows()
        yield _listed("settings-table", "Settings", ("setting", "value"), settings, "settings")
    yield _listed("versions-table", "Versions", ("what", "version"), list(_versions(run).items()))
    if run.table("sources").height:
        yield inputs(run)


def _listed(id: str, title: str, headers: Sequence[str], rows: Sequence[Sequence[object]], of: str = "") -> ResultTable:
    named = [dict(zip(headers, row, strict=True)) for row in rows]
    return ResultTable(id, title, [prose(header) for header in headers], named, of)


def _versions(run: ReportedRun) -> dict[str, str]:
    snapshot = run.snapshot
    if snapshot is None:
        return {"touchstone": VERSION}
    kept = {key: value for key, value in snapshot.versions.items() if value}
    hashes = {"configuration (hash)": snapshot.config_hash, "problems file (SHA-256)": snapshot.inputs.get("problems")}
    return {"snapshot": snapshot.id, **kept, **{key: value for key, value in hashes.items() if value}}
