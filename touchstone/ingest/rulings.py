"""Rulings of people on attempts and problems: `rulings.jsonl` beside the inputs, one JSON object per line.

The last line about an attempt counts, and without its line a ruling is gone. A line that cannot be read is refused by
its number and stops nothing else. What a ruling does to an outcome is in `validation.recorded`.
"""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from touchstone.errors import TouchstoneError, shown
from touchstone.locations import is_mirror
from touchstone.regular_files import read_bytes
from touchstone.text import near
from touchstone.vocabulary import MAX_ID_LENGTH, RULINGS

FILE = "rulings.jsonl"
EXCLUDE = "exclude"
MOST_CHARACTERS = 10_000
_MOST_BYTES = 100_000_000
_REQUIRED = ("problem", "ruling", "reason", "by")
_EVERY = "*"


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """A person's ruling, about all attempts at a problem unless model, tier or attempt is named.

    `was` is the outcome that the person saw, and `attempt_sha` the hash of the attempt; see `attempt_sha`. Without one,
    the ruling is about whatever the attempt is.
    """

    at: str | None = None
    by: str
    model: str | None = None
    tier: str | None = None
    problem: str
    attempt: str | None = None
    ruling: str
    reason: str
    was: str | None = None
    attempt_sha: str | None = None


@dataclass(frozen=True)
class RulingsFile:
    """The rulings by the number of their line, the lines that were refused with the reason, and the file's SHA-256."""

    rulings: dict[int, Ruling] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    sha256: str | None = None

    @property
    def excluded_problems(self) -> list[str]:
        """The problems that nobody's attempts count for, sorted."""
        return sorted({each.problem for each in self.rulings.values() if each.model is None})

    def about(self, model: str) -> dict[int, Ruling]:
        """The rulings that may concern a model."""
        return {line: each for line, each in self.rulings.items() if each.model in (None, model)}


def attempt_sha(fix_sha: str | None, recorded: bool | None) -> str:
    """Identifies what a ruling is about: the text of the fix, and the outcome that the input states."""
    return hashlib.sha256(json.dumps([fix_sha, recorded]).encode()).hexdigest()


def read_rulings(path: Path) -> RulingsFile:
    """Every line of the file; no rulings if there is no file."""
    try:
        content = read_bytes(path, _MOST_BYTES)
    except FileNotFoundError:
        return RulingsFile()
    except OSError as error:
        raise TouchstoneError(f"{path}: the rulings cannot be read ({error.strerror}); correct or remove it") from None
    found = RulingsFile(sha256=hashlib.sha256(content).hexdigest())
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                found.rulings[number] = _ruling(json.loads(line.decode()))
            except (ValueError, RecursionError) as error:
                found.refused[number] = _reason(error)
    return found


def _ruling(row: Any) -> Ruling:
    """The ruling that a line states; `ValueError` says what is wrong with it."""
    if not isinstance(row, dict):
        raise ValueError("it is not a JSON object")
    known = Ruling.__dataclass_fields__
    for key, value in row.items():
        if key not in known:
            raise ValueError(f"unknown key '{key}' ({near(key, known)})")
        if value is not None and not isinstance(value, str):
            raise ValueError(f"'{key}' is not text")
        if isinstance(value, str) and len(value) > (MOST_CHARACTERS if key == "reason" else MAX_ID_LENGTH):
            raise ValueError(f"'{key}' is too long")
    missing = [key for key in _REQUIRED if not (row.get(key) or "").strip()]
    if missing:
        raise ValueError(f"'{missing[0]}' is missing")
    if row["ruling"] not in RULINGS:
        raise ValueError(f"ruling '{row['ruling']}' is none of {', '.join(RULINGS)}")
    every = [key for key in ("model", "tier", "attempt") if row.get(key) in (_EVERY, "")]
    stated: dict[str, Any] = row | dict.fromkeys(every)
    ruling = Ruling(**stated)
    if ruling.model is None and (ruling.ruling != EXCLUDE or ruling.tier or ruling.attempt):
        raise ValueError("it names no model; without one, a problem can only be excluded as a whole")
    return ruling


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON ({error.msg} at character {error.pos + 1})"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def append_rulings(path: Path, rulings: Collection[Ruling]) -> None:
    """Add a line per ruling to the file, all of them or none, after whatever others are writing."""
    if is_mirror(path):
        raise TouchstoneError(f"{shown(str(path))}: rulings can be written beside local inputs only")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = []
    for each in rulings:
        row = {key: value for key, value in asdict(replace(each, at=now)).items() if value is not None}
        try:
            _ruling(row)
        except ValueError as error:
            raise TouchstoneError(f"the ruling cannot be written: {error}") from None
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    try:
        _append(path, "".join(lines).encode())
    except OSError as error:
        raise TouchstoneError(f"{path}: cannot be written ({error.strerror}); choose a file with 'rulings'") from None


def _append(path: Path, lines: bytes) -> None:
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(22, "not a regular file")
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            lines = b"\n" + lines
        try:
            # Usually one call; a full disk may take only a part, of which nothing stays.
            while lines:
                lines = lines[os.write(file, lines) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, size)
            raise
        os.fsync(file)
    finally:
        os.close(file)


def plain(rulings: dict[int, Ruling]) -> Sequence[object]:
    """The rulings as plain data, for fingerprints."""
    return [[line, asdict(each)] for line, each in rulings.items()]
