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
from touchstone.cli.options import output_folder_here
from touchstone.cli.relative_paths import relative_path
from touchstone.cli.score_tables import MAX_ROWS, cross_tier_table, problem_table, statistics_table
from touchstone.compare.verdicts import describe_shortage
from touchstone.locations import address_of
from touchstone.publish.figures import dollars, interval, number, p_value, with_interval
from touchstone.publish.scored_problems import scored_problems
from touchstone.storage.store import REPORT_PAGE, Store
from touchstone.text import counted, counted_of, some_of
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
    """Print the figures, the inputs that were refused, the checks that did not pass, and a sentence to end with."""
    screen = terminal()
    has_figures = not outcome.failures and not outcome.stopped
    if has_figures:
        _show_figures(screen, config, store.scan)
    _show_checks(screen, outcome.checks)
    for failure in outcome.failures:
        terminal(stderr=True).print(f"[red]error:[/] {escape(failure)}", soft_wrap=True)
    if store.parts("outcomes") and (validators := validators_line(store.scan("outcomes"))):
        screen.print(escape(validators))
    for line in _publication(store, outcome):
        screen.print(escape(line), soft_wrap=True)
    if has_figures:
        _conclude(screen, config, store, store.scan, outcome.checks, is_published=outcome.published)
    elif outcome.checks:
        screen.print(escape(_passed(outcome.checks)), soft_wrap=True)


def show_published(config: "EvaluationConfig", published: "PublishedRun") -> None:
    """Print the same about the published run, which is up to date."""
    screen, store = terminal(), Store(config.output_dir)
    _show_figures(screen, config, store.scan_published)
    _show_checks(screen, published.checks)
    if validators := validators_line(store.scan_published("outcomes")):
        screen.print(escape(validators))
    for line in _published_paths(store):
        screen.print(escape(line), soft_wrap=True)
    screen.print(f"{escape(published.reason)}; --force runs again", soft_wrap=True)
    _conclude(screen, config, store, store.scan_published, published.checks, is_published=True)


def _conclude(
    screen: Console,
    config: "EvaluationConfig",
    store: Store,
    scan: Callable[[str], pl.LazyFrame],
    checks: Sequence["CheckOutcome"],
    *,
    is_published: bool,
) -> None:
    """Print the sentence that a run ends with, and the command that opens its report."""
    figures, pairs = scan("pass_at_k").collect(), scan("model_comparison").drop("sentence").collect()
    refused = scan("quarantine").select(pl.len()).collect().item()
    screen.print(escape(conclusion(figures, pairs, checks, refused, config.intervals.confidence)), soft_wrap=True)
    if is_published and (store.root / REPORT_PAGE).exists():
        here = output_folder_here()
        found = here is not None and here.resolve() == store.root.resolve()
        data = "" if found else f" --data {shlex.quote(str(relative_path(store.root)))}"
        screen.print(escape(f"to read the report: touchstone report --open{data}"), soft_wrap=True)


def conclusion(
    figures: pl.DataFrame, pairs: pl.DataFrame, checks: Sequence["CheckOutcome"], refused: int, confidence: float
) -> str:
    """One sentence: who is best, how sure that is, and what failed."""
    parts = [_leader(figures, pairs, confidence)]
    parts += [f"{counted(refused, 'row was', 'rows were')} refused"] if refused else []
    return "; ".join([*parts, *([_passed(checks)] if checks else [])])


def _passed(checks: Sequence["CheckOutcome"]) -> str:
    failed = [check.name for check in checks if check.error and not check.passed]
    names = f" (failed: {', '.join(failed)})" if failed else ""
    return f"{counted_of(sum(check.passed for check in checks), len(checks), 'check')} passed{names}"


def _leader(figures: pl.DataFrame, pairs: pl.DataFrame, confidence: float) -> str:
    """The model and tier with the highest pass@k, and whether the paired verdicts set it apart from others there."""
    ranked = figures.filter(pl.col("k") == pl.col("k").min(), pl.col("pass_at_k").is_not_null())
    if ranked.is_empty():
        return "no attempt is decided, so there is no figure"
    row = ranked.sort("pass_at_k", "model", "tier", descending=[True, False, False]).row(0, named=True)
    tiers = figures["tier"].n_unique() > 1
    name, at = f"{row['model']} {row['tier']}" if tiers else row["model"], f" at {row['tier']}" if tiers else ""
    sure = f"{100 * confidence:g}% CI {number(row['ci_low'])} to {number(row['ci_high'])}"
    figure = f"pass@{row['k']}"
    value = f"{number(row['pass_at_k'])} ({sure if row['ci_low'] is not None else 'no CI'})"
    others = ranked.filter(pl.col("tier") == row["tier"], pl.col("model") != row["model"])["model"].to_list()
    if not others:
        return f"{name}: {figure} {value}"
    mine = pairs.filter(pl.col("kind") == "models", pl.col("tier_a") == row["tier"], pl.col("tier_b") == row["tier"])
    won = mine.filter(pl.col("model_b") == row["model"], pl.col("verdict") == "better")["model_a"].to_list()
    won += mine.filter(pl.col("model_a") == row["model"], pl.col("verdict") == "worse")["model_b"].to_list()
    apart = [other for other in others if other not in won]
    if not apart:
        every = others[0] if len(others) == 1 else f"{'both' if len(others) == 2 else f'all {len(others)}'} others{at}"
        return f"{name} is best: {figure} {value}, clearly ahead of {every}"
    return f"{name} has the highest {figure}, {value}, but is not clearly ahead of {some_of(sorted(apart), 4)}{at}"


def _show_figures(screen: Console, config: "EvaluationConfig", scan: Callable[[str], pl.LazyFrame]) -> None:
    def read(table: str) -> pl.DataFrame:
        return scan(table).collect()

    figures = read("pass_at_k")
    if figures.is_empty():
        screen.print("no attempt could be evaluated")
        show_inputs(screen, *map(read, ("sources", "quarantine", "model_statistics")))
        return
    leaderboard(figures).print(screen)
    tiers, cross_tier, suites, runs = map(read, ("tiers", "cross_tier", "suite_scores", "run_scores"))
    if tiers["composite_median"].count() or tiers["cost_of_pass"].count():
        tier_table(tiers, cross_tier).print(screen)
    further = [statistics_table(read("model_statistics")), problem_table(scored_problems(scan, MAX_ROWS))]
    for table in (cross_tier_table(cross_tier), *further):
        if table.rows:
            table.print(screen)
    if suites["suite"].n_unique() > 1 or runs["run_id"].count():
        suite_table(suites, runs).print(screen)
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


def validators_line(outcomes: pl.LazyFrame) -> str:
    """The validators that judged fixes here, the static checker as such; empty if all outcomes were recorded."""
    here = outcomes.filter(pl.col("passed").is_not_null(), pl.col("sandbox").is_not_null())
    pairs = here.select("validator", "fidelity").unique().sort("validator", "fidelity").collect().rows()
    words = {"hcl": "hcl, the static checker and not Terraform itself"}
    named = [f"{words.get(validator, validator)} (fidelity {fidelity})" for validator, fidelity in pairs]
    measured = f"; {STATIC_AGREEMENT}" if any(fidelity in STATIC_FIDELITIES for _, fidelity in pairs) else ""
    return f"validated by {'; '.join(named)}{measured}" if named else ""


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
        return [f"results in {in_objects}"]
    published = ("summary_pass_at_k.csv", "csv", "tables", "warehouse.duckdb", REPORT_PAGE)
    found = [name for name in published if (store.root / name).exists()]
    return [f"results in {relative_path(store.root)}: {', '.join(found)}"] if found else []


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
    """Grade, uplift and cost of pass per tier, as far as they are known; marks the cheapest tier that passes."""
    frontier = dict(cross_tier.select("model", "frontier_tier").iter_rows())
    graded, priced = tiers["composite_median"].count() > 0, tiers["cost_of_pass"].count() > 0
    lifted = graded and tiers["tier"].n_unique() > 1
    captions = ["* the model's cheapest tier that passes"] if any(frontier.values()) else []
    if lifted:
        captions.append("uplift: change of the composite from T0; a wide interval says that the size is not known")
    table = FittedTable(
        [
            *names("model"),
            *tier_column(tiers["tier"]),
            *(labels("grade") if graded else []),
            *(numbers("scored", rank=5) if graded else []),
            *(numbers("composite") if graded else []),
            *(numbers("uplift", rank=4) if lifted else []),
            *(numbers("Cliff's delta", rank=6) if lifted else []),
            *numbers("passed attempts", rank=3),
            *(numbers("cost of pass", rank=2) if priced else []),
        ],
        compact=True,
        title="tiers: grade of the median composite score [confidence interval]" if graded else "tiers: cost",
        caption=("\n".join(captions) + _and_more(tiers.height, "tiers")).strip(),
    )
    for row in tiers.head(_MAX_ROWS).iter_rows(named=True):
        cheapest = " *" if frontier.get(row["model"]) == row["tier"] else "  "
        cells = [row["model"], row["tier"]]
        if graded:
            composite = with_interval(row, "composite_median", "", "{:.3f}")
            cells += [_grade(row), f"{row['scored']:,} of {row['attempts']:,}", composite]
        if lifted:
            delta = row["cliffs_delta"]
            cells.append(with_interval(row, "uplift", "uplift_", "{:+.1%}"))
            cells.append("-" if delta is None else f"{delta:+.3f}")
        cells.append(with_interval(row, "pass_rate", "pass_rate_", "{:.3f}"))
        cells += [dollars(row["cost_of_pass"]) + cheapest] if priced else []
        table.add_row(*cells)
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
        "ci_units", "units_needed", clustered=pl.col("ci_units") < pl.col("problems")
    )
    for units, needed, clustered in short.unique().sort(pl.all()).head(_MAX_SHORTAGES).iter_rows():
        lines.append(describe_shortage(units, needed, pairs=count, alpha=alpha, clustered=clustered))
    hidden = pairs.height - _MAX_PAIRS
    if hidden > 0:
        lines.append(f"{counted(hidden, 'more pair')}: SELECT * FROM model_comparison")
    return "\n".join(lines)
