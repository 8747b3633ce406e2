"""The tables of the report about single models: leaderboard, reliability, tiers, suites, slices, costs."""

from collections.abc import Iterator

import polars as pl

from touchstone.publish.figures import CODE_FIGURES, CROSS_TIER_SENTENCES, dollars, number, with_interval
from touchstone.publish.report.grids import Cell, Column, Grid, count, figure, grid, names, numbers, text
from touchstone.publish.report.run import ReportedRun, Row
from touchstone.publish.scored_problems import scored_problems
from touchstone.text import significant

_MAX_SUITES = 8
_MAX_PROBLEMS = 10_000


def model_link(run: ReportedRun, model: str, tier: str) -> Cell:
    """A model's name that leads to its problems."""
    return Cell(text(model).text, link=f"#model-{run.sides.index((model, tier))}")


def side(run: ReportedRun, row: Row) -> list[Cell]:
    """Model and, if there are several, tier."""
    return [text(row["model"]), *([text(row["tier"])] if run.has_tiers else [])]


def side_columns(run: ReportedRun) -> list[Column]:
    """The columns of `side`."""
    return names("model", *(["tier"] if run.has_tiers else []))


def ranged(row: Row, name: str, prefix: str = "", style: str = "{:.3f}") -> Cell:
    """A figure with its interval in one cell."""
    return figure(row[name], with_interval(row, name, prefix, style))


def amount(row: Row, name: str, prefix: str) -> Cell:
    """An amount with its interval in one cell."""
    value, ends = row[name], (row[f"{prefix}ci_low"], row[f"{prefix}ci_high"])
    if value is None or None in ends or value == float("inf"):
        return figure(value, dollars(value))
    low, high = ("∞" if end == float("inf") else dollars(end) for end in ends)
    return figure(value, f"{dollars(value)} [{low}, {high}]")


def leaderboard(run: ReportedRun) -> Iterator[Grid]:
    """Models with their pass@k, best first."""
    rows = run.table("pass_at_k")
    if rows.is_empty():
        return
    ks = rows["k"].unique().sort().to_list()
    by_side = rows.sort("k").rows_by_key(["model", "tier"], named=True, include_key=True)
    lines = []
    for model, tier in run.sides:
        per_k = by_side[model, tier]
        first = per_k[0]
        tiers = [text(tier)] if run.has_tiers else []
        attempted = figure(first["attempted"], f"{first['attempted']:,} of {first['problems']:,}")
        figures = [ranged(row, "pass_at_k") for row in per_k]
        lines.append([model_link(run, model, tier), *tiers, *figures, attempted, text(first["ci_method"])])
    columns = [*side_columns(run), *numbers(*(f"pass@{k}" for k in ks), "problems"), *names("CI method")]
    caption = f"pass@k with {run.confidence} confidence intervals, best first"
    yield grid("leaderboard-table", caption, columns, lines, of="pass_at_k")


def reliability(run: ReportedRun) -> Iterator[Grid]:
    """Flip rate, consistency, and what the variance of pass@1 comes from."""
    rows = run.table("reliability").join(
        run.table("variance_split").select("model", "tier", "standard_error", "share_from_problems", "samples"),
        on=["model", "tier"],
        how="left",
    )
    rows = rows.filter(pl.col("repeated") > 0)
    if rows.is_empty():
        return
    columns = [
        *side_columns(run),
        *numbers("repeated problems", "always solved", "never solved", "flip rate", "consistency"),
        *numbers("attempts per problem", "variance from problems"),
    ]
    yield grid(
        "reliability-table",
        "Reliability of repeated attempts, per model",
        columns,
        (
            [
                *side(run, row),
                *(count(row[name]) for name in ("repeated", "always", "never")),
                ranged(row, "flip_rate", "flip_rate_"),
                ranged(row, "consistency", "consistency_"),
                figure(row["samples"], "-" if row["samples"] is None else f"{row['samples']:.3g}"),
                _share(row["share_from_problems"]),
            ]
            for row in _ranked(run, rows)
        ),
        of="reliability",
    )
    curve = run.table("reliability_curve")
    yield grid(
        "curve-table",
        "pass@k and pass^k by k",
        [*side_columns(run), *numbers("k", "pass@k", "pass^k", "eligible problems")],
        (
            [
                *side(run, row),
                count(row["k"]),
                figure(row["pass_at_k"], number(row["pass_at_k"])),
                ranged(row, "pass_hat_k"),
                count(row["eligible"]),
            ]
            for row in _ranked(run, curve)
        ),
        of="reliability_curve",
    )


def _ranked(run: ReportedRun, rows: pl.DataFrame) -> Iterator[Row]:
    """The rows in the order of the leaderboard."""
    order = {each: place for place, each in enumerate(run.sides)}
    yield from sorted(rows.iter_rows(named=True), key=lambda row: order.get((row["model"], row["tier"]), len(order)))


def _share(value: float | None) -> Cell:
    return figure(value, "-" if value is None else f"{value:.0%}")


def tiers(run: ReportedRun) -> Iterator[Grid]:
    """Grade, composite, uplift and pass rate per model and tier, and how much a model's tiers differ."""
    yield from _graded_tiers(run)
    rows = run.table("cross_tier").filter(pl.col("tiers") > 1)
    if rows.is_empty():
        return
    variances = ("pass_rate_variance", "pass_rate_variance_of_means", "score_variance", "cost_variance")
    yield grid(
        "cross-tier-table",
        f"Variance of the tiers' medians, per model. {' '.join(CROSS_TIER_SENTENCES)}",
        [
            *names("model"),
            *numbers("tiers", "pass rate variance", "of means", "score variance", "cost variance", "cost delta"),
        ],
        (
            [
                text(row["model"]),
                count(row["tiers"]),
                *(figure(row[name], "-" if row[name] is None else significant(row[name], 3)) for name in variances),
                figure(row["cost_delta"], dollars(row["cost_delta"])),
            ]
            for row in rows.iter_rows(named=True)
        ),
        of="cross_tier",
    )


def _graded_tiers(run: ReportedRun) -> Iterator[Grid]:
    rows = run.table("tiers").filter(pl.col("composite_median").is_not_null())
    if rows.is_empty():
        return
    columns = [
        *names("model", "tier", "grade"),
        *numbers("composite", "uplift", "Cliff's delta", "pass rate", "scored"),
    ]
    yield grid(
        "tiers-table",
        f"Median composite score and uplift with {run.confidence} confidence intervals",
        columns,
        (
            [
                text(row["model"]),
                text(row["tier"]),
                text(_grade(row)),
                ranged(row, "composite_median"),
                ranged(row, "uplift", "uplift_", "{:+.1%}"),
                figure(row["cliffs_delta"], "-" if row["cliffs_delta"] is None else f"{row['cliffs_delta']:+.3f}"),
                ranged(row, "pass_rate", "pass_rate_"),
                figure(row["scored"], f"{row['scored']:,} of {row['attempts']:,}"),
            ]
            for row in _ranked(run, rows)
        ),
        of="tiers",
    )


def _grade(row: Row) -> str | None:
    if row["grade"] is None or row["grade_low"] == row["grade_high"]:
        return str(row["grade"]) if row["grade"] else None
    return f"{row['grade']} ({row['grade_low']} to {row['grade_high']})"


def statistics(run: ReportedRun) -> Iterator[Grid]:
    """Compile rate, tests, lint and code score per model, with cost and latency; and code scores per problem."""
    rows = run.table("model_statistics")
    has = [name for name in CODE_FIGURES if rows[name].count()]
    if not has:
        return
    yield grid(
        "statistics-table",
        f"Means over attempts with {run.confidence} confidence intervals",
        [*side_columns(run), *numbers(*(CODE_FIGURES[name] for name in has), "total cost", "latency in ms")],
        (
            [
                *side(run, row),
                *(ranged(row, name, f"{name}_") for name in has),
                figure(row["total_cost_usd"], dollars(row["total_cost_usd"])),
                figure(
                    row["avg_latency_ms"], "-" if row["avg_latency_ms"] is None else f"{row['avg_latency_ms']:,.0f}"
                ),
            ]
            for row in _ranked(run, rows)
        ),
        of="model_statistics",
    )
    problems = scored_problems(run.scan, _MAX_PROBLEMS)
    shown = ["avg_score", "best_score", *problems.passes]
    if problems.total:
        yield grid(
            "problem-statistics-table",
            "Code score and pass@k per problem and model",
            [*names("problem"), *side_columns(run), *numbers("avg. score", "best score", *problems.passes)],
            (
                [text(row["oid"]), *side(run, row), *(figure(row[name], number(row[name])) for name in shown)]
                for row in problems.rows.iter_rows(named=True)
            ),
            of="problem_statistics",
            total=problems.total,
        )


def suites(run: ReportedRun) -> Iterator[Grid]:
    """Suite scores side by side with their unweighted mean."""
    rows, scores = run.table("run_scores"), run.table("suite_scores")
    every = scores["suite"].unique().sort().to_list()
    if rows.is_empty() or not every:
        return
    runs = ["run_id"] if rows["run_id"].count() else []
    by_key = {tuple(row[:4]): row[4] for row in scores.select("model", "tier", "run_id", "suite", "score").iter_rows()}
    shown = every[:_MAX_SUITES]
    more = f"; {len(every) - len(shown):,} more suites are in the table suite_scores" if len(every) > len(shown) else ""

    def cells(row: Row) -> list[Cell]:
        values = [by_key.get((row["model"], row["tier"], row["run_id"], suite)) for suite in shown]
        return [figure(value, number(value)) for value in values]

    yield grid(
        "suites-table",
        f"Mean accuracy per suite{more}",
        [
            *side_columns(run),
            *names(*(["run"] if runs else [])),
            *numbers(*(text(each).text for each in shown), "overall"),
        ],
        (
            [*side(run, row), *([text(row["run_id"])] if runs else []), *cells(row), ranged(row, "overall_score")]
            for row in _ranked(run, rows)
        ),
        of="run_scores",
    )
    if any(scores[name].sum() for name in scores.columns if name.startswith("class_") and name != "class_none"):
        yield _classes(run, scores)


def _classes(run: ReportedRun, scores: pl.DataFrame) -> Grid:
    columns = [name for name in scores.columns if name.startswith("class_")]
    totals = scores.group_by("model", "tier").agg(pl.col(columns).sum())
    shown = [name for name in columns if totals[name].sum()]
    return grid(
        "classes-table",
        "Attempts by outcome class",
        [*side_columns(run), *numbers(*(name.removeprefix("class_").replace("_", " ") for name in shown))],
        ([*side(run, row), *(count(row[name]) for name in shown)] for row in _ranked(run, totals)),
        of="suite_scores",
    )


def slices(run: ReportedRun) -> Iterator[Grid]:
    """pass@1 per value of every sliced column."""
    if not run.has("slices"):
        return
    best_first = ["column", "value", "pass_at_1", "model", "tier"]
    down = [name == "pass_at_1" for name in best_first]
    rows = run.table("slices").sort(best_first, descending=down, nulls_last=True)
    if rows.is_empty():
        return
    yield grid(
        "slices-table",
        f"pass@1 per slice with {run.confidence} confidence intervals",
        [*names("column", "value"), *side_columns(run), *numbers("pass@1", "problems", "attempts")],
        (
            [
                text(row["column"]),
                text(row["value"]),
                *side(run, row),
                ranged(row, "pass_at_1"),
                count(row["problems"]),
                count(row["attempts"]),
            ]
            for row in rows.iter_rows(named=True)
        ),
        of="slices",
    )


def costs(run: ReportedRun) -> Iterator[Grid]:
    """Cost per attempt and per working fix."""
    rows = run.table("economics").filter(pl.col("cost_per_attempt").is_not_null())
    if rows.is_empty():
        return
    yield grid(
        "costs-table",
        f"Cost of pass with {run.confidence} confidence intervals",
        [*side_columns(run), *numbers("cost of pass", "cost per attempt", "pass rate"), *names("Pareto optimal")],
        (
            [
                *side(run, row),
                amount(row, "cost_of_pass", ""),
                figure(row["cost_per_attempt"], dollars(row["cost_per_attempt"])),
                figure(row["pass_rate"], number(row["pass_rate"])),
                text("yes" if row["pareto"] else "no"),
            ]
            for row in _ranked(run, rows)
        ),
        of="economics",
    )
    policies = run.table("routing_policies").filter(pl.col("cost_of_pass").is_not_null())
    if policies.height:
        words = {
            "single": "one model for all",
            "suite": "the cheapest per suite",
            "problem": "the cheapest per problem",
        }
        yield grid(
            "routing-table",
            "What choosing the cheapest model saves, on attempts not used to choose it",
            [*names("policy"), *numbers("cost of pass", "pass rate", "saving", "problems")],
            (
                [
                    text(words.get(row["policy"], row["policy"])),
                    figure(row["cost_of_pass"], dollars(row["cost_of_pass"])),
                    figure(row["pass_rate"], number(row["pass_rate"])),
                    ranged(row, "saving", "", "{:+.1%}"),
                    count(row["problems"]),
                ]
                for row in policies.iter_rows(named=True)
            ),
            of="routing_policies",
        )
