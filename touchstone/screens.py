"""What the commands show on the terminal: tables drawn by rich, and notes in plain words."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.table import Table

from touchstone.run_outcome import RunOutcome

if TYPE_CHECKING:
    from touchstone.doctor import Item
    from touchstone.evaluation import Evaluation


def console(stderr: bool = False) -> Console:
    """The terminal, or plain text at a sensible width where there is none."""
    screen = Console(stderr=stderr, highlight=False)
    if not screen.is_terminal:
        screen = Console(stderr=stderr, highlight=False, width=max(screen.width, 140))
    return screen


def seed_table(summary: pl.DataFrame, k_values: Sequence[int]) -> str:
    """Models against pass@k, numbered from 0, with as many decimals as a column needs: three to six."""
    names = [name for name in ("LLM", "tier") if name in summary.columns] + [f"pass@{k}" for k in k_values]
    columns = [["", *(str(row) for row in range(summary.height))]]
    columns += [[name, *_cells(summary[name])] for name in names]
    widths = [max(len(cell) for cell in column) for column in columns]
    padded = [[cell.rjust(width) for cell in column] for column, width in zip(columns, widths, strict=True)]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


def _cells(column: pl.Series) -> list[str]:
    if column.dtype != pl.Float64:
        return [str(value) for value in column]
    texts = [f"{value:.6f}" for value in column if value is not None]
    decimals = max(3, *(len(text.rstrip("0").split(".")[1]) for text in texts), 0)
    return ["-" if value is None else f"{value:.{decimals}f}" for value in column]


def explain_nulls(table: pl.DataFrame) -> list[str]:
    """Why a figure is missing or leaves problems out."""
    lines = []
    for row in (
        table.filter(pl.col("attempted") == 0).unique(["model", "tier"], maintain_order=True).iter_rows(named=True)
    ):
        lines.append(f"{row['model']} {row['tier']}: there is no decided attempt, so there is no figure")
    short = table.filter((pl.col("attempted") > 0) & (pl.col("eligible") < pl.col("attempted")))
    for row in short.iter_rows(named=True):
        missing = row["attempted"] - row["eligible"]
        lines.append(
            f"{row['model']} {row['tier']} pass@{row['k']}: {missing} of {row['attempted']} problems have fewer than "
            f"{row['k']} decided attempts and are left out"
        )
    return lines


def explain_refusals(quarantine: Iterable[pl.DataFrame]) -> list[str]:
    """How many rows each file lost, and why the first of them."""
    lines = []
    for refused in quarantine:
        if refused.is_empty():
            continue
        first = refused.row(0, named=True)
        rows = "1 row was" if refused.height == 1 else f"{refused.height:,} rows were"
        lines.append(f"{first['source_file']}: {rows} refused; line {first['line']}: {first['reason']}")
    return lines


def show_run(evaluation: "Evaluation", outcome: RunOutcome) -> None:
    """The leaderboard, what was refused, the checks that did not pass, and where everything is."""
    screen = console()
    store = evaluation.store
    if not outcome.failures:
        screen.print(leaderboard(store.scan("pass_at_k").collect()))
        _show_quarantine(screen, store.scan("quarantine").collect())
    for check in outcome.checks:
        if not check.passed:
            label = "[red]check failed[/]" if check.error else "[yellow]check warns[/]"
            screen.print(f"{label} {check.name}: {check.message}")
    for failure in outcome.failures:
        console(stderr=True).print(f"[red]error:[/] {failure}", soft_wrap=True)
    passed = sum(check.passed for check in outcome.checks)
    screen.print(f"{passed} of {len(outcome.checks)} checks passed; {_reuse(outcome)}")
    if not outcome.failures:
        for name in ("summary_pass_at_k.csv", "tables", "warehouse.duckdb"):
            screen.print(f"  {_short(store.root / name)}", soft_wrap=True)


def leaderboard(pass_at_k: pl.DataFrame) -> Table:
    """Models by pass@k with their intervals, best first."""
    ks = pass_at_k["k"].unique().sort().to_list()
    drawn = Table(title="pass@k: mean over problems [95% interval]".replace("[95", r"\[95"), title_justify="left")
    drawn.add_column("model")
    drawn.add_column("tier")
    for k in ks:
        drawn.add_column(f"pass@{k}", justify="right")
    drawn.add_column("attempted", justify="right")
    drawn.add_column("interval by")
    best_first = pass_at_k.filter(pl.col("k") == ks[0]).sort(
        "pass_at_k", "model", "tier", descending=[True, False, False], nulls_last=True
    )
    for model, tier in best_first.select("model", "tier").iter_rows():
        rows = pass_at_k.filter(pl.col("model") == model, pl.col("tier") == tier).sort("k")
        first = rows.row(0, named=True)
        figures = [_figure(row) for row in rows.iter_rows(named=True)]
        drawn.add_row(model, tier, *figures, f"{first['attempted']}/{first['problems']}", first["ci_method"] or "-")
    return drawn


def show_result(result: Any) -> None:
    """A query's result."""
    drawn = Table()
    for name in result.column_names:
        drawn.add_column(name)
    for row in result.to_pylist():
        drawn.add_row(*("" if value is None else str(value) for value in row.values()))
    screen = console()
    screen.print(drawn)
    screen.print(f"{result.num_rows:,} rows")


def show_tables(listing: Iterable[tuple[str, int, list[tuple[str, str]]]]) -> None:
    """Tables with their rows and columns."""
    drawn = Table("table", "rows", "columns", show_lines=True)
    for name, rows, columns in listing:
        drawn.add_row(name, f"{rows:,}", ", ".join(f"{column} [dim]{kind}[/]" for column, kind in columns))
    console().print(drawn)


def show_doctor(items: Iterable["Item"]) -> None:
    """What was found, and what to do about the rest."""
    drawn = Table("", "what", "detail")
    for item in items:
        mark = "[green]ok[/]" if item.good else ("[red]missing[/]" if item.needed else "[yellow]optional[/]")
        drawn.add_row(mark, item.name, item.detail)
    console().print(drawn)


def _figure(row: dict[str, Any]) -> str:
    if row["pass_at_k"] is None:
        return "-"
    return f"{row['pass_at_k']:.3f} \\[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"


def _show_quarantine(screen: Console, quarantine: pl.DataFrame) -> None:
    if quarantine.is_empty():
        return
    drawn = Table(title="quarantine: rows that were refused", title_justify="left")
    for name in ("file", "line", "reason"):
        drawn.add_column(name, overflow="fold")
    shown = quarantine.sort("source_file", "line", nulls_last=False)
    for row in shown.head(12).iter_rows(named=True):
        drawn.add_row(row["source_file"], str(row["line"] or "-"), row["reason"])
    screen.print(drawn)
    if shown.height > 12:
        screen.print(f"… and {shown.height - 12:,} more: SELECT * FROM quarantine")


def _reuse(outcome: RunOutcome) -> str:
    if outcome.made == 0:
        return f"nothing changed: all {outcome.reused} parts were reused"
    return f"{outcome.made} parts made, {outcome.reused} unchanged and reused"


def _short(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
