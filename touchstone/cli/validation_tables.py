"""What the commands about validation print: one fix in full, validators, environments, and the cache."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.text import Text

from touchstone.cli.fitted_table import FittedTable, names, numbers, prose, terminal
from touchstone.cli.relative_paths import relative_path
from touchstone.text import counted, counted_of, visible

if TYPE_CHECKING:
    from touchstone.validation.cache import CacheStatistics
    from touchstone.validation.environments import ListedEnvironment
    from touchstone.validation.protocol import Report
    from touchstone.validation.registry import Capability
    from touchstone.validation.validation_detail import RepeatedResult, TestChange, ValidationDetail

_MANY_TESTS = 40


def show_validation(detail: "ValidationDetail") -> None:
    """Print one fix in full: its diff, the diagnostics and tests before and after, and the verdict."""
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


def _show_report(screen: Console, when: str, report: "Report") -> None:
    passed = sum(report.tests.values())
    tests = [f"{counted_of(passed, len(report.tests), 'test')} passed"] if report.tests else []
    if report.control is not None and when == "after":
        tests += [f"{len(report.control):,} confirmed by a negative control"]
    lint = [counted(report.lint_warnings, "lint warning")] if report.lint_warnings is not None else []
    extra = "; ".join([*tests, *lint, *([_shown(report.note)] if report.note else [])])
    screen.print(f"[bold]{when}:[/] {report.status}{f' ({extra})' if extra else ''}")
    if report.diagnostics:
        table = FittedTable([*names("severity"), *prose("message"), *names("location")])
        for found in report.diagnostics:
            message = "\n".join(filter(None, (found.summary, found.detail, found.output)))
            table.add_row(found.severity, message, f"{found.file or '-'}{f':{found.line}' if found.line else ''}")
        table.print(screen)


def _show_tests(screen: Console, tests: Sequence["TestChange"]) -> None:
    """Print every test before and after; of many, only those that did not pass both times."""
    told = [test for test in tests if not (test.before and test.after)] if len(tests) > _MANY_TESTS else tests
    if not tests:
        return
    grouped = any(test.group for test in told)
    table = FittedTable([*names("test", "before", "after"), *(names("list") if grouped else [])])
    for test in told:
        cells: list[str | Text] = [test.name, _outcome(test.before), _outcome(test.after)]
        table.add_row(*cells, *([test.group or "-"] if grouped else []))
    table.print(screen)
    if len(told) < len(tests):
        screen.print(f"{counted(len(tests) - len(told), 'other test')} passed before and after")


def _outcome(passed: bool | None) -> str | Text:
    return "-" if passed is None else Text("passed", style="green") if passed else Text("failed", style="red")


def _shown(text: str) -> str:
    """Foreign text, of one or several lines, with neither markup nor control characters in effect."""
    return escape("\n".join(visible(line) for line in text.split("\n")))


def show_repeats(repeated: Sequence["RepeatedResult"]) -> None:
    """Print how often each flaky test passed, and how many were repeated."""
    flaky = [one for one in repeated if one.flaky]
    runs = counted(max(one.runs for one in repeated), "run")
    tests = counted(sum(one.test is not None for one in repeated), "test result")
    screen = terminal()
    if not flaky:
        screen.print(f"[green]not flaky[/]: {tests} and all verdicts are the same in {runs}")
        return
    screen.print(f"[yellow]flaky[/]: the results of {runs} differ")
    table = FittedTable([*names("validated"), *prose("test"), *numbers("passed")])
    for one in flaky:
        table.add_row(one.validated, one.test or "verdict", f"{one.passes} of {one.runs}")
    table.print(screen)


def show_inventory(entries: Iterable["Capability"]) -> None:
    """Print sandboxes and validators, and how to get those that are missing."""
    table = FittedTable([*names("", "what", "fidelity"), *prose("detail")])
    for entry in entries:
        word, style = ("usable", "green") if entry.usable else ("missing", "yellow")
        table.add_row(Text(word, style=style), f"{entry.kind} {entry.name}", entry.fidelity, entry.detail)
    table.print(terminal())


def show_environments(entries: Iterable["ListedEnvironment"]) -> None:
    """Print environments, and whether they are ready."""
    table = FittedTable([*names("", "environment"), *numbers("problems"), *prose("requirements")])
    for entry in entries:
        word, style = ("ready", "green") if entry.ready else ("missing", "yellow")
        table.add_row(Text(word, style=style), entry.name, f"{entry.problems:,}", ", ".join(entry.requirements))
    table.print(terminal())


def show_cache(statistics: "CacheStatistics") -> None:
    """Print the number of cached reports by validator, their total size and age."""
    table = FittedTable([*names("validator"), *numbers("reports")], title=str(relative_path(statistics.path)))
    for validator, count in statistics.by_validator.items():
        table.add_row(validator, f"{count:,}")
    since = (
        f", {_day(statistics.oldest)} to {_day(statistics.newest)}"
        if statistics.oldest is not None and statistics.newest is not None
        else ""
    )
    screen = terminal()
    table.print(screen)
    others = f", {statistics.foreign:,} of them signed by others and not used" if statistics.foreign else ""
    screen.print(f"{counted(statistics.entries, 'report')}{others}, {statistics.bytes / 2**20:,.1f} MiB{since}")


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))
