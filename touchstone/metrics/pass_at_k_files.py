"""pass@k straight from files, without a graph or an output folder: the engine behind `touchstone pass-at-k`."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from touchstone.config import EvaluationConfig, IntervalSettings, sorted_k_values
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.inference.exact import exact_mean
from touchstone.ingest.adapters.formats.plain import named_models
from touchstone.ingest.attempts import file_notes, open_fixes
from touchstone.ingest.clean_files import count_clean_file, read_fixes_csv
from touchstone.ingest.implied_config import fitting_ks
from touchstone.ingest.problems import read_problems
from touchstone.ingest.read_inputs import read_inputs
from touchstone.ingest.sources import model_of, read_unchanged
from touchstone.metrics.pass_at_k import count_outcomes, outcome_histogram, summarise
from touchstone.progress import report_step
from touchstone.storage.files import check_model_name
from touchstone.text import some_of, without_dashes
from touchstone.vocabulary import DEFAULT_TIER

_COUNTED = ("model", "tier", "oid", "iteration_id", "passed")

_MAX_SUITES = 10


@dataclass
class Calculation:
    """The pass_at_k table, the rows that were refused, and the files that could not be read."""

    table: pl.DataFrame
    quarantine: list[pl.DataFrame] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def calculate(
    problems_csv: Path, fixes_csvs: Sequence[Path], k_values: Sequence[int], intervals: IntervalSettings | None
) -> Calculation:
    """pass@k of every file's model. A file that cannot be read is noted and the others go on.

    Read again once if a file changes meanwhile.
    """
    files = [problems_csv, *fixes_csvs]
    return read_unchanged(lambda: files, lambda: _calculate(problems_csv, fixes_csvs, k_values, intervals))


def _calculate(
    problems_csv: Path, fixes_csvs: Sequence[Path], k_values: Sequence[int], intervals: IntervalSettings | None
) -> Calculation:
    by_model = _by_model(fixes_csvs)
    parts: list[pl.DataFrame] = []
    done = Calculation(pl.DataFrame())
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        reader = _Reader(problems_csv, Path(scratch))
        for place, (model, path) in enumerate(by_model.items(), start=1):
            report_step(f"counting {model} ({place} of {len(by_model)})")
            try:
                if named_models(path) > 1:
                    raise InputFileError(f"{path}: several models in one file; `touchstone pass-at-k {path}` reads it")
                histogram, problems = reader.histogram(path, model)
            except InputFileError as error:
                done.unreadable.append(str(error))
                continue
            groups = sorted(set(histogram.select("model", "tier").iter_rows())) or [(model, DEFAULT_TIER)]
            parts.append(summarise(histogram, groups, problems, k_values, intervals))
        done.quarantine, done.notes = reader.quarantine, reader.notes
    if not parts:
        raise TouchstoneError("; ".join(done.unreadable))
    done.table = pl.concat(parts).sort("model", "tier", "k")
    return done


def calculate_inputs(
    config: EvaluationConfig, k_values: Sequence[int] | None, intervals: IntervalSettings | None
) -> tuple[Calculation, list[int]]:
    """pass@k of every model in files of any known format, and the values of k: by default those that fit."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        rows = read_inputs(config, Path(scratch), _COUNTED)
    if not rows.attempts:
        raise TouchstoneError("; ".join(rows.unreadable))
    attempts = pl.concat([frame.select(*_COUNTED) for frame in rows.attempts.values()]).lazy()
    counts = count_outcomes(attempts)
    histogram = outcome_histogram(counts, rows.problems.lazy()).collect(engine="streaming")
    groups = set(attempts.select("model", "tier").unique().collect().iter_rows())
    # A model of which every row is refused does not disappear.
    groups |= {(model, DEFAULT_TIER) for model, frame in rows.attempts.items() if frame.is_empty()}
    most = attempts.group_by("model", "tier", "oid").len().select(pl.col("len").max()).collect().item()
    ks = list(k_values) if k_values is not None else fitting_ks(int(most or 1))
    table = summarise(histogram, sorted(groups), rows.problems.height, ks, intervals)
    notes = [*dict.fromkeys(rows.notes), *_notes_on_suites(counts, rows.problems.lazy())]
    notes += _alike(rows.problems["suite"].unique().sort().to_list())
    done = Calculation(table.sort("model", "tier", "k"), rows.quarantine, rows.unreadable, notes)
    return done, ks


def _alike(suites: Sequence[str]) -> list[str]:
    """A hint if two suites may be the same one: versions of a tool differ in how they write its name."""
    first: dict[str, str] = {}
    pairs = [(first.setdefault(without_dashes(suite), suite), suite) for suite in suites]
    return [
        f"the suites {one!r} and {other!r} differ only in dashes and underscores: if they are one, give it one name"
        for one, other in pairs
        if one != other
    ]


def _notes_on_suites(counts: pl.LazyFrame, problems: pl.LazyFrame) -> list[str]:
    """pass@1 in each suite of a model that has several: over all of them together it may be no figure of its tool."""
    decided = counts.filter(pl.col("n") > 0).join(problems.select("oid", "suite"), on="oid")
    by_suite = decided.group_by("model", "tier", "suite").agg(rate=exact_mean(pl.col("c") / pl.col("n")))
    rows = by_suite.sort("model", "tier", "suite").collect()
    notes = []
    for (model, tier), suites in rows.group_by("model", "tier", maintain_order=True):
        rates = [f"{rate:.3f} in {suite}" for suite, rate in suites.select("suite", "rate").rows()]
        if len(rates) > 1:
            shown = some_of(rates, _MAX_SUITES)
            notes.append(f"{model} {tier}: pass@1 is {shown}; the table has all suites together")
    return notes


def parse_k_values(texts: Sequence[str]) -> list[int]:
    """The k values of the command line, separated by spaces or commas.

    >>> parse_k_values(["10,1", "5"])
    [1, 5, 10]
    """
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    wrong = next((word for word in words if not re.fullmatch(r"[+-]?\d{1,9}", word)), None)
    if wrong is not None:
        raise TouchstoneError(f"--k-values: '{wrong}' is not a whole number")
    try:
        return sorted_k_values([int(word) for word in words])
    except ValueError as error:
        raise TouchstoneError(f"--k-values: {error}") from None


class _Reader:
    """Reads one model after the other against the same problems."""

    def __init__(self, problems_csv: Path, scratch: Path) -> None:
        read = read_problems(problems_csv, scratch / "problems.parquet")
        self._problems = read.problems.select("oid", "suite", "cluster").collect()
        self._scratch = scratch
        self.quarantine = [read.quarantine]
        self.notes = [f"{problems_csv.name}: {note}" for note in read.notes]

    def histogram(self, path: Path, model: str) -> tuple[pl.DataFrame, int]:
        table, problems = open_fixes(path), self._problems.lazy()
        counts, notes = count_clean_file(table, model, problems), file_notes(table)
        if counts is None:
            read = read_fixes_csv(table, model, problems, self._scratch / "fixes.parquet")
            self.quarantine.append(read.quarantine)
            counts, notes = count_outcomes(read.attempts).collect(engine="streaming"), read.notes
        self.notes += [f"{path.name}: {note}" for note in notes]
        histogram = outcome_histogram(counts.lazy(), problems).collect(engine="streaming")
        return histogram, self._problems.height


def _by_model(paths: Sequence[Path]) -> dict[str, Path]:
    by_model: dict[str, Path] = {}
    for path in paths:
        model = check_model_name(model_of(path))
        if model in by_model:
            raise TouchstoneError(f"{by_model[model]} and {path} both speak for the model '{model}'; rename one")
        by_model[model] = path
    return by_model
