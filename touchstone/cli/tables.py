"""What the commands show on the terminal, drawn by rich. Plain text is in `touchstone.text`."""

import math
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.text import Text

from touchstone.cli.fitted_table import Column, FittedTable, names, numbers, prose, terminal
from touchstone.cli.input_tables import show_inputs
from touchstone.compare.verdicts import shortage
from touchstone.run_outcome import RunOutcome
from touchstone.text import counted, counted_of, visible

_MAX_SUITES = 6
_MAX_ROWS = 30
_MAX_PAIRS = 10
_MAX_SHORTAGES = 3

if TYPE_CHECKING:
    from touchstone.cli.doctor import Item
    from touchstone.evaluation import Evaluation
    from touchstone.storage.snapshots import Snapshot
    from touchstone.storage.store import Store
    from touchstone.validation.cache import CacheStatistics
    from touchstone.validation.inventory import Entry
    from touchstone.validation.protocol import Report
    from touchstone.validation.single import Shown


def show_run(evaluation: "Evaluation", outcome: RunOutcome) -> None:
    """The leaderboard, what was refused, the checks that did not pass, and where everything is."""
    screen = terminal()
    store = evaluation.store
    if not outcome.failures and not outcome.stopped:
        leaderboard(store.scan("pass_at_k").collect()).print(screen)
        tier_table(store.scan("tiers").collect(), store.scan("cross_tier").collect()).print(screen)
        suite_table(store.scan("suite_scores").collect(), store.scan("run_scores").collect()).print(screen)
        pairs = store.scan("model_comparison").collect()
        if not pairs.is_empty():
            config = evaluation.config
            comparison_table(pairs, config.comparison.alpha, config.intervals.confidence).print(screen)
        inputs = (store.scan(name).collect() for name in ("sources", "quarantine", "model_statistics"))
        show_inputs(screen, *inputs)
    for check in outcome.checks:
        if not check.passed:
            label = "[red]check failed[/]" if check.error else "[yellow]check warns[/]"
            screen.print(f"{label} {check.name}: {escape(check.message)}")
    for failure in outcome.failures:
        terminal(stderr=True).print(f"[red]error:[/] {escape(failure)}", soft_wrap=True)
    passed = sum(check.passed for check in outcome.checks)
    screen.print(f"{counted_of(passed, len(outcome.checks), 'check')} passed; {_reuse(outcome)}")
    for line in _publication(store, outcome):
        screen.print(escape(line), soft_wrap=True)


def _publication(store: "Store", outcome: RunOutcome) -> list[str]:
    """Whether results were published and where they are, or how to look at those of a run that a gate stopped."""
    if outcome.published:
        made = ("summary_pass_at_k.csv", "csv", "tables", "warehouse.duckdb")
        paths = [f"  {_short(store.root / name)}" for name in made if (store.root / name).exists()]
        return ["results were published although a check failed"] * (outcome.exit_code != 0) + paths
    earlier = "the last published results are unchanged" if store.has_published else "there are no earlier results"
    kept = store.unpublished / "tables"
    table = next((name for name in ("pass_at_k", "outcomes", "problems") if (kept / name).is_dir()), None)
    if not outcome.stopped or table is None:
        return [f"nothing was published; {earlier}"]
    data = shlex.quote(str(_short(store.root)))
    return [
        f"nothing was published; {earlier}",
        f'to look at this run: touchstone sql --draft --data {data} "SELECT * FROM {table}"',
    ]


def leaderboard(pass_at_k: pl.DataFrame) -> FittedTable:
    """Models by pass@k with their intervals, best first."""
    ks = pass_at_k["k"].unique().sort().to_list()
    drawn = FittedTable(
        [*names("model", "tier"), *numbers(*(f"pass@{k}" for k in ks), "attempted"), *names("CI method")],
        title="pass@k: mean over problems [confidence interval]",
    )
    best_first = pass_at_k.filter(pl.col("k") == ks[0]).sort(
        "pass_at_k", "model", "tier", descending=[True, False, False], nulls_last=True
    )
    for model, tier in best_first.select("model", "tier").iter_rows():
        rows = pass_at_k.filter(pl.col("model") == model, pl.col("tier") == tier).sort("k")
        first = rows.row(0, named=True)
        cells = [_with_ends(row, "pass_at_k", "", "{:.3f}") for row in rows.iter_rows(named=True)]
        drawn.add_row(model, tier, *cells, f"{first['attempted']}/{first['problems']}", first["ci_method"] or "-")
    return drawn


def tier_table(tiers: pl.DataFrame, cross_tier: pl.DataFrame) -> FittedTable:
    """Grades, uplift and cost of pass of every tier; the tier on the cost frontier is marked."""
    drawn = FittedTable(
        [*names("model", "tier", "grade"), *numbers("scored", "composite", "uplift", "pass rate", "cost of pass")],
        title="tiers: grade of the median composite score [confidence interval]",
        caption="* the model's cheapest tier that passes" + _and_more(tiers.height, "tiers"),
    )
    frontier = dict(cross_tier.select("model", "frontier_tier").iter_rows())
    for row in tiers.head(_MAX_ROWS).iter_rows(named=True):
        cheapest = " *" if frontier.get(row["model"]) == row["tier"] else "  "
        drawn.add_row(
            row["model"],
            row["tier"],
            _grade(row),
            f"{row['scored']:,} of {row['attempts']:,}",
            _with_ends(row, "composite_median", "", "{:.3f}"),
            _with_ends(row, "uplift", "uplift_", "{:+.1%}"),
            _with_ends(row, "pass_rate", "pass_rate_", "{:.3f}"),
            _dollars(row["cost_of_pass"]) + cheapest,
        )
    return drawn


def _grade(row: dict[str, Any]) -> str:
    """A grade with the range that its interval leaves, such as `B, F to B`."""
    if row["grade"] is None:
        return "-"
    low, high = row["grade_low"], row["grade_high"]
    return str(row["grade"]) if low == high else f"{row['grade']}, {low} to {high}"


def suite_table(suites: pl.DataFrame, runs: pl.DataFrame) -> FittedTable:
    """Suite scores side by side and their plain mean, per model, tier and run."""
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
    drawn = FittedTable(
        [*names(*(part.removesuffix("_id") for part in group)), *numbers(*shown, "overall")],
        title="suites: mean accuracy, and the plain mean of suites",
        caption=("\n".join(more) + _and_more(runs.height, "run_scores")).strip(),
    )
    scores = {row[:-1]: row[-1] for row in suites.select(*group, "suite", "score").iter_rows()}
    for row in runs.head(_MAX_ROWS).iter_rows(named=True):
        key = tuple(row[part] for part in group)
        cells = [_number(scores.get((*key, suite))) for suite in shown]
        overall = _with_ends(row, "overall_score", "", "{:.3f}")
        drawn.add_row(*(str(part or "-") for part in key), *cells, overall)
    return drawn


def comparison_table(pairs: pl.DataFrame, alpha: float = 0.05, confidence: float = 0.95) -> FittedTable:
    """Pairs of models and of tiers with the verdict on each, the surest first.

    What is adjusted for the number of pairs comes first, so that a narrow terminal leaves out the rest.
    """
    adjusted = [f"adjusted {100 * (1 - alpha):g}% CI", "adjusted p"] if pairs["pairs"].max() != 1 else []
    own = [f"{100 * confidence:g}% CI", "p"]
    figures = [*(adjusted or own), "min. detectable effect", *(own if adjusted else [])]
    drawn = FittedTable(
        [*names("model", "baseline", "verdict"), *numbers("difference", *figures)],
        title="compared problem by problem: difference of pass@1",
        caption=_comparison_caption(pairs, alpha),
    )
    tiers = pl.concat([pairs["tier_a"], pairs["tier_b"]]).n_unique() > 1
    colours = {"better": "green", "worse": "red"}
    surest_first = pairs.sort("p_adjusted", "model_b", "tier_b", "model_a", "tier_a", nulls_last=True)
    for row in surest_first.head(_MAX_PAIRS).iter_rows(named=True):
        sides = [f"{row[f'model_{side}']} {row[f'tier_{side}']}" if tiers else row[f"model_{side}"] for side in "ba"]
        cells = {
            own[0]: _ends(row, ""),
            own[1]: _chance(row["p_value"]),
            "min. detectable effect": _number(row["minimum_detectable_effect"]),
        }
        if adjusted:
            cells |= {adjusted[0]: _ends(row, "adjusted_"), adjusted[1]: _chance(row["p_adjusted"])}
        drawn.add_row(
            *sides,
            Text(row["verdict"], style=colours.get(row["verdict"], "dim")),
            "-" if row["difference"] is None else f"{row['difference']:+.3f}",
            *(cells[figure] for figure in figures),
        )
    return drawn


def _comparison_caption(pairs: pl.DataFrame, alpha: float) -> str:
    """What the figures are adjusted for, which pairs have too few units to tell anything, and what is not shown."""
    lines = []
    count = int(pairs["pairs"].max() or 0)  # type: ignore[arg-type]
    if count > 1:
        rate = "false discovery rate, Benjamini-Yekutieli" if pairs["correction"][0] != "holm" else "Holm"
        lines.append(f"adjusted for {count:,} pairs ({rate})")
    short = pairs.filter(pl.col("units_needed").is_not_null()).select(
        "ci_units", "units_needed", clustered=pl.col("ci_method").str.ends_with("-cluster")
    )
    for units, needed, clustered in short.unique().sort(pl.all()).head(_MAX_SHORTAGES).iter_rows():
        lines.append(shortage(units, needed, pairs=count, alpha=alpha, clustered=clustered))
    hidden = pairs.height - _MAX_PAIRS
    if hidden > 0:
        lines.append(f"{counted(hidden, 'more pair')}: SELECT * FROM model_comparison")
    return "\n".join(lines)


def show_result(result: Any) -> None:
    """A query's result, its figures rounded to significant digits."""
    from touchstone.publish.rendering import displayed

    columns, rows = displayed(result)
    drawn = FittedTable(
        [Column(header, kind) for header, kind in columns],
        hint="use --format csv or a wider terminal",
    )
    for row in rows:
        drawn.add_row(*row)
    screen = terminal()
    drawn.print(screen)
    screen.print(counted(result.num_rows, "row"))


def show_tables(listing: Iterable[tuple[str, int, list[tuple[str, str]]]]) -> None:
    """Tables with their rows and columns."""
    drawn = FittedTable([*names("table"), *numbers("rows"), *prose("columns")], lines_between_rows=True)
    for table, rows, columns in listing:
        described = [Text.assemble(visible(column), " ", (kind, "dim")) for column, kind in columns]
        drawn.add_row(table, f"{rows:,}", Text(", ").join(described))
    drawn.print(terminal())


def show_doctor(items: Iterable["Item"]) -> None:
    """What was found, and what to do about the rest."""
    drawn = FittedTable([*names("", "what"), *prose("detail")])
    for item in items:
        mark = _mark("ok") if item.good else (_mark("missing", "red") if item.needed else _mark("optional", "yellow"))
        drawn.add_row(mark, item.name, item.detail)
    drawn.print(terminal())


def show_validation(shown: "Shown") -> None:
    """One fix in full: what it changes, what was said before and after, and the verdict."""
    screen = terminal()
    problem, verdict = shown.subject.problem, shown.verdict
    validator = f"{shown.subject.validator}, fidelity {shown.fidelity or '-'}, sandbox {shown.sandbox}"
    cached = ", from the cache" if shown.cached else ""
    screen.print(f"[bold]{escape(str(shown.fix))}[/] on problem {escape(problem.oid)} ({validator}{cached})")
    if shown.diff:
        screen.print(Syntax(shown.diff, "diff", background_color="default", word_wrap=True))
    _show_report(screen, "before", shown.baseline)
    if shown.report is not None:
        _show_report(screen, "after", shown.report)
    colour = {"passed": "green", "failed": "red"}.get(verdict.status, "yellow")
    screen.print(f"[{colour}]{verdict.status}[/] {escape(verdict.note)}".rstrip())
    if verdict.introduced_module is not None:
        new = f"{verdict.introduced_block} in block, {verdict.introduced_file} in file"
        in_block = "" if verdict.block_errors is None else f"{verdict.block_errors} in block, "
        screen.print(
            f"  Target errors {'are gone' if verdict.fixed else 'remain'}. New diagnostics: {new}, "
            f"{verdict.introduced_module} in module."
        )
        screen.print(f"  Errors left: {in_block}{verdict.module_errors} in module. Success rule: {shown.success}.")


def _show_report(screen: Console, when: str, report: "Report") -> None:
    passed = sum(report.tests.values())
    tests = [f"{counted_of(passed, len(report.tests), 'test')} passed"] if report.tests else []
    lint = [counted(report.lint_warnings, "lint warning")] if report.lint_warnings is not None else []
    more = "; ".join([*tests, *lint, *([escape(report.note)] if report.note else [])])
    screen.print(f"[bold]{when}:[/] {report.status}{f' ({more})' if more else ''}")
    if report.diagnostics:
        drawn = FittedTable([*names("severity"), *prose("what"), *names("where")])
        for one in report.diagnostics:
            words = one.summary + (f"\n{one.detail}" if one.detail else "")
            drawn.add_row(one.severity, words, f"{one.file or '-'}{f':{one.line}' if one.line else ''}")
        drawn.print(screen)


def show_inventory(entries: Iterable["Entry"]) -> None:
    """Sandboxes and validators, and what to do about those that are missing."""
    drawn = FittedTable([*names("", "what", "fidelity"), *prose("detail")])
    for entry in entries:
        mark = _mark("usable") if entry.usable else _mark("missing", "yellow")
        drawn.add_row(mark, f"{entry.kind} {entry.name}", entry.fidelity, entry.detail)
    drawn.print(terminal())


def show_cache(statistics: "CacheStatistics") -> None:
    """How much is kept, by validator."""
    drawn = FittedTable([*names("validator"), *numbers("reports")], title=str(_short(statistics.path)))
    for validator, count in statistics.by_validator.items():
        drawn.add_row(validator, f"{count:,}")
    since = (
        f", {_day(statistics.oldest)} to {_day(statistics.newest)}"
        if statistics.oldest is not None and statistics.newest is not None
        else ""
    )
    screen = terminal()
    drawn.print(screen)
    screen.print(f"{counted(statistics.entries, 'report')}, {statistics.bytes / 2**20:,.1f} MiB{since}")


def show_snapshots(snapshots: Sequence["Snapshot"], pinned: Mapping[str, str]) -> None:
    """Snapshots, newest first."""
    pinned_as: dict[str, list[str]] = {}
    for pin, identity in pinned.items():
        pinned_as.setdefault(identity, []).append(pin)
    drawn = FittedTable([*names("snapshot", "made (UTC)", "pinned as"), *numbers("inputs"), *prose("validators")])
    for snapshot in reversed(snapshots):
        pins = ", ".join(sorted(pinned_as.get(snapshot.id, [])))
        files = counted(len(snapshot.inputs), "file")
        drawn.add_row(snapshot.id, snapshot.made_at, pins, files, snapshot.versions.get("validators", ""))
    drawn.print(terminal())


def _mark(word: str, style: str = "green") -> Text:
    return Text(word, style=style)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _and_more(rows: int, table: str) -> str:
    return f"\n{counted(rows - _MAX_ROWS, 'more row')}: SELECT * FROM {table}" if rows > _MAX_ROWS else ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ends(row: dict[str, Any], prefix: str) -> str:
    low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    return "-" if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"


def _chance(value: float | None) -> str:
    return "< 0.001" if value is not None and value < 0.001 else _number(value)


def _dollars(value: float | None) -> str:
    if value is None:
        return "-"
    if math.isinf(value):
        return "never passes"
    # A fix by a small model costs a fraction of a cent: four decimals would leave one digit of it.
    decimals = 4 if value <= 0 else max(4, 2 - math.floor(math.log10(value)))
    return f"${value:.{decimals}f}"


def _with_ends(row: dict[str, Any], figure: str, prefix: str, style: str) -> str:
    """A figure with its interval, as far as there is one."""
    value, low, high = row[figure], row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    if value is None:
        return "-"
    if low is None and high is None:
        return style.format(value)
    ends = ["…" if end is None else re.sub("inf%?", "∞", style.format(end)) for end in (low, high)]
    return f"{style.format(value)} [{', '.join(ends)}]"


def _reuse(outcome: RunOutcome) -> str:
    if outcome.made == 0:
        every = "all " if outcome.reused > 1 else ""
        return f"nothing changed: {every}{counted(outcome.reused, 'part was', 'parts were')} reused"
    return f"{counted(outcome.made, 'part')} made, {outcome.reused:,} unchanged and reused"


def _short(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
