"""Input files: the model that a file name implies, and whether a file changed, also while it is read.

Which files there are is found in `discovery`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.compressed import CSV_SUFFIXES, data_suffix, table_stem
from touchstone.regular_files import open_regular, read_json
from touchstone.storage.files import name_of_key, replacing

Result = TypeVar("Result")
Mark = tuple[int, int, int, int]
NATIVE = "native"
# The formats of tables that people write themselves.
PLAIN_TABLES = ("csv", "jsonl", "parquet")

# A change within the resolution of the clock leaves a file's times as they are, so recent times prove nothing.
SETTLE_NS = 2_000_000_000

# Parts of a file name that are not part of the model name.
_PREFIXES = ("llm_fullfile_repair_results_",)
_SUFFIXES = tuple(f"{kind}{end}" for end in ("_fixes_outcomes", "_outcomes", "_fixes") for kind in ("_synthetic", ""))


@dataclass(frozen=True)
class Source:
    """A file, or a folder read as one, with attempts of a model. An adapter may find several models in it."""

    model: str
    path: Path
    format: str = NATIVE
    # Its path below `fixes_dir`.
    label: str = ""

    @property
    def name(self) -> str:
        """How the file or folder is called in tables and messages."""
        return self.label or self.path.name


def model_of(path: Path) -> str:
    """The model of a fixes file: the file name without extensions, known prefix and known suffix.

    >>> [model_of(Path(name)) for name in ("out/gemini_synthetic_fixes.csv", "gpt-4_outcomes.csv", "claude.csv")]
    ['gemini', 'gpt-4', 'claude']
    >>> [model_of(Path(name)) for name in ("llm_fullfile_repair_results_gemini.csv", "gemini_fixes.jsonl.gz")]
    ['gemini', 'gemini']
    >>> model_of(Path("gemini_synthetic_fixes_outcomes.csv"))
    'gemini'
    """
    name = table_stem(path)
    for prefix in _PREFIXES:
        name = name[len(prefix) :] if name.lower().startswith(prefix) else name
    suffix = next((each for each in _SUFFIXES if name.lower().endswith(each)), "")
    return name_of_key(name[: len(name) - len(suffix)])


def is_named_fixes(path: Path) -> bool:
    """Whether a file is meant as a fixes file by its name, so that a defect in it is an error.

    >>> is_named_fixes(Path("m_fixes.csv")), is_named_fixes(Path("m_fixes.csv.gz")), is_named_fixes(Path("m.csv"))
    (True, True, False)
    """
    return data_suffix(path) in CSV_SUFFIXES and table_stem(path).lower().endswith("_fixes")


class ContentHashes:
    """SHA-256 of files, cached by size, times and inode, so that an unchanged file is not read again."""

    def __init__(self, cache_file: Path) -> None:
        self._cache_file = cache_file
        try:
            known = read_json(cache_file)
        except (OSError, ValueError):
            known = {}
        entries = known.items() if isinstance(known, dict) else ()
        # Four numbers and a hash, as they are saved.
        kinds = [int, int, int, int, str]
        self._cached: dict[str, list[object]] = {
            path: mark for path, mark in entries if isinstance(mark, list) and [type(part) for part in mark] == kinds
        }

    def of(self, path: Path) -> str:
        """The SHA-256 of the file's bytes, in hexadecimal."""
        before = path.stat()
        mark = [before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_ino]
        cached = self._cached.get(str(path))
        if cached is not None and cached[:-1] == mark:
            return str(cached[-1])
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._cached[str(path)] = [*mark, digest]
        return digest

    def save(self, now_ns: int) -> None:
        """Save the hashes of files that have not changed recently."""
        settled = {
            path: mark
            for path, mark in self._cached.items()
            if now_ns - max(int(str(mark[1])), int(str(mark[2]))) > SETTLE_NS
        }
        self._cache_file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._cache_file) as scratch:
            scratch.write_text(json.dumps(settled))


class ChangedWhileReadError(InputFileError):
    """Raised for a file that grew, vanished or was replaced while it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: changed while it was being read; run again when nothing writes to it")


def mark_of(path: Path) -> Mark | None:
    """Marks of a file that change with its content: inode, size and times; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read_unchanged(files: Callable[[], Iterable[Path]], read: Callable[[], Result]) -> Result:
    """The result of `read` if no file changed meanwhile; if one did, it is called once more, then this raises."""
    for again in (True, False):
        before = {path: mark_of(path) for path in files()}
        try:
            result = read()
        except TouchstoneError:
            if again and _changed(before) is not None:
                continue
            raise
        changed = _changed(before)
        if changed is None:
            return result
        if not again:
            raise ChangedWhileReadError(changed)
    raise AssertionError("unreachable")


def _changed(before: dict[Path, Mark | None]) -> Path | None:
    return next((path for path, mark in before.items() if mark_of(path) != mark), None)
