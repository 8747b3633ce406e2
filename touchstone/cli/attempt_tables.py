"""What `touchstone show` prints: a list of attempts, or one attempt in full."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from touchstone.cli.fitted_table import FittedTable, names, numbers, prose, terminal
from touchstone.publish.figures import dollars, number
from touchstone.text import counted, visible, visible_lines

if TYPE_CHECKING:
    import polars as pl

    from touchstone.publish.attempt_detail import AttemptDetail, TestResult

_MANY_TESTS = 40
_COLOURS = {"passed": "green", "failed": "red"}


def show_attempts(attempts: "pl.DataFrame") -> None:
    """Print the attempts of a model at a problem, one row each."""
    screen, first = terminal(), attempts.row(0, named=True)
    title = f"{first['model']}, problem {first['oid']}: {counted(attempts.height, 'attempt')}"
    table = FittedTable(
        [*names("tier", "attempt", "outcome"), *numbers("tests", "cost", "seconds"), *prose("message")],
        title=visible(title),
    )
    for row in attempts.iter_rows(named=True):
        ran, failed = row["tests_passed"], row["tests_failed"]
        tests = "-" if ran is None or failed is None else f"{ran}/{ran + failed}"
        cells = (row["tier"], row["iteration_id"], _outcome(row["status"]), tests, dollars(row["cost_usd"]))
        table.add_row(*cells, number(row["duration_seconds"]), row["message"] or "")
    table.print(screen)


def show_attempt(detail: "AttemptDetail") -> None:
    """Print one attempt: what it was and cost, its diff, the diagnostics and each test."""
    screen = terminal()
    screen.print(
        Text.assemble(
            (visible(f"{detail.model}, {detail.tier}, problem {detail.oid}, attempt {detail.iteration_id}: "), "bold"),
            _outcome(detail.status),
        )
    )
    for line in _facts(detail):
        screen.print(Text(visible(line)))
    if detail.diff is not None:
        _show_code(screen, "diff", detail.diff, "diff")
    elif detail.fix is not None:
        _show_code(screen, "fix, as written", detail.fix, "text")
    for title, text in (("before", detail.diagnostics_before), ("after", detail.diagnostics_after)):
        if text is not None:
            _show_text(screen, f"diagnostics {title}", text)
    _show_tests(screen, detail.tests)
    if detail.raw_response is not None:
        _show_text(screen, "response", detail.raw_response)
    for name, reason in detail.missing.items():
        screen.print(Text(visible(f"no {name}: {reason}"), style="dim"))


def _facts(detail: "AttemptDetail") -> Iterator[str]:
    given = {"suite": detail.suite, "class": detail.classification, "run": detail.run_id}
    yield ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
    tokens = [f"{count:,} {what} tokens" for count, what in _tokens(detail) if count is not None]
    spent = [*tokens, *([dollars(detail.cost_usd)] if detail.cost_usd is not None else [])]
    spent += [f"{detail.duration_seconds:g} s"] if detail.duration_seconds is not None else []
    spent += [f"latency {detail.latency_ms:g} ms"] if detail.latency_ms is not None else []
    if spent:
        yield ", ".join(spent)
    if detail.validator is not None:
        sandbox = f", sandbox {detail.sandbox}" if detail.sandbox else ""
        version = f" {detail.validator_version}" if detail.validator_version else ""
        yield f"validator {detail.validator}{version}, fidelity {detail.fidelity or '-'}{sandbox}"


def _tokens(detail: "AttemptDetail") -> Sequence[tuple[int | None, str]]:
    return ((detail.input_tokens, "input"), (detail.output_tokens, "output"))


def _show_code(screen: Console, title: str, text: str, language: str) -> None:
    screen.print(Text(f"{title}:", style="bold"))
    shown = "\n".join(visible(line.expandtabs()) for line in text.split("\n"))
    screen.print(Syntax(shown, language, background_color="default", word_wrap=True))


def _show_text(screen: Console, title: str, text: str) -> None:
    screen.print(Text(f"{title}:", style="bold"))
    screen.print(Text(visible_lines(text)))


def _show_tests(screen: Console, tests: Sequence["TestResult"]) -> None:
    """Print every test; of many, only those that did not pass."""
    told = [test for test in tests if test.status != "passed"] if len(tests) > _MANY_TESTS else tests
    if told:
        table = FittedTable([*names("test", "result"), *prose("message")])
        for test in told:
            table.add_row(test.test, _outcome(test.status), test.message)
        table.print(screen)
    if len(told) < len(tests):
        screen.print(f"{counted(len(tests) - len(told), 'other test')} passed")


def _outcome(status: str) -> Text:
    return Text(visible(status), style=_COLOURS.get(status, "yellow"))
