"""forgetest's eval sets (TOML) as an evaluation folder, with the code of its reports or plain outputs as attempts.

A case becomes a crate whose `src/lib.rs` has the case's tests only, so it fails; an attempt is the whole file, to which
these tests are added again, as forgetest does. Crates that a case depends on are not downloaded: validation is offline.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters import detect_format
from touchstone.ingest.adapters.formats import forgetest
from touchstone.ingest.csv_rows import ROW_ERROR, decoded, readable
from touchstone.ingest.importing.evaluation_folder import ImportedEvaluation, ImportedProblem, Row, folder_names
from touchstone.ingest.importing.outputs import Outputs, read_outputs
from touchstone.regular_files import read_bytes
from touchstone.text import counted_of
from touchstone.vocabulary import MAX_ID_LENGTH

_MAX_BYTES = 1 << 26
_SOURCE = "src/lib.rs"
_CRATE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_CODE = "generated_code"
_KEPT = ("provider", "latency_ms", "input_tokens", "output_tokens", "cost_usd")


@dataclass(frozen=True)
class Case:
    """A case of an eval set."""

    id: str
    suite: str
    prompt: str
    tests: str
    functions: tuple[str, ...]
    types: tuple[str, ...]
    tags: tuple[str, ...]
    dependencies: tuple[str, ...]

    def structure_score(self, code: str) -> float:
        """The share of the expected functions and types that the code defines; 1 if none is expected."""
        patterns = [rf"\bfn\s+{re.escape(name)}\b" for name in self.functions]
        patterns += [rf"\b(?:struct|enum|type)\s+{re.escape(name)}\b" for name in self.types]
        return sum(bool(re.search(each, code)) for each in patterns) / len(patterns) if patterns else 1.0


def import_forgetest(
    eval_sets: Sequence[Path], samples: Sequence[Path], models: Sequence[str], folder: Path
) -> tuple[ImportedEvaluation, list[str]]:
    """Write an evaluation folder; returns what was written, and notes. `models` names those of plain outputs."""
    cases: dict[str, Case] = {}
    for path in _files(eval_sets):
        for case in _cases(path):
            if case.id in cases:
                raise InputFileError(f"{path}: the case {case.id!r} is there twice")
            cases[case.id] = case
    tested = {name: case for name, case in cases.items() if case.tests.strip()}
    if not tested:
        raise TouchstoneError(
            f"{', '.join(map(str, eval_sets))}: no case has tests, so there is nothing to validate by"
        )
    found = _samples(samples, models, tested)
    crates = sorted({line.partition(" ")[0] for case in tested.values() for line in case.dependencies})
    if crates:
        found.notes.append(
            f"cases depend on {', '.join(crates)}: run `cargo vendor` and set validation.rust.vendor_dir in the config"
        )
    if len(tested) < len(cases):
        untested = counted_of(len(cases) - len(tested), len(cases), "case")
        found.notes.append(f"left out, because there are no tests: {untested}")
    folders = folder_names(list(tested))
    problems = [_problem(case, folders[name]) for name, case in tested.items()]
    evaluation = ImportedEvaluation(problems, found.fixes)
    evaluation.write(folder)
    return evaluation, found.notes


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        inside = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not inside:
            raise TouchstoneError(f"{path}: there is no .toml file in the folder")
        yield from inside


def _cases(path: Path) -> Iterator[Case]:
    try:
        with readable(path):
            document = tomllib.loads(decoded(path, read_bytes(path, _MAX_BYTES)))
    except tomllib.TOMLDecodeError as error:
        raise InputFileError(f"{path}: not valid TOML ({error})") from None
    eval_set, cases = document.get("eval_set"), document.get("cases")
    if not isinstance(eval_set, dict) or not isinstance(cases, list) or not isinstance(eval_set.get("id"), str):
        raise InputFileError(f"{path}: not an eval set of forgetest; it needs [eval_set] with an id, and [[cases]]")
    for place, case in enumerate(cases, start=1):
        if not isinstance(case, dict):
            raise InputFileError(f"{path}, case {place}: it is not a table")
        yield _case(f"{path}, case {place}", case, eval_set)


def _case(where: str, case: Mapping[str, Any], eval_set: Mapping[str, Any]) -> Case:
    name, language = case.get("id"), case.get("language", eval_set.get("default_language", "rust"))
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_ID_LENGTH:
        raise InputFileError(f"{where}: it needs an id of at most {MAX_ID_LENGTH} characters")
    if language != "rust":
        raise InputFileError(f"{where}: the language is {language!r}; only cases in Rust are imported")
    expected = case.get("expectations", {})
    if not isinstance(expected, dict):
        raise InputFileError(f"{where}: its expectations are not a table")
    tests = expected.get("test_file", "")
    if not isinstance(tests, str):
        raise InputFileError(f"{where}: its test_file is not a text")
    return Case(
        name,
        str(eval_set["id"]),
        str(case.get("prompt", "")),
        tests,
        _texts(where, expected, "expected_functions"),
        _texts(where, expected, "expected_types"),
        _texts(where, case, "tags"),
        tuple(_dependency(where, each) for each in case.get("dependencies", [])),
    )


def _texts(where: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InputFileError(f"{where}: {key} is not a list of texts")
    return tuple(values)


def _dependency(where: str, given: object) -> str:
    """A line of a manifest's `[dependencies]`; every value in it is written as a TOML string."""
    values = given if isinstance(given, dict) else {}
    name, version, features = values.get("name"), values.get("version", "*"), values.get("features", [])
    texts = [version, *features] if isinstance(features, list) else [None]
    if not isinstance(name, str) or not _CRATE.fullmatch(name) or not all(isinstance(each, str) for each in texts):
        raise InputFileError(f"{where}: a dependency needs a name, and may have a version and features")
    listed = ", ".join(map(_quoted, features))
    return f"{name} = {{ version = {_quoted(version)}, features = [{listed}] }}"


def _quoted(text: str) -> str:
    escaped = "".join(each if each.isprintable() and each not in '"\\' else f"\\u{ord(each):04x}" for each in text)
    return f'"{escaped}"'


def _problem(case: Case, folder: str) -> ImportedProblem:
    row = {
        "oid": case.id,
        "filename": _SOURCE,
        "working_directory": folder,
        "suite": case.suite,
        "language": "rust",
        "prompt": case.prompt,
        "tags": " ".join(case.tags),
        "expected_functions": " ".join(case.functions),
        "expected_types": " ".join(case.types),
    }
    return ImportedProblem(row, folder, partial(_write_crate, case))


def _write_crate(case: Case, clone: Path) -> None:
    manifest = '[package]\nname = "case"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
    (clone / "Cargo.toml").write_text(manifest + "".join(f"{line}\n" for line in case.dependencies), encoding="utf-8")
    (clone / "src").mkdir()
    (clone / _SOURCE).write_text(case.tests, encoding="utf-8", newline="")


def _samples(paths: Sequence[Path], models: Sequence[str], cases: Mapping[str, Case]) -> Outputs:
    """The attempts in reports and in plain outputs, with the structure score that the import can tell."""
    reports = [path for path in paths if detect_format(path) == forgetest.FORMAT]
    found = read_outputs([path for path in paths if path not in reports], models, cases)
    for path in reports:
        rows = list(_rows_of_report(path))
        known = [row for row in rows if row["oid"] in cases]
        for row in known:
            found.fixes.setdefault(row["llm_name"], []).append(row)
        if len(known) < len(rows):
            others = counted_of(len(rows) - len(known), len(rows), "result")
            found.notes.append(f"{path}: left out, because the case is not imported: {others}")
    scored: dict[str, list[Row]] = {
        model: [{**row, "structure_score": repr(cases[row["oid"]].structure_score(row["fixed_code"]))} for row in rows]
        for model, rows in found.fixes.items()
    }
    return Outputs(scored, found.notes)


def _rows_of_report(path: Path) -> Iterator[Row]:
    """The code of a report's results; what the report says of it is left out, because it is measured again."""
    table = forgetest.read_forgetest(path)
    if _CODE not in table.columns:
        raise InputFileError(f"{path}: its results have no {_CODE}; run the report itself with `touchstone run`")
    for row in table.frame.filter(pl.col(ROW_ERROR).is_null()).iter_rows(named=True):
        kept = {name: row[name] for name in _KEPT if row[name] is not None}
        ids = {name: row[name] for name in ("oid", "iteration_id", "llm_name")}
        yield {**ids, **kept, "fixed_code": row[_CODE] or ""}
