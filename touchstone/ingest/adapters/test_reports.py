"""Test results of any runner: one file is one attempt of a model, and every test in it is a problem.

A file does not say whose tests it reports: `junit_pattern` finds model, tier and attempt in its path:
`{model}/{tier}/{attempt}.xml` is compared with the last three parts of it. A field stands for one or more characters
within one part, an attempt for digits, and `*` for anything in a part, as in `TEST-*.xml`.

The file that a test names is part of its name unless its class is named after it, or the file is absolute. Tests that
still have the same name get their absolute file or their suites in front, or a number. Several results of one test are
reruns and count as the worst of them, unless all were skipped. Tests that were not judged are undecided.

A format is a `Report`, which yields a `Case` per result. It is read twice, so that its cases need not be in memory:
what becomes of those that share a name is decided in between, by digests of the names.
"""

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.adapter import ReadOptions
from touchstone.ingest.adapters.exported import restore
from touchstone.ingest.adapters.json_files import MAX_CARRIED_LENGTH, number_of
from touchstone.ingest.adapters.table import (
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
from touchstone.ingest.unchanged import ChangedWhileReadError, mark_of
from touchstone.names import name_of_key
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
_ROOTED = re.compile(r"(?:/|[A-Za-z]:[\\/])")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_HASH_BYTES = 5
# What is kept of a case between the two passes, by the type of its column.
_SEEN = {"name": "q", "group": "q", "file": "q", "suite": "q", "rank": "b", "status": "h", "flaky": "b"}
# What tells tests of one name apart.
_PREFIXES = ("file", "suite")


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
    # What Touchstone added to an attempt that it wrote.
    exported: object = None

    def judge(self, word: str, outcomes: Mapping[str, Outcome]) -> None:
        """Set the outcome by the tool's own word; the case is refused if that is not known."""
        self.status, self.cells["status"] = word, word
        self.outcome = outcomes.get(word, "skipped")
        if word not in outcomes:
            self.status = ""
            self.refusal = RefusedRecordError("bad_boolean", f"the outcome {word[:50]!r} is not known")


class Report:
    """One report. What it states is known when all cases have been taken."""

    # The model of a report that Touchstone wrote.
    model: str | None = None
    # The groups whose results of one name are different tests.
    apart: Collection[int] = ()
    # The tool's own figures, and which of its words each of them counts: none stands for all.
    stated: Mapping[str, object] = {}
    counted: Mapping[str, Collection[str]] = {}

    def cases(self) -> Iterator[Case]:
        """Every result, in the order of the file."""
        raise NotImplementedError

    def figures(self, counts: Counter[str]) -> Iterator[ReportedFigure]:
        """The figures that the report states; `counts` are the tests by their `status`."""
        for name, which in self.counted.items():
            if (reported := number_of(self.stated.get(name))) is not None:
                own = sum(counts[word] for word in which) if which else counts.total()
                yield ReportedFigure("", name, reported, own)

    def notes(self, counts: Counter[str]) -> Iterable[str]:
        """Further notes for users."""
        return ()


def report_table(
    path: Path, format_name: str, options: ReadOptions, read: Callable[[], Report], raw: RawReader
) -> AdapterTable:
    """The tests of one report as rows of text cells. `read` opens it, and opens it again."""
    mark, first, seen = mark_of(path), read(), _Seen()
    for case in first.cases():
        seen.add(case)
    place = Place(first.model) if first.model else place_of(path, options.junit_pattern)
    decided = seen.decide(first.apart)
    if decided.is_empty():
        raise InputFileError(f"{path}: there is no test case in the file")
    counts = Counter[str]()
    for code, number in decided.filter("keep")["status"].value_counts().iter_rows():
        counts[seen.statuses[code]] += number
    del counts[""]

    def records() -> Iterator[Record]:
        for case, row in zip(read().cases(), decided.iter_rows(named=True), strict=False):
            if row["keep"]:
                case.name = seen.name_of(case, row["prefix"], row["number"])
                yield _record(case, place, row["results"], case.flaky or row["flaky"])
        if mark_of(path) != mark:
            raise ChangedWhileReadError(path)

    return table_from_records(
        path,
        format_name,
        COLUMNS,
        list(records()),
        raw,
        figures=[replace(figure, model=place.model) for figure in first.figures(counts)],
        notes=[*place.notes, *_notes(decided, seen.whole), *first.notes(counts)],
    )


class _Seen:
    """The cases of the first pass: digests of their names, and what decides how they are told apart."""

    def __init__(self) -> None:
        self._columns = {name: array(code) for name, code in _SEEN.items()}
        self._codes: dict[str, int] = {}
        self._folder: str | None = None
        self.whole = 0

    @property
    def statuses(self) -> list[str]:
        """The tool's own words by their codes."""
        return list(self._codes)

    def add(self, case: Case) -> None:
        """Add the next case."""
        name, place = _name(case), len(self._columns["name"])
        # Cases without a name are refused one by one.
        group = -1 - place if case.group is None or not name else case.group
        code, rank = self._codes.setdefault(case.status, len(self._codes)), WORST_FIRST.index(case.outcome)
        values = (hash(name) if name else place, group, hash(case.file), hash(case.suite), rank, code, case.flaky)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self.whole += case.whole
        if _ROOTED.match(case.file):
            folder = _folder(case.file) if self._folder is None else self._folder
            while not case.file.startswith(folder):
                folder = _folder(folder[:-1])
            self._folder = folder

    def decide(self, apart: Collection[int]) -> pl.DataFrame:
        """Of each case whether it is kept, how many results it has, if they are flaky, and what its name needs."""
        arrays = {name: np.frombuffer(column, column.typecode) for name, column in self._columns.items()}
        seen = pl.DataFrame(arrays).with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
        again, rank, test = pl.col("group").is_in(list(apart)), pl.col("rank"), ("name", "group")
        failed, passed = ((rank == WORST_FIRST.index(outcome)).any() for outcome in ("failed", "passed"))
        worst = rank.cast(pl.Int64) * (1 << 40) + pl.col("place")
        # Nearly all names are unique: only the others cost anything.
        shared = seen.filter(pl.col("name").is_duplicated()).with_columns(
            group=pl.when(again).then(-1 - pl.col("place")).otherwise("group")
        )
        shared = shared.with_columns(
            keep=(worst == worst.min()).over(test),
            results=pl.len().over(test),
            again=((pl.col("flaky").max() > 0) | (failed & passed)).over(test),
        )
        kept = shared.filter("keep").filter(pl.col("name").is_duplicated())
        differ = [pl.col(name).n_unique().over("name") > 1 for name in _PREFIXES]
        prefix = pl.when(differ[0]).then(0).when(differ[1]).then(1).otherwise(2)
        where = pl.when(differ[0]).then(_PREFIXES[0]).when(differ[1]).then(_PREFIXES[1]).otherwise(0)
        kept = kept.with_columns(prefix=prefix, where=where)
        kept = kept.with_columns(number=pl.int_range(1, pl.len() + 1).over("name", "where"))
        told = shared.select("place", "keep", "results", "again").join(
            kept.select("place", "prefix", "number"), on="place", how="left"
        )
        return seen.join(told, on="place", how="left", maintain_order="left").select(
            pl.col("keep").fill_null(True),
            pl.col("results").fill_null(1),
            (pl.col("flaky") > 0).or_(pl.col("again").fill_null(False)).alias("flaky"),
            "prefix",
            "number",
            "status",
            "rank",
        )

    def name_of(self, case: Case, prefix: int | None, number: int | None) -> str:
        """The name of a case, with what tells it apart from others of that name."""
        # Tests of one run may be in another folder in the next.
        places = (case.file.removeprefix(self._folder or ""), case.suite, "")
        place, name = places[2 if prefix is None else prefix], _name(case)
        return "".join([f"{place}::" if place else "", name, f" #{number}" if number and number > 1 else ""])


def _notes(decided: pl.DataFrame, whole: int) -> Iterator[str]:
    kept, shared = decided.filter("keep"), decided["prefix"].count()
    skipped, repeated = (kept["rank"] == WORST_FIRST.index("skipped")).sum(), (kept["results"] > 1).sum()
    if skipped:
        yield f"{skipped} of {kept.height} tests were skipped or expected to fail, and are undecided"
    if whole:
        files = counted(whole, "file or suite", "files or suites")
        yield f"{files} could not be run: counted as failed, and the tests inside are missing"
    if repeated:
        yield f"{counted(repeated, 'test has', 'tests have')} several results: reruns count as the worst of them"
    if shared:
        tests = counted(shared, "test has", "tests have")
        yield f"{tests} the name of another one: the file, the suite or their order tells them apart"


def _folder(path: str) -> str:
    r"""The folder that a file or folder is in.

    >>> _folder("/app/src/x.js"), _folder("C:\\app\\x.cs"), _folder("x")
    ('/app/src/', 'C:\\app\\', '')
    """
    return path[: max(path.rfind("/"), path.rfind("\\")) + 1]


def _name(case: Case) -> str:
    file = case.file
    return f"{file}::{case.name}" if case.name and file and _tells_apart(case.classname, file) else case.name


@lru_cache(maxsize=1000)
def _tells_apart(classname: str, file: str) -> bool:
    """Whether a file is part of a test's name: not if its class is named after it.

    >>> _tells_apart("tests.test_cart.TestCart", "tests/test_cart.py"), _tells_apart("Cart", "src/cart.test.js")
    (False, True)
    """
    stem = file.rpartition(".")[0] or file
    own, named = (_NOT_ALPHANUMERIC.sub(".", text).strip(".") for text in (classname, stem))
    return not _ROOTED.match(file) and f".{named}." not in f".{own}."


def _record(case: Case, place: Place, results: int, flaky: bool) -> Record:
    record = Record(case.number, {"llm_name": place.model, "iteration_id": place.attempt, "tier": place.tier})
    if case.refusal is not None or not case.name:
        record.refuse(case.refusal or RefusedRecordError("bad_id", "the test case has no name"))
        return record
    cells: Cells = {
        "oid": _shortened(case.name),
        "passed": {"passed": "true", "skipped": None}.get(case.outcome, "false"),
        "classification": _CLASSIFICATION[case.outcome],
        "duration_seconds": case.seconds if case.seconds and _NUMBER.fullmatch(case.seconds) else None,
        "error": case.message.strip()[:MAX_TEXT] or None,
        "outcome": case.outcome,
        "flaky": "true" if flaky else None,
        "results": str(results),
        "test_class": case.classname[:MAX_CARRIED_LENGTH] or None,
        "test_suite": case.suite[:MAX_CARRIED_LENGTH] or None,
        "test_file": case.file[:MAX_CARRIED_LENGTH] or None,
    }
    record.cells |= cells | case.cells
    restore(record.cells, case.exported)
    return record


def _shortened(name: str) -> str:
    """The name as an id: parameters of tests can be long."""
    if len(name) <= MAX_ID_LENGTH:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_HASH_BYTES).hexdigest()
    return f"{name[: MAX_ID_LENGTH - len(digest) - 2]}… {digest}"
