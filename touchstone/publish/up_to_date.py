"""Whether the published run is up to date, so that running again would change nothing.

A run that is published and fails no check leaves a record in the store: what it depended on, what it published, and the
results of its checks. Dependencies are noted before the run and again after it; only if both agree is the run
recorded, so nothing that changed meanwhile is taken for what was read. Every run removes the record first. What cannot
be compared cheaply (outcomes that a retry may change, repeated validations) is never recorded.

Light on purpose: `touchstone run` compares before it imports Dagster.
"""

import hashlib
import json
import os
import platform
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from touchstone.config import EvaluationConfig, first_problems_csv
from touchstone.errors import TouchstoneError
from touchstone.ingest.input_paths import input_files, input_paths, label_of
from touchstone.ingest.sources import SETTLE_NS, ContentHashes
from touchstone.regular_files import read_json
from touchstone.storage.code_version import package_code_version
from touchstone.storage.files import replacing
from touchstone.storage.output_folders import is_latest
from touchstone.storage.snapshots import FOLDER, MANIFEST, PINS, find_if_known
from touchstone.storage.store import PUBLISHED_NAMES, REPORT, Store, digest
from touchstone.tables.checks import CheckOutcome
from touchstone.validation.files.file_identity import files_in, stat_of

# Never part of a problem's files, and changed by looking at them: a `git status` rewrites the index.
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__"})
_VALIDATED_TABLES = ("validator_noise", "baselines", "outcomes", "mutants")


@dataclass(frozen=True)
class PublishedRun:
    """The published run: when it was recorded, in UTC, and its checks, of which none failed with an error."""

    made_at: str
    checks: Sequence[CheckOutcome]

    @property
    def reason(self) -> str:
        """Why nothing needs to run."""
        return f"up to date: no input, setting, code or tool changed since the run published at {self.made_at}"


def up_to_date(config: EvaluationConfig) -> PublishedRun | None:
    """The published run, if running again would change nothing; else None."""
    store = Store(config.output_dir)
    try:
        record = read_json(store.run_record)
        if record["dependencies"] != dependencies(config, ContentHashes(store.content_hashes)):
            return None
        if record["tools"] is not None and record["tools"] != _tools(config, map(Path, record["tools"]["paths"])):
            return None
        if record["results"] != _results(store, record["baseline"]):
            return None
        if not is_latest(store.root):
            return None
        checks = [CheckOutcome(**check) for check in record["checks"]]
        return PublishedRun(str(record["made_at"]), checks)
    except (OSError, ValueError, LookupError, TypeError, TouchstoneError):
        return None


def dependencies(config: EvaluationConfig, hashes: ContentHashes) -> dict[str, str]:
    """The dependencies of every run, as one hash each: settings, code, input files, and the files being repaired."""
    found = {
        "settings": digest(config.model_dump(mode="json", exclude={"retention", "alerts"})),
        "code": digest([package_code_version(), sys.version, platform.machine()]),
        "files": digest(_input_files(config, hashes)),
    }
    if config.clones_dir is not None and config.validation.mode != "never":
        found["clones"] = _tree(config.clones_dir, hashes)
    if config.audit.rules is not None:
        found["audit_rules"] = _entry(config.audit.rules, hashes)
    return found


def _input_files(config: EvaluationConfig, hashes: ContentHashes) -> list[object]:
    """Every entry of `fixes_dir` or of `inputs`, whether it is read or not: a new file is always a reason to look."""
    files = {*input_paths(config), *input_files(config)}
    listed = {label_of(file, config.fixes_dir): _entry(file, hashes) for file in sorted(files)}
    problems = first_problems_csv(config)
    rulings = _entry(config.rulings_file, hashes)
    return [listed, str(problems), None if problems is None else _entry(problems, hashes), rulings]


def _entry(path: Path, hashes: ContentHashes) -> str:
    """The content of a file, or what else the path is."""
    if path.is_file():
        return hashes.of(path)
    return "folder" if path.is_dir() else "not a regular file" if path.exists() else "missing"


def _tree(folder: Path, hashes: ContentHashes) -> str:
    """A hash of all names, contents, links and executable bits in a folder, without version control."""
    lines = []
    for name, entry in files_in(folder, _LEFT_OUT):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            lines.append(f"{name} {hashes.of(Path(entry.path))} {mode & 0o111:o}\n")
        else:
            lines.append(f"{name} {Path(entry.path).readlink() if stat.S_ISLNK(mode) else stat.S_IFMT(mode)}\n")
    return _digest_lines(lines)


# The tools of validation


def _tools(config: EvaluationConfig, paths: Iterable[Path], changed_before: int | None = None) -> dict[str, Any] | None:
    """The tools of validators on this machine: programs, packages, the search path, and the cache's edition.

    None if something changed at or after `changed_before`: the validators may have seen it as it was.
    """
    from touchstone.validation.cache import ReportCache
    from touchstone.validation.validators.common import SYSTEM_PATH

    own = config.validation.command.environment.get("PATH", SYSTEM_PATH)
    search = os.pathsep.join((os.environ.get("PATH", os.defpath), own))
    looked_up = [Path(folder) for folder in search.split(os.pathsep) if folder]
    used = sorted(set(paths))
    lines, newest = [], 0
    for path, seen in [*_stats(used), *((str(folder), _stat(folder)) for folder in looked_up)]:
        lines.append(f"{path} {_mark(seen)}\n")
        newest = max(newest, seen.st_mtime_ns if seen else 0)
    if changed_before is not None and newest >= changed_before:
        return None
    with ReportCache(config.validation.cache_dir or config.output_dir / "cache") as cache:
        edition = cache.edition
    return {"paths": [str(path) for path in used], "found": digest([search, _digest_lines(lines), edition])}


def _stats(paths: Iterable[Path]) -> Iterator[tuple[str, os.stat_result | None]]:
    """Each path, and in its place every file in it if it is a folder."""
    for path in paths:
        if path.is_dir():
            # Text: an environment has ten thousand files, and a Path of each takes longer than all the rest.
            yield from ((entry.path, stat_of(entry)) for _, entry in files_in(path, follow=True))
        else:
            yield str(path), _stat(path)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _mark(seen: os.stat_result | None) -> str:
    # Not the time of the last change of status: hard links, which are made and removed elsewhere, change it.
    return "absent" if seen is None else f"{seen.st_size} {seen.st_mtime_ns} {seen.st_ino} {seen.st_mode}"


# Published files


def _results(store: Store, baseline: str | None) -> str:
    """A hash of the published files: sizes, times and inodes of files, links, snapshots and pins."""
    root, snapshots = store.root, store.root / FOLDER
    links = [root / name for name in PUBLISHED_NAMES] + [store.current_link]
    lines = [f"{link} {link.readlink() if link.is_symlink() else link.exists()}\n" for link in links]
    folders = [store.current_link.resolve(), *([snapshots / baseline / "tables"] if baseline else [])]
    singles = [root / REPORT, snapshots / PINS, *snapshots.glob(f"*/{MANIFEST}")]
    lines += [f"{path} {_mark(seen)}\n" for path, seen in _stats(folders)]
    return _digest_lines([*lines, *(f"{path} {_mark(_stat(path))}\n" for path in singles)])


def _digest_lines(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()


# The record


@dataclass
class RunRecorder:
    """Records a run if it is safe to skip the next one. Make it before the run, which removes the earlier record."""

    config: EvaluationConfig
    store: Store
    hashes: ContentHashes

    def __post_init__(self) -> None:
        self.store.run_record.unlink(missing_ok=True)
        self._began = time.time_ns()
        self._published_before = self.store.generation
        self._before = self._dependencies()

    def record(self, checks: Sequence[CheckOutcome], baseline: str | None, tools: Iterable[Path] | None) -> None:
        """Record the run, unless nothing was published, a check failed, or something changed or may change.

        `baseline` is the snapshot that the run was compared with, `tools` what validators used; None if none ran.
        """
        published = self.store.generation not in (None, self._published_before)
        if not published or any(check.error and not check.passed for check in checks):
            return
        # A failure here does not fail the run: without a record, the next run does its work.
        with suppress(OSError, TouchstoneError):
            if not self._unchanged(baseline) or (tools is not None and not self._is_final()):
                return
            used = None if tools is None else _tools(self.config, tools, self._began - SETTLE_NS)
            if tools is not None and used is None:
                return
            record = {
                "made_at": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
                "dependencies": self._before,
                "tools": used,
                "baseline": baseline,
                "results": _results(self.store, baseline),
                "checks": [asdict(check) for check in checks],
            }
            with replacing(self.store.run_record) as scratch:
                scratch.write_text(json.dumps(record))
            self.hashes.save(time.time_ns())

    def _dependencies(self) -> dict[str, str] | None:
        try:
            return dependencies(self.config, self.hashes)
        except OSError:
            return None

    def _unchanged(self, baseline: str | None) -> bool:
        """Whether a run now would read the same files and be compared with the same baseline."""
        if self._before is None or self._dependencies() != self._before:
            return False
        # `latest` means another baseline after each run.
        now = find_if_known(self.store.root, self.config.comparison.baseline)
        if baseline != (None if now is None else now.id):
            return False
        # A file may have changed and changed back, so what was read counts too.
        problems = first_problems_csv(self.config)
        places = {"rulings": self.config.rulings_file} | ({} if problems is None else {"problems": problems})
        read = self.store.inputs("problems", "attempts", "rulings")
        if problems is None:
            # Those in an archive, which has a hash of its own.
            read.pop("problems", None)
        return read == {name: self.hashes.of(places.get(name, self.config.fixes_dir / name)) for name in read}

    def _is_final(self) -> bool:
        """Whether no validation would be tried again, and none lacked a file, a tool or an environment."""
        import polars as pl

        parts = [part for table in _VALIDATED_TABLES for part in self.store.all_parts(table).values()]
        if self.config.validation.repeat > 1 or not all(part.settled for part in parts):
            return False
        columns = (("outcomes", "status"), ("baselines", "baseline_status"), ("baselines", "reference_status"))
        return not any(
            self.store.scan(table).select((pl.col(column) == "validator_unavailable").any()).collect().item()
            for table, column in columns
        )
