"""What `touchstone run` prints: the tables of figures, the checks that did not pass, and where the results are.

What it says about input files belongs in `input_tables`.
"""

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from touchstone.cli.compact_layout import Column
from touchstone.cli.fitted_table import FittedTable, bar, bars, labels, names, numbers, terminal
from touchstone.cli.input_tables import show_inputs
from touchstone.cli.relative_paths import relative_path
from touchstone.compare.verdicts import describe_shortage
from touchstone.locations import address_of
from touchstone.publish.figures import dollars, interval, number, p_value, with_interval
from touchstone.storage.store import Store
from touchstone.text import counted, counted_of
from touchstone.vocabulary import STATIC_AGREEMENT, STATIC_FIDELITIES

if TYPE_CHECKING:
    from touchstone.checks import CheckOutcome
    from touchstone.config import EvaluationConfig
    from touchstone.evaluation import RunOutcome
    from touchstone.publish.up_to_date import PublishedRun

# The rank of what is left out first on a narrow terminal.
LAST = 100

_MAX_SUITES = 6
_MAX_ROWS = 30
_MAX_PAIRS = 10
_MAX_SHORTAGES = 3


def show_run(config: "EvaluationConfig", store: Store, outcome: "RunOutcome") -> None:
    """Print the figures, the inputs that were refused, the checks that did not pass, and where the results are."""
    screen = terminal()
    if not outcome.failures and not outcome.stopped:
        _show_figures(screen, config, store.scan)
    _show_checks(screen, outcome.checks)
    for failure in outcome.failures:
        terminal(stderr=True).print(f"[red]error:[/] {escape(failure)}", soft_wrap=True)
    if store.parts("outcomes") and (validators := validators_line(store.scan("outcomes"))):
        screen.print(escape(validators))
    screen.print(f"{_count_passed(outcome.checks)}; {_reuse(outcome)}")
    for line in _publication(store, outcome):
        screen.print(escape(line), soft_wrap=True)


def show_published(config: "EvaluationConfig", published: "PublishedRun") -> None:
    """Print the same about the published run, which is up to date."""
    screen, store = terminal(), Store(config.output_dir)
    _show_figures(screen, config, store.scan_published)
    _show_checks(screen, published.checks)
    if validators := validators_line(store.scan_published("outcomes")):
        screen.print(escape(validators))
    screen.print(f"{_count_passed(published.checks)}; {escape(published.reason)}; --force runs again", soft_wrap=True)
    for line in _published_paths(store):
        screen.print(escape(line), soft_wrap=True)


def _show_figures(screen: Console, config: "EvaluationConfig", scan: Callable[[str], pl.LazyFrame]) -> None:
    def read(table: str) -> pl.DataFrame:
        return scan(table).collect()

    figures = read("pass_at_k")
    if figures.is_empty():
        screen.print("no attempt could be evaluated")
        show_inputs(screen, *map(read, ("sources", "quarantine", "model_statistics")))
        return
    leaderboard(figures).print(screen)
    tier_table(read("tiers"), read("cross_tier")).print(screen)
    suite_table(read("suite_scores"), read("run_scores")).print(screen)
    # The sentences are most of a large table, and not shown.
    pairs = scan("model_comparison").drop("sentence").collect()
    if not pairs.is_empty():
        comparison_table(pairs, config.comparison.alpha, config.intervals.confidence).print(screen)
    show_inputs(screen, *map(read, ("sources", "quarantine", "model_statistics")))


def _show_checks(screen: Console, checks: Sequence["CheckOutcome"]) -> None:
    """Print the checks that did not pass."""
    for check in checks:
        if not check.passed:
            label = "[red]check failed[/]" if check.error else "[yellow]check warning[/]"
            screen.print(f"{label} {check.name}: {escape(check.message)}")


def _count_passed(checks: Sequence["CheckOutcome"]) -> str:
    return f"{counted_of(sum(check.passed for check in checks), len(checks), 'check')} passed"


def validators_line(outcomes: pl.LazyFrame) -> str:
    """The validators that judged fixes here, the static checker as such; empty if all outcomes were recorded."""
    here = outcomes.filter(pl.col("passed").is_not_null(), pl.col("sandbox").is_not_null())
    pairs = here.select("validator", "fidelity").unique().sort("validator", "fidelity").collect().rows()
    words = {"hcl": "hcl, the static checker and not Terraform itself"}
    named = [f"{words.get(validator, validator)} (fidelity {fidelity})" for validator, fidelity in pairs]
    measured = f"; {STATIC_AGREEMENT}" if any(fidelity in STATIC_FIDELITIES for _, fidelity in pairs) else ""
    return f"validated by {'; '.join(named)}{measured}" if named else ""


def _reuse(outcome: "RunOutcome") -> str:
    if outcome.made == 0:
        every = "all " if outcome.reused > 1 else ""
        return f"nothing changed: {every}{counted(outcome.reused, 'part was', 'parts were')} reused"
    return f"{counted(outcome.made, 'part')} computed, {outcome.reused:,} unchanged and reused"


def _publication(store: Store, outcome: "RunOutcome") -> list[str]:
    """Whether results were published and where they are, or how to query those that a gate blocked."""
    if outcome.published:
        return ["results were published despite a failed check"] * (outcome.exit_code != 0) + _published_paths(store)
    earlier = "the last published results are unchanged" if store.has_published else "there are no earlier results"
    kept = store.unpublished / "tables"
    table = next((name for name in ("pass_at_k", "outcomes", "problems") if (kept / name).is_dir()), None)
    if not outcome.stopped or table is None:
        return [f"nothing was published; {earlier}"]
    data = shlex.quote(str(relative_path(store.root)))
    return [
        f"nothing was published; {earlier}",
        f'to query this run: touchstone sql --draft --data {data} "SELECT * FROM {table}"',
    ]


def _published_paths(store: Store) -> list[str]:
    in_objects = address_of(store.root)
    if in_objects is not None:
        return [f"  {in_objects}"]
    published = ("summary_pass_at_k.csv", "csv", "tables", "warehouse.duckdb", "report.html")
    return [f"  {relative_path(store.root / name)}" for name in published if (store.root / name).exists()]


def leaderboard(pass_at_k: pl.DataFrame) -> FittedTable:
    """Models with their pass@k and confidence intervals, best first."""
    ks = pass_at_k["k"].unique().sort().to_list()
    headline, *others = (f"pass@{k}" for k in ks)
    further = [column for rank, header in enumerate(others, 1) for column in numbers(header, rank=rank)]
    columns = [*names("model"), *tier_column(pass_at_k["tier"]), *numbers(headline), *bars(rank=LAST - 3), *further]
    table = FittedTable(
        [*columns, *numbers("attempted", rank=LAST - 2), *labels("CI method", rank=LAST - 1)],
        title="pass@k: mean over problems [confidence interval]",
        compact=True,
    )
    best_first = pass_at_k.filter(pl.col("k") == ks[0]).sort(
        "pass_at_k", "model", "tier", descending=[True, False, False], nulls_last=True
    )
    by_model = pass_at_k.sort("k").rows_by_key(["model", "tier"], named=True, include_key=True)
    for model, tier in best_first.select("model", "tier").iter_rows():
        rows = by_model[model, tier]
        first = rows[0]
        cells = [with_interval(row, "pass_at_k", "", "{:.3f}") for row in rows]
        cells.insert(1, bar(first["pass_at_k"]))
        table.add_row(model, tier, *cells, f"{first['attempted']}/{first['problems']}", first["ci_method"] or "-")
    return table


def tier_column(tiers: pl.Series) -> list[Column]:
    """The column of tiers: part of a row's name if there are several, else the first to be left out."""
    return names("tier", rank=0 if tiers.n_unique() > 1 else LAST)


def tier_table(tiers: pl.DataFrame, cross_tier: pl.DataFrame) -> FittedTable:
    """Grade, uplift and cost of pass per tier; marks the cheapest tier that passes."""
    frontier = dict(cross_tier.select("model", "frontier_tier").iter_rows())
    marked = "* the model's cheapest tier that passes" if any(frontier.values()) else ""
    table = FittedTable(
        [
            *names("model"),
            *tier_column(tiers["tier"]),
            *labels("grade"),
            *numbers("scored", rank=5),
            *numbers("composite"),
            *numbers("uplift", rank=4),
            *numbers("pass rate", rank=3),
            *numbers("cost of pass", rank=2),
        ],
        compact=True,
        title="tiers: grade of the median composite score [confidence interval]",
        caption=(marked + _and_more(tiers.height, "tiers")).strip(),
    )
    for row in tiers.head(_MAX_ROWS).iter_rows(named=True):
        cheapest = " *" if frontier.get(row["model"]) == row["tier"] else "  "
        table.add_row(
            row["model"],
            row["tier"],
            _grade(row),
            f"{row['scored']:,} of {row['attempts']:,}",
            with_interval(row, "composite_median", "", "{:.3f}"),
            with_interval(row, "uplift", "uplift_", "{:+.1%}"),
            with_interval(row, "pass_rate", "pass_rate_", "{:.3f}"),
            dollars(row["cost_of_pass"]) + cheapest,
        )
    return table


def _grade(row: dict[str, Any]) -> str:
    """A grade with the range of its confidence interval, such as `B, F to B`."""
    if row["grade"] is None:
        return "-"
    low, high = row["grade_low"], row["grade_high"]
    return str(row["grade"]) if low == high else f"{row['grade']}, {low} to {high}"


def suite_table(suites: pl.DataFrame, runs: pl.DataFrame) -> FittedTable:
    """Suite scores side by side and their unweighted mean, per model, tier and run."""
    all_suites = suites["suite"].unique().sort().to_list()
    shown, hidden = all_suites[:_MAX_SUITES], len(all_suites) - _MAX_SUITES
    group = ["model", "tier", "run_id"] if runs["run_id"].count() else ["model", "tier"]
    more = [f"{counted(hidden, 'more suite')}: SELECT * FROM suite_scores"] if hidden > 0 else []
    undecided = int((runs["cases"] - runs["decided"]).sum())
    if undecided:
        more.append(
            f"{counted(undecided, 'case without an outcome counts', 'cases without an outcome count')} as not passed; "
            "decided_score leaves them out"
        )
    columns = [*names("model"), *tier_column(runs["tier"]), *(names("run") if len(group) > 2 else [])]
    columns += [column for rank, suite in enumerate(shown, 1) for column in numbers(suite, rank=rank)]
    table = FittedTable(
        [*columns, *numbers("overall")],
        compact=True,
        title="suites: mean accuracy, and the unweighted mean over suites",
        caption=("\n".join(more) + _and_more(runs.height, "run_scores")).strip(),
    )
    scores = {row[:-1]: row[-1] for row in suites.select(*group, "suite", "score").iter_rows()}
    for row in runs.head(_MAX_ROWS).iter_rows(named=True):
        key = tuple(row[part] for part in group)
        cells = [number(scores.get((*key, suite))) for suite in shown]
        overall = with_interval(row, "overall_score", "", "{:.3f}")
        table.add_row(*(str(part or "-") for part in key), *cells, overall)
    return table


def _and_more(rows: int, table: str) -> str:
    return f"\n{counted(rows - _MAX_ROWS, 'more row')}: SELECT * FROM {table}" if rows > _MAX_ROWS else ""


def comparison_table(pairs: pl.DataFrame, alpha: float = 0.05, confidence: float = 0.95) -> FittedTable:
    """Pairs of models and of tiers with their verdicts, smallest adjusted p-value first.

    Figures adjusted for the number of pairs come first, so that a narrow terminal hides the unadjusted ones.
    """
    adjusted = [f"adjusted {100 * (1 - alpha):g}% CI", "adjusted p"] if pairs["pairs"].max() != 1 else []
    own = [f"{100 * confidence:g}% CI", "p"]
    figures = [*(adjusted or own), "min. detectable effect", *(own if adjusted else [])]
    ranked = [column for rank, figure in enumerate(figures, 1) for column in numbers(figure, rank=rank)]
    table = FittedTable(
        [*names("model", "baseline"), *labels("verdict"), *numbers("difference"), *ranked],
        compact=True,
        title="paired comparison by problem: difference in pass@1",
        caption=_comparison_caption(pairs, alpha),
    )
    tiers = pl.concat([pairs["tier_a"], pairs["tier_b"]]).n_unique() > 1
    colours = {"better": "green", "worse": "red"}
    by_p_value = pairs.sort("p_adjusted", "model_b", "tier_b", "model_a", "tier_a", nulls_last=True)
    for row in by_p_value.head(_MAX_PAIRS).iter_rows(named=True):
        sides = [f"{row[f'model_{side}']} {row[f'tier_{side}']}" if tiers else row[f"model_{side}"] for side in "ba"]
        cells = {
            own[0]: interval(row, ""),
            own[1]: p_value(row["p_value"]),
            "min. detectable effect": number(row["minimum_detectable_effect"]),
        }
        if adjusted:
            cells |= {adjusted[0]: interval(row, "adjusted_"), adjusted[1]: p_value(row["p_adjusted"])}
        table.add_row(
            *sides,
            Text(row["verdict"], style=colours.get(row["verdict"], "dim")),
            "-" if row["difference"] is None else f"{row['difference']:+.3f}",
            *(cells[figure] for figure in figures),
        )
    return table


def _comparison_caption(pairs: pl.DataFrame, alpha: float) -> str:
    """What the figures are adjusted for, which pairs have too few units for any verdict, and how many are not shown."""
    lines = []
    count = int(pairs["pairs"].max() or 0)  # type: ignore[arg-type]
    if count > 1:
        rate = "false discovery rate, Benjamini-Yekutieli" if pairs["correction"][0] != "holm" else "Holm"
        lines.append(f"adjusted for {count:,} pairs ({rate})")
    short = pairs.filter(pl.col("units_needed").is_not_null()).select(
        "ci_units", "units_needed", clustered=pl.col("ci_method").str.ends_with("-cluster")
    )
    for units, needed, clustered in short.unique().sort(pl.all()).head(_MAX_SHORTAGES).iter_rows():
        lines.append(describe_shortage(units, needed, pairs=count, alpha=alpha, clustered=clustered))
    hidden = pairs.height - _MAX_PAIRS
    if hidden > 0:
        lines.append(f"{counted(hidden, 'more pair')}: SELECT * FROM model_comparison")
    return "\n".join(lines)
