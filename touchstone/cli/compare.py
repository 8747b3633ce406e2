"""Commands about several runs: `compare` two, manage the `snapshots` of runs, headline figures over all of them
(`history`), and what changed between two (`blame`)."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from touchstone.cli.console import print_data, print_json, print_messages, show_progress
from touchstone.cli.options import (
    DATA_OPTION,
    GATE_OPTION,
    INCONCLUSIVE_OPTION,
    JSON_OPTION,
    QUIET_OPTION,
    MultiValueCommand,
    as_format,
    input_option,
    output_folder,
    output_folder_here,
    share_option,
)
from touchstone.errors import TouchstoneError
from touchstone.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from touchstone.comparison.compare import CompareOptions
    from touchstone.comparison.pairs import ComparisonSettings
    from touchstone.comparison.report import ComparisonReport
    from touchstone.config import EvaluationConfig
    from touchstone.storage.snapshots import Snapshot
    from touchstone.trends.blame import Blame

_STYLES = {"Regressions": "bold red", "Lost cases": "bold red", "Improvements": "bold green"}

commands = typer.Typer()
snapshot_commands = typer.Typer(help="Manage snapshots: finished runs, frozen so that any two can be compared.")
commands.add_typer(snapshot_commands, name="snapshots", invoke_without_command=True)


@commands.command(cls=MultiValueCommand)
def compare(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="BASELINE CURRENT", help="The two evaluations: output folders, files, or snapshots."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Baseline: an output folder, files in a known format, or a snapshot."),
    ] = None,
    current: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to compare with the baseline: likewise.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Take scoring, problems and comparison settings from this config; options override it."),
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    problems_csv: Annotated[
        Path | None, input_option("Problems file for a fixes CSV. [default: the one beside it]")
    ] = None,
    threshold: Annotated[
        float | None, share_option("A case that drops by more than this is a regression. [default: 0.05]")
    ] = None,
    score: Annotated[
        Literal["auto", "best", "mean", "composite", "code", "pass_rate"] | None,
        typer.Option(help="How to score a case. [default: auto: best, or mean where attempts are unequal]"),
    ] = None,
    scorer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which score of files that have several, such as Inspect logs.")
    ] = None,
    format: Annotated[
        Literal["text", "json", "markdown", "junit", "sarif"] | None,
        typer.Option(help="Output format. [default: text]"),
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option(help="Also write the report to this file, in the format that its name implies.")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plan to hold the comparison to; without --config, its settings are used."),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="MODEL…", help="Only these models.")] = None,
    tier: Annotated[list[str] | None, typer.Option(metavar="TIER…", help="Only these tiers.")] = None,
    gate: Annotated[list[str] | None, GATE_OPTION] = None,
    on_inconclusive: Annotated[Literal["pass", "warn", "fail"] | None, INCONCLUSIVE_OPTION] = None,
    fail_on_regression: Annotated[bool, typer.Option(help="Exit with 1 if a case regressed or was lost.")] = False,
    fail_on_verdict: Annotated[
        Literal["worse"] | None, typer.Option(help="Exit with 1 if a model is worse than its baseline.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Compare two evaluations: which cases regressed or improved, and whether the difference is significant."""
    from touchstone.comparison.compare import compare as compare_evaluations
    from touchstone.comparison.report import format_report
    from touchstone.config import load_config
    from touchstone.config.gates import GateSettings
    from touchstone.publish.formats import REPORT_SUFFIXES, file_format, saving

    chosen = as_format(format, as_json)
    shown_as = chosen or "text"
    saved_as = file_format(save_to, format, REPORT_SUFFIXES) if save_to is not None else None
    given = {"threshold": threshold, "score": score, "data": data or output_folder_here()}
    files = {name: value for name, value in (("problems_csv", problems_csv), ("score", scorer)) if value is not None}
    old, new = _two_inputs(inputs or [], baseline, current)
    loaded = load_config(config) if config is not None else None
    options, settings = _comparison_settings(loaded, plan, files, models=model or (), tiers=tier or (), **given)
    gates = (loaded.gates if loaded else GateSettings()).with_more(gate or [], on_inconclusive)
    with show_progress("comparing", quiet=quiet):
        comparison, gate_check = compare_evaluations(old, new, options, settings), None
        if gates.expressions:
            from touchstone.comparison.gate import with_gates

            comparison, gate_check = with_gates(comparison, gates, settings, loaded)
    if shown_as != "text":
        print_data(format_report(comparison.report, shown_as))
    elif chosen or not quiet:
        show_comparison(comparison.report)
    print_messages("note", comparison.notes, quiet)
    if save_to is not None:
        saved_as = saved_as or shown_as
        report = comparison.report
        content = comparison_text(report) if saved_as == "text" else format_report(report, saved_as)
        with saving(save_to) as scratch:
            scratch.write_text(content)
    counts = comparison.report.counts
    regressed = fail_on_regression and counts["regression"] + counts["lost"] > 0
    worse = fail_on_verdict is not None and fail_on_verdict in comparison.verdicts.values()
    decides = fail_on_regression or fail_on_verdict is not None
    if gate_check is not None and not gate_check.passed:
        print_messages("error" if gate_check.error else "warning", [gate_check.message], quiet)
    fails = gate_check is not None and gate_check.error
    raise typer.Exit(int(fails or regressed or worse or (decides and bool(comparison.report.exploratory))))


def _two_inputs(inputs: list[str], baseline: str | None, current: str | None) -> tuple[str, str]:
    """The two evaluations, given by position or by option."""
    named = [each for each in (baseline, current) if each is not None]
    if len(inputs) + len(named) != 2 or (inputs and named):
        raise TouchstoneError("name the two evaluations to compare: touchstone compare BASELINE CURRENT")
    first, second = inputs or named
    return first, second


def _comparison_settings(
    config: "EvaluationConfig | None", plan_file: Path | None, files: dict[str, Any], **given: Any
) -> "tuple[CompareOptions, ComparisonSettings]":
    """The options given, else those of the configuration or, for the settings, of the plan, else the defaults."""
    from dataclasses import replace

    from touchstone.comparison.compare import CompareOptions, configured_options
    from touchstone.comparison.pairs import ComparisonSettings, comparison_settings
    from touchstone.config import read_plan

    plan = read_plan(plan_file) if plan_file is not None else None
    explicit = {name: value for name, value in given.items() if value is not None} | ({"plan": plan} if plan else {})
    if config is not None:
        options = configured_options(config)
        return replace(options, **explicit, files={**options.files, **files}), comparison_settings(config)
    settings = ComparisonSettings()
    if plan is not None:
        settings = replace(settings, alpha=plan.alpha, relevant=plan.margin, power=plan.power)
    return CompareOptions(**explicit, files=files), settings


def show_comparison(report: "ComparisonReport", console: "Console | None" = None) -> None:
    """Print the report; tables are fitted to the width of the console."""
    from dataclasses import replace

    from rich.text import Text

    from touchstone.cli.terminal_tables import print_line, show_table, terminal
    from touchstone.comparison.report import (
        MOST_ROWS,
        case_tables,
        comparability_table,
        count_line,
        exploratory_line,
        gate_table,
        inputs_line,
    )

    console = console or terminal()
    if report.exploratory:
        print_line(console, exploratory_line(report.exploratory), "bold red")
    for line in (*report.warnings, *report.verdict_lines):
        print_line(console, line, "bold")
    print_line(console, count_line(report))
    print_line(console, inputs_line(report), "dim")
    for line in report.notes:
        print_line(console, line)
    for table in (gate_table(report), *case_tables(report), comparability_table(report)):
        if len(table.rows):
            console.print()
            console.print(Text(table.title, style=_STYLES.get(table.title, "bold")))
            show_table(console, replace(table, title=""), MOST_ROWS, compact=False, keep_figures=True)


def comparison_text(report: "ComparisonReport") -> str:
    """The report as plain text of unlimited width, for a file."""
    from touchstone.cli.terminal_tables import UNLIMITED, SafeConsole

    out = io.StringIO()
    show_comparison(report, SafeConsole(out, width=UNLIMITED, color_system=None))
    return out.getvalue()


@snapshot_commands.callback()
def snapshots(
    context: typer.Context,
    data: Annotated[Path | None, DATA_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Manage snapshots: finished runs, frozen so that any two can be compared."""
    if context.invoked_subcommand is None:
        list_snapshots(data, as_json, quiet)


@snapshot_commands.command("list")
def list_snapshots(
    data: Annotated[Path | None, DATA_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """List the snapshots, newest first, with their pins."""
    from touchstone.storage import snapshots as stored
    from touchstone.storage.output_folders import is_of_snapshot_list, results_folder

    folder = results_folder(output_folder(data), is_of_snapshot_list)
    found, unreadable = stored.list_snapshots(folder), stored.explain_unreadable(folder)
    if not found and not unreadable:
        raise TouchstoneError(f"{folder}: there are no snapshots; every finished `touchstone run` makes one")
    if as_json:
        print_json(snapshots_document(reversed(found), stored.pins(folder)))
    elif not quiet:
        show_snapshots(found, stored.pins(folder))
    print_messages("warning", unreadable, quiet)


@snapshot_commands.command("pin")
def pin_snapshot(
    snapshot: Annotated[str, typer.Argument(help="Snapshot id or a prefix of one, latest, previous, or a pin.")],
    name: Annotated[str, typer.Argument(help="Name of the pin.")],
    data: Annotated[Path | None, DATA_OPTION] = None,
) -> None:
    """Pin a snapshot under a name, such as baseline. An existing pin of that name moves."""
    from touchstone.storage.output_folders import editing
    from touchstone.storage.snapshots import pin

    with editing(output_folder(data)) as folder:
        pinned = pin(folder, snapshot, name)
    print(f"{name} is now {pinned.id}")


@snapshot_commands.command("prune")
def prune_snapshots(
    keep: Annotated[int, typer.Option(min=1, help="Number of newest snapshots to keep, besides the pinned ones.")],
    data: Annotated[Path | None, DATA_OPTION] = None,
) -> None:
    """Delete old snapshots that are not pinned."""
    from touchstone.storage.output_folders import editing, sweep
    from touchstone.storage.snapshots import explain_unreadable, prune

    root = output_folder(data)
    with editing(root) as folder:
        removed = prune(folder, keep)
    print(f"{counted(len(removed), 'snapshot')} removed" + (f": {', '.join(removed)}" if removed else ""))
    swept = sweep(root)
    if swept:
        print(f"{counted(swept, 'unused object')} removed")
    print_messages("warning", explain_unreadable(root))


def snapshots_document(snapshots: "Iterable[Snapshot]", pins: "Mapping[str, str]") -> list[dict[str, object]]:
    """Snapshots, newest first."""
    from touchstone.storage.snapshots import pin_names

    names = "id made_at fingerprint config_hash inputs versions rows validation settings attempts model_versions"
    pinned_as = pin_names(pins)
    return [
        {name: getattr(snapshot, name) for name in names.split()} | {"pinned_as": pinned_as.get(snapshot.id, [])}
        for snapshot in snapshots
    ]


def show_snapshots(snapshots: "Sequence[Snapshot]", pinned: "Mapping[str, str]") -> None:
    """Print snapshots, newest first."""
    from touchstone.cli.terminal_tables import labels, names, numbers, print_table, prose
    from touchstone.storage.snapshots import pin_names

    pinned_as = pin_names(pinned)
    columns = [*labels("snapshot"), *labels("created (UTC)", rank=2), *names("pinned as", rank=1)]
    columns += [*numbers("inputs", rank=3), *prose("validators", rank=4)]
    rows = (
        (
            *(each.id, each.made_at, ", ".join(pinned_as.get(each.id, []))),
            *(counted(len(each.inputs), "file"), each.versions.get("validators", "")),
        )
        for each in reversed(snapshots)
    )
    print_table(columns, rows, compact=True)


# Over time

_MOST_ROWS = 30
_MOST_CASES = 10
_MOST_MODELS = 3
_FORMAT_OPTION = typer.Option(help="Output format. [default: text]")


@commands.command()
def history(
    data: Annotated[Path | None, DATA_OPTION] = None,
    format: Annotated[Literal["text", "json"] | None, _FORMAT_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show the headline figures over all snapshots, when one changed, and what else changed there."""
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
    format: Annotated[Literal["text", "json"] | None, _FORMAT_OPTION] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """List the cases that changed between two snapshots by what changed in between: the model, or the grader?"""
    from dataclasses import asdict

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
    from touchstone.cli.terminal_tables import labels, names, numbers, print_line, print_table, prose, terminal
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
    columns = [*labels("since"), *prose("changed there", "points"), *numbers("fell", "rose"), *numbers(*DUE_TO, rank=1)]
    rows = []
    for step in found.steps:
        own = step.cases
        cells = [own["regression"] + own["lost"], own["improvement"], *(own[whose] for whose in DUE_TO)]
        when = step.made_at[:16].replace("T", " ") or "other nights"
        moved = sorted(step.differences.items(), key=lambda each: -abs(each[1]))[:_MOST_MODELS]
        points = ", ".join(f"{visible(side)} {100 * change:+.1f}" for side, change in moved)
        rows.append((when, visible(step.changed), points, *(f"{count:,}" for count in cells)))
    title = "What changed in between, the cases that changed since then, and whose change that is"
    print_table(columns, rows, screen, title=title)
    if found.cases.height:
        columns = [*names("problem", "model", "tier"), *numbers("before", "after")]
        columns += [*labels("since", rank=1), *labels("due to")]
        cases = (
            (
                *(visible(row[name]) for name in ("oid", "model", "tier")),
                *("-" if row[side] is None else f"{row[side]:.3f}" for side in ("before", "after")),
                *(row["since"], row["due_to"]),
            )
            for row in found.cases.head(_MOST_CASES).iter_rows(named=True)
        )
        more = found.cases.height - _MOST_CASES
        caption = f"{more:,} more: --json" if more > 0 else ""
        print_table(columns, cases, screen, title="The largest falls", caption=caption)
    if (found.cases["due_to"] == "undecided").any():
        print_line(
            screen,
            "undecided: the grader changed too, or outcomes were recorded elsewhere, and no fix is on both sides; "
            "snapshots keep no fixes",
        )
