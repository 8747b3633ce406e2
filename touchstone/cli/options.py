"""Arguments and options that several commands share. Their use belongs in the module of each command."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from touchstone.errors import TouchstoneError
from touchstone.locations import input_location, output_location, refuse_address
from touchstone.vocabulary import RESULTS_FOLDER

if TYPE_CHECKING:
    from touchstone.storage.published_objects import PathFilter

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
    "--scorer", metavar="NAME", help="Which score of files that have several, such as Inspect logs."
)
_PLACE = "DIR"


def data_option(help: str) -> Any:
    """An option that takes an output folder, local or in object storage; gives its local path."""
    return typer.Option(parser=output_location, help=help, metavar=_PLACE)


def share_option(help: str, metavar: str = "SHARE", **more: Any) -> Any:
    """An option that takes a number, or a percentage such as 5%."""
    return typer.Option(parser=_share, help=help, metavar=metavar, **more)


def _share(text: str | float) -> float:
    """A number, which may be a percentage.

    >>> _share("0.05"), _share("5%"), _share("2.5 %")
    (0.05, 0.05, 0.025)
    """
    number = str(text).strip()
    try:
        return float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise typer.BadParameter(f"{number!r} is not a number; write 0.05 or 5%") from None


def input_option(help: str, metavar: str = "FILE") -> Any:
    """An option that takes input files, local or in object storage; gives the local path."""
    return typer.Option(parser=input_location, help=help, metavar=metavar)


def input_argument(help: str) -> Any:
    """The same as an argument."""
    return typer.Argument(parser=input_location, metavar="PATH", help=help)


DATA_OPTION = data_option("Output folder of a run. [default: that of the current folder]")
QUIET_OPTION = typer.Option("--quiet", "-q", help="Print only errors; with --json or --format, the result too.")
JSON_OPTION = typer.Option("--json", help="Print the result as one JSON document, figures unrounded.")
GATE_OPTION = typer.Option(
    metavar="GATE",
    help='What must hold, such as "pass@1 >= 0.6" or "difference > -0.02"; may be repeated. See docs/ci.md.',
)
INCONCLUSIVE_OPTION = typer.Option(help="Whether gates that cannot be decided pass, warn or fail. [default: warn]")
DRAFT_OPTION = typer.Option("--draft", help="Read the tables of the last run, which a gate kept from being published.")


class LocalPathsCommand(TyperCommand):
    """A command whose other paths must be local: `s3://…` must not become a folder called `s3:`.

    Its help is plain text: the tables that rich draws of options cut their names at 80 columns.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **(settings | {"rich_markup_mode": None}))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments and options; of arguments without their Python type."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for param in self.get_params(ctx):
            name, help = param.get_help_record(ctx) or ("", "")
            if param.param_type_name == "argument":
                name = name.partition(" <")[0]
            records[param.param_type_name] += [(name, help)] if name else []
        for title, listed in (("Arguments", records["argument"]), ("Options", records["option"])):
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)

    def invoke(self, ctx: Any) -> Any:
        """Refuse addresses before the command runs."""
        for param in self.params:
            value = ctx.params.get(param.name)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Path):
                    refuse_address(each, max(param.opts, key=len))
        return super().invoke(ctx)


class MultiValueCommand(LocalPathsCommand):
    """A command whose repeatable options take several values at once if their metavar says so: `--k-values 1 5 10`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite `--k 1 5` as `--k 1 --k 5` before the usual parsing."""
        several = [param for param in self.params if str(getattr(param, "metavar", None) or "").endswith("…")]
        repeatable = {name for param in several if getattr(param, "multiple", False) for name in param.opts}
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


def output_folder(data: Path | None) -> Path:
    """The output folder that was passed, else that of the current folder."""
    found = data or output_folder_here()
    if found is None:
        raise TouchstoneError("no results in this folder; run `touchstone run .` here, or add --data DIR")
    return found


def output_folder_here() -> Path | None:
    """The current folder if it is an output folder, else the one of its configuration, else the one of `run PATH`."""
    if Path("tables", "pass_at_k").is_dir():
        return Path()
    if _DEFAULT_CONFIG.is_file():
        from touchstone.config import load_config

        return load_config(_DEFAULT_CONFIG).output_dir
    return Path(RESULTS_FOLDER) if Path(RESULTS_FOLDER).is_dir() else None


def tables_folder(data: Path | None, draft: bool, wanted: "PathFilter | None" = None) -> Path:
    """The folder of the published tables, or with `--draft` of those that a gate kept from being published.

    Of results in object storage, the `wanted` files are downloaded, by default those of the published run.
    """
    data = output_folder(data)
    if not draft:
        from touchstone.storage.output_folders import is_of_run, results_folder

        return results_folder(data, wanted or is_of_run) / "tables"
    from touchstone.storage.store import Store

    store = Store(data)
    if not store.unpublished.is_dir():
        published = "the last run was published; leave out --draft"
        raise TouchstoneError(f"{data}: {published if store.has_published else 'no run here was stopped by a gate'}")
    print("note: a gate blocked this run; its tables are not published", file=sys.stderr)
    return store.unpublished / "tables"


def as_format(format: str | None, as_json: bool) -> str | None:
    """The format that --format and --json, which is short for --format json, ask for."""
    if as_json and format not in (None, "json"):
        raise TouchstoneError(f"--json and --format {format} contradict each other; leave one of them out")
    return "json" if as_json else format


def require_file_for_parquet(format: str | None, save_to: Path | None) -> None:
    """Refuse to print Parquet."""
    if format == "parquet" and save_to is None:
        raise TouchstoneError("--format parquet needs --save-to FILE")
