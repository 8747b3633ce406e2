"""Adapter for CRUXEval's scored generations: `raw_scored_generations` has a list of booleans per sample.

A sample (`sample_12`) is a problem of the suite `input` or `output`, whichever was predicted, and the cluster of its
problems in both. The attempt is the position in the list. Generations are joined by key, since the two objects may be
ordered differently. Model, temperature and what was predicted are in the file's name: `acme_temp0.8_output.json`.
CRUXEval's own figures are in percent, and count a sample with fewer than k generations as solved.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head
from touchstone.ingest.adapters.json_files import inside, list_of, number_of, raw_values, read_document, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import Counts, counts_of_table, estimate, mean

FORMAT = "cruxeval"
COLUMNS = words("oid iteration_id llm_name suite cluster passed classification prediction temperature")
_SCORED = "raw_scored_generations"
_GENERATIONS = "raw_generations"
_NAME = re.compile(r"(?:.*scored_)?(?P<model>.+?)_temp(?P<temperature>\d+(?:\.\d+)?)_(?P<mode>input|output)\.json$")
_FIGURE = re.compile(r"pass_at_(?P<k>[1-9]\d{0,3})")
_TOO_FEW = "CRUXEval counts samples with fewer than {k} generations as solved; Touchstone leaves them out"
_NO_MODE = "the file's name does not tell whether inputs or outputs were predicted, so the problems have no suite"


@dataclass(frozen=True)
class _Attempt:
    """One generation of a sample with its score."""

    sample: str
    number: int
    passed: object
    generation: object


def read_cruxeval(path: Path) -> AdapterTable:
    """Read the scored generations of one file into rows of text cells."""
    document = _document(path)
    named, mode, temperature = _from_name(path)
    common: Cells = {"llm_name": named.name, "suite": mode, "temperature": temperature}
    attempts = list(_all_attempts(document))
    records = fill_records(enumerate(attempts, start=1), partial(_fill, mode), common)
    without = sum(attempt.number > 0 and attempt.generation is None for attempt in attempts)
    notes = [named.note, *([] if mode else [_NO_MODE])]
    if without:
        notes.append(
            f"{without:,} attempts have no generation: it is missing, or their number is not that of the scores"
        )
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_values(_scores))
    return table.stating(_figures(named.name, mode, document, counts_of_table(table)), notes=notes)


def _recognizes(head: Head) -> bool:
    # Generations come first, and may fill the start of the file.
    return head.has_keys(_GENERATIONS) or head.has_keys(_SCORED)


ADAPTER = Adapter(FORMAT, "CRUXEval scored generations", _recognizes, lambda path, _: read_cruxeval(path))


def _document(path: Path) -> dict[str, object]:
    document = read_document(path, unique_keys=True)
    if not isinstance(document, dict) or not isinstance(document.get(_SCORED), dict):
        raise InputFileError(f"{path}: CRUXEval results need an object '{_SCORED}' with the scores of each sample")
    return document


def _from_name(path: Path) -> tuple[NamedModel, str | None, str | None]:
    found = _NAME.fullmatch(path.name)
    if found is None:
        return model_of_name(path, path.name.removesuffix(".json").removeprefix("scored_")), None, None
    return model_of_name(path, found["model"]), found["mode"], found["temperature"]


def _all_attempts(document: dict[str, object]) -> Iterator[_Attempt]:
    scored = document[_SCORED]
    for sample, scores in scored.items() if isinstance(scored, dict) else ():
        yield from _attempts(sample, scores, inside(document, _GENERATIONS))


def _scores(path: Path) -> Iterator[tuple[int, object]]:
    return enumerate(({each.sample: each.passed} for each in _all_attempts(_document(path))), start=1)


def _attempts(sample: str, scores: object, generations: Mapping[str, object]) -> Iterator[_Attempt]:
    """The attempts at a sample; number 0 stands for a sample without scores."""
    if not isinstance(scores, list) or not scores:
        yield _Attempt(sample, 0, scores, None)
        return
    texts = list_of(generations.get(sample))
    matched = texts if len(texts) == len(scores) else [None] * len(scores)
    for number, (passed, text) in enumerate(zip(scores, matched, strict=True), start=1):
        yield _Attempt(sample, number, passed, text)


def _fill(mode: str | None, cells: Cells, attempt: _Attempt) -> None:
    if attempt.number == 0:
        raise RefusedRecordError("ragged", f"{attempt.sample[:100]!r} has no list of scores")
    passed = attempt.passed
    cells |= {
        "oid": f"{mode}/{attempt.sample}" if mode else attempt.sample,
        "iteration_id": str(attempt.number),
        "cluster": attempt.sample if mode else None,
        "passed": text_of(passed),
        "classification": ("pass" if passed else "fail") if isinstance(passed, bool) else None,
        "prediction": text_of(attempt.generation),
    }


def _figures(model: str, mode: str | None, document: dict[str, object], counts: Counts) -> list[ReportedFigure]:
    """The figures of the file, which are in percent, as shares."""
    fewest = min((attempts for attempts, _ in counts), default=0)
    figures = []
    for key, value in document.items():
        found, percent = _FIGURE.fullmatch(key), number_of(value)
        if found is not None and percent is not None and counts:
            k = int(found["k"])
            note = None if k <= fewest else _TOO_FEW.format(k=k)
            recomputed = mean([estimate(*count, k) for count in counts])
            figures.append(ReportedFigure(model, f"pass@{k}", percent / 100, recomputed, mode, note))
    return figures
