"""Samples with a value for each of several metrics, as evaluation frameworks record them: which metric decides.

A metric decides if all its values are 0 or 1: by default the first of those that the tool prefers, else the first. The
user may name another (`score`). One with other values decides nothing: the samples are undecided and have it as score.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from touchstone.errors import InputFileError
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
from touchstone.ingest.adapters.tool_figures import mean
from touchstone.text import some_of

COLUMNS = words("oid iteration_id llm_name suite passed weighted_score metric input_tokens output_tokens")

# Of several generations, such as `pass@1:16` and `exact_match@5`.
_SEVERAL = re.compile(r".*@.*([2-9]|\d\d)")


@dataclass(frozen=True)
class Sample:
    """One sample, or why it is refused, with the values of its metrics; None is not scored."""

    record: Record
    values: dict[str, float | None]


def scored_table(
    path: Path,
    format_name: str,
    samples: Sequence[Sample],
    raw_reader: RawReader,
    score: str | None,
    preferred: Sequence[str] = (),
    stated: Mapping[tuple[str | None, str], float | None] | None = None,
    settings: Sequence[StatedSetting] = (),
    notes: Sequence[str] = (),
    files: Sequence[Path] = (),
) -> AdapterTable:
    """The table of samples; `stated` are the means that the tool states, by suite and metric."""
    metrics = list(dict.fromkeys(name for each in samples for name, value in each.values.items() if value is not None))
    deciding = [name for name in metrics if _decides(samples, name)]
    chosen = score or next((name for name in (*preferred, *deciding) if name in deciding), next(iter(metrics), None))
    if chosen is None or chosen not in metrics:
        reason = f"no score '{score}'; there are: {some_of(metrics, 10)}" if score else "no metric has a number"
        raise InputFileError(f"{path}: {reason}")
    for sample in samples:
        if sample.record.kind is None:
            sample.record.cells |= _verdict(sample.values, chosen, decides=chosen in deciding)
    others = [name for name in metrics if name != chosen]
    notes = [*notes, *([f"the score is {chosen}; others can be chosen: {some_of(others, 10)}"] if others else [])]
    if chosen not in deciding:
        notes.append(f"{chosen} is not a verdict on one attempt: the rows are undecided and have it as their score")
    table = table_from_records(path, format_name, COLUMNS, [each.record for each in samples], raw_reader, files=files)
    model = samples[0].record.cells["llm_name"] or ""
    figures = [
        ReportedFigure(model, name, value, _mean_of(samples, suite, name), suite)
        for (suite, name), value in (stated or {}).items()
        if name in metrics
    ]
    suites = dict.fromkeys(each.record.cells.get("suite") for each in samples if each.record.kind is None)
    scorers = [StatedSetting(model, "scorer", "metric", chosen, suite) for suite in suites]
    return table.stating(figures, [*settings, *scorers], notes)


def _decides(samples: Sequence[Sample], name: str) -> bool:
    return not _SEVERAL.match(name) and all(each.values.get(name) in (None, 0.0, 1.0) for each in samples)


def _verdict(values: Mapping[str, float | None], chosen: str, *, decides: bool) -> Cells:
    value = values.get(chosen)
    return {
        "metric": chosen,
        "passed": None if value is None or not decides else "true" if value == 1 else "false",
        "weighted_score": f"{value:.17g}" if value is not None and not decides and 0 <= value <= 1 else None,
        **{f"metric_{name}": None if each is None else f"{each:.12g}" for name, each in values.items()},
    }


def _mean_of(samples: Sequence[Sample], suite: str | None, name: str) -> float | None:
    own = (each for each in samples if each.record.kind is None and suite in (None, each.record.cells["suite"]))
    return mean([value for each in own if (value := each.values.get(name)) is not None])
