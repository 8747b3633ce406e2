"""TAP, the Test Anything Protocol, with subtests as Node.js and Perl write them."""

from collections.abc import Iterator

from touchstone.validation.test_reports.results import Outcome, ReportFormatError, SuiteResults, lines_of

_INDENT = 4
_MAX_DEPTH = 20


def read(text: str) -> SuiteResults:
    r"""The results of one run; a subtest is named `parent > child`.

    >>> read("1..2\nok 1 - adds\nnot ok 2 - subtracts\n").outcomes
    {'adds': 'passed', 'subtracts': 'failed'}
    """
    found, parents = SuiteResults(), [""] * _MAX_DEPTH
    plans, count = [], 0
    for depth, body in _protocol_lines(text):
        if depth == 0 and body.startswith("1.."):
            plans.append(_planned(body))
        elif depth == 0 and body.startswith("Bail out!"):
            found.error("the test run was abandoned", body)
        elif body.startswith("# Subtest: "):
            parents[depth] = body.removeprefix("# Subtest: ")
        elif (result := _result(body)) is not None:
            name, outcome = result
            count += depth == 0
            found.add(" > ".join([*filter(None, parents[:depth]), name]), outcome)
    if len(plans) != 1:
        raise ReportFormatError(f"has {len(plans)} plans instead of one line '1..N', so it is not whole")
    if count != plans[0]:
        raise ReportFormatError(f"plans {plans[0]:,} tests and reports {count:,}")
    return found


def _protocol_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its depth, without the indented YAML blocks that describe failures."""
    block_indent: int | None = None
    for line in lines_of(text):
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if block_indent is not None:
            if body == "..." and indent == block_indent:
                block_indent = None
        elif body == "---" and indent % _INDENT == 2:
            block_indent = indent
        elif indent % _INDENT == 0 and indent < _INDENT * _MAX_DEPTH:
            yield indent // _INDENT, body


def _planned(body: str) -> int:
    number = body.removeprefix("1..").partition("#")[0].strip()
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise ReportFormatError(f"has the unreadable plan {body[:50]!r}")
    return int(number)


def _result(body: str) -> tuple[str, Outcome] | None:
    """The name, or else the number, and the outcome in a test line: `not ok 3 - name # SKIP reason`."""
    failed = body.startswith("not ok")
    rest = body.removeprefix("not ").removeprefix("ok")
    if (not failed and not body.startswith("ok")) or rest[:1] not in ("", " "):
        return None
    description, _, directive = rest.strip().partition(" # ")
    word = directive[:4].upper()
    number, _, name = description.partition(" ")
    if not number.isdigit():
        number, name = "", description
    outcome: Outcome = "skipped" if word in ("SKIP", "TODO") else "failed" if failed else "passed"
    return name.strip().removeprefix("- ") or number, outcome
