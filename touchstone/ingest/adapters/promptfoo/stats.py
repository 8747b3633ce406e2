"""The counts and scores that promptfoo reports, per column and for the whole file, beside those of the rows read."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import Cells, ReportedFigure

ALL = "all providers"
_ERRORS = "promptfoo counts errors as not passed; here they are undecided and left out of the pass rate"
_KEYS = {"testPassCount": "passed", "testFailCount": "failed", "testErrorCount": "errors"}
_STATS = {"successes": "passed", "failures": "failed", "errors": "errors"}


@dataclass
class Counts:
    """The rows of one column, or of all of them. The name is that of the column in reports."""

    model: str
    prompt: str | None
    passed: int = 0
    failed: int = 0
    errors: int = 0
    scores: list[float] = field(default_factory=list)
    unknown_scores: int = 0

    def add(self, cells: Cells) -> None:
        """Count one row."""
        outcome = cells.get("passed")
        self.passed += outcome == "true"
        self.failed += outcome == "false"
        self.errors += outcome is None
        score = cells.get("weighted_score")
        self.scores += [] if score is None else [float(score)]
        self.unknown_scores += outcome is not None and score is None


def counts_of(rows: Iterable[tuple[str, Cells]]) -> dict[str, Counts]:
    """The counts by column, and those of all rows under `ALL`."""
    counts = {ALL: Counts(ALL, None)}
    for column, cells in rows:
        counts.setdefault(column, Counts(cells["llm_name"] or "", cells["tier"] or cells["prompt_label"])).add(cells)
        counts[ALL].add(cells)
    return counts


def figures_of(results: Mapping[str, object], counts: Mapping[str, Counts]) -> list[ReportedFigure]:
    """Everything that the file states about its columns (`prompts`) and its rows (`stats`)."""
    figures = _figures(results.get("stats"), _STATS, counts[ALL])
    prompts = results.get("prompts")
    for place, prompt in enumerate(prompts if isinstance(prompts, list) else ()):
        metrics = prompt.get("metrics") if isinstance(prompt, dict) else None
        if str(place) in counts and isinstance(metrics, dict):
            column = counts[str(place)]
            figures += _figures(metrics, _KEYS, column)
            figures += _rate(metrics, column)
            reported = _number(metrics.get("score"))
            if reported is not None:
                figures.append(
                    ReportedFigure(column.model, _named("score", column), reported, math.fsum(column.scores))
                )
    return figures


def _figures(stated: object, keys: Mapping[str, str], counts: Counts) -> list[ReportedFigure]:
    given = stated if isinstance(stated, dict) else {}
    return [
        ReportedFigure(counts.model, _named(key, counts), reported, getattr(counts, attribute))
        for key, attribute in keys.items()
        if (reported := _number(given.get(key))) is not None
    ]


def _rate(metrics: Mapping[str, object], counts: Counts) -> list[ReportedFigure]:
    """The pass rate that promptfoo prints: errors are part of the denominator."""
    passed, failed, errors = (_number(metrics.get(key)) or 0 for key in _KEYS)
    total, read = passed + failed + errors, counts.passed + counts.failed + counts.errors
    reported = passed / total if total else None
    note = _ERRORS if counts.errors else None
    return [ReportedFigure(counts.model, _named("pass rate", counts), reported, counts.passed / read, note=note)]


def _named(key: str, counts: Counts) -> str:
    return key if counts.prompt is None else f"{key} ({counts.prompt})"


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, Number) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
