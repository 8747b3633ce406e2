"""A content-addressed cache of reports, so that no tree is validated twice across models and runs.

One SQLite file, safe for concurrent writers. The key (`report_key`) is a hash of everything that can change the report,
so an entry is never stale, only unused. Results that the machine may have caused (`protocol.RETRIED`) are not stored:
the next run retries them.

A results folder, and the cache in it, may come from somebody else, whose verdicts must not be believed. So every report
is signed with a key that only this user has: `$TOUCHSTONE_CACHE_KEY`, for machines that share a cache, or else a file
in the user's state folder, made on first use.
"""

import dataclasses
import functools
import hashlib
import hmac
import json
import os
import platform
import secrets
import sqlite3
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from touchstone.config.validation import ValidationSettings, ValidatorName
from touchstone.errors import TouchstoneError
from touchstone.locations import state_folder
from touchstone.progress import report_warning
from touchstone.regular_files import read_bytes
from touchstone.validation.protocol import Problem, Report, Validator
from touchstone.validation.sandbox.command import Limits

_FILE = "reports.sqlite"
_WAIT_SECONDS = 60.0
# Reports are read often; the time of last use is updated at most once a day.
_DAY = 86_400.0
# All that a cache holds. A database with anything else is not ours: a view can keep a query busy without end.
_TABLES = {
    "reports": "CREATE TABLE reports (key TEXT NOT NULL, owner TEXT NOT NULL, validator TEXT NOT NULL, "
    "report TEXT NOT NULL, signature BLOB NOT NULL, made REAL NOT NULL, used REAL NOT NULL, "
    "PRIMARY KEY (key, owner)) WITHOUT ROWID",
    "edition": "CREATE TABLE edition (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)",
}
_UNSIGNED = (
    "CREATE TABLE reports (key TEXT PRIMARY KEY, validator TEXT NOT NULL, report TEXT NOT NULL, "
    "made REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID"
)
# The keys in a parameter that is a JSON list, however many they are.
_KEYS = "(SELECT value FROM json_each(?))"


@dataclass(frozen=True)
class CacheStatistics:
    """The contents of a cache, in numbers."""

    path: Path
    entries: int
    bytes: int
    oldest: float | None
    newest: float | None
    by_validator: Mapping[str, int]
    # Signed by others, so never used.
    foreign: int


class ReportCache:
    """A report cache in a folder. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE
        self._owner = owner()
        # How many reports `find` left alone, because this user did not sign them.
        self.ignored = 0
        if folder.is_symlink():
            raise TouchstoneError(f"{folder}: is a link; set validation.cache_dir to the folder that it leads to")
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f"{_FILE}*"):
            if not stat.S_ISREG(part.lstat().st_mode):
                raise TouchstoneError(f"{part}: is not a regular file, so it is no validation cache; remove it")
        try:
            with self._usable():
                self._database = self._open_patiently()
        except sqlite3.DatabaseError:
            self._set_aside()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Turn errors of a database that is locked, read-only or of another make into one line."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise TouchstoneError(f"{self.path}: the validation cache cannot be used ({error})") from None

    def _open_patiently(self) -> sqlite3.Connection:
        """Open the database, waiting while another process that creates it holds the lock."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return self._open()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _set_aside(self) -> None:
        """Rename an unreadable database and start a new one; its reports can be recomputed."""
        if hasattr(self, "_database"):
            self._database.close()
        for part in (self.path, *self.path.parent.glob(f"{_FILE}-*")):
            part.rename(part.with_name(f"{part.name}.broken-{time.time_ns()}"))
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        # The file may come from elsewhere: its views and triggers must not call functions with side effects.
        database.execute("PRAGMA trusted_schema = OFF")
        self._require_own_tables(database)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        for statement in _TABLES.values():
            database.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        if database.execute("SELECT 1 FROM edition").fetchone() is None:
            database.execute("INSERT OR IGNORE INTO edition VALUES (1, ?)", (secrets.token_hex(8),))
        return database

    def _require_own_tables(self, database: sqlite3.Connection) -> None:
        """Raise an error if the database holds anything but our tables. Removes unsigned reports of old versions."""
        schema = "SELECT type, name, sql FROM sqlite_master"
        for kind, name, statement in database.execute(schema).fetchall():
            if statement != _TABLES.get(name) and statement != _UNSIGNED and not name.startswith("sqlite_"):
                database.close()
                raise TouchstoneError(
                    f"{self.path}: the validation cache cannot be used (its {kind} '{name[:50]}' is not ours); "
                    "delete it, and the next run makes it anew"
                )
            if statement == _UNSIGNED:
                database.execute("BEGIN IMMEDIATE")
                # Another process may have been first.
                if any(found == _UNSIGNED for _, _, found in database.execute(schema).fetchall()):
                    database.execute("DROP TABLE reports")
                database.execute("COMMIT")

    @property
    def edition(self) -> str:
        """Changes when reports are removed, since results derived from them may need validating again.

        Another owner has another one: the outcomes of a folder from elsewhere are not reused either.
        """
        return f"{self._database.execute('SELECT name FROM edition').fetchone()[0]} {self._owner.name}"

    def __enter__(self) -> "ReportCache":
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def find(self, keys: Iterable[str]) -> dict[str, Report]:
        """The cached reports among these keys, by key."""
        try:
            with self._usable():
                return self._find(keys)
        except (sqlite3.DatabaseError, ValueError, TypeError, LookupError, RecursionError):
            self._set_aside()
            return {}

    def _find(self, keys: Iterable[str]) -> dict[str, Report]:
        wanted, found, long_unused, edited, foreign = sorted(set(keys)), {}, [], [], set()
        a_day_ago = time.time() - _DAY
        own = "CASE WHEN owner = ? THEN report END"
        query = f"SELECT key, {own}, signature, used FROM reports WHERE key IN {_KEYS}"
        for key, text, signature, used in self._database.execute(query, (self._owner.name, json.dumps(wanted))):
            if text is None:
                foreign.add(key)
            elif not self._owner.signed(key, text, signature):
                edited.append(key)
            else:
                found[key] = Report.from_plain(json.loads(text))
                if used < a_day_ago:
                    long_unused.append(key)
        self.ignored += len(foreign.union(edited) - found.keys())
        self.forget(edited)
        self._note_use(long_unused)
        return found

    def keep(self, key: str, validator: str, report: Report) -> None:
        """Store a report if it is settled. The first of two writers wins.

        Written immediately, or at the end of the enclosing `transaction`.
        """
        if report.settled:
            now, text = time.time(), json.dumps(report.to_plain())
            self._database.execute(
                "INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, self._owner.name, validator, text, self._owner.sign(key, text), now, now),
            )

    def keep_all(self, validator: str, reports: Iterable[tuple[str, Report]]) -> None:
        """Store reports by key, all at once."""
        with self.transaction():
            for key, report in reports:
                self.keep(key, validator, report)

    def forget(self, keys: Iterable[str]) -> None:
        """Remove this user's reports by key, so that they are validated again."""
        if not (removed := sorted(set(keys))):
            return
        with self.transaction():
            query = f"DELETE FROM reports WHERE key IN {_KEYS} AND owner = ?"
            self._database.execute(query, (json.dumps(removed), self._owner.name))

    def statistics(self) -> CacheStatistics:
        """Count entries and bytes."""
        try:
            with self._usable():
                entries, oldest, newest = self._database.execute(
                    "SELECT count(*), min(made), max(made) FROM reports WHERE typeof(made) IN ('real', 'integer')"
                ).fetchone()
                by_validator = "SELECT CAST(validator AS TEXT), count(*) FROM reports GROUP BY 1 ORDER BY 1"
                counts = dict(self._database.execute(by_validator))
                foreign = "SELECT count(*) FROM reports WHERE owner <> ?"
                others = self._database.execute(foreign, (self._owner.name,)).fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise TouchstoneError(
                f"{self.path}: is damaged ({error}); delete it, and the next run makes it anew"
            ) from None
        files = [self.path, self.path.with_name(f"{_FILE}-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return CacheStatistics(self.path, entries, size, oldest, newest, counts, others)

    def prune(self, unused_for_days: float) -> int:
        """Remove reports unused for so many days and return how many. The next run validates again what it needs."""
        with self.transaction():
            removed = self._database.execute(
                "DELETE FROM reports WHERE used <= ?", (time.time() - unused_for_days * _DAY,)
            ).rowcount
            if removed:
                self._database.execute("UPDATE edition SET name = ?", (secrets.token_hex(8),))
        with suppress(sqlite3.OperationalError):
            self._database.execute("VACUUM")
        return removed

    def _note_use(self, keys: Sequence[str]) -> None:
        if keys:
            with self.transaction():
                query = f"UPDATE reports SET used = ? WHERE key IN {_KEYS} AND owner = ?"
                self._database.execute(query, (time.time(), json.dumps(keys), self._owner.name))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Group writes into one transaction. Other writers wait, so keep it short."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._database.execute("COMMIT")


def find_cache(folder: Path) -> ReportCache:
    """The existing cache in an output folder, or in the folder itself."""
    for place in (folder / "cache", folder):
        if (place / _FILE).is_file():
            return ReportCache(place)
    raise TouchstoneError(f"{folder}: there is no validation cache; a run that validates fixes makes one")


# Whose reports a cache holds

VARIABLE = "TOUCHSTONE_CACHE_KEY"
_KEY_FILE = "cache_key"
_MIN_LENGTH = 16
_MAX_BYTES = 4096


@dataclass(frozen=True)
class Owner:
    """Who signs reports; `name` tells owners apart and says nothing about the key."""

    name: str
    _key: bytes

    def sign(self, key: str, report: str) -> bytes:
        """The signature of a report under its cache key."""
        return hmac.digest(self._key, f"{key} {report}".encode("utf-8", "surrogatepass"), "sha256")

    def signed(self, key: str, report: str, signature: object) -> bool:
        """Whether this owner signed the report under this key."""
        return isinstance(signature, bytes) and hmac.compare_digest(signature, self.sign(key, report))


def owner() -> Owner:
    """The owner of the reports that this process makes."""
    return _owner_of(os.environ.get(VARIABLE) or _key_of_user())


@functools.lru_cache(maxsize=8)
def _owner_of(text: str) -> Owner:
    if len(text) < _MIN_LENGTH:
        raise TouchstoneError(f"{VARIABLE}: the key is too short; give it {_MIN_LENGTH} characters or more")
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return Owner(hmac.digest(key, b"name", "sha256").hex()[:16], key)


def _key_of_user() -> str:
    folder = state_folder()
    key = None if folder is None else _kept_key(folder / _KEY_FILE)
    if key is None:
        # Worker processes inherit it, so that this run finds its own reports.
        key = os.environ[VARIABLE] = secrets.token_hex(32)
        report_warning(
            f"there is no folder for the key of the validation cache, so later runs validate again; set {VARIABLE}"
        )
    return key


def _kept_key(file: Path) -> str | None:
    """The key in the file, which is made if it is not there; None if that is impossible."""
    scratch = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    with suppress(OSError, UnicodeDecodeError):
        if not file.exists():
            try:
                descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as made:
                    made.write(secrets.token_hex(32))
                with suppress(FileExistsError):  # another process was first
                    os.link(scratch, file)
            finally:
                scratch.unlink(missing_ok=True)
        if len(key := read_bytes(file, _MAX_BYTES).decode().strip()) >= _MIN_LENGTH:
            return key
    return None


# The key of a report: a hash of everything that can change it. Fields of `Problem` and of the settings are part of it
# unless they are listed here with the reason why no report depends on them, so that a new field cannot be forgotten.
# What a validator reads from the machine (programs, packages, mirrors) is its `identity`.

# Field by field, the reason why no report depends on it.
PROBLEM_FIELDS_LEFT_OUT = {
    "oid": "names the problem in the outcomes; no validator sees it",
    "root": "the tree is hashed by relative path and content, wherever it is",
    **dict.fromkeys(
        ("line_start", "line_end", "block_start", "block_end"),
        "read by the verdict and when a fix is applied, never by a validator",
    ),
    **dict.fromkeys(("severity", "summary"), "read by the verdict, never by a validator"),
    **dict.fromkeys(("reference_fix", "reference_patch"), "a tree of its own, hashed like that of any fix"),
    **dict.fromkeys(
        ("shared_files", "judge_patterns", "source_patterns"), "read when a fix is applied, never by a validator"
    ),
}
SETTINGS_LEFT_OUT = {
    "mode": "decides which attempts are validated",
    **dict.fromkeys(("apply", "test_edits"), "decides what the tree becomes, and the tree is hashed"),
    **dict.fromkeys(("success", "exclude_flaky"), "read by the verdict, never by a validator"),
    **dict.fromkeys(("repeat", "repeat_fixes"), "says how many reports are made again"),
    "mutants": "each is a tree of its own, hashed like that of any fix",
    "validators": "the validator that they choose is part of the key",
    **dict.fromkeys(("sandbox", "unsandboxed"), "the backend that it chooses is part of the key"),
    "workers": "says how many processes share the work",
    "cache_dir": "says where reports are kept",
    "environments_dir": "the environment that a problem uses is part of the validator's identity",
    "kept_characters": "says what is kept of a validation for people to look at",
    "limits": "the limits that follow from them are part of the key",
}

# Modules that no report depends on.
_WITHOUT_INFLUENCE = ("cache.py", "recorded.py")


def report_key(tree: str, conditions: str) -> str:
    """The cache key of a report: a hash of the tree hash and the `conditions_key`."""
    return hashlib.sha256(f"{tree} {conditions}".encode()).hexdigest()


def conditions_key(
    problem: Problem, validator: Validator, limits: Limits, sandbox: str, settings: ValidationSettings
) -> str:
    """A hash of everything besides the tree that a report depends on; the same for all fixes of a problem."""
    fields = [field.name for field in dataclasses.fields(problem) if field.name not in PROBLEM_FIELDS_LEFT_OUT]
    return _digest(
        {
            "problem": {name: getattr(problem, name) for name in fields},
            "validator": validator.name,
            "version": validator.version,
            "identity": validator.identity(problem),
            "settings": _settings_of(validator.name, settings),
            "limits": dataclasses.asdict(limits),
            "sandbox": sandbox,
            "machine": platform.machine(),
            "python": sys.version,
            "code": validation_code(),
        }
    )


def _settings_of(validator: str, settings: ValidationSettings) -> dict[str, Any]:
    """The settings that a validator may depend on: all but those left out and the sections of other validators."""
    others = {name for name in get_args(ValidatorName) if name != validator}
    return settings.model_dump(mode="json", exclude=others | SETTINGS_LEFT_OUT.keys())


@functools.cache
def validation_code() -> str:
    """A hash of the source code of this package."""
    here = Path(__file__).parent
    files = sorted(path for path in here.rglob("*.py") if path.name not in _WITHOUT_INFLUENCE)
    return _digest({str(path.relative_to(here)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
