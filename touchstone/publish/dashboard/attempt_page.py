"""One attempt in full, as HTML: verdict, diff, diagnostics before and after, tests, cost and time, raw response."""

from typing import Any

from touchstone.publish.dashboard.figures import in_words
from touchstone.publish.dashboard.markup import block, diff_block, facts, heading, paragraph, table

_VERDICTS = {True: "passed", False: "failed", None: "undecided"}
# The texts in the order in which a reader wants them: the field of the attempt, and its heading.
_TEXTS = (
    ("diff", "Diff of the fix"),
    ("diagnostics_before", "Diagnostics before the fix"),
    ("diagnostics_after", "Diagnostics after the fix"),
    ("fix", "The fix as written"),
    ("raw_response", "Raw response"),
)
_MEASURED = (
    *("suite", "run_id", "classification", "input_tokens", "output_tokens", "cost_usd", "duration_seconds"),
    *("latency_ms", "validator", "validator_version", "fidelity", "sandbox", "validation_seconds", "fix_sha"),
)


def attempt_title(detail: Any) -> str:
    """Problem, attempt and verdict in words."""
    status = "" if detail.status == _VERDICTS[detail.passed] else f" ({detail.status})"
    return f"{detail.oid}, attempt {detail.iteration_id}: {_VERDICTS[detail.passed]}{status}"


def attempt_page(detail: Any) -> str:
    """The page of an `AttemptDetail`. What is not at hand says why."""
    measured = {in_words(name): getattr(detail, name) for name in _MEASURED}
    parts = [paragraph(f"{detail.model}, tier {detail.tier}"), facts(measured)]
    for name, words in _TEXTS:
        parts += [heading(words), _text(detail, name, words)]
        if name == "diagnostics_after":
            parts += [heading("Tests after the fix"), _tests(detail)]
    return f'<article class="attempt">{"".join(parts)}</article>'


def _text(detail: Any, name: str, words: str) -> str:
    content = getattr(detail, name)
    if content is None:
        return paragraph(f"Not available: {detail.missing.get(name, 'nothing was recorded')}.", "missing")
    return diff_block(content, words) if name == "diff" else block(content, words)


def _tests(detail: Any) -> str:
    if not detail.tests:
        return paragraph(f"Not available: {detail.missing.get('tests', 'no test ran')}.", "missing")
    rows = [(test.status, test.test, test.message) for test in detail.tests]
    failed = sum(status == "failed" for status, _, _ in rows)
    return table(("status", "test", "message"), rows, f"{len(rows):,} tests, {failed:,} failed")
