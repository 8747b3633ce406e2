"""`touchstone show`: the attempts of a model at a problem, or one in full; `touchstone rule`: a ruling on them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from touchstone.cli.console import print_data
from touchstone.cli.options import DATA_OPTION, output_folder
from touchstone.errors import TouchstoneError
from touchstone.tables.presentation import dollars, number
from touchstone.text import counted, visible, visible_lines
from touchstone.vocabulary import RULINGS

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.text import Text

    from touchstone.publish.attempt_detail import AttemptDetail, TestResult

_MANY_TESTS = 40
_COLOURS = {"passed": "green", "failed": "red"}

commands = typer.Typer()


@commands.command()
def show(
    model: Annotated[str, typer.Argument(help="Model.")],
    problem: Annotated[str, typer.Argument(help="Problem, by its oid.")],
    attempt: Annotated[
        str | None, typer.Argument(help="Attempt, by its iteration_id. [default: list all attempts]")
    ] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
    tier: Annotated[str | None, typer.Option(help="Tier. [default: all, or the one that has the attempt]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the attempts of a model at a problem, or one attempt in full: diff, diagnostics, tests, cost."""
    from touchstone.publish.attempt_detail import attempt_detail, attempts_of
    from touchstone.storage.output_folders import results_folder

    folder = results_folder(output_folder(data))
    listed = attempts_of(folder, model, tier, problem)
    if attempt is None:
        if as_json:
            print_data(listed.write_json() + "\n")
            return
        show_attempts(listed)
        return
    detail = attempt_detail(folder, model, tier or _only_tier(listed, attempt), problem, attempt)
    if as_json:
        print_data(json.dumps(asdict(detail), indent=1) + "\n")
        return
    show_attempt(detail)


def _only_tier(listed: "pl.DataFrame", attempt: str) -> str:
    """The tier that has the attempt; of several, the user must choose."""
    having = listed.filter(listed["iteration_id"] == attempt) if attempt in listed["iteration_id"] else listed
    tiers = having["tier"].unique().sort().to_list()
    if len(tiers) > 1:
        raise TouchstoneError(f"attempt '{attempt}' exists in several tiers; add --tier {' or '.join(tiers)}")
    return str(tiers[0])


# Output


def show_attempts(attempts: "pl.DataFrame") -> None:
    """Print the attempts of a model at a problem, one row each."""
    from touchstone.cli.terminal_tables import names, numbers, print_table, prose

    def cells(row: Mapping[str, Any]) -> "Iterator[str | Text]":
        ran, failed = row["tests_passed"], row["tests_failed"]
        tests = "-" if ran is None or failed is None else f"{ran}/{ran + failed}"
        outcome = _outcome(f"{row['ruling']} (ruled)" if row["ruling"] else row["status"])
        yield from (row["tier"], row["iteration_id"], outcome, tests, dollars(row["cost_usd"]))
        yield from (number(row["duration_seconds"]), row["message"] or "")

    first = attempts.row(0, named=True)
    title = f"{first['model']}, problem {first['oid']}: {counted(attempts.height, 'attempt')}"
    columns = [*names("tier", "attempt", "outcome"), *numbers("tests", "cost", "seconds"), *prose("message")]
    print_table(columns, map(cells, attempts.iter_rows(named=True)), title=title)


def show_attempt(detail: "AttemptDetail") -> None:
    """Print one attempt: what it was and cost, its diff, the diagnostics and each test."""
    from rich.text import Text

    from touchstone.cli.terminal_tables import terminal
    from touchstone.publish.attempt_detail import flag_words, outcome_words

    screen = terminal()
    screen.print(
        Text.assemble(
            (visible(f"{detail.model}, {detail.tier}, problem {detail.oid}, attempt {detail.iteration_id}: "), "bold"),
            _outcome(outcome_words(vars(detail)) if detail.ruling else detail.status),
        )
    )
    flags = (f"flagged: {flag_words(row)}" for row in detail.flags)
    for line in (*_facts(detail), *map(_ruling, detail.rulings), *flags):
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
    counts = {"input": detail.input_tokens, "output": detail.output_tokens}
    tokens = [f"{count:,} {what} tokens" for what, count in counts.items() if count is not None]
    spent = [*tokens, *([dollars(detail.cost_usd)] if detail.cost_usd is not None else [])]
    spent += [f"{detail.duration_seconds:g} s"] if detail.duration_seconds is not None else []
    spent += [f"latency {detail.latency_ms:g} ms"] if detail.latency_ms is not None else []
    if spent:
        yield ", ".join(spent)
    if detail.validator is not None:
        sandbox = f", sandbox {detail.sandbox}" if detail.sandbox else ""
        version = f" {detail.validator_version}" if detail.validator_version else ""
        yield f"validator {detail.validator}{version}, fidelity {detail.fidelity or '-'}{sandbox}"


def _ruling(row: Mapping[str, Any]) -> str:
    when = f", {row['at']}" if row["at"] else ""
    left_out = "" if row["applied"] else f" (not applied: {row['why_not']})"
    return f"ruled {row['ruling']} by {row['by']}{when}: {row['reason']}{left_out}"


def _show_code(screen: "Console", title: str, text: str, language: str) -> None:
    from rich.syntax import Syntax
    from rich.text import Text

    screen.print(Text(f"{title}:", style="bold"))
    text = "\n".join(visible(line.expandtabs()) for line in text.split("\n"))
    screen.print(Syntax(text, language, background_color="default", word_wrap=True))


def _show_text(screen: "Console", title: str, text: str) -> None:
    from rich.text import Text

    screen.print(Text(f"{title}:", style="bold"))
    screen.print(Text(visible_lines(text)))


def _show_tests(screen: "Console", tests: Sequence["TestResult"]) -> None:
    """Print every test; of many, only those that did not pass."""
    from touchstone.cli.terminal_tables import names, print_table, prose

    shown = [test for test in tests if test.status != "passed"] if len(tests) > _MANY_TESTS else tests
    if shown:
        rows = ((test.test, _outcome(test.status), test.message) for test in shown)
        print_table([*names("test", "result"), *prose("message")], rows, screen)
    if len(shown) < len(tests):
        screen.print(f"{counted(len(tests) - len(shown), 'other test')} passed")


def _outcome(status: str) -> "Text":
    from rich.text import Text

    return Text(visible(status), style=_COLOURS.get(status, "yellow"))


@commands.command()
def rule(
    first: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model. Leave it out, or give '*', to exclude a problem for all.")
    ],
    second: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, by its oid.")],
    third: Annotated[
        str | None, typer.Argument(metavar="ATTEMPT", help="Attempt, by its iteration_id. [default: all attempts]")
    ] = None,
    fourth: Annotated[
        str | None, typer.Argument(metavar="RULING", help=f"One of {', '.join(RULINGS)}: the last word.")
    ] = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the report shows it.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who rules.")],
    tier: Annotated[str | None, typer.Option(help="Tier. [default: all, or the one that has the attempt]")] = None,
    data: Annotated[Path | None, DATA_OPTION] = None,
) -> None:
    """Rule on an attempt or a problem. The next run counts the ruling and keeps the measured outcome beside it.

    Adds a line to rulings.jsonl beside the inputs. To take a ruling back, delete its line.
    """
    from touchstone.cli.console import relative_path
    from touchstone.publish.ruling import rule_on_attempts, rule_on_problem, rulings_file
    from touchstone.storage.output_folders import results_folder

    *names, ruling = [word for word in (first, second, third, fourth) if word is not None]
    if ruling not in RULINGS:
        raise TouchstoneError(f"'{ruling}' is not a ruling; end with one of {', '.join(RULINGS)}")
    results = results_folder(output_folder(data))
    if len(names) == 1 or names[0] == "*":
        if len(names) == 3 or tier is not None:
            raise TouchstoneError("a problem is excluded as a whole; name no attempt and no tier, or name the model")
        rulings = rule_on_problem(results, names[-1], ruling, reason, by)
    else:
        model, problem, attempt = names[0], names[1], names[2] if len(names) == 3 else None
        rulings = rule_on_attempts(results, model, tier, problem, attempt, ruling, reason, by)
    for each in rulings:
        who = f"{each.model}, {each.tier}, {each.problem}, attempt {each.attempt}" if each.model else each.problem
        print(visible(f"{who}: {each.was or 'counted'} → {'excluded' if ruling == 'exclude' else ruling}"))
    added = f"{counted(len(rulings), 'line')} added to {relative_path(rulings_file(results))}"
    print(f"{added}; `touchstone run` applies {'it' if len(rulings) == 1 else 'them'}")
