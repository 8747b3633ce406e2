"""`touchstone inspect-files` says what files are and hold; the commands `import …` make a folder to be run of them.

`import` takes completions without outcomes, and the problems that they are for.
"""

import shlex
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import print_json, show_progress
from touchstone.cli.options import JSON_OPTION, QUIET_OPTION, SCORE_OPTION, input_argument
from touchstone.errors import TouchstoneError
from touchstone.vocabulary import COMMAND_REPORTS

if TYPE_CHECKING:
    from touchstone.config import EvaluationConfig
    from touchstone.ingest.discovery import Discovery
    from touchstone.ingest.importing.evaluation_folder import ImportedEvaluation
    from touchstone.ingest.recognized import RecognizedSource

commands = typer.Typer()
_FIRST = 5


@commands.command("inspect-files")
def inspect_files(
    paths: Annotated[list[Path] | None, input_argument("Files and folders.")] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration with formats and adapters of your own.")] = None,
    score: Annotated[str | None, SCORE_OPTION] = None,
    why: Annotated[bool, typer.Option("--why", help="Say for each format why the files are not of it.")] = False,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats that can be read.")] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
    quiet: Annotated[bool, QUIET_OPTION] = False,
) -> None:
    """Say what files hold: format, models, problems, attempts, and the figures of the tool that wrote them."""
    from touchstone.config import load_config
    from touchstone.ingest.adapters import adapters
    from touchstone.ingest.discovery import discover, read_options
    from touchstone.ingest.implied_config import implied_config
    from touchstone.ingest.recognized import NATIVE_TITLE, recognized_sources

    given = load_config(config) if config is not None else None
    if formats:
        titles = [
            title.removeprefix("a ").removeprefix("an ")
            for title in (
                NATIVE_TITLE,
                *(adapter.title for adapter in adapters(read_options(given) if given else None)),
            )
        ]
        if as_json:
            print_json(titles)
        else:
            print("\n".join(titles))
        return
    if not paths:
        raise TouchstoneError("name the files and folders to look at, or use --formats")
    settings = implied_config(paths, score, given)
    if why:
        _show_why(paths, settings, as_json)
        return
    with show_progress("reading files", quiet=quiet):
        discovery = discover(settings)
        with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
            found = recognized_sources(discovery, settings, Path(scratch))
    if as_json:
        print_json(files_document(found, discovery))
    elif not quiet:
        _show(found, discovery)
        _show_first_attempts(discovery, settings)
    if all(source.unreadable is not None for source in found):
        raise typer.Exit(2)


def _show(found: "list[RecognizedSource]", discovery: "Discovery") -> None:
    from touchstone.cli.run_tables import MAX_FIGURES, figures_table, show_recognized
    from touchstone.cli.terminal_tables import show_table, terminal

    screen = terminal()
    show_recognized(screen, found, discovery)
    figures = figures_table(discovery)
    if len(figures.rows):
        show_table(screen, figures, MAX_FIGURES)


def _show_why(paths: list[Path], config: "EvaluationConfig", as_json: bool) -> None:
    """Print what each adapter says about each file."""
    from touchstone.cli.terminal_tables import names, print_table, prose
    from touchstone.ingest.adapters import why_not
    from touchstone.ingest.discovery import read_options

    said = {str(path): [(each.format, why) for each, why in why_not(path, read_options(config))] for path in paths}
    if as_json:
        print_json(said)
        return
    for path, reasons in said.items():
        print_table([*names("format"), *prose("why not")], reasons, title=path)


def _show_first_attempts(discovery: "Discovery", config: "EvaluationConfig") -> None:
    """Print the first attempts of each file in a format of the user's own, to see whether it is read as meant."""
    import polars as pl

    from touchstone.cli.terminal_tables import names, print_table
    from touchstone.ingest.adapters import configured_adapters
    from touchstone.ingest.csv_rows import ROW_ERROR
    from touchstone.ingest.discovery import read_options
    from touchstone.vocabulary import DEFAULT_SUITE

    shown = {"problem": "oid", "model": "llm_name", "attempt": "iteration_id", "passed": "passed", "suite": "suite"}
    own = {each.format for each in configured_adapters(read_options(config))}
    for path, table in discovery.adapter_tables.items():
        if table.format in own:
            first = table.frame.lazy().filter(pl.col(ROW_ERROR).is_null()).head(_FIRST).collect()
            known = {"suite": DEFAULT_SUITE, "passed": "undecided"}
            rows = (
                [row.get(column) or known.get(column, "") for column in shown.values()]
                for row in first.iter_rows(named=True)
            )
            print_table(names(*shown), rows, title=f"first attempts of {path.name}")


def files_document(found: "Iterable[RecognizedSource]", discovery: "Discovery") -> dict[str, object]:
    """The contents of files, those that are not evaluated, and the figures that they state."""
    from touchstone.ingest.sources_table import reported_figures_frame

    named = {"name": "file", "title": "format"}
    return {
        "files": [{named.get(key, key): value for key, value in asdict(each).items()} for each in found],
        "not_evaluated": [
            {"file": each.file, "status": each.status, "reason": each.reason} for each in discovery.not_evaluated
        ],
        "reported_figures": reported_figures_frame(discovery).to_dicts(),
    }


# Folders to be run, from a benchmark's problems and a model's completions

import_commands = typer.Typer(
    help="Write an evaluation folder for a benchmark's problems and a model's completions.", no_args_is_help=True
)
commands.add_typer(import_commands, name="import")

_FOLDER = typer.Argument(metavar="DIR", help="A new or empty folder.")
_MODEL = typer.Option("--model", metavar="NAME", help="The model; once for each file. [default: from the file's name]")


@import_commands.command("human-eval")
def import_human_eval(
    directory: Annotated[Path, _FOLDER],
    problems: Annotated[Path, typer.Option(metavar="FILE", help="HumanEval.jsonl.gz, or problems of the same form.")],
    samples: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Samples of human-eval or evalplus; may be repeated.")
    ],
    model: Annotated[list[str] | None, _MODEL] = None,
) -> None:
    """Turn human-eval problems and samples into a folder whose run executes them in the sandbox."""
    from touchstone.ingest.importing.human_eval import import_human_eval

    _show_import(directory, import_human_eval(problems, samples, model or [], directory))


@import_commands.command("swe-bench")
def import_swe_bench(
    directory: Annotated[Path, _FOLDER],
    instances: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Instances: instance_id, repo, base_commit, test_patch, FAIL_TO_PASS, …"),
    ],
    predictions: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Predictions of one or more models; may be repeated.")
    ],
    clones: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Local clones: <owner>__<name>, <owner>/<name>, <name> or <instance_id>."),
    ],
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Python with the repositories' packages, for pytest. [default: Touchstone's]"
        ),
    ] = None,
    test_command: Annotated[
        str | None, typer.Option(help="Runs the tests. [default: pytest on the files of the named tests]")
    ] = None,
    test_report: Annotated[str, typer.Option(help=f"How it reports: {', '.join(COMMAND_REPORTS)}.")] = "pytest",
) -> None:
    """Turn SWE-bench-style instances and predictions into a folder whose run judges them by the instances' tests."""
    from touchstone.ingest.importing.swe_bench import InstanceTests, import_swe_bench

    if test_report not in COMMAND_REPORTS:
        raise TouchstoneError(f"--test-report {test_report!r} is not known; use one of {', '.join(COMMAND_REPORTS)}")
    tests = InstanceTests(python and python.absolute(), test_command, test_report)
    _show_import(directory, import_swe_bench(instances, predictions, clones, directory, tests))


@import_commands.command("forgetest")
def import_forgetest(
    directory: Annotated[Path, _FOLDER],
    eval_set: Annotated[
        list[Path], typer.Option(metavar="FILE.toml", help="An eval set, or a folder of them; may be repeated.")
    ],
    samples: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A report, or plain outputs (oid, iteration_id, a text); may be repeated."),
    ] = None,
    model: Annotated[list[str] | None, _MODEL] = None,
) -> None:
    """Turn forgetest's eval sets into a folder whose run builds and tests every attempt in the sandbox."""
    from touchstone.ingest.importing.forgetest import import_forgetest

    evaluation, notes = import_forgetest(eval_set, samples or [], model or [], directory)
    _show_import(directory, evaluation, notes)


@import_commands.command("outputs")
def import_outputs(
    directory: Annotated[Path, _FOLDER],
    problems: Annotated[Path, typer.Option(metavar="FILE", help="The problems file: oid, filename, …")],
    outputs: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="CSV, JSON Lines or JSON: oid, iteration_id, a text; may be repeated."),
    ],
    clones: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The problems' files. [default: where the problems file is]")
    ] = None,
    model: Annotated[list[str] | None, _MODEL] = None,
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the text. [default: the only usual one]")
    ] = None,
    problem_key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that names the problem.")] = "oid",
) -> None:
    """Turn what a model answered, prose with a fenced block of code or code alone, into a folder to be run."""
    from touchstone.ingest.importing.outputs import import_outputs

    evaluation, notes = import_outputs(problems, outputs, model or [], clones, directory, key=problem_key, text=text)
    _show_import(directory, evaluation, notes)


def _show_import(directory: Path, evaluation: "ImportedEvaluation", notes: Sequence[str] = ()) -> None:
    from touchstone.cli.console import print_messages
    from touchstone.ingest.importing.evaluation_folder import CONFIG
    from touchstone.text import counted

    print_messages("note", notes)

    key = evaluation.problem_key
    print(f"{directory}: {counted(len(evaluation.problems), 'problem')}")
    for model, rows in evaluation.fixes.items():
        missing = {problem.row[key] for problem in evaluation.problems} - {row[key] for row in rows}
        without = f"; {counted(len(missing), 'problem has', 'problems have')} none" if missing else ""
        print(f"  {model}: {counted(len(rows), 'attempt')}{without}")
    if not evaluation.fixes:
        print("There are no attempts yet: import again with --samples FILE, or put <model>_fixes.csv into the folder.")
    print(f"Next: touchstone run --config {shlex.quote(str(directory / CONFIG))}")
