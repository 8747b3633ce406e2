"""The input files of one evaluation: which there are, what they hold, and a hash of each as it was read.

Which files count is decided in `discovery`; what becomes of their rows in `stage`.
"""

import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from touchstone.config import EvaluationConfig, find_problems_csv, first_problems_csv, require_baseline_model
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters import AdapterTable
from touchstone.ingest.discovery import Discovery, candidates, discover, files_with_problems
from touchstone.ingest.input_paths import files_of_source, input_files, label_of
from touchstone.ingest.limits import use_limits
from touchstone.ingest.rulings import RulingsFile, read_rulings
from touchstone.ingest.sources import ChangedWhileReadError, ContentHashes, mark_of
from touchstone.locations import archive_of
from touchstone.progress import report_step
from touchstone.storage.store import digest


def _files_of(path: Path, table: AdapterTable | None) -> tuple[Path, ...]:
    files = (table.files if table is not None else ()) or (path,)
    return tuple(dict.fromkeys(archive_of(file) or file for file in files))


class Inputs:
    """The files that a configuration names, looked up once and hashed at most once."""

    def __init__(self, config: EvaluationConfig, hashes: Path) -> None:
        use_limits(config.input_limits)
        self.config = config
        self.hashes = ContentHashes(hashes)
        self._hashes_of_read: dict[Path, str] = {}

    @cached_property
    def discovery(self) -> Discovery:
        """The fixes files by model, and the rows of other systems' files; read again once if one changes meanwhile."""
        try:
            return self._discover()
        except ChangedWhileReadError:
            return self._discover()

    def _discover(self) -> Discovery:
        before = {file: mark_of(file) for file in input_files(self.config)}
        started = time.time_ns()
        found = discover(self.config)
        unpacked = (path for path in found.paths if archive_of(path) is not None)
        for path in dict.fromkeys((*found.adapter_tables, *unpacked)):
            for file in _files_of(path, found.adapter_tables.get(path)):
                # These rows are read now and used later. Keeping their hash with them makes sure that bytes written in
                # between are never taken for those of the old rows.
                try:
                    self._hashes_of_read[file] = self.hashes.of(file)
                except OSError:
                    raise ChangedWhileReadError(file) from None
                mark = mark_of(file)
                # A file beside an input is not one itself; it must not have changed since the start.
                if mark != before[file] if file in before else mark is None or max(mark[1:3]) > started:
                    raise ChangedWhileReadError(file)
        return found

    @property
    def models(self) -> list[str]:
        """The models that have a file."""
        return list(self.discovery.sources)

    def each_model(self, what: str) -> Iterator[str]:
        """Every model in turn, with progress reported."""
        for place, model in enumerate(self.models, start=1):
            report_step(f"{what} of {model} ({place} of {len(self.models)})")
            yield model

    @cached_property
    def problems_csv(self) -> Path | None:
        """The problems file; None if the results themselves name the problems."""
        found = self.discovery.problems_csv
        return found if found is not None or self.files_with_problems else find_problems_csv(self.config)

    @cached_property
    def rulings(self) -> RulingsFile:
        """The rulings of people."""
        return read_rulings(self.config.rulings_file)

    @cached_property
    def files_with_problems(self) -> list[Path]:
        """The results whose problems are added to those of the problems file."""
        return files_with_problems(self.discovery, self.config)

    def problems_version(self) -> str:
        """A hash of the files that the problems come from."""
        files = [*([self.problems_csv] if self.problems_csv else []), *self.files_with_problems]
        return digest([self.source_hash(path) for path in files])

    def label(self, path: Path) -> str:
        """How a file is called in tables and messages."""
        return label_of(path, self.config.fixes_dir)

    def files_of(self, path: Path) -> tuple[Path, ...]:
        """The files that were read for a source: the file or its archive, or those of a folder and those beside it."""
        return _files_of(path, self.discovery.adapter_tables.get(path))

    def source_hash(self, path: Path) -> str:
        """SHA-256 of a source: of the file, or of the hashes of all files that were read for it."""
        files = self.files_of(path)
        if files in ((path,), (archive_of(path),)):
            return self.file_hash(files[0])
        return digest([(self.label(file), self.file_hash(file)) for file in files])

    def file_hash(self, path: Path) -> str:
        """SHA-256 of an input file."""
        if path in self._hashes_of_read:
            return self._hashes_of_read[path]
        try:
            return self.hashes.of(path)
        except OSError as error:
            raise InputFileError(f"{path}: cannot be read ({error.strerror})") from None

    def hash_or_none(self, path: Path) -> str | None:
        """SHA-256 of an input file or source; None if it cannot be read."""
        try:
            return self.source_hash(path)
        except InputFileError:
            return None

    def require_unchanged(self, path: Path, content: str) -> None:
        """Refuse rows read from a source whose bytes differ from those hashed before."""
        if self.hash_or_none(path) != content:
            raise ChangedWhileReadError(path)

    def save_hashes(self) -> None:
        """Keep the hashes, so that an untouched file need not be read again."""
        self.hashes.save(time.time_ns())

    def state(self) -> dict[str, str]:
        """The hash of every file that may hold results or problems, by name, without parsing any."""
        output = self.config.output_dir
        files = {self.label(file): file for path in candidates(self.config) for file in files_of_source(path, output)}
        problems = first_problems_csv(self.config)
        if problems is not None:
            files["problems"] = problems
        if self.config.rulings_file.exists():
            files["rulings"] = self.config.rulings_file
        return {name: self.hash_or_none(path) or "unreadable" for name, path in sorted(files.items())}

    def require_models(self) -> list[str]:
        """The models; an error that says why if there is none, or no problems file."""
        if not self.models:
            raise TouchstoneError("; ".join(sorted(set(self.discovery.refused.values()))))
        if self.problems_csv is not None and not self.problems_csv.is_file():
            raise TouchstoneError(f"{self.problems_csv}: no such problems file; set 'problems_csv' in the config")
        require_baseline_model(self.config.comparison.baseline_model, self.models)
        return self.models

    def require_only(self, only: Iterable[str], option: str) -> None:
        """Refuse a name that is not one of the models."""
        models = self.require_models()
        for model in only:
            if model not in models:
                raise TouchstoneError(f"{option} {model}: no such model; there are: {', '.join(models)}")
