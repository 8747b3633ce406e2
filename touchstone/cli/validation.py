"""Commands about validation: `validate` one problem's fixes, list `validators`, manage the `cache` of reports, the
`environments` of Python problems and the `workers` on a Dask cluster.
"""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from touchstone.cli.console import print_messages, relative_path, show_progress
from touchstone.cli.options import CONFIG_OPTION, MultiValueCommand, config_or_default, data_option, output_folder
from touchstone.text import counted, counted_of, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console
    from rich.text import Text

    from touchstone.config import EvaluationConfig
    from touchstone.validation.cache import CacheStatistics
    from touchstone.validation.environments import ListedEnvironment
    from touchstone.validation.protocol import NoTarget, Report
    from touchstone.validation.registry import Capability
    from touchstone.validation.targets import Target
    from touchstone.validation.validation_detail import TestChange, ValidationDetail

_MANY_TESTS = 40
_CACHE_OPTION = data_option("Output folder of a run, or the config's cache_dir. [default: that of the current folder]")

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
def cache_stats(data: Annotated[Path | None, _CACHE_OPTION] = None) -> None:
    """Show the number of cached reports, their size and age."""
    from touchstone.validation.cache import find_cache

    with find_cache(output_folder(data)) as cache:
        show_cache(cache.statistics())


@cache_commands.command("prune")
def cache_prune(
    data: Annotated[Path | None, _CACHE_OPTION] = None,
    unused_for_days: Annotated[float, typer.Option(min=0, help="Delete reports that no run has used since.")] = 90.0,
) -> None:
    """Delete reports that were not used lately. A run that needs one validates again."""
    from touchstone.validation.cache import find_cache

    with find_cache(output_folder(data)) as cache:
        removed = cache.prune(unused_for_days)
        kept = cache.statistics().entries
    hint = "; a run that needs one validates again" if removed else ""
    print(f"{counted(removed, 'report')} removed, {kept:,} kept{hint}")


# Output


def show_validation(detail: "ValidationDetail") -> None:
    """Print one fix in full: its diff, the diagnostics and tests before and after, and the verdict."""
    from rich.syntax import Syntax

    from touchstone.cli.terminal_tables import terminal

    screen = terminal()
    problem, verdict = detail.target.problem, detail.verdict
    validator = f"{detail.target.validator}, fidelity {detail.fidelity or '-'}, sandbox {detail.sandbox}"
    cached = ", from the cache" if detail.cached else ""
    screen.print(f"[bold]{_shown(str(detail.fix))}[/] on problem {_shown(problem.oid)} ({validator}{cached})")
    if detail.diff:
        diff = "\n".join(visible(line.expandtabs()) for line in detail.diff.split("\n"))
        screen.print(Syntax(diff, "diff", background_color="default", word_wrap=True))
    _show_report(screen, "before", detail.baseline)
    if detail.report is not None:
        _show_report(screen, "after", detail.report)
    _show_tests(screen, detail.tests)
    colour = {"passed": "green", "failed": "red"}.get(verdict.status, "yellow")
    screen.print(f"[{colour}]{verdict.status}[/] {_shown(verdict.note)}".rstrip())
    if verdict.introduced_module is not None:
        new = f"{verdict.introduced_block} in block, {verdict.introduced_file} in file"
        in_block = "" if verdict.block_errors is None else f"{verdict.block_errors} in block, "
        screen.print(
            f"  Target errors {'are gone' if verdict.fixed else 'remain'}. New diagnostics: {new}, "
            f"{verdict.introduced_module} in module."
        )
        rule = "all of fail_to_pass and pass_to_pass" if problem.judged_tests else detail.success
        screen.print(f"  Errors left: {in_block}{verdict.module_errors} in module. Success rule: {rule}.")


def _show_report(screen: "Console", when: str, report: "Report") -> None:
    from touchstone.cli.terminal_tables import names, print_table, prose

    passed = sum(report.tests.values())
    tests = [f"{counted_of(passed, len(report.tests), 'test')} passed"] if report.tests else []
    if report.control is not None and when == "after":
        tests += [f"{len(report.control):,} confirmed by a negative control"]
    lint = [counted(report.lint_warnings, "lint warning")] if report.lint_warnings is not None else []
    extra = "; ".join([*tests, *lint, *([_shown(report.note)] if report.note else [])])
    screen.print(f"[bold]{when}:[/] {report.status}{f' ({extra})' if extra else ''}")
    if report.diagnostics:
        rows = (
            (
                found.severity,
                "\n".join(filter(None, (found.summary, found.detail, found.output))),
                f"{found.file or '-'}{f':{found.line}' if found.line else ''}",
            )
            for found in report.diagnostics
        )
        print_table([*names("severity"), *prose("message"), *names("location")], rows, screen)


def _show_tests(screen: "Console", tests: "Sequence[TestChange]") -> None:
    """Print every test before and after; of many, only those that did not pass both times."""
    from touchstone.cli.terminal_tables import names, print_table

    shown = [test for test in tests if not (test.before and test.after)] if len(tests) > _MANY_TESTS else tests
    if not tests:
        return
    grouped = any(test.group for test in shown)
    columns = names("test", "before", "after", *(["list"] if grouped else []))
    rows = ((test.name, _outcome(test.before), _outcome(test.after), test.group or "-") for test in shown)
    print_table(columns, (row[: len(columns)] for row in rows), screen)
    if len(shown) < len(tests):
        screen.print(f"{counted(len(tests) - len(shown), 'other test')} passed before and after")


def _outcome(passed: bool | None) -> "str | Text":
    from rich.text import Text

    return "-" if passed is None else Text("passed", style="green") if passed else Text("failed", style="red")


def _shown(text: str) -> str:
    """Foreign text, of one or several lines, with neither markup nor control characters in effect."""
    from rich.markup import escape

    return escape("\n".join(visible(line) for line in text.split("\n")))


def show_repeats(repeated: "Sequence[Mapping[str, Any]]") -> None:
    """Print how often each flaky test passed, and how many were repeated."""
    from touchstone.cli.terminal_tables import names, numbers, print_table, prose, terminal

    flaky = [one for one in repeated if one["flaky"]]
    runs = counted(max(one["runs"] for one in repeated), "run")
    tests = counted(sum(one["test"] is not None for one in repeated), "test result")
    screen = terminal()
    if not flaky:
        screen.print(f"[green]not flaky[/]: {tests} and all verdicts are the same in {runs}")
        return
    screen.print(f"[yellow]flaky[/]: the results of {runs} differ")
    rows = ((one["validated"], one["test"] or "verdict", f"{one['passes']} of {one['runs']}") for one in flaky)
    print_table([*names("validated"), *prose("test"), *numbers("passed")], rows, screen)


def show_inventory(entries: "Iterable[Capability]") -> None:
    """Print sandboxes and validators, and how to get those that are missing."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import names, print_table, prose

    words = {True: Text("usable", "green"), False: Text("missing", "yellow")}
    rows = ((words[each.usable], f"{each.kind} {each.name}", each.fidelity, each.detail) for each in entries)
    print_table([*names("", "what", "fidelity"), *prose("detail")], rows)


def show_cache(statistics: "CacheStatistics") -> None:
    """Print the number of cached reports by validator, their total size and age."""
    from touchstone.cli.terminal_tables import names, numbers, print_table, terminal

    screen, rows = terminal(), ((validator, f"{count:,}") for validator, count in statistics.by_validator.items())
    columns = [*names("validator"), *numbers("reports")]
    print_table(columns, rows, screen, title=str(relative_path(statistics.path)))
    since = (
        f", {_day(statistics.oldest)} to {_day(statistics.newest)}"
        if statistics.oldest is not None and statistics.newest is not None
        else ""
    )
    others = f", {statistics.foreign:,} of them signed by others and not used" if statistics.foreign else ""
    screen.print(f"{counted(statistics.entries, 'report')}{others}, {statistics.bytes / 2**20:,.1f} MiB{since}")


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


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
    from touchstone.validation.environments import prepare
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
        python = interpreter(settings.validation.python.interpreter)
        failures = prepare(folder, wanted, python, find_links or (), no_index)
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

    from touchstone.cli.terminal_tables import names, numbers, print_table, prose

    words = {True: Text("ready", "green"), False: Text("missing", "yellow")}
    rows = ((words[each.ready], each.name, f"{each.problems:,}", ", ".join(each.requirements)) for each in entries)
    print_table([*names("", "environment"), *numbers("problems"), *prose("requirements")], rows)


worker_commands = typer.Typer(help="Validate on a Dask cluster: try one here, or check yours.", no_args_is_help=True)
commands.add_typer(worker_commands, name="workers")


@worker_commands.command()
def start(
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1024, help="How many workers.")] = 2,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the scheduler, on loopback only.")] = 8786,
) -> None:
    """Start a scheduler and workers on this machine, for you alone (TLS), until Ctrl-C."""
    import json
    import signal
    import threading

    from touchstone.publish.local_server import listen
    from touchstone.workers.cluster import LOOPBACK, local_cluster

    listen(LOOPBACK, port).close()
    stopped = threading.Event()
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, lambda *_: stopped.set())
    with local_cluster(count, port) as settings:
        print(f"{count} workers at {settings.address}; in the configuration of an evaluation:")
        print(f'  "workers": {json.dumps({"kind": "dask", "address": settings.address})}')
        print("Ctrl-C stops them", flush=True)
        stopped.wait()


@worker_commands.command()
def check(
    address: Annotated[str | None, typer.Argument(help="Address of the scheduler, such as tls://host:8786.")] = None,
    config: Annotated[Path | None, typer.Option(help="Use the workers and validators of this configuration.")] = None,
) -> None:
    """List the workers of a cluster: accepted, or refused and why. Exits with 1 if one is refused or there is none."""
    from pydantic import ValidationError

    from touchstone.config import WorkerSettings, load_config
    from touchstone.config.validation import ValidationSettings
    from touchstone.errors import TouchstoneError
    from touchstone.validation.cluster import check_cluster

    settings, workers = ValidationSettings(), None
    if config is not None:
        loaded = load_config(config)
        settings, workers = loaded.validation, loaded.worker_settings
    if address is not None:
        try:
            tls = workers.tls if workers and address.startswith("tls://") else None
            workers = WorkerSettings(kind="dask", address=address, tls=tls)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise TouchstoneError(f"{address}: {reason}") from None
    if workers is None or workers.kind != "dask":
        raise TouchstoneError("give the address of a scheduler, or a --config whose 'workers' names one")
    if not workers.uses_tls:
        danger = "everyone who can connect runs programs as the user of its workers; docs/scale.md says how to use TLS"
        print(f"warning: {workers.address} has no TLS: {danger}", file=sys.stderr)
    with show_progress("trying every worker"):
        found = check_cluster(workers, settings)
    for place, (name, refused) in found.items():
        print(visible(f"{name} at {place}: {'accepted' if refused is None else f'refused: {refused}'}"))
    if not found:
        print(f"{workers.address}: the cluster has no worker; start some with `dask worker {workers.address}`")
    raise typer.Exit(int(not found or any(refused for _, refused in found.values())))
