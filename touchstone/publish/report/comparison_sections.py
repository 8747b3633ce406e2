"""The tables of the report that compare: models with each other, and the run with its baseline."""

from collections.abc import Iterator

import polars as pl

from touchstone.publish.figures import interval, number, p_value, percent
from touchstone.publish.report.figures_sections import ranged, side, side_columns
from touchstone.publish.report.grids import Cell, Column, Grid, count, figure, grid, names, numbers, text
from touchstone.publish.report.run import ReportedRun, Row
from touchstone.text import counted

_MAX_PAIRS = 10_000

# What the table of pairs shows: a row has twice as many columns, which would be read for thousands of rows.
_PAIR_COLUMNS = (
    *(
        "model_a",
        "tier_a",
        "model_b",
        "tier_b",
        "verdict",
        "difference",
        "p_value",
        "p_adjusted",
        "pairs",
        "correction",
    ),
    *("ci_low", "ci_high", "adjusted_ci_low", "adjusted_ci_high", "minimum_detectable_effect"),
    *("wins", "losses", "problems"),
)


def problem(run: ReportedRun, row: Row) -> Cell:
    """A problem's id, which leads to the attempts at it if the page shows them."""
    return Cell(text(row["oid"]).text, link=run.case_links.get((row["model"], row["tier"], row["oid"]), ""))


def comparison(run: ReportedRun) -> Iterator[Grid]:
    """All pairs: those of the best model first, with the next best first."""
    pairs = run.scan("model_comparison")
    total = pairs.select(pl.len()).collect().item()
    if not total:
        return
    rows = _best_first(run, pairs.select(_PAIR_COLUMNS)).head(_MAX_PAIRS).collect()
    many = int(rows["pairs"].max() or 0)  # type: ignore[arg-type]
    rule = "false discovery rate" if rows["correction"][0] != "holm" else "Holm"
    note = f"adjusted for {counted(many, 'pair')} ({rule})" if many > 1 else "one pair, so not adjusted"
    prefix, level = ("adjusted_", percent(1 - run.alpha)) if many > 1 else ("", run.confidence)
    yield grid(
        "comparison-table",
        f"Difference in pass@1 with {level} confidence intervals, {note}",
        [
            *names("model", "against"),
            Column("verdict", "verdict"),
            *numbers("difference", "CI", "p", "min. detectable", "wins", "losses", "problems"),
        ],
        (_pair(run, row, prefix) for row in rows.iter_rows(named=True)),
        of="model_comparison",
        total=total,
    )


def _best_first(run: ReportedRun, pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Pairs by the place of their better side on the leaderboard, then of the other.

    With many models nearly every p-value is below 0.001 and orders nothing.
    """
    places = pl.LazyFrame(run.sides, schema={"model": pl.String, "tier": pl.String}, orient="row")
    for end in "ab":
        keys = [f"model_{end}", f"tier_{end}"]
        place = places.with_row_index(f"place_{end}")
        pairs = pairs.join(place, left_on=keys, right_on=["model", "tier"], how="left")
    better, other = pl.min_horizontal("place_a", "place_b"), pl.max_horizontal("place_a", "place_b")
    return pairs.sort(better, other, nulls_last=True).drop("place_a", "place_b")


def _pair(run: ReportedRun, row: Row, prefix: str) -> list[Cell]:
    sides = [f"{row[f'model_{end}']} {row[f'tier_{end}']}" if run.has_tiers else row[f"model_{end}"] for end in "ba"]
    p, effect = row["p_adjusted" if prefix else "p_value"], row["minimum_detectable_effect"]
    return [
        *map(text, sides),
        text(row["verdict"]),
        _signed(row["difference"]),
        Cell(interval(row, prefix)),
        figure(p, p_value(p)),
        figure(effect, number(effect)),
        *(count(row[name]) for name in ("wins", "losses", "problems")),
    ]


def _signed(value: float | None) -> Cell:
    return figure(value, "-" if value is None else f"{value:+.3f}")


def changes(run: ReportedRun) -> Iterator[Grid]:
    """Verdicts against the baseline, and the cases that changed."""
    verdicts = run.table("baseline_verdicts").sort("p_adjusted", "model", "tier", nulls_last=True)
    if verdicts.height:
        yield grid(
            "verdicts-table",
            f"This run against the baseline {text(verdicts['baseline'][0]).text}, "
            f"with {percent(1 - run.alpha)} confidence intervals",
            [
                *side_columns(run),
                Column("verdict", "verdict"),
                *numbers("baseline", "this run", "difference", "adjusted CI", "adjusted p", "problems"),
            ],
            (_verdict(run, row) for row in verdicts.iter_rows(named=True)),
            of="baseline_verdicts",
        )
    cases = run.table("regressions").sort(pl.col("delta"), "model", "tier", "oid", nulls_last=True)
    if cases.height:
        yield grid(
            "regressions-table",
            "Cases that changed, the largest drop first",
            [
                *names("problem"),
                *side_columns(run),
                Column("change", "verdict"),
                *numbers("baseline", "this run", "delta"),
                *names("what changed"),
            ],
            (_case(run, row) for row in cases.iter_rows(named=True)),
            of="regressions",
        )


def _verdict(run: ReportedRun, row: Row) -> list[Cell]:
    return [
        *side(run, row),
        text(row["verdict"]),
        *(ranged(row, rate, f"{rate}_") for rate in ("rate_baseline", "rate_current")),
        _signed(row["difference"]),
        Cell(interval(row, "adjusted_")),
        figure(row["p_adjusted"], p_value(row["p_adjusted"])),
        count(row["problems"]),
    ]


def _case(run: ReportedRun, row: Row) -> list[Cell]:
    scores = [row["baseline_score"], row["current_score"]]
    return [
        problem(run, row),
        *side(run, row),
        text(row["kind"]),
        *(figure(score, number(score)) for score in scores),
        _signed(row["delta"]),
        text(row["category"]),
    ]
