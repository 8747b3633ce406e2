"""The commands `environments prepare` and `environments list`: packages for the fixes and tests of Python problems."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from touchstone.cli.console import print_messages, show_progress
from touchstone.cli.options import CONFIG_OPTION, config_or_default

if TYPE_CHECKING:
    from collections.abc import Iterable

    from touchstone.config import EvaluationConfig
    from touchstone.validation.environments import ListedEnvironment
    from touchstone.validation.protocol import NoTarget
    from touchstone.validation.targets import Target

commands = typer.Typer()
environment_commands = typer.Typer(help="Prepare the environments of Python problems.", no_args_is_help=True)
commands.add_typer(environment_commands, name="environments")


@environment_commands.command("prepare")
def prepare_environments(
    config: Annotated[Path | None, CONFIG_OPTION] = None,
    find_links: Annotated[
        list[str] | None, typer.Option(metavar="DIR", help="Also look for packages here; may be repeated.")
    ] = None,
    no_index: Annotated[bool, typer.Option("--no-index", help="Use no package index, only --find-links.")] = False,
) -> None:
    """Install the packages of all problems with `requirements`, outside the sandbox, with uv or pip."""
    from touchstone.config import load_config
    from touchstone.text import counted
    from touchstone.validation.environments import InstallOptions, prepare
    from touchstone.validation.protocol import NoTarget
    from touchstone.validation.sandbox.interpreters import interpreter

    settings = load_config(config_or_default(config))
    targets = _targets(settings)
    folder = settings.validation.environments_dir
    assert folder is not None
    lacking = {oid: found for oid, found in targets.items() if isinstance(found, NoTarget)}
    wanted = {found.requirements for found in lacking.values() if found.requirements}
    ready = {found.problem.environment for found in targets.values() if not isinstance(found, NoTarget)} - {None}
    with show_progress("preparing"):
        options = InstallOptions(find_links or (), no_index)
        failures = prepare(folder, wanted, interpreter(settings.validation.python.interpreter), options)
    print_messages("error", (f"{', '.join(names)}: {why}" for names, why in failures.items()))
    unusable = {oid: found.reason for oid, found in lacking.items() if not found.requirements}
    print_messages("warning", (f"problem {oid}: {reason}" for oid, reason in unusable.items()))
    made = counted(len(wanted) - len(failures), "environment")
    print(f"{made} prepared, {len(ready):,} ready before, {len(failures):,} failed: {folder}")
    raise typer.Exit(int(bool(failures)))


@environment_commands.command("list")
def list_environments(config: Annotated[Path | None, CONFIG_OPTION] = None) -> None:
    """List the environments that the problems need and those that are prepared."""
    from touchstone.config import load_config
    from touchstone.validation.environments import list_environments
    from touchstone.validation.protocol import NoTarget

    settings = load_config(config_or_default(config))
    targets = _targets(settings).values()
    found = list_environments(
        settings.validation, (one if isinstance(one, NoTarget) else one.problem for one in targets)
    )
    if found:
        show_environments(found)
    else:
        print("no problem asks for an environment, and none is prepared")


def _targets(config: "EvaluationConfig") -> "dict[str, Target | NoTarget]":
    """All Python problems that ask for an environment."""
    from touchstone.validation.targets import Targets, problem_rows

    rows = problem_rows(config).values()
    asking = [row for row in rows if row.get("requirements") or row.get("environment")]
    return Targets(config.clones_dir, config.validation).find(asking)


def show_environments(entries: "Iterable[ListedEnvironment]") -> None:
    """Print environments, and whether they are ready."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import FittedTable, names, numbers, prose, terminal

    table = FittedTable([*names("", "environment"), *numbers("problems"), *prose("requirements")])
    for entry in entries:
        word, style = ("ready", "green") if entry.ready else ("missing", "yellow")
        table.add_row(Text(word, style=style), entry.name, f"{entry.problems:,}", ", ".join(entry.requirements))
    table.print(terminal())
