"""The report on two evaluations, as JSON, Markdown for a pull request, JUnit XML and SARIF.

The same comparison gives the same bytes. Text for the terminal is drawn in `touchstone.cli.compare` from the sections
defined here. What counts as a regression belongs in `regressions`, the wording of verdicts in `verdicts`.
"""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from touchstone.comparison.comparability import Agreement, exploratory_reasons
from touchstone.comparison.regressions import CATEGORIES, KINDS, is_unequal
from touchstone.errors import TouchstoneError
from touchstone.text import counted, estimate, markdown_lines, markdown_paragraph, markdown_text
from touchstone.vocabulary import GATE_ANSWERS, VERDICTS

FORMATS = ("json", "markdown", "junit", "sarif")

_MAX_ROWS = 50
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
        """What must be read before any verdict: that the numbers of attempts make the best scores unfair."""
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


# Sections, which text and Markdown share


@dataclass(frozen=True)
class Section:
    """A table of cases of one kind: columns of names, then of numbers. `more` rows are left out."""

    title: str
    names: list[str]
    numbers: list[str]
    rows: list[list[str]]
    more: int


def sections(comparison: ComparisonReport) -> Iterator[Section]:
    """The cases that changed, one section per kind that there is."""
    for kind, title, numbers in (
        ("regression", "Regressions", ("baseline_score", "current_score", "delta")),
        ("lost", "Lost cases", ("baseline_score",)),
        ("improvement", "Improvements", ("baseline_score", "current_score", "delta")),
        ("new", "New cases", ("current_score",)),
        ("removed", "Removed cases", ("baseline_score",)),
    ):
        rows = comparison.of_kind(kind)
        if rows.is_empty():
            continue
        names = ["case", "model", *(["tier"] if comparison.has_tiers else [])]
        names += ["compared by"] if comparison.compared_by_pass_rate and "delta" in numbers else []
        headers = [name.removesuffix("_score") for name in numbers]
        shown = _cells(rows.head(_MAX_ROWS), names, numbers)
        yield Section(title, names, headers, shown, max(rows.height - _MAX_ROWS, 0))


def _cells(rows: pl.DataFrame, names: Iterable[str], numbers: Iterable[str]) -> list[list[str]]:
    return [
        [*(_name(name, row) for name in names), *(_number(name, row) for name in numbers)]
        for row in rows.iter_rows(named=True)
    ]


def _name(name: str, row: Row) -> str:
    if name == "compared by":
        return str(row["basis"] or "score").removesuffix("_score").replace("_", " ")
    return str(row[{"case": "oid", "change": "kind"}.get(name, name)])


def _number(name: str, row: Row) -> str:
    value = row[name]
    if value is None:
        return "-"
    return f"{value:+.3f}" if name == "delta" else f"{value:.3f}"


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
    """What was compared: baseline, current, score and threshold."""
    labels = f"{comparison.baseline_label} → {comparison.current_label}"
    return f"{labels}, {comparison.score_label} score, threshold {comparison.threshold:g}"


def exploratory_line(reasons: Sequence[str]) -> str:
    """The label of a comparison whose sides differ in what is required.

    >>> exploratory_line(["scorer: exact / fuzzy"])
    'exploratory: the two sides are not comparable (scorer: exact / fuzzy)'
    """
    return f"exploratory: the two sides are not comparable ({'; '.join(reasons)})"


def comparability_section(comparison: ComparisonReport) -> Section:
    """In which dimensions the two sides agree, with what is known about each."""
    rows = [
        [row.dimension + (" *" if row.required else ""), row.agreement, row.value_a, row.value_b]
        for row in comparison.comparability
    ]
    return Section("Comparability (* must agree)", ["dimension", "agreement", "baseline", "current"], [], rows, 0)


def gate_section(comparison: ComparisonReport) -> Section:
    """Every gate with its answer, those that do not hold first."""
    ordered = sorted(comparison.gates, key=lambda row: GATE_ANSWERS.index(row["answer"]))
    names = ["answer", "model", *(["tier"] if comparison.has_tiers else [])]
    rows = [[*(row[name] or "-" for name in names), row["sentence"]] for row in ordered[:_MAX_ROWS]]
    return Section("Gates", [*names, "gate"], [], rows, max(len(ordered) - _MAX_ROWS, 0))


# Markdown


def _markdown(comparison: ComparisonReport) -> str:
    """The worst verdict in words, a table of the models, and collapsed below it the cases and the other verdicts."""
    lines = [markdown_paragraph(line) for line in comparison.verdict_lines]
    blocks = [*map(markdown_paragraph, comparison.warnings), *lines[:1]]
    if comparison.exploratory:
        blocks.insert(0, f"**{markdown_text(exploratory_line(comparison.exploratory))}**")
    if comparison.gates:
        blocks.append(_markdown_table(gate_section(comparison)))
    if comparison.models:
        blocks.append(_markdown_table(model_section(comparison)))
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
    changed = case_section(comparison)
    if changed.rows:
        blocks += ["<details><summary>The cases that changed</summary>", _markdown_table(changed), "</details>"]
    if comparison.comparability:
        table = _markdown_table(comparability_section(comparison))
        blocks += ["<details><summary>Were the two sides comparable?</summary>", table, "</details>"]
    if lines[1:]:
        blocks += ["<details><summary>The other verdicts</summary>", *lines[1:], "</details>"]
    return "\n\n".join(blocks) + "\n"


def model_section(comparison: ComparisonReport) -> Section:
    """pass@1 before and after with intervals, the verdict on it and the number of changed cases, worst model first."""
    kinds = dict[tuple[str, str, str], int]()
    for model, tier, kind, count in comparison.cases.group_by("model", "tier", "kind").len().iter_rows():
        kinds[model, tier, kind] = count
    has_tiers = len({row["tier"] for row in comparison.models}) > 1

    def cells(row: Row) -> list[str]:
        model, tier = row["model"], row["tier"]
        worse, lost, better = (kinds.get((model, tier, kind), 0) for kind in ("regression", "lost", "improvement"))
        unchanged = row["ties"] and not row["wins"] and not row["losses"]
        return [
            *([model, tier] if has_tiers else [model]),
            "equal on every problem" if unchanged else row["verdict"],
            *(_ranged(row, name, f"{name}_", "{:.3f}") for name in ("rate_baseline", "rate_current")),
            _ranged(row, "difference", "adjusted_", "{:+.3f}"),
            f"{row['problems']:,}",
            f"{worse + lost:,}",
            f"{better:,}",
        ]

    ordered = sorted(comparison.models, key=lambda row: (VERDICTS.index(row["verdict"]), row["model"], row["tier"]))
    titles = ["pass@1 before", "pass@1 after", "difference", "problems", "cases worse", "cases better"]
    shown = list(map(cells, ordered[:_MAX_ROWS]))
    names = ["model", *(["tier"] if has_tiers else []), "verdict"]
    return Section("pass@1 before and after", names, titles, shown, len(ordered) - len(shown))


def _ranged(row: Row, figure: str, prefix: str, style: str) -> str:
    return estimate(row[figure], row[f"{prefix}ci_low"], row[f"{prefix}ci_high"], style.format)


def case_section(comparison: ComparisonReport) -> Section:
    """The cases that changed as one table, regressed and lost ones first."""
    kinds = [comparison.of_kind(kind) for kind in ("regression", "lost", "improvement", "new", "removed")]
    rows = pl.concat([each.head(_MAX_ROWS) for each in kinds])
    names = ["change", "case", "model", *(["tier"] if comparison.has_tiers else [])]
    names += ["compared by"] if comparison.compared_by_pass_rate else []
    columns = {"before": "baseline_score", "after": "current_score", "delta": "delta"}
    more = sum(each.height for each in kinds) - rows.height
    return Section("Cases that changed", names, list(columns), _cells(rows, names, columns.values()), more)


def markdown_section(section: Section) -> str:
    """A section as a heading and a table, in which all foreign text is inert."""
    return f"#### {markdown_text(section.title)}\n\n{_markdown_table(section)}"


def _markdown_table(section: Section) -> str:
    numeric = [False] * len(section.names) + [True] * len(section.numbers)
    table = "\n".join(markdown_lines([*section.names, *section.numbers], numeric, section.rows))
    return f"{table}\n\n… and {section.more:,} more" if section.more else table


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
        was = _number("baseline_score", row)
        return f"{row['oid']} of {row['model']} at {row['tier']}: scored {was} in the baseline, no decided attempt now"
    scores = f"{_number('baseline_score', row)} to {_number('current_score', row)} ({_number('delta', row)})"
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
