"""Entry point of the `touchstone` command: the commands it has, and how errors become one line and an exit code.

Exit codes: 0 success, 1 a check or gate failed, 2 wrong usage or input. The commands themselves belong in the modules
listed below, which import what they need when they run, so that starting stays fast.
"""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from touchstone.cli import (
    audit,
    chart,
    compare,
    environments,
    explore,
    export,
    history,
    importing,
    inputs,
    plan,
    report,
    results,
    rule,
    run,
    setup,
    show,
    site,
    validation,
    workers,
)
from touchstone.cli.help_text import ORDER, examples_of, panel_of
from touchstone.cli.json_logs import start_logs
from touchstone.cli.options import LocalPathsCommand
from touchstone.cli.safe_output import guard_output
from touchstone.errors import TouchstoneError, explain
from touchstone.vocabulary import VERSION

# Smaller chunks in flight: the same speed at 10 million rows with half the memory. Polars reads these on import.
_POLARS_SETTINGS = {"POLARS_CSV_CHUNK_SIZE": "2000000", "POLARS_GROUP_BY_NUM_PARTITIONS": "32"}
# On arrays of a few megabytes BLAS threads wait for each other longer than they work. NumPy reads this on import.
_ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# None is in use, and looking for them reads the metadata of every installed package.
_NO_PYDANTIC_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "1"}

# The exit code of a program ended by Ctrl-C. Typer returns it too, without a message.
_INTERRUPTED = 130


class _Panels(TyperGroup):
    """Lists the commands by panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of `--help`."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="touchstone",
    cls=_Panels,
    help="Know whether an LLM's code fixes work.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _with_help(commands: typer.Typer, group: str = "") -> typer.Typer:
    """The commands with their panel and examples, each refusing addresses where it needs a local path."""
    for command in commands.registered_commands:
        if command.cls is None or not issubclass(command.cls, LocalPathsCommand):
            command.cls = LocalPathsCommand
        name = command.name or (command.callback.__name__ if command.callback is not None else "")
        command.rich_help_panel = None if group else panel_of(name)
        command.epilog = examples_of(f"{group} {name}".strip())
    for inner in commands.registered_groups:
        inner.rich_help_panel = panel_of(str(inner.name))
        if inner.typer_instance is not None:
            _with_help(inner.typer_instance, str(inner.name))
    return commands


# Every command module defines `commands`, a Typer app.
for module in (
    run,
    results,
    inputs,
    importing,
    setup,
    report,
    site,
    explore,
    audit,
    show,
    rule,
    chart,
    export,
    compare,
    history,
    plan,
    validation,
    environments,
    workers,
):
    app.add_typer(_with_help(module.commands))


def _print_version(requested: bool) -> None:
    if requested:
        print(f"touchstone {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. Errors end in one line on standard error, never in a traceback."""
    for name, value in (_POLARS_SETTINGS | _ONE_BLAS_THREAD | _NO_PYDANTIC_PLUGINS).items():
        os.environ.setdefault(name, value)
    guard_output()
    try:
        start_logs(None)
        code = app(standalone_mode=False)
    except TouchstoneError as error:
        code = _fail(str(error))
    except typer.Exit as leaving:
        code = leaving.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as error:
        code = _fail_unexpectedly(error)
    except BaseException as error:
        # A panic of Polars is not an `Exception`; it may be a lack of memory.
        if type(error).__name__ != "PanicException":
            raise
        code = _fail_unexpectedly(error)
    if code == _INTERRUPTED:
        _fail("interrupted; the last published results are unchanged")
    sys.exit(code if isinstance(code, int) else 0)


def _fail_unexpectedly(error: BaseException) -> int:
    """Report wrong usage, as Typer words it, or a bug of ours."""
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        return _fail(f"{error.format_message()}{hint}")
    if os.environ.get("TOUCHSTONE_DEBUG"):
        raise error
    message = " ".join(str(error).split()) or "no message"
    explained = explain(f"{type(error).__name__}: {message}")
    if explained is not None:
        return _fail(explained)
    return _fail(f"{type(error).__name__}: {message} (set TOUCHSTONE_DEBUG=1 for the traceback)")


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
