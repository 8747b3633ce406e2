"""Adapter for JUnit XML: one file is one attempt of a model, and every test case in it is a problem.

A problem is named `classname.name`. Node's test runner gives every test the class "test", so there the names of the
suites around it stand in front, and so does the file that a test names unless its class is named after it. Tests that
still have the same name get their absolute file or their suites in front, or a number. A file does not say whose
tests it reports: `junit_pattern` finds model, tier and attempt in its path: `{model}/{tier}/{attempt}.xml` is compared
with the last three parts of it. A field stands for one or more characters within one part, an attempt for digits, and
`*` for anything in a part, as in `TEST-*.xml`.

A failure or an error is a failure, also one of the setup or teardown: a fix can provoke each of them. A file that
cannot be collected, or a suite that reports an error, is a failed problem of its own, because its tests are not listed.
Tests that were skipped, disabled, expected to fail or still to do were not judged and are undecided. Several results of
one test in one suite are reruns and count as the worst of them, unless all were skipped. They are different tests, such
as those of TestNG with parameters, if the suite states as many tests as it has elements. Surefire's flaky tests passed
in the end, and are flagged.

Elements are counted, never the attributes that state how many there are. The document is streamed through expat; a
document type declaration is refused, and with it every entity.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Literal
from xml.parsers import expat

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.table import AdapterTable, Cells, Record, ReportedFigure, table_from_records, words
from touchstone.ingest.compressed import open_input, uncompressed_name
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, readable
from touchstone.names import name_of_key
from touchstone.text import counted
from touchstone.vocabulary import MAX_ID_LENGTH

_FIELDS = ("model", "tier", "attempt")
_FIELD = re.compile(r"\{([^{}]*)\}")
_FIRST_ATTEMPT = "1"
_NAMES: "dict[str, Outcome]" = {"failures": "failed", "errors": "error"}
_NOT_JUDGED = ("skipped", "disabled")
_COUNT = re.compile(r"[0-9]{1,9}")
FORMAT = "junit"
COLUMNS = words(
    "oid iteration_id llm_name tier passed classification duration_seconds error outcome flaky results test_class "
    "test_suite test_file"
)
Outcome = Literal["passed", "failed", "error", "skipped"]
# Several results of one test count as the worst of them.
_WORST_FIRST: tuple[Outcome, ...] = ("failed", "error", "passed", "skipped")
_CLASSIFICATION = {"passed": "pass", "failed": "fail", "error": "error", "skipped": None}
_NOT_RUN = {"notrun", "disabled", "skipped", "suppressed", "ignored", "pending"}
_SKIPPED_TAGS = ("skipped", "disabled", "ignored")
_FILES = ("file", "filepath")
_ROOTED = re.compile(r"(?:/|[A-Za-z]:[\\/])")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")
_FLAKY = ("flakyFailure", "flakyError")
_DECLARATION = r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
_ROOT = re.compile(rf"\A(?:<\?xml[^>]*\?>|<!--.*?-->|{_DECLARATION}|\s)*<testsuites?[\s>/]", re.DOTALL)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_CHUNK = 1 << 20
# Suites are nested a few levels deep. Expat keeps all names of open elements.
_MAX_DEPTH = 200
# A result takes about 1 KB here; the largest test suites have some hundred thousand.
_MAX_CASES = 500_000
_MAX_TEXT = 500
_MAX_BYTES = 1 << 30
_HASH_BYTES = 5


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


def figures_of(
    model: str, suites: Sequence[Mapping[str, str]], outcomes: Sequence[str], unlisted: int = 0
) -> list[ReportedFigure]:
    """Sums over the attributes of the outermost suites, and the same of the tests in them.

    Tools differ in whether `tests` counts the disabled ones, which some do not list.
    """
    stated, note = partial(_stated, suites), _unlisted_note(unlisted) if unlisted else None
    found: dict[str, tuple[int | None, int]] = {}
    if (tests := stated("tests")) is not None:
        without = len(outcomes) - (stated("disabled") or 0)
        found["tests"] = tests, without if tests == without else len(outcomes)
    found |= {name: (stated(name), outcomes.count(outcome)) for name, outcome in _NAMES.items()}
    counts = [stated(name) for name in _NOT_JUDGED]
    both = " and ".join(_NOT_JUDGED) if counts[1] else _NOT_JUDGED[0]
    found[both] = sum(count or 0 for count in counts) if counts != [None, None] else None, outcomes.count("skipped")
    with_unlisted = ("tests", both) if unlisted else ()
    return [
        ReportedFigure(model, name, count, None if name in with_unlisted else own, note=note)
        for name, (count, own) in found.items()
        if count is not None
    ]


def _stated(suites: Sequence[Mapping[str, str]], name: str) -> int | None:
    """The sum of an attribute; None if a suite lacks it."""
    values = [suite.get(name, "") for suite in suites]
    return sum(map(int, values)) if values and all(map(_COUNT.fullmatch, values)) else None


def _unlisted(suites: Sequence[Mapping[str, str]], outcomes: Sequence[str]) -> int:
    """How many tests the file counts as disabled or skipped but does not list."""
    missing = (_stated(suites, "tests") or 0) - len(outcomes)
    not_judged = sum(_stated(suites, name) or 0 for name in _NOT_JUDGED) - outcomes.count("skipped")
    return missing if 0 < missing <= not_judged else 0


def _unlisted_note(unlisted: int) -> str:
    return f"{counted(unlisted, 'disabled or skipped test is', 'disabled or skipped tests are')} not listed"


@dataclass
class Suite:
    """A suite: its attributes, and how many test cases are in it and in the suites inside."""

    attributes: dict[str, str]
    cases: int = 0

    @property
    def counts_each(self) -> bool:
        """Whether the suite states as many tests as it has elements, so that none of these is a rerun."""
        return self.attributes.get("tests") == str(self.cases)


@dataclass
class Case:
    """One test: its place in the document, and the worst of its results."""

    number: int
    start: int
    name: str
    suites: tuple[str, ...]
    attributes: dict[str, str]
    outcome: Outcome = "passed"
    message: str = ""
    flaky: bool = False
    todo: bool = False
    suite: Suite | None = None
    results: int = 1
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file that the test or its suite names; empty if none does."""
        above = [self.attributes, *([self.suite.attributes] if self.suite is not None else [])]
        named = (attributes.get(name, "").removeprefix("./") for attributes in above for name in _FILES)
        return next(filter(None, named), "")


def read_junit(path: Path, options: ReadOptions | None = None) -> AdapterTable:
    """Read the test cases of one file into rows of text cells."""
    place = place_of(path, (options or ReadOptions()).junit_pattern)
    document = _parse(path)
    cases = _merge_reruns(document.cases)
    if not cases:
        raise InputFileError(f"{path}: there is no test case in the file")
    outcomes = [case.outcome for case in cases if case.suite is not None]
    unlisted = _unlisted(document.stated, outcomes)
    notes = [*place.notes, *_notes(cases), *_separate_names(cases)]
    if unlisted:
        counts = f"{unlisted:,} of the {_stated(document.stated, 'tests'):,} tests that the file counts"
        notes.append(f"{counts} are disabled or skipped and not listed: they are missing")
    records = [_record(case, place) for case in cases]
    return table_from_records(
        path,
        FORMAT,
        COLUMNS,
        records,
        _raw,
        figures=figures_of(place.model, document.stated, outcomes, unlisted),
        notes=notes,
    )


def _recognizes(head: Head) -> bool:
    return head.text[:1] == "<" and _ROOT.match(head.text) is not None


ADAPTER = Adapter(FORMAT, "JUnit XML", _recognizes, read_junit, reads_utf_16=True)


def _merge_reruns(cases: list[Case]) -> list[Case]:
    """One case for the results of one name in one suite, which are reruns unless the suite counts each."""
    found: dict[tuple[str, int], Case] = {}
    for case in cases:
        # Cases without a name are refused one by one.
        alone = not case.name or (case.suite is not None and case.suite.counts_each)
        first = found.setdefault((case.name, -case.number if alone else id(case.suite)), case)
        if first is case:
            continue
        first.results += 1
        first.flaky |= case.flaky or {first.outcome, case.outcome} == {"passed", "failed"}
        if _WORST_FIRST.index(case.outcome) < _WORST_FIRST.index(first.outcome):
            first.outcome, first.message = case.outcome, case.message
    return list(found.values())


def _separate_names(cases: list[Case]) -> Iterator[str]:
    """Give tests of one name different ones: by file, else by suite, and by their order if that is not enough."""
    same_name: dict[str, list[Case]] = {}
    for case in cases:
        same_name.setdefault(case.name, []).append(case)
    several = [group for name, group in same_name.items() if name and len(group) > 1]
    if not several:
        return
    # Tests of one run may be in another folder in the next.
    folder = _common_folder([case.file for case in cases if _ROOTED.match(case.file)])
    for group in several:
        for places in ([case.file.removeprefix(folder) for case in group], ["/".join(case.suites) for case in group]):
            if len(set(places)) > 1:
                for case, place in zip(group, places, strict=True):
                    case.name = f"{place}::{case.name}" if place else case.name
                break
        numbers = Counter[str]()
        for case in group:
            numbers[case.name] += 1
            if numbers[case.name] > 1:
                case.name = f"{case.name} #{numbers[case.name]}"
    shared = counted(sum(map(len, several)), "test has", "tests have")
    yield f"{shared} the name of another one: the file, the suite or their order tells them apart"


def _common_folder(files: Iterable[str]) -> str:
    r"""The folder that all files are in.

    >>> _common_folder(["/app/src/a/x.js", "/app/src/b/y.js"]), _common_folder([])
    ('/app/src/', '')
    """
    folders = (re.split(r"(?<=[/\\])", file)[:-1] for file in files)
    same = takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))
    return "".join(level[0] for level in same)


def _record(case: Case, place: Place) -> Record:
    record = Record(case.number, {"llm_name": place.model, "iteration_id": place.attempt, "tier": place.tier})
    if not case.name:
        record.kind, record.reason = "bad_id", "the test case has no name"
        return record
    seconds = case.attributes.get("time", "").replace(",", "")
    cells: Cells = {
        "oid": _shortened(case.name),
        "passed": {"passed": "true", "skipped": None}.get(case.outcome, "false"),
        "classification": _CLASSIFICATION[case.outcome],
        "duration_seconds": seconds if _NUMBER.fullmatch(seconds) else None,
        "error": case.message or None,
        "outcome": case.outcome,
        "flaky": "true" if case.flaky else None,
        "results": str(case.results),
        "test_class": case.attributes.get("classname") or None,
        "test_suite": "/".join(case.suites) or None,
        "test_file": case.file or None,
    }
    record.cells |= cells | {f"property_{name}": value for name, value in case.properties.items()}
    return record


def _shortened(name: str) -> str:
    """The name as an id: parameters of tests can be long."""
    if len(name) <= MAX_ID_LENGTH:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=_HASH_BYTES).hexdigest()
    return f"{name[: MAX_ID_LENGTH - len(digest) - 2]}… {digest}"


def _notes(cases: list[Case]) -> Iterator[str]:
    skipped = sum(case.outcome == "skipped" for case in cases)
    missing = sum(case.attributes.get("classname") is None or _not_collected(case) for case in cases)
    repeated = sum(case.results > 1 for case in cases)
    if skipped:
        yield f"{skipped} of {len(cases)} tests were skipped or expected to fail, and are undecided"
    if missing:
        files = counted(missing, "file or suite", "files or suites")
        yield f"{files} could not be run: counted as failed, and the tests inside are missing"
    if repeated:
        yield f"{counted(repeated, 'test has', 'tests have')} several results: reruns count as the worst of them"


def _not_collected(case: Case) -> bool:
    """pytest's entry for a file that cannot be imported."""
    return not case.attributes.get("classname") and case.outcome == "error"


def _raw(path: Path, numbers: set[int]) -> dict[int, str]:
    starts = {case.number: case.start for case in _parse(path).cases if case.number in numbers}
    with readable(path), open_input(path) as file:
        raw = {}
        for number, start in starts.items():
            file.seek(start)
            raw[number] = file.read(MAX_RAW_LENGTH).decode("utf-8", "replace")
    return raw


def _parse(path: Path) -> "_Document":
    parser = expat.ParserCreate()
    document = _Document(path, lambda: parser.CurrentByteIndex)
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = document.refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = document.start, document.end
    try:
        with readable(path), open_input(path) as file:
            while chunk := file.read(_CHUNK):
                if file.tell() > _MAX_BYTES:
                    raise InputFileError(f"{path}: has more than {_MAX_BYTES:,} bytes, the most that are read")
                parser.Parse(chunk, False)
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputFileError(f"{path}: not whole XML ({error})") from None
    except (ValueError, LookupError) as error:  # of the encoding that it declares
        raise InputFileError(f"{path}: its encoding is not supported ({error}); save it as UTF-8") from None
    return document


class _Document:
    """The state while a document is parsed."""

    def __init__(self, path: Path, position: Callable[[], int]) -> None:
        self.cases: list[Case] = []
        self.stated: list[dict[str, str]] = []
        self._path = path
        self._position = position
        self._suites: list[Suite] = []
        self._depth = 0
        self._case: Case | None = None

    def refuse_doctype(self, *_: object) -> None:
        raise InputFileError(f"{self._path}: has a document type declaration, which is refused")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InputFileError(f"{self._path}: elements are nested more than {_MAX_DEPTH} levels deep")
        if self._depth == 1 and tag not in ("testsuites", "testsuite"):
            raise InputFileError(f"{self._path}: the root is <{tag[:50]}> instead of <testsuites> or <testsuite>")
        if tag == "testsuite":
            self._suites.append(Suite(attributes))
            if len(self._suites) == 1:
                self.stated.append(attributes)
        elif tag == "testcase":
            self._start_case(attributes)
        elif tag in ("failure", "error"):
            self._result("failed" if tag == "failure" else "error", attributes)
        elif tag in _SKIPPED_TAGS and self._case is not None:
            self._skip(self._case, attributes)
        elif tag in _FLAKY and self._case is not None:
            self._case.flaky = True
        elif tag == "property" and self._case is not None:
            self._case.properties[attributes.get("name", "")] = attributes.get("value", "")[:_MAX_TEXT]

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self._case = None
        elif tag == "testsuite":
            self._suites.pop()

    def _start_case(self, attributes: dict[str, str]) -> None:
        if self._case is not None:  # one result would hide the other
            raise InputFileError(f"{self._path}: a <testcase> stands inside another one")
        classname, name = attributes.get("classname", ""), attributes.get("name", "")
        # Node: the class is the same for all tests, the suites tell them apart.
        parents = [*self._suite_names, name] if classname == "test" and self._suites else [name]
        full = ".".join(filter(None, [classname, "/".join(parents)])) if name else ""
        self._case = case = self._add(full, {"classname": ""} | attributes)
        case.suite = self._suites[-1] if self._suites else None
        for suite in self._suites:
            suite.cases += 1
        if name and case.file and not _ROOTED.match(case.file) and not _names_file(classname, case.file):
            case.name = f"{case.file}::{full}"
        words = {attributes.get(key, "").lower() for key in ("status", "result")}
        off = attributes.get("disabled", "").lower() == "true" or attributes.get("enabled", "").lower() == "false"
        if off or words & _NOT_RUN:
            case.outcome = "skipped"

    def _add(self, name: str, attributes: dict[str, str]) -> Case:
        if len(self.cases) >= _MAX_CASES:
            raise InputFileError(f"{self._path}: more than {_MAX_CASES:,} test cases")
        suites = tuple(filter(None, self._suite_names))
        self.cases.append(Case(len(self.cases) + 1, self._position(), name, suites, attributes))
        return self.cases[-1]

    @property
    def _suite_names(self) -> list[str]:
        return [suite.attributes.get("name", "") for suite in self._suites]

    def _result(self, outcome: Outcome, attributes: dict[str, str]) -> None:
        """A failure or an error of the open test case, or of the suite around it."""
        name = "/".join(filter(None, self._suite_names)) or Path(uncompressed_name(self._path)).stem
        case = self._case or self._add(name, {})
        message = attributes.get("message") or attributes.get("type") or outcome
        if not case.todo and _WORST_FIRST.index(outcome) < _WORST_FIRST.index(case.outcome):
            case.outcome = outcome
        case.message = case.message or message[:_MAX_TEXT]

    def _skip(self, case: Case, attributes: dict[str, str]) -> None:
        """A failure beside it counts, unless the test is still to do, which node expects to fail."""
        case.todo = attributes.get("type") == "todo"
        if case.todo or case.outcome == "passed":
            case.outcome = "skipped"
        kind = attributes.get("type", "").removeprefix("pytest.") or "skipped"
        case.message = case.message or ": ".join(filter(None, [kind, attributes.get("message", "")]))[:_MAX_TEXT]


def _names_file(classname: str, file: str) -> bool:
    """Whether a class is named after its file, as in `tests.test_cart.TestCart` and `tests/test_cart.py`."""
    stem = file.rpartition(".")[0] or file
    own, named = (_NOT_ALPHANUMERIC.sub(".", text).strip(".") for text in (classname, stem))
    return f".{named}." in f".{own}."
