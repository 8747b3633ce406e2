"""Commands about validation: `validate` one problem's fixes, list `validators`, and manage the `cache` of reports."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from touchstone.cli.console import show_progress
from touchstone.cli.options import CONFIG_OPTION, MultiValueCommand, config_or_default, data_option

_CACHE_OPTION = data_option("Output folder of a run, or the config's cache_dir.")

commands = typer.Typer()
cache_commands = typer.Typer(help="Manage the validation cache: reports, kept by content.", no_args_is_help=True)
commands.add_typer(cache_commands, name="cache")


@commands.command(cls=MultiValueCommand)
def validate(
    problem: Annotated[str, typer.Option(metavar="OID", help="The problem to fix.")],
    fix: Annotated[list[Path], typer.Option(metavar="FILE…", help="Files, each with one fix.")],
    config: Annotated[Path | None, CONFIG_OPTION] = None,
    kind: Annotated[
        Literal["file", "block", "diff", "files", "edits"] | None,
        typer.Option(
            "--as",
            help="What a fix is: the whole file, the problem's lines, a unified diff (the default for .diff and "
            ".patch), contents by path as JSON, or search/replace blocks.",
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Validate so many times, uncached, and name flaky tests.")
    ] = 1,
) -> None:
    """Validate fixes of one problem in full detail: diff, diagnostics and tests before and after, and the verdict."""
    from touchstone.cli.validation_tables import show_repeats, show_validation
    from touchstone.config import load_config
    from touchstone.validation.validation_detail import validate_files

    with show_progress("validating"):
        details, repeated = validate_files(load_config(config_or_default(config)), problem, fix, kind, repeat)
    for detail in details:
        show_validation(detail)
    if repeated:
        show_repeats(repeated)
    if any(detail.verdict.fixed is None for detail in details):
        raise typer.Exit(2)
    raise typer.Exit(int(any(detail.verdict.status != "passed" for detail in details)))


@commands.command()
def validators(
    config: Annotated[Path | None, typer.Option(help="Use the validation settings of this configuration.")] = None,
) -> None:
    """List the sandboxes and validators usable on this machine, and how to get the others."""
    from touchstone.cli.validation_tables import show_inventory
    from touchstone.config import load_config
    from touchstone.config.validation import ValidationSettings
    from touchstone.validation.registry import probe_capabilities

    settings = load_config(config).validation if config is not None else ValidationSettings()
    with show_progress("trying sandboxes and validators"):
        entries = probe_capabilities(settings)
    show_inventory(entries)
    if not any(entry.usable for entry in entries if entry.kind == "sandbox"):
        raise typer.Exit(1)


@cache_commands.command("stats")
def cache_stats(data: Annotated[Path, _CACHE_OPTION]) -> None:
    """Show the number of cached reports, their size and age."""
    from touchstone.cli.validation_tables import show_cache
    from touchstone.validation.cache import find_cache

    with find_cache(data) as cache:
        show_cache(cache.statistics())


@cache_commands.command("prune")
def cache_prune(
    data: Annotated[Path, _CACHE_OPTION],
    unused_for_days: Annotated[float, typer.Option(min=0, help="Delete reports that no run has used since.")] = 90.0,
) -> None:
    """Delete reports that were not used lately. A run that needs one validates again."""
    from touchstone.text import counted
    from touchstone.validation.cache import find_cache

    with find_cache(data) as cache:
        removed = cache.prune(unused_for_days)
        kept = cache.statistics().entries
    hint = "; a run that needs one validates again" if removed else ""
    print(f"{counted(removed, 'report')} removed, {kept:,} kept{hint}")
