"""How a CSV is written: its separator, its encoding and the spelling of its header.

A spelling with only one possible meaning is read, with a note on the assumption; between two meanings nothing is
chosen. Reading the rows belongs in `csv_rows`.
"""

import codecs
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.compressed import STILL_WRITTEN, data_suffix, open_input
from touchstone.ingest.fix_columns import has_attempts, has_outcomes

UTF8 = "utf-8-sig"
WINDOWS = "cp1252"
UTF_16 = "the file is UTF-16; save it as UTF-8"
COMMA = ","
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "'|'"}
# Names that other tools give to the problem; read as its id if a file has just one of them and no id.
ID_NAMES = ("task_id", "problem_id", "instance_id", "bug_id", "case_id", "question_id", "item_id", "example_id")
# These may also name a benchmark, so they are the problem only beside a number of the attempt.
_TASK_NAMES = ("task", "problem")
_ATTEMPT_NAMES = ("trial", "attempt", "rep", "repeat", "repetition", "iteration", "run", "seed")
# Names that other tools give to the outcome; read as such if a file has just one of them and no outcome.
_VERDICT_NAMES = ("resolved", "is_resolved", "solved", "is_solved", "is_correct")
# Beside a fix, or one of those, this may mean that the model answered.
_SUCCESS_NAMES = ("success",)
# A table of attempts names the model of each under one of these.
MODEL_COLUMNS = ("llm_name", "model", "model_name", "model_name_or_path", "model_id")

_CHUNK = 1 << 20
_NAMED_COLUMNS = 30
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# Unused in Windows-1252, or never in a text.
_NO_WINDOWS_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]")
_LONGEST_CHARACTER = 4


def separator_of(path: Path, header: str) -> str:
    """The separator of the cells: a comma, unless the header has none and one other separator.

    >>> [separator_of(Path("m.csv"), line) for line in ("oid,a;b", "oid;passed", "oid\\tpassed", "a;b|c", '"a,b";c')]
    [',', ';', '\\t', ',', ';']
    """
    unquoted = re.sub(r'"[^"]*"', "", header)
    if "\t" in unquoted and data_suffix(path) != ".csv":
        return "\t"
    others = [mark for mark in SEPARATORS if mark in unquoted]
    return others[0] if COMMA not in unquoted and len(others) == 1 else COMMA


def is_utf_16(data: bytes) -> bool:
    """Whether text starts with a byte order mark of UTF-16, or with half a character of it."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:2]


def encoding_of(path: Path) -> str:
    """UTF-8, or Windows-1252 for a text that cannot be UTF-8; raises `InputFileError` if it may be damaged UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    wrong_at, place, rest = -1, 0, b""
    has_characters = is_no_text = False
    with open_input(path) as file:
        while data := file.read(_CHUNK):
            if place == 0 and is_utf_16(data):
                raise InputFileError(f"{path}: {UTF_16}")
            if wrong_at < 0:
                pending = len(decoder.getstate()[0])
                try:
                    decoder.decode(data)
                except UnicodeDecodeError as error:
                    wrong_at = place - pending + error.start
            has_characters |= _UTF8_CHARACTER.search(rest + data) is not None
            is_no_text |= _NO_WINDOWS_TEXT.search(data) is not None
            rest = data[1 - _LONGEST_CHARACTER :]
            place += len(data)
    if wrong_at < 0:
        if decoder.getstate()[0]:
            raise InputFileError(f"{path}: not UTF-8 (cut off at byte {place}); save it as UTF-8, or {STILL_WRITTEN}")
        return UTF8
    if has_characters or is_no_text:
        raise InputFileError(f"{path}: not UTF-8 (at byte {wrong_at}); save it as UTF-8")
    return WINDOWS


def dialect_notes(separator: str, encoding: str) -> tuple[str, ...]:
    """Notes on a file that is not UTF-8 with commas."""
    notes = [f"the cells are separated by {SEPARATORS[separator]}"] if separator != COMMA else []
    return (*notes, *(["not UTF-8, so read as Windows-1252"] if encoding == WINDOWS else []))


def usual_names(columns: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """The known names of columns that are only spelled otherwise, where one column alone may be meant.

    >>> usual_names(["OID", "Iteration ID", "plausibleFix", "Note"], ["oid", "iteration_id", "plausible_fix"])
    {'OID': 'oid', 'Iteration ID': 'iteration_id', 'plausibleFix': 'plausible_fix'}
    >>> usual_names(["oid", "OID"], ["oid"]), usual_names(["Oid", "OID"], ["oid"])
    ({}, {})
    >>> usual_names(["Task ID", "passed"], ["oid", "passed"]), usual_names(["task_id", "case_id"], ["oid"])
    ({'Task ID': 'oid'}, {})
    >>> usual_names(["task", "trial"], ["oid", "iteration_id"]), usual_names(["task", "k"], ["oid", "iteration_id"])
    ({'task': 'oid', 'trial': 'iteration_id'}, {})
    >>> usual_names(["oid", "resolved"], ["oid", "passed"]), usual_names(["success", "fixed_code"], ["passed"])
    ({'resolved': 'passed'}, {})
    >>> usual_names(["success", "Is Resolved", "model_patch"], ["passed"])
    {'Is Resolved': 'passed'}
    >>> usual_names(["modelName", "passed"], ["model"]), usual_names(["model_name", "modelId"], ["model"])
    ({'modelName': 'model'}, {})
    """
    others = [name for name in columns if name not in known]
    names = _matches(others, {letters(name): name for name in known if name not in columns})
    if "model" in known and not {*columns, *names.values()}.intersection(MODEL_COLUMNS):
        names |= _matches(others, {letters(name): "model" for name in MODEL_COLUMNS})
    if "oid" in known and "oid" not in (*columns, *names.values()):
        names |= _matches(others, dict.fromkeys(map(letters, ID_NAMES), "oid"))
        tasks = dict.fromkeys(_TASK_NAMES, "oid") | dict.fromkeys(_ATTEMPT_NAMES, "iteration_id")
        if not any(letters(name) in map(letters, ID_NAMES) for name in others) and "iteration_id" not in columns:
            names |= found if len(found := _matches(others, tasks)) == 2 else {}
    if "passed" in known and not has_outcomes((*columns, *names.values())):
        verdicts = dict.fromkeys(map(letters, _VERDICT_NAMES), "passed")
        names |= _matches(others, verdicts)
        if not any(letters(name) in verdicts for name in others) and not has_attempts((*columns, *names.values())):
            names |= _matches(others, dict.fromkeys(_SUCCESS_NAMES, "passed"))
    return names


def usual_notes(names: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on columns that are read under another name."""
    read_as = ", ".join(f"'{theirs}' as {ours}" for theirs, ours in names.items())
    return (f"columns are read by their meaning: {read_as}",) if read_as else ()


def found_columns(columns: Sequence[str]) -> str:
    """The columns of a file, for an error message."""
    return f"(found: {', '.join(columns[:_NAMED_COLUMNS])}{', …' if len(columns) > _NAMED_COLUMNS else ''})"


def require_fixes_columns(path: Path, columns: Sequence[str], key: str = "oid") -> None:
    """Require the problem, and an outcome or a fix; raises `InputFileError`."""
    if key not in columns:
        others = f"; {' or '.join(ID_NAMES)} will do, if there is only one of them" if key == "oid" else ""
        renames = "; `columns` in the configuration renames others"
        raise InputFileError(f"{path}: missing column {key} {found_columns(columns)}{others}{renames}")
    if not has_attempts(columns):
        raise InputFileError(
            f"{path}: no outcome and no fix {found_columns(columns)}; it needs a column passed, plausible_fix, "
            "resolved or success, or a fix, such as fixed_file or fixed_diff; a table with a column per model needs "
            "a row per model instead: oid, model, passed"
        )


def _matches(columns: Sequence[str], wanted: dict[str, str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for column in columns:
        ours = wanted.get(letters(column))
        if ours is not None:
            found.setdefault(ours, []).append(column)
    return {theirs[0]: ours for ours, theirs in found.items() if len(theirs) == 1}


def letters(name: str) -> str:
    """A name without the marks between its words, in lower case."""
    return re.sub(r"[\W_]+", "", name.casefold())
