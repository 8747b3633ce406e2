"""Adapter for CRUXEval's scored generations: `raw_scored_generations` has a list of booleans per sample.

A sample (`sample_12`) is a problem of the suite `input` or `output`, whichever was predicted, and the cluster of its
problems in both. The attempt is the position in the list. Generations are joined by key, since the two objects may be
ordered differently. Model, temperature and what was predicted are in the file's name: `acme_temp0.8_output.json`.
CRUXEval's own figures are in percent, and count a sample with fewer than k generations as solved.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head
from touchstone.ingest.adapters.json_files import list_of, number_of, raw_values, skim_document, text_of
from touchstone.ingest.adapters.json_stream import Keep, Members
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
from touchstone.ingest.compressed import uncompressed_name

FORMAT = "cruxeval"
COLUMNS = words("oid iteration_id llm_name suite cluster passed classification prediction temperature")
_SCORED = "raw_scored_generations"
_GENERATIONS = "raw_generations"
_NAME = re.compile(r"(?:.*scored_)?(?P<model>.+?)_temp(?P<temperature>\d+(?:\.\d+)?)_(?P<mode>input|output)\.json$")
_FIGURE = re.compile(r"pass_at_(?P<k>[1-9]\d{0,3})")
_TOO_FEW = "CRUXEval counts samples with fewer than {k} generations as solved; Touchstone leaves them out"
_NO_MODE = "the file's name does not tell whether inputs or outputs were predicted, so the problems have no suite"


class _Attempt(NamedTuple):
    """One generation of a sample with its score."""

    sample: str
    number: int
    passed: object
    generation: object


def read_cruxeval(path: Path) -> AdapterTable:
    """Read the scored generations of one file into rows of text cells."""
    named, mode, temperature = _from_name(path)
    shared: Cells = {"llm_name": named.name, "suite": mode, "temperature": temperature}
    document: dict[str, object] = {}
    without = 0

    def attempts() -> Iterator[_Attempt]:
        nonlocal without
        generations = _members(path, _GENERATIONS)
        waiting: dict[str, object] = {}
        for sample, scores in _members(path, _SCORED, document):
            if sample not in waiting:
                # Most files have the same order in both objects, so that few generations wait for their scores.
                for each, texts in generations:
                    waiting[each] = texts
                    if each == sample:
                        break
            for attempt in _attempts(sample, scores, list_of(waiting.pop(sample, None))):
                without += attempt.number > 0 and attempt.generation is None
                yield attempt

    records = fill_records(enumerate(attempts(), start=1), partial(_fill, mode))
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_values(_raw_scores), shared=shared)
    notes = [named.note, *([] if mode else [_NO_MODE])]
    if without:
        notes.append(
            f"{without:,} attempts have no generation: it is missing, or their number is not that of the scores"
        )
    return table.stating(_figures(named.name, mode, document, counts_of_table(table)), notes=notes)


def _recognizes(head: Head) -> bool:
    # Generations come first, and may fill the start of the file.
    return head.has_keys(_GENERATIONS) or head.has_keys(_SCORED)


ADAPTER = Adapter(FORMAT, "CRUXEval scored generations", _recognizes, lambda path, _: read_cruxeval(path))


def _members(path: Path, key: str, document: dict[str, object] | None = None) -> Iterator[tuple[str, object]]:
    """The samples in one of the two objects; then the rest of the file is in `document`."""
    for name, part in skim_document(path, {key: Members(Keep())}, [key]):
        if name is not None:
            assert isinstance(part, tuple)
            yield part
        elif not isinstance(part, dict) or (key == _SCORED and not isinstance(part.get(key), dict)):
            raise InputFileError(f"{path}: CRUXEval results need an object '{_SCORED}' with the scores of each sample")
        elif document is not None:
            document |= part


def _from_name(path: Path) -> tuple[NamedModel, str | None, str | None]:
    name = uncompressed_name(path)
    found = _NAME.fullmatch(name)
    if found is None:
        return model_of_name(path, name.removesuffix(".json").removeprefix("scored_")), None, None
    return model_of_name(path, found["model"]), found["mode"], found["temperature"]


def _raw_scores(path: Path) -> Iterator[tuple[int, object]]:
    attempts = (each for sample, scores in _members(path, _SCORED) for each in _attempts(sample, scores, []))
    return enumerate(({each.sample: each.passed} for each in attempts), start=1)


def _attempts(sample: str, scores: object, texts: list[object]) -> Iterator[_Attempt]:
    """The attempts at a sample; number 0 stands for a sample without scores."""
    if not isinstance(scores, list) or not scores:
        yield _Attempt(sample, 0, scores, None)
        return
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
