"""Test results of any runner: one file is one attempt of a model, and every test in it is a problem.

A file does not say whose tests it reports: `junit_pattern` finds model, tier and attempt in its path:
`{model}/{tier}/{attempt}.xml` is compared with the last three parts of it. A field stands for one or more characters
within one part, an attempt for digits, and `*` for anything in a part, as in `TEST-*.xml`.

The file that a test names is part of its name unless its class is named after it, or the file is absolute. Tests that
still have the same name get their absolute file or their suites in front, or a number. Several results of one test are
reruns and count as the worst of them, unless all were skipped, or as the last if the report counts failures so. Tests
that were not judged are undecided.

A format is a `Report`, which yields a `Case` per result. Only those that share a name are in memory together.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.adapter import ReadOptions
from touchstone.ingest.adapters.exported import restore
from touchstone.ingest.adapters.json_files import MAX_CARRIED_LENGTH, number_of
from touchstone.ingest.adapters.table import (
    OWN_COLUMNS,
    AdapterTable,
    Cells,
    RawReader,
    Record,
    RefusedRecordError,
    ReportedFigure,
    table_from_records,
    words,
)
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.csv_rows import LINE
from touchstone.storage.files import name_of_key
from touchstone.text import counted
from touchstone.vocabulary import MAX_ID_LENGTH

Outcome = Literal["passed", "failed", "error", "skipped"]
# Several results of one test count as the worst of them.
WORST_FIRST: tuple[Outcome, ...] = ("failed", "error", "passed", "skipped")
MAX_TEXT = 500
COLUMNS = words(
    "oid iteration_id llm_name tier passed classification duration_seconds error outcome flaky results test_class "
    "test_suite test_file"
)
_CLASSIFICATION = {"passed": "pass", "failed": "fail", "error": "error", "skipped": None}
_FIELDS = ("model", "tier", "attempt")
_FIELD = re.compile(r"\{([^{}]*)\}")
_FIRST_ATTEMPT = "1"
ROOTED = re.compile(r"(?:/|[A-Za-z]:[\\/])")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_HASH_BYTES = 5
# Columns that decide which results are of one test, and what the tool counts.
_GROUP, _STATUS = "__group", "__status"


@dataclass(frozen=True)
class Place:
    """The model, tier and attempt of a file."""

    model: str
    tier: str | None = None
    attempt: str = _FIRST_ATTEMPT
    notes: tuple[str, ...] = ()


def place_of(path: Path, pattern: str | None) -> Place:
    """The model, tier and attempt of a file; without a pattern, the model is the name of the file.

    >>> place_of(Path("runs/gpt-4o/hard/02.xml"), "{model}/{tier}/{attempt}.xml")
    Place(model='gpt-4o', tier='hard', attempt='2', notes=())
    """
    path = path.with_name(uncompressed_name(path))
    if pattern is None:
        note = f"the model is the file's name and the attempt is {_FIRST_ATTEMPT}; set junit_pattern to say otherwise"
        return Place(name_of_key(path.stem), notes=(note,))
    check_pattern(pattern)
    parts = path.absolute().parts[-len(pattern.split("/")) :]
    matches = [re.fullmatch(_expression(pattern, more), "/".join(parts), re.DOTALL) for more in ("", "?")]
    if matches[0] is None or matches[1] is None:
        raise InputFileError(f"{path}: its path does not end like junit_pattern '{pattern}'")
    if matches[0].groupdict() != matches[1].groupdict():
        raise InputFileError(f"{path}: junit_pattern '{pattern}' fits its path in more than one way")
    found = matches[0].groupdict()
    # Counted from 1 or from 0, with leading zeros or not: the number is the same.
    return Place(name_of_key(found["model"]), found.get("tier"), str(int(found.get("attempt") or _FIRST_ATTEMPT)))


def check_pattern(pattern: str) -> str:
    """Refuse a pattern that cannot name a model.

    >>> check_pattern("{modle}.xml")
    Traceback (most recent call last):
        ...
    touchstone.errors.TouchstoneError: junit_pattern '{modle}.xml': '{modle}' is not one of {model}, {tier}, {attempt}
    """
    fields = _FIELD.findall(pattern)
    known = ", ".join(f"{{{name}}}" for name in _FIELDS)
    unknown = next((name for name in fields if name not in _FIELDS), None)
    if unknown is not None:
        raise TouchstoneError(f"junit_pattern '{pattern}': '{{{unknown}}}' is not one of {known}")
    if "model" not in fields or len(set(fields)) < len(fields):
        raise TouchstoneError(f"junit_pattern '{pattern}': it must have {{model}}, and each of {known} at most once")
    return pattern


def _expression(pattern: str, more: str) -> str:
    """The pattern as a regular expression whose fields take as much as possible, or with `?` as little."""
    parts = _FIELD.split(pattern)
    fields = {"model": f"[^/]+{more}", "tier": f"[^/]+{more}", "attempt": f"[0-9]{{1,9}}{more}"}
    return "".join(
        f"(?P<{part}>{fields[part]})" if place % 2 else re.escape(part).replace(r"\*", "[^/]*")
        for place, part in enumerate(parts)
    )


@dataclass(slots=True)
class Case:
    """One result of a test. `number` is its place in the report, from 1, or its line."""

    number: int
    name: str
    outcome: Outcome
    # The tool's own word for the outcome, by which its figures count; empty for what its figures leave out.
    status: str = ""
    classname: str = ""
    suite: str = ""
    file: str = ""
    seconds: str | None = None
    message: str = ""
    flaky: bool = False
    # Results of one name with the same group are reruns; without a group each is a test.
    group: int | None = None
    # Whether it stands for a whole file or suite, whose tests are not listed.
    whole: bool = False
    # Where it starts in the file.
    start: int = 0
    cells: Cells = field(default_factory=dict)
    refusal: RefusedRecordError | None = None
    # What Touchstone added to a report that it wrote.
    exported: object = None

    def judge(self, word: str, outcomes: Mapping[str, Outcome]) -> None:
        """Set the outcome by the tool's own word; the case is refused if that is not known."""
        self.status, self.cells["status"] = word, word
        self.outcome = outcomes.get(word, "skipped")
        if word not in outcomes:
            self.status = ""
            self.refusal = RefusedRecordError("bad_boolean", f"the outcome {word[:50]!r} is not known")


class Report(ABC):
    """One report. What it states is known when all cases have been taken."""

    # The model of a report that Touchstone wrote.
    model: str | None = None
    # By group, how many of the listed results its count of tests leaves out, and how many of the failures.
    uncounted: Mapping[int, tuple[int, int]] = {}
    # The tool's own figures, and which of its words each of them counts: none stands for all.
    stated: Mapping[str, object] = {}
    counted: Mapping[str, Collection[str]] = {}

    @abstractmethod
    def cases(self) -> Iterator[Case]:
        """Every result."""

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """The figures that the report states; `counts` are the tests by their `status`."""
        for name, which in self.counted.items():
            if (reported := number_of(self.stated.get(name))) is not None:
                own = sum(counts[word] for word in which) if which else counts.total()
                yield ReportedFigure("", name, reported, own)

    def notes(self, counts: Counter[str]) -> Iterable[str]:
        """Further notes for users."""
        return ()


def report_table(path: Path, format_name: str, options: ReadOptions, report: Report, raw: RawReader) -> AdapterTable:
    """The tests of one report as rows of text cells."""
    place, folder, whole = place_of(path, options.junit_pattern), None, 0
    shared: Cells = {"llm_name": place.model}

    def records() -> Iterator[Record]:
        nonlocal place, folder, whole
        for case in report.cases():
            whole += case.whole
            if ROOTED.match(case.file):
                folder = _common_folder(folder, case.file)
            yield _record(case, place)
        if report.model:
            place = Place(report.model)
            shared["llm_name"] = report.model

    table = table_from_records(path, format_name, (*COLUMNS, _GROUP, _STATUS), records(), raw, shared=shared)
    with table.reading():
        told = _tell_apart(table.rows, report.uncounted, folder or "")
        rows = table.rows.join(told.lazy(), on=LINE, how="left", maintain_order="left", suffix="_told")
        rows = rows.filter(pl.col("keep").fill_null(True)).with_columns(
            pl.coalesce(f"{name}_told", name).alias(name) for name in ("oid", "results", "flaky")
        )
        words_used = rows.group_by(_STATUS).len().collect(engine="streaming")
        outcomes = rows.select("outcome", pl.col("results") != "1").collect(engine="streaming")
    counts = Counter({word: number for word, number in words_used.iter_rows() if word is not None})
    notes = [*place.notes, *_notes(outcomes, whole, told), *report.notes(counts)]
    figures = [replace(figure, model=place.model) for figure in report.figures(counts)]
    columns = tuple(name for name in table.columns if name not in (_GROUP, _STATUS))
    return replace(table, columns=columns, rows=rows.select(*OWN_COLUMNS, *columns)).stating(figures, notes=notes)


def _tell_apart(rows: pl.LazyFrame, uncounted: Mapping[int, tuple[int, int]], folder: str) -> pl.DataFrame:
    """Of the rows that share a name: whether each is kept, and the cells that change. `apart`: it has a new name."""
    named = rows.filter(pl.col("oid").is_not_null())
    names = named.select(LINE, pl.col("oid").hash()).collect(engine="streaming")
    same = names.filter(pl.col("oid").is_duplicated()).select(LINE).lazy()
    shared = named.join(same, on=LINE, how="semi").select(
        LINE, "oid", _GROUP, "outcome", "flaky", pl.col("test_file", "test_suite").fill_null("")
    )
    groups = [(str(group), *counts) for group, counts in uncounted.items()]
    schema = {_GROUP: pl.String, "more_results": pl.Int64, "more_failures": pl.Int64}
    left_out = pl.LazyFrame(groups, schema=schema, orient="row")
    test, failed = ("oid", _GROUP, "test_file"), pl.col("outcome").is_in(["failed", "error"])
    last = pl.col(LINE) == pl.col(LINE).max().over(test)
    failures, last_failures = failed.sum().over(_GROUP), (failed & last).sum().over(_GROUP)
    tests_that_failed = (failed.any().over(test) & last).sum().over(_GROUP)
    found = (
        shared.join(left_out, on=_GROUP, how="left")
        .collect(engine="streaming")
        .sort(LINE)
        .with_columns(
            alone=pl.col(_GROUP).is_null() | (pl.col("more_results") < (~last).sum().over(_GROUP)).fill_null(False),
            retried=(pl.col("more_failures") == failures - last_failures)
            & (pl.col("more_failures") != failures - tests_that_failed),
        )
        .with_columns(pl.when("alone").then(pl.format("{} alone", LINE)).otherwise(_GROUP).alias(_GROUP))
    )
    rank = pl.col("outcome").replace_strict(WORST_FIRST, range(4), return_dtype=pl.Int64)
    first = pl.when("retried").then(-pl.col(LINE)).otherwise(rank * (1 << 40) + pl.col(LINE))
    differ = (pl.col("outcome") == "failed").any() & (pl.col("outcome") == "passed").any()
    found = found.with_columns(
        keep=(first == first.min()).over(test),
        results=pl.len().over(test).cast(pl.String),
        flaky=pl.when((pl.col("flaky").is_not_null().any() | differ).over(test)).then(pl.lit("true")),
    )
    files, suites = (pl.col(name).n_unique().over("oid") > 1 for name in ("test_file", "test_suite"))
    file = pl.col("test_file").str.strip_prefix(folder)
    # Tests of one run may be in another folder in the next.
    kept = found.filter("keep").with_columns(
        apart=pl.len().over("oid") > 1,
        where=pl.when(files).then(file).when(suites).then("test_suite").otherwise(pl.lit("")),
    )
    kept = kept.with_columns(number=pl.int_range(1, pl.len() + 1).over("oid", "where"))
    prefix = pl.when(pl.col("where") != "").then(pl.format("{}::", "where")).otherwise(pl.lit(""))
    suffix = pl.when(pl.col("number") > 1).then(pl.format(" #{}", "number")).otherwise(pl.lit(""))
    kept = kept.with_columns(oid=pl.concat_str(prefix, "oid", suffix))
    kept = kept.with_columns(pl.Series("oid", map(_shortened, kept["oid"]), pl.String))
    return pl.concat([kept.drop("where", "number"), found.filter(~pl.col("keep"))], how="diagonal").select(
        LINE, "keep", "oid", "results", "flaky", "apart", "retried"
    )


def _notes(outcomes: pl.DataFrame, whole: int, told: pl.DataFrame) -> Iterator[str]:
    skipped, repeated = int((outcomes["outcome"] == "skipped").sum()), int(outcomes["results"].sum())
    shared, last = int(told["apart"].sum()), ", or as the last if the file counts so" if told["retried"].any() else ""
    if skipped:
        yield f"{skipped} of {outcomes.height} tests were skipped or expected to fail, and are undecided"
    if whole:
        files = counted(whole, "file or suite", "files or suites")
        yield f"{files} could not be run: counted as failed, and the tests inside are missing"
    if repeated:
        yield f"{counted(repeated, 'test has', 'tests have')} several results: reruns count as the worst of them{last}"
    if shared:
        tests = counted(shared, "test has", "tests have")
        yield f"{tests} the name of another one: the file, the suite or their order tells them apart"


def _common_folder(folder: str | None, file: str) -> str:
    r"""The folder that a file is in and that is, or is around, another one.

    >>> _common_folder(None, "/app/src/a/x.js"), _common_folder("/app/src/a/", "/app/src/b/y.js")
    ('/app/src/a/', '/app/src/')
    """
    found = file if folder is None else folder
    while folder is None or not file.startswith(folder):
        found = found.rstrip("/\\")
        folder = found = found[: max(found.rfind("/"), found.rfind("\\")) + 1]
    return folder


def _name(case: Case) -> str:
    file = case.file
    apart = case.name and file and _tells_apart(case.classname or case.name, file)
    return f"{file}::{case.name}" if apart else case.name


@lru_cache(maxsize=1000)
def _tells_apart(classname: str, file: str) -> bool:
    """Whether a file is part of a test's name: not if its class, or without one the name, is named after it.

    >>> _tells_apart("tests.test_cart.TestCart", "tests/test_cart.py"), _tells_apart("Cart", "src/cart.test.js")
    (False, True)
    """
    stem = file.rpartition(".")[0] or file
    own, named = (_NOT_ALPHANUMERIC.sub(".", text).strip(".") for text in (classname, stem))
    return not ROOTED.match(file) and f".{named}." not in f".{own}."


def _record(case: Case, place: Place) -> Record:
    record = Record(case.number, {"iteration_id": place.attempt, "tier": place.tier})
    if case.refusal is not None or not case.name:
        record.refuse(case.refusal or RefusedRecordError("bad_id", "the test case has no name"))
        return record
    cells: Cells = {
        "oid": _shortened(_name(case)),
        "passed": {"passed": "true", "skipped": None}.get(case.outcome, "false"),
        "classification": _CLASSIFICATION[case.outcome],
        "duration_seconds": _seconds(case.seconds or ""),
        "error": case.message.strip()[:MAX_TEXT] or None,
        "outcome": case.outcome,
        "flaky": "true" if case.flaky else None,
        "results": "1",
        "test_class": case.classname[:MAX_CARRIED_LENGTH] or None,
        "test_suite": case.suite[:MAX_CARRIED_LENGTH] or None,
        "test_file": case.file[:MAX_CARRIED_LENGTH] or None,
        _GROUP: None if case.group is None else str(case.group),
        _STATUS: case.status or None,
    }
    record.cells |= cells | case.cells
    restore(record.cells, case.exported)
    return record


def _seconds(text: str) -> str | None:
    """A number as any locale writes it.

    >>> _seconds("1,234.5"), _seconds("1.234,5"), _seconds("0,012"), _seconds("-1")
    ('1234.5', '1234.5', '0.012', None)
    """
    decimals = text.rfind(",") > text.rfind(".")
    number = text.replace(".", "").replace(",", ".") if decimals else text.replace(",", "")
    return number if _NUMBER.fullmatch(number) else None


def _shortened(name: str) -> str:
    """The name as an id: parameters of tests can be long."""
    if len(name) <= MAX_ID_LENGTH:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_HASH_BYTES).hexdigest()
    return f"{name[: MAX_ID_LENGTH - len(digest) - 2]}… {digest}"
