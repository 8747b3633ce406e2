"""Figures by the rules of other tools, to show that a file was read as the tool itself reads it.

Touchstone's own figures do not come from here: `touchstone.metrics.pass_at_k` also handles undecided attempts.

Evaluation frameworks record samples with a value for each of several metrics. A metric decides if all its values are 0
or 1: by default the first of those that the tool prefers, else the first. The user may name another (`score`). One with
other values decides nothing: the samples are undecided and have it as score.
"""

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import NotEvaluatedError
from touchstone.ingest.adapters.json_files import number_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RawReader,
    Record,
    ReportedFigure,
    StatedSetting,
    table_from_records,
    words,
)
from touchstone.ingest.csv_rows import ROW_ERROR_KIND
from touchstone.text import some_of

# The attempts and the passed attempts of each problem.
Counts = Collection[tuple[int, int]]
_COLUMNS = words("oid iteration_id llm_name suite passed weighted_score metric input_tokens output_tokens")
_SEVERAL = re.compile(r".*@.*([2-9]|\d\d)")


def is_of_one(metric: str) -> bool:
    """Whether a metric is of one generation by its name, unlike `pass@1:16` and `exact_match@5`."""
    return not _SEVERAL.match(metric)


def mean(values: Sequence[float]) -> float | None:
    """The plain mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def estimate(attempts: int, passed: int, k: int) -> float:
    """The unbiased pass@k of Chen et al. (2021), 1 - C(n - c, k) / C(n, k); like their function, 1 if n < k.

    >>> estimate(3, 1, 1), estimate(3, 1, 2), estimate(1, 0, 5)
    (0.33333333333333337, 0.6666666666666667, 1.0)
    """
    if attempts - passed < k:
        return 1.0
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


def pass_at_k(counts: Counts, k: int) -> float | None:
    """The mean of `estimate` over the problems with at least `k` attempts.

    >>> pass_at_k([(2, 1), (2, 0), (1, 1)], 2)
    0.5
    """
    return mean([estimate(attempts, passed, k) for attempts, passed in counts if attempts >= k])


def count_by_problem(attempts: Iterable[tuple[str | None, bool]]) -> Counts:
    """The counts of attempts that are given as the problem and whether it was solved."""
    counts: dict[str | None, tuple[int, int]] = {}
    for problem, solved in attempts:
        total, passed = counts.get(problem, (0, 0))
        counts[problem] = (total + 1, passed + solved)
    return list(counts.values())


def counts_of_records(records: Iterable[Record], suite: str | None = None) -> Counts:
    """The counts of the accepted records, of one suite if one is named."""
    return count_by_problem(
        (record.cells["oid"], record.cells["passed"] == "true")
        for record in records
        if record.kind is None and suite in (None, record.cells.get("suite"))
    )


def counts_of_table(table: AdapterTable, suite: str | None = None) -> Counts:
    """The counts of the accepted rows, of one suite if one is named."""
    rows = table.rows.filter(pl.col(ROW_ERROR_KIND).is_null())
    rows = rows if suite is None else rows.filter(pl.col("suite") == suite)
    solved = (pl.col("passed") == "true").sum()
    with table.reading():
        counts = rows.group_by("oid").agg(attempts=pl.len(), solved=solved).collect(engine="streaming")
    return list(counts.select("attempts", "solved").iter_rows())


def pass_at_k_figures(
    model: str,
    counts: Counts,
    ks: Collection[int],
    stated: Mapping[str, float | None] | None = None,
    suite: str | None = None,
) -> list[ReportedFigure]:
    """pass@k for every k that each problem has attempts for, as the tools do, beside the `stated` values."""
    fewest = min((attempts for attempts, _ in counts), default=0)
    figures = []
    for k in ks:
        reported = (stated or {}).get(f"pass@{k}")
        if k <= fewest:
            figures.append(ReportedFigure(model, f"pass@{k}", reported, pass_at_k(counts, k), suite))
        elif reported is not None:
            note = f"undefined: a problem has fewer than {k} attempts ({fewest})"
            figures.append(ReportedFigure(model, f"pass@{k}", reported, None, suite, note))
    return figures


def reported_pass_at_k(stated: object) -> Mapping[int, float]:
    """The figures of an object such as `{"2": 0.5}`, by k."""
    if not isinstance(stated, dict):
        return {}
    figures = ((key, number_of(value)) for key, value in stated.items())
    # A k of more than four digits is none, and could make the formula above run for hours.
    return {int(key): value for key, value in figures if value is not None and key.isdecimal() and len(key) < 5}


def tokens_without_cache(prompt: str | None, *cached: str | None) -> str | None:
    """The prompt tokens of a tool that counts those read from and written to a cache among them.

    >>> tokens_without_cache("100", "30", None), tokens_without_cache("100", "300"), tokens_without_cache("x", "1")
    ('70', '100', 'x')
    """
    counts = [number_of(each) or 0 for each in cached]
    total = number_of(prompt)
    # More cached tokens than there are in total were counted apart.
    if total is None or not any(counts) or sum(counts) > total:
        return prompt
    return f"{total - sum(counts):.0f}"


@dataclass(frozen=True)
class Sample:
    """One sample, or why it is refused, with the values of its metrics; None is not scored."""

    record: Record
    values: dict[str, float | None]


class _Metrics:
    """The values of each metric by suite, in the order of their first use, and those that can decide."""

    def __init__(self, samples: Iterable[Sample], decides: Callable[[str], bool]) -> None:
        self.values: dict[str, dict[tuple[str | None, str | None], array[float]]] = {}
        self.suites: dict[str | None, None] = {}
        self.model = ""
        graded, known = set[str](), set[int]()
        for sample in samples:
            cells = sample.record.cells
            # Of an attempt that is there twice, the first counts.
            suite, attempt = cells.get("suite"), hash((cells["llm_name"], cells.get("oid"), cells.get("iteration_id")))
            accepted = sample.record.kind is None and attempt not in known
            known.add(attempt)
            self.model = self.model or cells["llm_name"] or ""
            if accepted:
                self.suites.setdefault(suite)
            for name, value in sample.values.items():
                if value is not None:
                    by_suite = self.values.setdefault(name, {})
                    graded |= {name} if value not in (0.0, 1.0) else set()
                    if accepted:
                        by_suite.setdefault((suite, cells.get("iteration_id")), array("d")).append(value)
        self.deciding = [name for name in self.values if name not in graded and decides(name)]

    def mean(self, suite: str | None, name: str, *, of_rounds: bool) -> float | None:
        """The mean of a metric over the samples of a suite, or of all; `of_rounds`, that of each round's mean."""
        rounds = [values for (own, _), values in self.values[name].items() if suite in (None, own)]
        return mean([math.fsum(each) / len(each) for each in rounds] if of_rounds else [*chain(*rounds)])


def scored_table(
    path: Path,
    format_name: str,
    samples: Iterable[Sample],
    raw_reader: RawReader,
    score: str | None,
    preferred: Sequence[str] = (),
    stated: Mapping[tuple[str | None, str], float | None] | None = None,
    settings: Sequence[StatedSetting] = (),
    notes: Sequence[str] = (),
    files: Sequence[Path] = (),
    decides: Callable[[str], bool] = is_of_one,
    *,
    of_rounds: bool = False,
) -> AdapterTable:
    """The table of samples; `stated` are the means that the tool states, by suite and metric.

    With `of_rounds`, they are means of the means of the first attempts, the second attempts and so on. A metric that
    is 0 or 1 is the verdict if `decides` says so of its name: more is better, and it is of one generation.

    `samples` are iterated twice, because the first metric that decides is known only after the last sample.
    """
    metrics = _Metrics(samples, decides)
    deciding, names = metrics.deciding, list(metrics.values)
    if not names and not metrics.suites:
        raise InputFileError(f"{path}: no sample can be read")
    if not names:
        raise NotEvaluatedError(f"{path}: no metric has a number for a sample, as for perplexity", "ignored")
    chosen = score or next((name for name in (*preferred, *deciding) if name in deciding), names[0])
    if chosen not in names:
        raise InputFileError(f"{path}: no score '{score}'; there are: {some_of(names, 10)}")

    def records() -> Iterator[Record]:
        for sample in samples:
            if sample.record.kind is None:
                sample.record.cells |= _verdict(sample.values, chosen, decides=chosen in deciding)
            yield sample.record

    others = [name for name in names if name != chosen]
    notes = [*notes, *([f"the score is {chosen}; others can be chosen: {some_of(others, 10)}"] if others else [])]
    if chosen not in deciding:
        notes.append(f"{chosen} is not a verdict on one attempt: the rows are undecided and have it as their score")
    figures = [
        ReportedFigure(metrics.model, name, value, metrics.mean(suite, name, of_rounds=of_rounds), suite)
        for (suite, name), value in (stated or {}).items()
        if name in names
    ]
    scorers = [StatedSetting(metrics.model, "scorer", "metric", chosen, suite) for suite in metrics.suites]
    table = table_from_records(path, format_name, _COLUMNS, records(), raw_reader, files=files)
    return table.stating(figures, [*settings, *scorers], notes)


def _verdict(values: Mapping[str, float | None], chosen: str, *, decides: bool) -> Cells:
    value = values.get(chosen)
    return {
        "metric": chosen,
        "passed": None if value is None or not decides else "true" if value == 1 else "false",
        "weighted_score": f"{value:.17g}" if value is not None and not decides and 0 <= value <= 1 else None,
        **{f"metric_{name}": None if each is None else f"{each:.12g}" for name, each in values.items()},
    }
