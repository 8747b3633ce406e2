"""Which model a file speaks for, and whether its bytes have changed. Which files there are is found by `discovery`."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from touchstone.storage.files import replacing

NATIVE = "native"

# What is dropped from a file's name to get the model's.
_PREFIXES = ("llm_fullfile_repair_results_",)
_SUFFIXES = ("_synthetic_fixes", "_fixes", "_synthetic_outcomes", "_outcomes")


@dataclass(frozen=True)
class Source:
    """A file that speaks for a model. Files of other systems may speak for several."""

    model: str
    path: Path
    format: str = NATIVE


def model_of(path: Path) -> str:
    """The model that a fixes file speaks for: its name without the extension and what such files are called.

    >>> [model_of(Path(name)) for name in ("out/gemini_synthetic_fixes.csv", "gpt-4_outcomes.csv", "claude.csv")]
    ['gemini', 'gpt-4', 'claude']
    >>> model_of(Path("llm_fullfile_repair_results_gemini.csv"))
    'gemini'
    """
    name = path.name[: -len(".csv")] if path.name.lower().endswith(".csv") else path.name
    for prefix in _PREFIXES:
        name = name[len(prefix) :] if name.lower().startswith(prefix) else name
    suffix = next((each for each in _SUFFIXES if name.lower().endswith(each)), "")
    return name[: len(name) - len(suffix)]


def is_named_fixes(path: Path) -> bool:
    """Whether the name alone says that it is a fixes file, so that whatever is wrong with it is an error.

    >>> is_named_fixes(Path("m_fixes.csv")), is_named_fixes(Path("m_outcomes.csv"))
    (True, False)
    """
    return path.name.lower().endswith("_fixes.csv")


class ContentHashes:
    """SHA-256 of files, remembered by size, times and inode so that an untouched file is not read again."""

    # A file changed within the clock's grain of being hashed could keep its times; such a hash is not kept.
    _SETTLED_NS = 2_000_000_000

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        try:
            self._known: dict[str, list[object]] = json.loads(memory.read_text())
        except (OSError, ValueError):
            self._known = {}

    def of(self, path: Path) -> str:
        """The SHA-256 of the file's bytes, in hexadecimal."""
        before = path.stat()
        mark = [before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_ino]
        known = self._known.get(str(path))
        if known is not None and known[:-1] == mark:
            return str(known[-1])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[str(path)] = [*mark, digest]
        return digest

    def save(self, now_ns: int) -> None:
        """Keep what was learned about files that have settled."""
        settled = {
            path: mark
            for path, mark in self._known.items()
            if now_ns - max(int(str(mark[1])), int(str(mark[2]))) > self._SETTLED_NS
        }
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._memory) as scratch:
            scratch.write_text(json.dumps(settled))
