"""Why attempts fail: the reason of each failed attempt, and its fingerprint, which is the same for failures alike.

The reason is the first line of an attempt's diagnostics that says more than that a test did not report. A fingerprint
is that line without what varies between failures of one kind: places, names of tests, quoted values, numbers, addresses
and temporary files. It is made by the patterns below, one after the other, and so depends on nothing but its own line.
An online clusterer (drain3 was tried) depends on the order of lines, and a new night would rename old failures.
"""

import polars as pl

from touchstone.metrics.keys import PROBLEM_KEY, without_excluded

MOST_CHARACTERS = 120
_EXAMPLE_CHARACTERS = 200
_PLACE = r"[\w.~+-]*[./][\w./~+-]*"
_PATTERNS = (
    # What the verdict puts before a diagnostic, and a diagnostic before its message.
    (r"^(?:still there|left in the block|new): ", ""),
    (r"^(?:error|warning): ", ""),
    # A summary with a place is followed by details.
    (rf"^([^:(]+) \({_PLACE}(?::\d+)?\)(?:: .*)?$", "$1"),
    # The name of a test, if a message follows.
    (r"^(test failed|not collected): .+?: (.)", "$1: $2"),
    (r"\bAssertionError: assert\b", "assert"),
    (r"\bassert .+? (==|!=|<=|>=|<|>|in|not in|is|is not) .*$", "assert … $1 …"),
    (r"\bassert (?:[^…].*)?$", "assert …"),
    (r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'…'"),
    (r"(^|[\s(\[=,:])(?:[A-Za-z]:)?[\w.~+-]*[/\\][\w./\\~+-]+(?::\d+)*", "${1}path"),
    (
        r"\b[\w-]+\.(?:py|tf|rs|go|js|jsx|ts|tsx|java|rb|php|c|h|cc|cpp|cs|json|ya?ml|toml|txt|log|tmp)\b(?::\d+)*",
        "path",
    ),
    (r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:\d+[a-f]|[a-f]+\d)[0-9a-f]{6,}\b", "#"),
    (r"[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?", "#"),
    # Lists, calls and the like, from the inside out.
    *((r"\[[^\[\](){}]*\]|\{[^\[\](){}]*\}|\([^\[\](){}]*\)", "…"),) * 3,
    (r"…(?:[\s,.]*…)+", "…"),
    (r"\s+", " "),
)


def reason(diagnostics: pl.Expr) -> pl.Expr:
    """The line that says why an attempt failed; null if none does.

    >>> said = "still there: error: test did not report: t; new: error: not collected: t.py: SyntaxError: bad\\nmore"
    >>> pl.select(reason(pl.lit(said))).item()
    'not collected: t.py: SyntaxError: bad'
    """
    lines = diagnostics.str.replace_all(r"; (?:left in the block|new): (error|warning): ", "\n$1: ").str.split("\n")
    plain = pl.element().str.replace(_PATTERNS[0][0], "").str.replace(_PATTERNS[1][0], "").str.strip_chars()
    said = lines.list.eval(plain.filter(plain != ""))
    telling = said.list.eval(pl.element().filter(~pl.element().str.contains("did not report")))
    return pl.coalesce(telling.list.first(), said.list.first())


def fingerprint(line: pl.Expr) -> pl.Expr:
    """The line without what varies between failures of one kind.

    >>> lines = ["test failed: test_a: AssertionError: assert [1, 2] == [1]", "NameError: name 'x' is not defined",
    ...          "Unsupported argument (net/main.tf:14): An argument named \\"ipv6\\" is not expected here."]
    >>> pl.select(fingerprint(pl.lit(pl.Series(lines)))).to_series().to_list()
    ['test failed: assert … == …', "NameError: name '…' is not defined", 'Unsupported argument']
    """
    for pattern, replacement in _PATTERNS:
        line = line.str.replace_all(pattern, replacement)
    return line.str.strip_chars().str.slice(0, MOST_CHARACTERS)


def failures(outcomes: pl.LazyFrame) -> pl.LazyFrame:
    """The table `failures`: how often each model fails at each problem in each way that is known."""
    failed = without_excluded(outcomes).filter(~pl.col("passed"), pl.col("diagnostics").is_not_null())
    return (
        failed.group_by(*PROBLEM_KEY, "diagnostics")
        .len("attempts")
        .with_columns(reason=reason(pl.col("diagnostics")))
        .filter(pl.col("reason").is_not_null())
        .with_columns(fingerprint=fingerprint(pl.col("reason")))
        .group_by(*PROBLEM_KEY, "fingerprint")
        .agg(pl.col("attempts").sum().cast(pl.Int64), example=pl.col("reason").min().str.slice(0, _EXAMPLE_CHARACTERS))
        .sort(*PROBLEM_KEY, "fingerprint")
    )
