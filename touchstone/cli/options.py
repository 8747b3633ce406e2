"""Arguments and options that several commands share. What a command does with them belongs in its own module."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from touchstone.cli.plain_values import PlainValues
from touchstone.errors import TouchstoneError
from touchstone.locations import input_location, output_location, refuse_address

if TYPE_CHECKING:
    from touchstone.storage.output_folders import Wanted

_DEFAULT_CONFIG = Path("evaluation_config.json")

CONFIG_OPTION = typer.Option(
    help=f"Evaluation configuration, JSON or TOML. [default: {_DEFAULT_CONFIG} in the current folder]"
)
CONFIGS_OPTION = typer.Option(
    metavar="FILE…",
    help="Evaluation configurations, JSON or TOML, run in turn up to the first that fails. "
    f"[default: {_DEFAULT_CONFIG} in the current folder]",
)
SCORE_OPTION = typer.Option(
    "--scorer", "--score", metavar="NAME", help="Which score of files that have several, such as Inspect logs."
)
_PLACE: dict[str, Any] = {"metavar": "<path or address>"}


def data_option(help: str) -> Any:
    """An option that takes an output folder, local or in object storage; gives its local path."""
    return typer.Option(parser=output_location, help=help, **_PLACE)


def input_option(help: str, metavar: str = "<path or address>") -> Any:
    """An option that takes input files, local or in object storage; gives the local path."""
    return typer.Option(parser=input_location, help=help, metavar=metavar)


def input_argument(help: str) -> Any:
    """The same as an argument."""
    return typer.Argument(parser=input_location, metavar="PATH…", help=help)


DATA_OPTION = data_option("Output folder of a run.")
QUIET_OPTION = typer.Option("--quiet", "-q", help="Print only errors; with --json or --format, the result too.")
JSON_OPTION = typer.Option("--json", help="Print the result as one JSON document, figures unrounded.")
DRAFT_OPTION = typer.Option("--draft", help="Read the tables of the last run, which a gate kept from being published.")


class LocalPathsCommand(PlainValues, TyperCommand):
    """A command whose other paths must be local: `s3://…` must not become a folder called `s3:`."""

    def invoke(self, ctx: Any) -> Any:
        """Refuse addresses before the command runs."""
        for param in self.params:
            value = ctx.params.get(param.name)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Path):
                    refuse_address(each, max(param.opts, key=len))
        return super().invoke(ctx)


class MultiValueCommand(LocalPathsCommand):
    """A command whose repeatable options take several values at once: `--k-values 1 5 10`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite `--k 1 5` as `--k 1 --k 5` before the usual parsing."""
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


def config_or_default(config: Path | None) -> Path:
    """The configuration that was passed, else the default one in the current folder."""
    if config is None and not _DEFAULT_CONFIG.is_file():
        raise TouchstoneError(f"there is no {_DEFAULT_CONFIG} in this folder; pass --config FILE")
    return config or _DEFAULT_CONFIG


def tables_folder(data: Path, draft: bool, wanted: "Wanted | None" = None) -> Path:
    """The folder of the published tables, or with `--draft` of those that a gate kept from being published.

    Of results in object storage, the `wanted` files are downloaded, by default those of the published run.
    """
    if not draft:
        from touchstone.storage.output_folders import of_run, results_folder

        return results_folder(data, wanted or of_run) / "tables"
    found = _draft_tables(data)
    print("note: a gate blocked this run; its tables are not published", file=sys.stderr)
    return found


def as_format(format: str | None, as_json: bool) -> str | None:
    """The format that --format and --json, which is short for --format json, ask for."""
    if as_json and format not in (None, "json"):
        raise TouchstoneError(f"--json and --format {format} contradict each other; leave one of them out")
    return "json" if as_json else format


def require_file_for_parquet(format: str | None, save_to: Path | None) -> None:
    """Refuse to print Parquet."""
    if format == "parquet" and save_to is None:
        raise TouchstoneError("--format parquet needs --save-to FILE")


def _draft_tables(root: Path) -> Path:
    """The folder of the tables of a run stopped by a gate; an error if the last run was published."""
    from touchstone.storage.store import Store

    store = Store(root)
    if not store.unpublished.is_dir():
        published = "the last run was published; leave out --draft"
        raise TouchstoneError(f"{root}: {published if store.has_published else 'no run here was stopped by a gate'}")
    return store.unpublished / "tables"
