"""`touchstone history`: headline figures over all snapshots; `touchstone blame`: what changed between two of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import DATA_OPTION, JSON_OPTION, as_format, output_folder
from touchstone.text import counted, visible

if TYPE_CHECKING:
    from touchstone.trends.blame import Blame

_MOST_ROWS = 30
_MOST_CASES = 10
_MOST_MODELS = 3
FORMAT_OPTION = typer.Option(help="Output format. [default: text]")

commands = typer.Typer()


@commands.command()
def history(
    data: Annotated[Path | None, DATA_OPTION] = None,
    format: Annotated[Literal["text", "json"] | None, FORMAT_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show the headline figures over all snapshots, when one changed, and what else changed there."""
    from touchstone.cli.json_output import print_json
    from touchstone.cli.terminal_tables import print_line, show_table, terminal
    from touchstone.publish import result_tables as tables
    from touchstone.publish.reported_run import ReportedRun
    from touchstone.storage.output_folders import results_folder

    run = ReportedRun(results_folder(output_folder(data)))
    if as_format(format, as_json) == "json":
        print_json({name: run.table(name).to_dicts() for name in ("trends", "change_points")})
        return
    screen, lines, changes = terminal(), tables.trends(run), tables.change_points(run)
    for table in (changes, lines):
        if len(table.rows):
            show_table(screen, table, _MOST_ROWS)
    if len(changes.rows):
        latest = run.table("change_points").sort("made_at").row(-1, named=True)
        print_line(
            screen, f"which cases: touchstone blame --from {latest['previous_snapshot']} --to {latest['snapshot']}"
        )
    else:
        seen = counted(run.table("trends")["snapshot"].n_unique(), "snapshot")
        print_line(screen, f"no headline figure changed its level in {seen}")


@commands.command()
def blame(
    first: Annotated[str, typer.Option("--from", help="Snapshot to start from: an id, a pin, previous.")] = "previous",
    last: Annotated[str, typer.Option("--to", help="Snapshot to compare with it.")] = "latest",
    data: Annotated[Path | None, DATA_OPTION] = None,
    format: Annotated[Literal["text", "json"] | None, FORMAT_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """List the cases that changed between two snapshots by what changed in between: the model, or the grader?"""
    from dataclasses import asdict

    from touchstone.cli.json_output import print_json
    from touchstone.publish.reported_run import ReportedRun
    from touchstone.storage.output_folders import is_of_any_run, results_folder
    from touchstone.trends.blame import blame as find_causes

    shown_as = as_format(format, as_json)
    with show_progress("comparing", quiet=shown_as == "json"):
        root = results_folder(output_folder(data), is_of_any_run)
        found = find_causes(root, first, last, ReportedRun(root).scan("problem_history"))
    if shown_as == "json":
        print_json({**asdict(found), "cases": found.cases.to_dicts()})
    else:
        _show_blame(found)


def _show_blame(found: "Blame") -> None:
    from touchstone.cli.terminal_tables import FittedTable, labels, names, numbers, print_line, prose, terminal
    from touchstone.trends.blame import DUE_TO

    screen, counts = terminal(), found.counts
    fell = counts["regression"] + counts["lost"]
    print_line(screen, f"{found.before} to {found.after}, {counted(found.snapshots, 'snapshot')}", "dim")
    print_line(
        screen,
        f"{counted(fell, 'case')} fell ({found.expected_by_chance:,.1f} expected by chance), "
        f"{counts['improvement']:,} rose, {counts['new']:,} new, {counts['removed']:,} gone",
        "bold",
    )
    steps = FittedTable(
        [*labels("since"), *prose("changed there", "points"), *numbers("fell", "rose"), *numbers(*DUE_TO, rank=1)],
        "What changed in between, the cases that changed since then, and whose change that is",
    )
    for step in found.steps:
        own = step.cases
        cells = [own["regression"] + own["lost"], own["improvement"], *(own[whose] for whose in DUE_TO)]
        when = step.made_at[:16].replace("T", " ") or "other nights"
        moved = sorted(step.differences.items(), key=lambda each: -abs(each[1]))[:_MOST_MODELS]
        points = ", ".join(f"{visible(side)} {100 * change:+.1f}" for side, change in moved)
        steps.add_row(when, visible(step.changed), points, *(f"{count:,}" for count in cells))
    steps.print(screen)
    more = found.cases.height - _MOST_CASES
    cases = FittedTable(
        [*names("problem", "model", "tier"), *numbers("before", "after"), *labels("since", rank=1), *labels("due to")],
        "The largest falls",
        f"{more:,} more: --json" if more > 0 else "",
    )
    for row in found.cases.head(_MOST_CASES).iter_rows(named=True):
        scores = ["-" if row[side] is None else f"{row[side]:.3f}" for side in ("before", "after")]
        cases.add_row(
            visible(row["oid"]), visible(row["model"]), visible(row["tier"]), *scores, row["since"], row["due_to"]
        )
    if found.cases.height:
        cases.print(screen)
    if (found.cases["due_to"] == "undecided").any():
        print_line(
            screen,
            "undecided: what grades changed too, or outcomes were recorded elsewhere, and no fix is on both sides; "
            "snapshots keep no fixes",
        )
