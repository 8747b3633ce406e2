"""The `touchstone` command. Each command imports what it needs when it runs, so that the fast ones stay fast.

Only `run` and `ui` reach up into `pipelines` (and so Dagster). Figures and files are made elsewhere; what belongs here
is reading arguments, drawing the result and turning errors into one line and an exit code: 0 good, 1 a check or gate
failed, 2 wrong use or wrong input.
"""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from touchstone import __version__
from touchstone.cli.init import init
from touchstone.errors import TouchstoneError

if TYPE_CHECKING:
    from touchstone.compare.compare import CompareOptions
    from touchstone.compare.pairs import ComparisonSettings

# Smaller pieces in flight: the same speed at 10 million rows, and half the memory. Polars reads these when it starts.
_POLARS_SETTINGS = {"POLARS_CSV_CHUNK_SIZE": "2000000", "POLARS_GROUP_BY_NUM_PARTITIONS": "32"}

# The exit code of a program that Ctrl-C ended. The command line's library gives it too, without a word.
_STOPPED = 130

_UI_HOST = "127.0.0.1"

# Bytes of CSV that take about a second: below, loading a display would cost more than it tells.
_LARGE = 100_000_000

app = typer.Typer(
    name="touchstone",
    help="Know whether an LLM's code fixes work.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class ManyValues(TyperCommand):
    """Lets a repeatable option take several values at once: `--k-values 1 5 10`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--k 1 5` as `--k 1 --k 5` before the usual parsing."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        spread: list[str] = []
        option: str | None = None
        for place, argument in enumerate(args):
            is_value = not argument.startswith("-") or argument.lstrip("-").isdigit()
            if not is_value:
                option = argument if argument in repeatable else None
            elif option is not None and args[place - 1] != option:
                spread.append(option)
            spread.append(argument)
        return super().parse_args(ctx, spread)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"touchstone {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_DEFAULT_CONFIG = Path("evaluation_config.json")
_CONFIG_OPTION = typer.Option(help=f"The evaluation's configuration, JSON or TOML. [default: {_DEFAULT_CONFIG} here]")


def _config_or_default(config: Path | None) -> Path:
    """The configuration that was named, else the one in the current folder."""
    if config is None and not _DEFAULT_CONFIG.is_file():
        raise TouchstoneError(f"there is no {_DEFAULT_CONFIG} in this folder; pass --config FILE")
    return config or _DEFAULT_CONFIG


@app.command(cls=ManyValues)
def run(
    config: Annotated[Path | None, _CONFIG_OPTION] = None,
    output_dir: Annotated[Path | None, typer.Option(help="Write here instead of the config's output_dir.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="MODEL…", help="Re-evaluate only these models.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Publish even what fails against the baseline.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Redo everything, validation included; snapshots and pins stay.")
    ] = False,
) -> None:
    """Evaluate everything that the configuration names: ingest, validate, score, publish."""
    config = _config_or_default(config)
    with _working("reading the configuration", stages=True):
        from touchstone.preparation import prepare
        from touchstone.progress import tell

        evaluation = prepare(config, output_dir, only or [])
        tell("loading Dagster")
        from pipelines.launch import run_evaluation

        with evaluation.store.lock():
            outcome = run_evaluation(config, output_dir, only or [], accept=accept, fresh=fresh)
    from touchstone.cli import tables as screens

    screens.show_run(evaluation, outcome)
    raise typer.Exit(outcome.exit_code)


@app.command("pass-at-k", cls=ManyValues)
def pass_at_k(
    problems_csv: Annotated[Path, typer.Option(help="The problems file.")],
    fixes_csv: Annotated[list[Path], typer.Option(metavar="FILE…", help="One or more <model>_fixes.csv files.")],
    k_values: Annotated[
        list[str] | None, typer.Option(metavar="K…", help="Budgets of attempts: 1 5 10, or 1,5,10. [default: 1 5 10]")
    ] = None,
    save_to: Annotated[Path | None, typer.Option(help="Also write the summary CSV here.")] = None,
    format: Annotated[Literal["table", "csv", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    """Compute pass@k straight from CSV files, without Dagster."""
    from touchstone import text as plain_text
    from touchstone.config import IntervalSettings
    from touchstone.metrics.pass_at_k_files import calculate, parse_k_values
    from touchstone.publish.csv_files import csv_text
    from touchstone.publish.summary import summary, write_summary

    ks = parse_k_values(k_values or ["1,5,10"])
    large = sum(path.stat().st_size for path in fixes_csv if path.is_file()) > _LARGE
    with _working("reading") if large else nullcontext():
        done = calculate(problems_csv, fixes_csv, ks, IntervalSettings())
    if format == "json":
        print(done.table.write_json())
    elif format == "csv":
        print(csv_text(summary(done.table).lazy()), end="")
    else:
        print(plain_text.seed_table(summary(done.table), ks))
    if save_to is not None:
        write_summary(done.table, save_to)
    for line in [*plain_text.explain_nulls(done.table), *plain_text.explain_refusals(done.quarantine)]:
        print(f"note: {line}", file=sys.stderr)
    for line in done.unreadable:
        print(f"error: {line}", file=sys.stderr)
    if done.unreadable:
        raise typer.Exit(2)


@app.command(cls=ManyValues)
def synth(
    output: Annotated[Path, typer.Option(help="Folder to write to.")],
    problems: Annotated[int, typer.Option(help="How many problems.")] = 10,
    iterations: Annotated[int, typer.Option(help="How many attempts at each.")] = 20,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 7,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME=RATE…", help="Models and their mean pass rates.")
    ] = None,
    tiers: Annotated[int, typer.Option(help="How many tiers.")] = 1,
    force: Annotated[bool, typer.Option(help="Write over existing files.")] = False,
) -> None:
    """Write synthetic problems and outcomes to try things on."""
    from touchstone.ingest.synthetic import parse_models, synthesise

    models = parse_models(model) if model else None
    with _working("writing"):
        paths = synthesise(
            output, problems=problems, iterations=iterations, seed=seed, models=models, tiers=tiers, force=force
        )
    for path in paths:
        print(path)


_DRAFT_OPTION = typer.Option("--draft", help="The tables of the last run, which a gate kept from being published.")


def _tables_of(data: Path, draft: bool) -> Path:
    if not draft:
        return data / "tables"
    from touchstone.storage.store import draft_tables

    found = draft_tables(data)
    print("note: this run was not published: a gate stopped it", file=sys.stderr)
    return found


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One SELECT over the tables.")],
    data: Annotated[Path, typer.Option(help="The output folder of a run.")],
    format: Annotated[
        Literal["table", "csv", "json", "latex", "markdown", "parquet"] | None,
        typer.Option(help="How to print or save. [default: table, or what the file's name implies]"),
    ] = None,
    save_to: Annotated[Path | None, typer.Option(help="Write the result to this file instead of the screen.")] = None,
    draft: Annotated[bool, _DRAFT_OPTION] = False,
) -> None:
    """Ask the results a question in SQL."""
    from touchstone.cli import tables as screens
    from touchstone.publish.formats import RESULT_SUFFIXES, file_format
    from touchstone.publish.query import run_query
    from touchstone.publish.rendering import render, save

    if format == "parquet" and save_to is None:
        raise TouchstoneError("--format parquet needs --save-to FILE")
    saved_as = file_format(save_to, format, RESULT_SUFFIXES) if save_to is not None else None
    if save_to is not None and saved_as in (None, "table"):
        raise TouchstoneError(f"--save-to {save_to.name}: add --format csv, json, latex, markdown or parquet")
    with _working("running the query"):
        result = run_query(_tables_of(data, draft), query)
    if save_to is not None and saved_as is not None:
        save(result, saved_as, save_to)
    elif format in (None, "table"):
        screens.show_result(result)
    else:
        print(render(result, str(format)), end="")


@app.command(cls=ManyValues)
def export(
    table: Annotated[str, typer.Argument(help="A table; `touchstone tables` lists them.")],
    data: Annotated[Path, typer.Option(help="The output folder of a run.")],
    format: Annotated[
        Literal["csv", "json", "latex", "markdown", "parquet"] | None,
        typer.Option(help="How to print or save. [default: csv, or what the file's name implies]"),
    ] = None,
    save_to: Annotated[Path | None, typer.Option(help="Write to this file instead of the screen.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN…", help="Only these columns, in this order.")
    ] = None,
    draft: Annotated[bool, _DRAFT_OPTION] = False,
) -> None:
    """Write a whole table as CSV, JSON, LaTeX, Markdown or Parquet."""
    from touchstone.publish.export import export_text, save_export
    from touchstone.publish.formats import RESULT_SUFFIXES, file_format

    if save_to is None:
        if format == "parquet":
            raise TouchstoneError("--format parquet needs --save-to FILE")
        with _working("exporting"):
            text = export_text(_tables_of(data, draft), table, format or "csv", columns or ())
        print(text, end="")
        return
    written_as = file_format(save_to, format, RESULT_SUFFIXES) or "csv"
    with _working("exporting"):
        save_export(_tables_of(data, draft), table, written_as, columns or (), save_to)


@app.command()
def tables(
    data: Annotated[Path, typer.Option(help="The output folder of a run.")],
    draft: Annotated[bool, _DRAFT_OPTION] = False,
) -> None:
    """List the tables of a run and their columns."""
    from touchstone.cli import tables as screens
    from touchstone.publish.query import list_tables

    screens.show_tables(list_tables(_tables_of(data, draft)))


@app.command(cls=ManyValues)
def compare(
    baseline: Annotated[str, typer.Option(help="An output folder, results file, or a snapshot's name with --data.")],
    current: Annotated[str, typer.Option(help="The same for what is new.")],
    config: Annotated[
        Path | None,
        typer.Option(help="A configuration whose scoring, problems and comparison settings count; options go first."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The output folder whose snapshots are meant by name.")] = None,
    problems_csv: Annotated[Path | None, typer.Option(help="The problems of a fixes CSV. [default: beside it]")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="A case that drops by more than this is a regression. [default: 0.05]")
    ] = None,
    score: Annotated[
        Literal["best", "mean", "composite", "code", "pass_rate"] | None,
        typer.Option(help="What a case's score is. [default: best]"),
    ] = None,
    format: Annotated[
        Literal["text", "json", "markdown", "junit", "sarif"] | None, typer.Option(help="How to print. [default: text]")
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option(help="Also write the report to this file, in the format that its name implies.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="MODEL…", help="Only these models.")] = None,
    tier: Annotated[list[str] | None, typer.Option(metavar="TIER…", help="Only these tiers.")] = None,
    fail_on_regression: Annotated[bool, typer.Option(help="Exit with 1 where a case regressed or was lost.")] = False,
    fail_on_verdict: Annotated[
        Literal["worse"] | None, typer.Option(help="Exit with 1 where a model is worse than it was.")
    ] = None,
) -> None:
    """Compare two evaluations: which cases got worse or better, and whether the difference means anything."""
    from touchstone.compare.compare import compare as compare_sides
    from touchstone.compare.report import render
    from touchstone.publish.formats import REPORT_SUFFIXES, file_format
    from touchstone.storage.files import replacing

    shown_as = format or "text"
    saved_as = file_format(save_to, format, REPORT_SUFFIXES) if save_to is not None else None
    given = {"threshold": threshold, "score": score, "problems_csv": problems_csv, "data": data}
    options, settings = _comparison(config, models=model or (), tiers=tier or (), **given)
    with _working("comparing"):
        done = compare_sides(baseline, current, options, settings)
    text = render(done.report, shown_as, colour=sys.stdout.isatty() and shown_as == "text")
    print(text, end="" if text.endswith("\n") else "\n")
    for line in done.notes:
        print(f"note: {line}", file=sys.stderr)
    if save_to is not None:
        try:
            with replacing(save_to) as scratch:
                scratch.write_text(render(done.report, saved_as or shown_as))
        except OSError as error:
            raise TouchstoneError(f"{save_to}: cannot be written ({error.strerror})") from None
    regressed = fail_on_regression and done.report.counts["regression"] + done.report.counts["lost"] > 0
    worse = fail_on_verdict is not None and fail_on_verdict in done.verdicts.values()
    raise typer.Exit(int(regressed or worse))


def _comparison(config: Path | None, **given: Any) -> "tuple[CompareOptions, ComparisonSettings]":
    """What and how to compare: as given, else as configured, else as usual."""
    from dataclasses import replace

    from touchstone.compare.compare import CompareOptions, configured_options
    from touchstone.compare.pairs import ComparisonSettings

    explicit = {name: value for name, value in given.items() if value is not None}
    if config is None:
        return CompareOptions(**explicit), ComparisonSettings()
    from touchstone.compare.gate import comparison_settings
    from touchstone.config import load_config

    loaded = load_config(config)
    return replace(configured_options(loaded), **explicit), comparison_settings(loaded)


@app.command(cls=ManyValues)
def validate(
    problem: Annotated[str, typer.Option(metavar="OID", help="The problem that the fix is for.")],
    fix: Annotated[list[Path], typer.Option(metavar="FILE…", help="Files that hold a fix each.")],
    config: Annotated[Path | None, _CONFIG_OPTION] = None,
    kind: Annotated[
        Literal["file", "block"] | None,
        typer.Option("--as", help="Whether a fix is the whole file or stands for the problem's lines."),
    ] = None,
) -> None:
    """Validate fixes of one problem and show everything: diff, diagnostics before and after, verdict and why."""
    from touchstone.cli import tables as screens
    from touchstone.config import load_config
    from touchstone.validation.single import validate_files

    with _working("validating"):
        shown = validate_files(load_config(_config_or_default(config)), problem, fix, kind)
    for one in shown:
        screens.show_validation(one)
    if any(one.verdict.fixed is None for one in shown):
        raise typer.Exit(2)
    raise typer.Exit(int(any(one.verdict.status != "passed" for one in shown)))


@app.command()
def validators(
    config: Annotated[Path | None, typer.Option(help="An evaluation whose settings count.")] = None,
) -> None:
    """List the sandboxes and validators that are usable here, and how to get the rest."""
    from touchstone.cli import tables as screens
    from touchstone.config import ValidationSettings, load_config
    from touchstone.validation.inventory import take_inventory

    settings = load_config(config).validation if config is not None else ValidationSettings()
    with _working("trying sandboxes and validators"):
        entries = take_inventory(settings)
    screens.show_inventory(entries)
    if not any(entry.usable for entry in entries if entry.kind == "sandbox"):
        raise typer.Exit(1)


cache_app = typer.Typer(help="The outcomes of validations, kept by content.", no_args_is_help=True)
app.add_typer(cache_app, name="cache")

_CACHE_OPTION = typer.Option(help="The output folder of a run, or the config's cache_dir.")


@cache_app.command("stats")
def cache_stats(data: Annotated[Path, _CACHE_OPTION]) -> None:
    """Show how much is kept, and since when."""
    from touchstone.cli import tables as screens
    from touchstone.validation.cache import find_cache

    with find_cache(data) as cache:
        screens.show_cache(cache.statistics())


@cache_app.command("prune")
def cache_prune(
    data: Annotated[Path, _CACHE_OPTION],
    unused_for_days: Annotated[float, typer.Option(min=0, help="Remove what no run asked for since.")] = 90.0,
) -> None:
    """Remove what was not used lately. Nothing is lost that cannot be validated again."""
    from touchstone.text import counted
    from touchstone.validation.cache import find_cache

    with find_cache(data) as cache:
        removed = cache.prune(unused_for_days)
        left = cache.statistics().entries
    after = "; the next run validates again what it needs of them" if removed else ""
    print(f"{counted(removed, 'report')} removed, {left:,} kept{after}")


snapshots_app = typer.Typer(help="Finished runs, frozen so that any two can be compared.")
app.add_typer(snapshots_app, name="snapshots", invoke_without_command=True)

_DATA_OPTION = typer.Option(help="The output folder of a run.")


@snapshots_app.callback()
def snapshots(
    context: typer.Context, data: Annotated[Path | None, typer.Option(help="List those of this output folder.")] = None
) -> None:
    """Finished runs, frozen so that any two can be compared."""
    if context.invoked_subcommand is None:
        if data is None:
            raise TouchstoneError("say --data DIR to list the snapshots of a run, or --help for what else there is")
        snapshots_list(data)


@snapshots_app.command("list")
def snapshots_list(data: Annotated[Path, _DATA_OPTION]) -> None:
    """List the snapshots, newest first, with their pinned names."""
    from touchstone.cli import tables as screens
    from touchstone.storage.snapshots import explain_unreadable, list_snapshots, pins

    found, broken = list_snapshots(data), explain_unreadable(data)
    if not found and not broken:
        raise TouchstoneError(f"{data}: there are no snapshots; every finished `touchstone run` makes one")
    screens.show_snapshots(found, pins(data))
    _warn(broken)


@snapshots_app.command("pin")
def snapshots_pin(
    snapshot: Annotated[str, typer.Argument(help="An id or the beginning of one, latest, previous, or a pinned name.")],
    name: Annotated[str, typer.Argument(help="The name to give it.")],
    data: Annotated[Path, _DATA_OPTION],
) -> None:
    """Give a snapshot a name, such as baseline. A name that is taken moves."""
    from touchstone.storage.snapshots import pin

    print(f"{name} is now {pin(data, snapshot, name).id}")


@snapshots_app.command("prune")
def snapshots_prune(
    data: Annotated[Path, _DATA_OPTION],
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest to keep; pinned ones stay anyway.")],
) -> None:
    """Remove old snapshots that nobody pinned."""
    from touchstone.storage.snapshots import explain_unreadable, prune
    from touchstone.text import counted

    gone = prune(data, keep)
    print(f"{counted(len(gone), 'snapshot')} removed" + (f": {', '.join(gone)}" if gone else ""))
    _warn(explain_unreadable(data))


@app.command()
def ui(
    config: Annotated[Path | None, typer.Option(help="The evaluation to show. [default: the sample]")] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Start the Dagster UI and its daemon on this project. Ends with Ctrl-C."""
    from touchstone.config import load_config
    from touchstone.preparation import require_free_port

    if config is not None:
        load_config(config)
    require_free_port(_UI_HOST, port)
    print(f"starting the Dagster UI on http://{_UI_HOST}:{port} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    from pipelines.launch import start_ui

    start_ui(config, _UI_HOST, port)


app.command()(init)


@app.command()
def doctor() -> None:
    """Say what is installed, what is missing and what to do about it."""
    from touchstone.cli import tables as screens
    from touchstone.cli.doctor import examine

    findings = examine()
    screens.show_doctor(findings)
    if any(finding.needed and not finding.good for finding in findings):
        raise typer.Exit(1)


def _warn(lines: list[str]) -> None:
    for line in lines:
        print(f"warning: {line}", file=sys.stderr)


def _working(what: str, stages: bool = False) -> AbstractContextManager[object]:
    """A live display of what is being done, on a terminal; elsewhere nothing, or one line per stage."""
    if not sys.stderr.isatty() and not stages:
        return nullcontext()
    from touchstone.cli.live import LineDisplay, LiveDisplay

    return LiveDisplay(what) if sys.stderr.isatty() else LineDisplay()


def main() -> None:
    """Run the command line: no traceback reaches a user."""
    for name, value in _POLARS_SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        code = app(standalone_mode=False)
    except TouchstoneError as error:
        code = _complain(str(error), 2)
    except typer.Exit as leaving:
        code = leaving.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = _STOPPED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as error:
        code = _unexpected(error)
    if code == _STOPPED:
        _complain("stopped; the last finished results are untouched", code)
    sys.exit(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> int:
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        return _complain(f"{error.format_message()}{hint}", 2)
    if os.environ.get("TOUCHSTONE_DEBUG"):
        raise error
    what = " ".join(str(error).split()) or "no message"
    return _complain(f"{type(error).__name__}: {what} (TOUCHSTONE_DEBUG=1 shows where)", 2)


def _complain(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
