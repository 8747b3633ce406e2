"""Entry point of the `touchstone` command: the commands it has, and how errors become one line and an exit code.

Exit codes: 0 success, 1 a check or gate failed, 2 wrong usage or input. The commands themselves belong in the modules
listed below, which import what they need when they run, so that starting stays fast.
"""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from touchstone.cli import compare, inputs, plan, report, results, run, setup, show, validation
from touchstone.cli.console import start_logs
from touchstone.cli.options import LocalPathsCommand
from touchstone.cli.safe_streams import guard_output
from touchstone.errors import TouchstoneError, explain
from touchstone.vocabulary import VERSION

# Smaller chunks in flight: the same speed at 10 million rows with half the memory. Polars reads these on import. Of
# Parquet it would read up to 512 row groups ahead (its issue 28312).
_POLARS_SETTINGS = {
    "POLARS_CSV_CHUNK_SIZE": "2000000",
    "POLARS_GROUP_BY_NUM_PARTITIONS": "32",
    "POLARS_ROW_GROUP_PREFETCH_SIZE": str(os.cpu_count() or 1),
}
# Polars keeps freed memory for ten seconds by default; to give it back at once costs a fifth of a run, after a quarter
# of a second rather than one a thirtieth. jemalloc reads this on import.
_FREED_SOON = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:250,muzzy_decay_ms:0"}
# On arrays of a few megabytes BLAS threads wait for each other longer than they work. NumPy reads this on import.
_ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# None is in use, and looking for them reads the metadata of every installed package.
_NO_PYDANTIC_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "1"}

# The exit code of a program ended by Ctrl-C. Typer returns it too, without a message.
_INTERRUPTED = 130
_WRONG_USE = 2


# The panel that `--help` lists a command in, and the examples that end its own help.
PANELS = {
    "Evaluate": ("run", "pass-at-k", "inspect-files", "import", "init", "synth"),
    "Look at results": ("report", "site", "explore", "audit", "show", "rule", "sql", "tables", "chart", "export"),
    "Compare": ("compare", "snapshots", "history", "blame", "plan"),
    "Validate fixes": ("validate", "validators", "environments", "cache"),
    "Operate": ("ui", "workers", "doctor"),
}
_PANEL_OF = {command: panel for panel, commands in PANELS.items() for command in commands}

EXAMPLES = {
    "run": ("touchstone run .", "touchstone run --config evaluation_config.json --only atlas-large"),
    "pass-at-k": ("touchstone pass-at-k .", "touchstone pass-at-k results.jsonl --k-values 1 5 10 --format csv"),
    "inspect-files": ("touchstone inspect-files logs/", "touchstone inspect-files --why results.json"),
    "import human-eval": (
        "touchstone import human-eval new --problems HumanEval.jsonl.gz \\\n      --samples samples.jsonl",
    ),
    "import forgetest": ("touchstone import forgetest new --eval-set eval-sets --samples report.json",),
    "import outputs": (
        "touchstone import outputs new --problems problems.csv \\\n      --clones clones --outputs gpt-4_outputs.jsonl",
    ),
    "import swe-bench": (
        "touchstone import swe-bench new --instances lite.jsonl \\\n      --predictions p.jsonl --clones clones",
    ),
    "init": ("touchstone init my_evaluation",),
    "synth": ("touchstone synth --output data --problems 50 --model good=0.8 bad=0.3",),
    "report": ("touchstone report --open", "touchstone report --save-to results.md"),
    "site": ("touchstone site results/* --output public",),
    "explore": ("touchstone explore", "touchstone explore --data results --no-open"),
    "audit": ("touchstone audit", "touchstone audit --data results", "touchstone audit logs/"),
    "show": ("touchstone show atlas-large tf-014", "touchstone show atlas-large tf-014 3 --tier T1"),
    "rule": (
        'touchstone rule atlas-large tf-014 3 failed --by "R. Li" \\\n      --reason "deletes the resource"',
        'touchstone rule tf-014 exclude --by "R. Li" --reason "its test is wrong"',
    ),
    "sql": ('touchstone sql "SELECT model, k, pass_at_k FROM pass_at_k"',),
    "tables": ("touchstone tables",),
    "chart": ("touchstone chart leaderboard --save-to leaderboard.svg", "touchstone chart --list"),
    "export": ("touchstone export pass_at_k --format markdown", "touchstone export --to inspect --save-to new"),
    "compare": (
        "touchstone compare before.eval after.eval",
        "touchstone compare previous latest --fail-on-verdict worse",
    ),
    "snapshots list": ("touchstone snapshots list --data results",),
    "snapshots pin": ("touchstone snapshots pin latest baseline",),
    "snapshots prune": ("touchstone snapshots prune --keep 20",),
    "history": ("touchstone history", "touchstone history --data results --json"),
    "blame": ("touchstone blame --from baseline --to latest",),
    "plan": ("touchstone plan --detect 3%", "touchstone plan --detect 0.03 --rate 0.6 --icc 0.5"),
    "validate": ("touchstone validate --problem tf-014 --fix fixed.tf",),
    "validators": ("touchstone validators",),
    "environments prepare": ("touchstone environments prepare --config evaluation_config.json",),
    "environments list": ("touchstone environments list",),
    "cache stats": ("touchstone cache stats --data results",),
    "cache prune": ("touchstone cache prune --data results --unused-for-days 30",),
    "ui": ("touchstone ui", "touchstone ui --config evaluation_config.json --port 3001"),
    "workers start": ("touchstone workers start --count 4",),
    "workers check": ("touchstone workers check tls://host:8786",),
    "doctor": ("touchstone doctor --deep",),
}


class _Panels(TyperGroup):
    """Lists the commands by panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of `--help`."""
        return sorted(super().list_commands(ctx), key=list(_PANEL_OF).index)


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
        command.rich_help_panel = None if group else _PANEL_OF[name]
        lines = "".join(f"\n  {line}" for line in EXAMPLES[f"{group} {name}".strip()])
        command.epilog = f"\b\nExamples:{lines}"  # `\b` keeps the lines as they are
    for inner in commands.registered_groups:
        inner.rich_help_panel = _PANEL_OF[str(inner.name)]
        if inner.typer_instance is not None:
            _with_help(inner.typer_instance, str(inner.name))
    return commands


# Every command module defines `commands`, a Typer app.
for module in (run, results, inputs, setup, report, show, compare, plan, validation):
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
    for name, value in (_POLARS_SETTINGS | _FREED_SOON | _ONE_BLAS_THREAD | _NO_PYDANTIC_PLUGINS).items():
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
        if not error.format_message():  # a group without a command, whose help was printed
            return _WRONG_USE
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
    return _WRONG_USE


if __name__ == "__main__":
    main()
