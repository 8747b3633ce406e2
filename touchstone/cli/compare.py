"""`touchstone compare`, and `touchstone snapshots`, which manages the frozen runs that it compares."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from touchstone.cli.console import print_messages, show_progress
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
from touchstone.cli.safe_output import print_data
from touchstone.errors import TouchstoneError
from touchstone.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from touchstone.cli.terminal_tables import FittedTable
    from touchstone.comparison.compare import CompareOptions
    from touchstone.comparison.pairs import ComparisonSettings
    from touchstone.comparison.report import ComparisonReport, Section
    from touchstone.config import EvaluationConfig
    from touchstone.storage.snapshots import Snapshot

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
    given = {
        "threshold": threshold,
        "score": score,
        "problems_csv": problems_csv,
        "data": data or output_folder_here(),
        "scorer": scorer,
    }
    old, new = _two_inputs(inputs or [], baseline, current)
    loaded = load_config(config) if config is not None else None
    options, settings = _comparison_settings(loaded, models=model or (), tiers=tier or (), **given)
    gates = (loaded.gates if loaded else GateSettings()).with_more(gate or [], on_inconclusive)
    if plan is not None:
        options, settings = _with_plan(options, settings, plan, configured=config is not None)
    with show_progress("comparing", quiet=quiet):
        comparison, held = compare_evaluations(old, new, options, settings), None
        if gates.expressions:
            from touchstone.publish.gated_comparison import with_gates

            comparison, held = with_gates(comparison, gates, settings, loaded)
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
    if held is not None and not held.passed:
        print_messages("error" if held.error else "warning", [held.message], quiet)
    fails = held is not None and held.error
    raise typer.Exit(int(fails or regressed or worse or (decides and bool(comparison.report.exploratory))))


def _two_inputs(inputs: list[str], baseline: str | None, current: str | None) -> tuple[str, str]:
    """The two evaluations, given by position or by option."""
    named = [each for each in (baseline, current) if each is not None]
    if len(inputs) + len(named) != 2 or (inputs and named):
        raise TouchstoneError("name the two evaluations to compare: touchstone compare BASELINE CURRENT")
    first, second = inputs or named
    return first, second


def _comparison_settings(
    config: "EvaluationConfig | None", **given: Any
) -> "tuple[CompareOptions, ComparisonSettings]":
    """What to compare and how: the options given, else the configuration, else the defaults."""
    from dataclasses import replace

    from touchstone.comparison.compare import CompareOptions, configured_options
    from touchstone.comparison.pairs import ComparisonSettings, comparison_settings

    explicit = {name: value for name, value in given.items() if value is not None}
    if config is None:
        return CompareOptions(**explicit), ComparisonSettings()
    return replace(configured_options(config), **explicit), comparison_settings(config)


def _with_plan(
    options: "CompareOptions", settings: "ComparisonSettings", file: Path, *, configured: bool
) -> "tuple[CompareOptions, ComparisonSettings]":
    from dataclasses import replace

    from touchstone.config.plan import read_plan

    plan = read_plan(file)
    if not configured:
        settings = replace(settings, alpha=plan.alpha, relevant=plan.margin, power=plan.power)
    return replace(options, plan=plan), settings


def show_comparison(report: "ComparisonReport", console: "Console | None" = None) -> None:
    """Print the report; tables are fitted to the width of the console."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import print_line, terminal
    from touchstone.comparison.report import (
        comparability_section,
        count_line,
        exploratory_line,
        gate_section,
        inputs_line,
        sections,
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
    comparability = [comparability_section(report)] if report.comparability else []
    gates = [gate_section(report)] if report.gates else []
    for section in (*gates, *sections(report), *comparability):
        console.print()
        console.print(Text(section.title, style=_STYLES.get(section.title, "bold")))
        _table(section).print(console)


def comparison_text(report: "ComparisonReport") -> str:
    """The report as plain text of unlimited width, for a file."""
    from touchstone.cli.terminal_tables import UNLIMITED, SafeConsole

    out = io.StringIO()
    show_comparison(report, SafeConsole(out, width=UNLIMITED, color_system=None))
    return out.getvalue()


def _table(section: "Section") -> "FittedTable":
    from touchstone.cli.terminal_tables import FittedTable, names, numbers

    columns = [*names(*section.names), *numbers(*section.numbers)]
    more = f"… and {section.more:,} more" if section.more else ""
    table = FittedTable(columns, caption=more, keep_figures=True)
    for row in section.rows:
        # A line break in a name is shown as \n, not as a second line of the cell.
        table.add_row(*map(visible, row))
    return table


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
        from touchstone.cli.json_output import print_json, snapshots_document

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


def show_snapshots(snapshots: "Sequence[Snapshot]", pinned: "Mapping[str, str]") -> None:
    """Print snapshots, newest first."""
    from touchstone.cli.terminal_tables import FittedTable, labels, names, numbers, prose, terminal

    pinned_as: dict[str, list[str]] = {}
    for pin, identity in pinned.items():
        pinned_as.setdefault(identity, []).append(pin)
    columns = [*labels("snapshot"), *labels("created (UTC)", rank=2), *names("pinned as", rank=1)]
    table = FittedTable([*columns, *numbers("inputs", rank=3), *prose("validators", rank=4)], compact=True)
    for snapshot in reversed(snapshots):
        pins = ", ".join(sorted(pinned_as.get(snapshot.id, [])))
        files = counted(len(snapshot.inputs), "file")
        table.add_row(snapshot.id, snapshot.made_at, pins, files, snapshot.versions.get("validators", ""))
    table.print(terminal())
