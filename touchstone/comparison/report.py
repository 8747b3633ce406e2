"""The report on two evaluations, as JSON, Markdown for a pull request, JUnit XML and SARIF.

The same comparison gives the same bytes. Text for the terminal is drawn in `touchstone.cli.compare` from the tables
declared here. The rule for regressions belongs in `regressions`, the wording of verdicts in `verdicts`.
"""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from touchstone.comparison.comparability import Agreement, exploratory_reasons
from touchstone.comparison.regressions import CATEGORIES, KINDS, is_unequal
from touchstone.errors import TouchstoneError
from touchstone.tables.presentation import (
    Cell,
    Column,
    ResultTable,
    count,
    estimate,
    figure,
    markdown_rows,
    name,
    number,
    signed,
    text,
)
from touchstone.text import counted, markdown_paragraph, markdown_text
from touchstone.vocabulary import GATE_ANSWERS, VERDICTS

FORMATS = ("json", "markdown", "junit", "sarif")

MOST_ROWS = 50
_ALWAYS_COUNTED = ("regression", "improvement", "unchanged")
_PLURALS = {"regression": "regressions", "improvement": "improvements"}
_ILLEGAL_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LOST_RULE = "lost"
_RULES = {
    "compilation": "Compiles less often than in the baseline.",
    "tests": "Passes fewer tests than in the baseline.",
    "lint": "Has more lint warnings than in the baseline.",
    "outcome": "Passes less often than in the baseline.",
    "score": "Scores lower than in the baseline.",
    _LOST_RULE: "Was judged in the baseline and has no decided attempt now.",
}
_RULE_IDS = [*(f"regression/{name}" for name in CATEGORIES), _LOST_RULE]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ComparisonReport:
    """Two evaluations compared: `cases` is the result of `compare_cases`, `verdict_lines` the verdicts in words.

    `remarks` are further lines for the reader, such as a difference in validation. `confidence` is the level of the
    intervals of pass@1 in `models`.
    """

    baseline_label: str
    current_label: str
    threshold: float
    score: str
    cases: pl.DataFrame
    verdict_lines: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    # A row per model and tier, with the columns of the table `baseline_verdicts`.
    models: list[dict[str, Any]] = field(default_factory=list)
    confidence: float = 0.95
    comparability: list[Agreement] = field(default_factory=list)
    # The rows of the table `gate_results`.
    gates: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def exploratory(self) -> list[str]:
        """Why the two sides are not comparable; empty if nothing that is required differs."""
        return exploratory_reasons(self.comparability)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of cases of each kind."""
        found = dict(self.cases.group_by("kind").len().iter_rows())
        return {kind: found.get(kind, 0) for kind in KINDS}

    @cached_property
    def compared_by_pass_rate(self) -> int:
        """Number of cases compared by pass rate because attempts lack the chosen score."""
        return int(self.cases["fallback"].sum())

    @cached_property
    def unequal(self) -> int:
        """Number of cases with more attempts on one side; 0 if their numbers are not known."""
        return self.cases.filter(is_unequal()).height if "baseline_attempts" in self.cases.columns else 0

    @property
    def score_label(self) -> str:
        """The score in words: `auto` takes the best attempt, or the mean of unequal numbers of them."""
        return self.score if self.score != "auto" else "best or mean" if self.unequal else "best"

    @cached_property
    def warnings(self) -> list[str]:
        """Read before any verdict: unequal numbers of attempts make best scores unfair."""
        if self.score != "best" or not self.unequal:
            return []
        which = f"for {self.unequal:,} of {counted(self.cases.height, 'case')}"
        return [f"unequal attempts: the best of more attempts is higher by chance, {which}; compare by the score mean"]

    @cached_property
    def expected_by_chance(self) -> float:
        """Number of regressions to expect if no case had changed."""
        return math.fsum(self.cases["chance_of_regression"].drop_nulls())

    @cached_property
    def notes(self) -> list[str]:
        """Cases compared by pass rate, lost cases, and the remarks, one line each."""
        rates, lost = self.compared_by_pass_rate, self.counts["lost"]
        reason = "compared by pass rate, because attempts on at least one side lack the score"
        lines = [f"{counted(rates, 'case was', 'cases were')} {reason}"] if rates else []
        lines += [f"{counted(lost, 'case')} lost: judged in the baseline, no decided attempt now"] if lost else []
        if self.score == "auto" and self.unequal:
            what = "different numbers of attempts on the two sides and"
            lines.append(
                f"1 case has {what} is compared by its mean"
                if self.unequal == 1
                else f"{self.unequal:,} cases have {what} are compared by their means"
            )
        return [*lines, *self.remarks]

    @cached_property
    def has_tiers(self) -> bool:
        """Whether there is more than one tier."""
        return self.cases["tier"].n_unique() > 1

    def of_kind(self, kind: str) -> pl.DataFrame:
        """The cases of one kind, largest change first."""
        rows = self.cases.filter(pl.col("kind") == kind)
        by = [pl.col("delta").abs(), *(pl.col(name) for name in ("model", "tier", "oid"))]
        return rows.sort(by, descending=[True, False, False, False], nulls_last=True)


def format_report(comparison: ComparisonReport, format: str) -> str:
    """The report in one of `FORMATS`.

    >>> cases = pl.DataFrame({"model": "m", "tier": "T0", "oid": "a", "baseline_score": [1.0], "current_score": 0.6,
    ...     "delta": -0.4, "category": "tests", "kind": "regression", "basis": "code_score", "fallback": False,
    ...     "chance_of_regression": 0.5})
    >>> report = ComparisonReport("old", "new", 0.05, "best", cases, ["Worse."])
    >>> print(format_report(report, "markdown").partition("|")[0].strip())
    Worse.
    <BLANKLINE>
    **1 regression (0.5 expected by chance alone), 0 improvements, 0 unchanged** (old → new, best score, threshold 0.05)
    <BLANKLINE>
    <details><summary>The cases that changed</summary>
    """
    formatters: dict[str, Callable[[ComparisonReport], str]] = {
        "json": _json,
        "markdown": _markdown,
        "junit": _junit,
        "sarif": _sarif,
    }
    if format not in formatters:
        raise TouchstoneError(f"unknown format '{format}'; choose one of {', '.join(FORMATS)}")
    # A file name may hold bytes that are not UTF-8 and could not be printed.
    return formatters[format](comparison).encode("utf-8", "replace").decode()


# Tables, which text and Markdown share


_DELTA = figure("delta", "delta", signed)


def case_tables(comparison: ComparisonReport) -> Iterator[ResultTable]:
    """The cases that changed, a table per kind that there is."""
    before, after = figure("baseline", "baseline_score"), figure("current", "current_score")
    for kind, title, scores in (
        ("regression", "Regressions", [before, after, _DELTA]),
        ("lost", "Lost cases", [before]),
        ("improvement", "Improvements", [before, after, _DELTA]),
        ("new", "New cases", [after]),
        ("removed", "Removed cases", [before]),
    ):
        rows = comparison.of_kind(kind)
        if rows.height:
            yield ResultTable(kind, title, [*_case_columns(comparison, _DELTA in scores), *scores], rows)


def _case_columns(comparison: ComparisonReport, is_compared: bool = True) -> list[Column]:
    """Which case it is and, if cases are compared by several scores, by which."""
    columns = [name("case", "oid"), name("model"), *([name("tier")] if comparison.has_tiers else [])]
    by = Column("compared by", _basis, "name")
    return [*columns, *([by] if is_compared and comparison.compared_by_pass_rate else [])]


def _basis(row: Row) -> Cell:
    return Cell((row["basis"] or "score").removesuffix("_score").replace("_", " "))


def count_line(comparison: ComparisonReport) -> str:
    """The number of cases of each kind in words.

    >>> cases = pl.DataFrame({"kind": ["new", "regression"], "chance_of_regression": [None, 0.25]})
    >>> count_line(ComparisonReport("a", "b", 0.05, "best", cases))
    '1 regression (0.2 expected by chance alone), 0 improvements, 0 unchanged, 1 new'
    """
    counts = comparison.counts
    kinds = [*_ALWAYS_COUNTED, *(kind for kind in KINDS if kind not in _ALWAYS_COUNTED and counts[kind])]
    words = {kind: counted(counts[kind], kind, _PLURALS.get(kind, kind)) for kind in kinds}
    if counts["regression"]:
        words["regression"] += f" ({comparison.expected_by_chance:,.1f} expected by chance alone)"
    return ", ".join(words.values())


def inputs_line(comparison: ComparisonReport) -> str:
    """Baseline, current, score and threshold of the comparison."""
    labels = f"{comparison.baseline_label} → {comparison.current_label}"
    return f"{labels}, {comparison.score_label} score, threshold {comparison.threshold:g}"


def exploratory_line(reasons: Sequence[str]) -> str:
    """The label of a comparison whose sides differ in what is required.

    >>> exploratory_line(["scorer: exact / fuzzy"])
    'exploratory: the two sides are not comparable (scorer: exact / fuzzy)'
    """
    return f"exploratory: the two sides are not comparable ({'; '.join(reasons)})"


def comparability_table(comparison: ComparisonReport) -> ResultTable:
    """In which dimensions the two sides agree, with what is known about each."""
    columns = [
        Column("dimension", lambda row: text(row["dimension"] + (" *" if row["required"] else "")), "name"),
        name("agreement"),
        name("baseline", "value_a"),
        name("current", "value_b"),
    ]
    rows = [vars(row) for row in comparison.comparability]
    return ResultTable("comparability", "Comparability (* must agree)", columns, rows)


def gate_table(comparison: ComparisonReport) -> ResultTable:
    """Every gate with its answer, those that do not hold first."""
    ordered = sorted(comparison.gates, key=lambda row: GATE_ANSWERS.index(row["answer"]))
    columns = [name("answer"), name("model"), *([name("tier")] if comparison.has_tiers else [])]
    return ResultTable("gates", "Gates", [*columns, name("gate", "sentence")], ordered)


# Markdown


def _markdown(comparison: ComparisonReport) -> str:
    """The worst verdict in words, a table of the models, and collapsed below it the cases and the other verdicts."""
    lines = [markdown_paragraph(line) for line in comparison.verdict_lines]
    blocks = [*map(markdown_paragraph, comparison.warnings), *lines[:1]]
    if comparison.exploratory:
        blocks.insert(0, f"**{markdown_text(exploratory_line(comparison.exploratory))}**")
    if comparison.gates:
        blocks.append(markdown_rows(gate_table(comparison), MOST_ROWS))
    if comparison.models:
        blocks.append(markdown_rows(model_table(comparison), MOST_ROWS))
        level = f"{100 * comparison.confidence:g}% confidence intervals"
        if (of_look := comparison.models[0].get("level")) is not None:
            level += f" ({100 * (1 - of_look):.4g}% for all differences together)"
        cases = (
            ""
            if comparison.score == "pass_rate"
            else f" Cases are compared by another score: {comparison.score_label}."
        )
        blocks.append(
            f"pass@1 is the mean pass rate, here on the problems that both sides decided, with {level}.{cases}"
        )
    blocks.append(f"**{count_line(comparison)}** ({markdown_text(inputs_line(comparison))})")
    blocks += [markdown_paragraph(line) for line in comparison.notes]
    changed = case_table(comparison)
    if len(changed.rows):
        blocks += ["<details><summary>The cases that changed</summary>", markdown_rows(changed), "</details>"]
    if comparison.comparability:
        table = markdown_rows(comparability_table(comparison))
        blocks += ["<details><summary>Were the two sides comparable?</summary>", table, "</details>"]
    if lines[1:]:
        blocks += ["<details><summary>The other verdicts</summary>", *lines[1:], "</details>"]
    return "\n\n".join(blocks) + "\n"


def model_table(comparison: ComparisonReport) -> ResultTable:
    """pass@1 before and after with intervals, the verdict on it and the number of changed cases, worst model first."""
    counts = comparison.cases.group_by("model", "tier", "kind").len().iter_rows()
    kinds = {(model, tier, kind): cases for model, tier, kind, cases in counts}

    def with_cases(row: Row) -> Row:
        worse, lost, better = (
            kinds.get((row["model"], row["tier"], kind), 0) for kind in ("regression", "lost", "improvement")
        )
        unchanged = row["ties"] and not row["wins"] and not row["losses"]
        shown = "equal on every problem" if unchanged else row["verdict"]
        return {**row, "shown": shown, "worse": worse + lost, "better": better}

    ordered = sorted(comparison.models, key=lambda row: (VERDICTS.index(row["verdict"]), row["model"], row["tier"]))
    columns = [
        name("model"),
        *([name("tier")] if len({row["tier"] for row in comparison.models}) > 1 else []),
        name("verdict", "shown"),
        estimate("pass@1 before", "rate_baseline", "rate_baseline_"),
        estimate("pass@1 after", "rate_current", "rate_current_"),
        estimate("difference", "difference", "adjusted_", "{:+.3f}"),
        count("problems"),
        count("cases worse", "worse"),
        count("cases better", "better"),
    ]
    return ResultTable("models", "pass@1 before and after", columns, list(map(with_cases, ordered)))


def case_table(comparison: ComparisonReport) -> ResultTable:
    """The first cases of each kind that changed as one table, regressed and lost ones first."""
    kinds = [comparison.of_kind(kind) for kind in ("regression", "lost", "improvement", "new", "removed")]
    scores = [figure("before", "baseline_score"), figure("after", "current_score"), _DELTA]
    columns = [name("change", "kind"), *_case_columns(comparison), *scores]
    total = sum(each.height for each in kinds)
    rows = pl.concat([each.head(MOST_ROWS) for each in kinds])
    return ResultTable("cases", "Cases that changed", columns, rows, full_height=total)


# JSON, JUnit XML and SARIF


def _json(comparison: ComparisonReport) -> str:
    head = _head(comparison)
    members = "".join(f" {_dumped(name)}: {_dumped(value)},\n" for name, value in head.items())
    finite = pl.when(pl.col(pl.Float64).is_finite()).then(pl.col(pl.Float64))
    cases = comparison.cases.with_columns(finite).write_ndjson().strip("\n").replace("\n", ",\n  ")
    return "{\n" + members + ' "cases": [' + (f"\n  {cases}\n " if cases else "") + "]\n}\n"


def _head(comparison: ComparisonReport) -> dict[str, object]:
    """All but the cases."""
    return {
        "baseline": comparison.baseline_label,
        "current": comparison.current_label,
        "score": comparison.score,
        "threshold": _finite(comparison.threshold),
        "exploratory": comparison.exploratory,
        "comparability": [vars(row) for row in comparison.comparability],
        "verdict": comparison.verdict_lines,
        "gates": [{name: _finite(value) for name, value in row.items()} for row in comparison.gates],
        "counts": comparison.counts,
        "expected_by_chance": comparison.expected_by_chance,
        "compared_by_pass_rate": comparison.compared_by_pass_rate,
        "notes": [*comparison.warnings, *comparison.notes],
    }


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows(comparison: ComparisonReport) -> Iterator[dict[str, Any]]:
    return comparison.cases.iter_rows(named=True)


def _junit(comparison: ComparisonReport) -> str:
    counts = comparison.counts
    total = sum(counts[kind] for kind in ("regression", "improvement", "unchanged", "lost", "unscored"))
    figures = {
        "tests": str(total),
        "failures": str(counts["regression"]),
        "errors": str(counts["lost"]),
        "skipped": str(counts["unscored"]),
    }
    root = ET.Element("testsuites", {"name": "touchstone compare", **figures})
    name = _legal(f"{comparison.baseline_label} → {comparison.current_label}")
    suite = ET.SubElement(root, "testsuite", {"name": name, **figures})
    for row in _rows(comparison):
        if row["kind"] not in ("new", "removed"):
            _add_testcase(suite, comparison, row)
    label = [exploratory_line(comparison.exploratory)] if comparison.exploratory else []
    if label:
        properties = ET.Element("properties")
        ET.SubElement(properties, "property", {"name": "exploratory", "value": _legal(label[0])})
        suite.insert(0, properties)
    first = [*label, *comparison.warnings, *comparison.verdict_lines]
    summary = [*first, count_line(comparison), *comparison.notes]
    ET.SubElement(suite, "system-out").text = _legal("\n".join(summary))
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_testcase(suite: ET.Element, comparison: ComparisonReport, row: Row) -> None:
    owner = f"{row['model']}.{row['tier']}" if comparison.has_tiers else row["model"]
    case = ET.SubElement(suite, "testcase", {"classname": _legal(owner), "name": _legal(row["oid"])})
    if row["kind"] == "regression":
        message = _legal(_message(row))
        ET.SubElement(case, "failure", {"type": f"regression/{row['category']}", "message": message})
    elif row["kind"] == "lost":
        ET.SubElement(case, "error", {"type": _LOST_RULE, "message": _legal(_message(row))})
    elif row["kind"] == "unscored":
        ET.SubElement(case, "skipped", {"message": "not scored on both sides"})


def _legal(text: str) -> str:
    return _ILLEGAL_XML.sub("", text)


def _message(row: Row) -> str:
    if row["kind"] == "lost":
        was = number(row["baseline_score"])
        return f"{row['oid']} of {row['model']} at {row['tier']}: scored {was} in the baseline, no decided attempt now"
    scores = f"{number(row['baseline_score'])} to {number(row['current_score'])} ({signed(row['delta'])})"
    return f"{row['oid']} of {row['model']} at {row['tier']}: the score fell from {scores}; {row['category']} got worse"


def _sarif(comparison: ComparisonReport) -> str:
    texts = [_RULES[name] for name in (*CATEGORIES, _LOST_RULE)]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in zip(_RULE_IDS, texts, strict=True)]
    results = [_result(row) for row in _rows(comparison) if row["kind"] in ("regression", "lost")]
    run = {
        "tool": {"driver": {"name": "touchstone", "rules": rules}},
        "results": results,
        "properties": _head(comparison),
    }
    report = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(report, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _result(row: Row) -> dict[str, object]:
    # SARIF messages use braces as placeholders and brackets as links: a brace is doubled, a bracket escaped.
    message = re.sub(r"[\\\[\]]", r"\\\g<0>", _message(row)).replace("{", "{{").replace("}", "}}")
    location = {"name": row["oid"], "fullyQualifiedName": f"{row['model']}/{row['tier']}/{row['oid']}"}
    figures = {name: _finite(row[name]) for name in ("baseline_score", "current_score", "delta")}
    rule = _LOST_RULE if row["kind"] == "lost" else f"regression/{row['category']}"
    return {
        "ruleId": rule,
        "ruleIndex": _RULE_IDS.index(rule),
        "level": "error",
        "message": {"text": message},
        "locations": [{"logicalLocations": [location]}],
        "properties": figures,
    }
