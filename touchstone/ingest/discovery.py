"""Classifies every input file: the models it holds, or why it is not evaluated.

No file is skipped silently. It is evaluated, refused, excluded by the configuration, the list of problems, a copy of an
output of touchstone, data of an unknown kind, or not data; the table `sources` has a row for each. Reading rows belongs
in `attempts` and `adapters`.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from touchstone.config import EvaluationConfig, find_problems_csv, first_problems_csv
from touchstone.errors import InputFileError, TouchstoneError, reason_of
from touchstone.ingest.adapters import AdapterTable, ReadOptions, adapter_of, detect_format, read_as, why_unknown
from touchstone.ingest.adapters.adapter import NotEvaluatedError
from touchstone.ingest.adapters.folders import files_in, subfolders
from touchstone.ingest.adapters.formats.plain import exported_table, why_not_plain
from touchstone.ingest.adapters.formats.swebench import PREDICTIONS_FORMAT, SUBMISSION_FORMAT
from touchstone.ingest.adapters.table import encodable
from touchstone.ingest.archives import is_archive, unpack
from touchstone.ingest.attempts import fixes_columns
from touchstone.ingest.compressed import CSV_SUFFIXES, damage_of, data_suffix, open_input
from touchstone.ingest.csv_rows import LINE, ROW_ERROR, read_header, readable
from touchstone.ingest.dialect import require_fixes_columns
from touchstone.ingest.fix_columns import has_attempts, has_outcomes
from touchstone.ingest.input_paths import files_below, input_paths, label_of
from touchstone.ingest.parallel_reading import FileToRead, read_ahead
from touchstone.ingest.problems import problem_ids
from touchstone.ingest.sources import NATIVE, PLAIN_TABLES, Source, is_named_fixes, model_of
from touchstone.locations import archive_of
from touchstone.progress import track
from touchstone.regular_files import open_regular, read_bytes
from touchstone.storage.files import check_model_name
from touchstone.vocabulary import OUTCOMES_CSV_COLUMNS, FileStatus

# A folder may have many that are of no reader.
_PROBED_FOLDERS = 20
_READ_SUFFIXES = (*CSV_SUFFIXES, ".json", ".jsonl", ".ndjson")
_ARCHIVES = (".7z", ".bz2", ".rar", ".xz")
_COMPRESSED = (".gz", ".zst")
_SHEETS = (".ods", ".xls", ".xlsx")
_DATABASES = (".arrow", ".avro", ".db", ".duckdb", ".feather", ".orc", ".sqlite")
_READ_IF_KNOWN = (".eval", ".parquet", ".traj", ".trx", ".xml")
_SEPARATORS = ",;\t|"
_CONFIG_BYTES = 1 << 20
# Fewer files are read before anybody wonders.
_MANY = 50
UNUSED_PROBLEMS = "a list of problems, but not the one in use; see 'problems_csv' in the config"


@dataclass(frozen=True)
class NotEvaluated:
    """A file, or one model of a file, that is not evaluated, with the reason."""

    file: str
    status: FileStatus
    reason: str
    model: str | None = None
    format: str | None = None


@dataclass(frozen=True)
class Discovery:
    """The files of a folder by model, the tables that adapters read, and the files that are not evaluated."""

    sources: dict[str, list[Source]] = field(default_factory=dict)
    adapter_tables: dict[Path, AdapterTable] = field(default_factory=dict)
    not_evaluated: list[NotEvaluated] = field(default_factory=list)
    # As configured, at the usual places, or the only `problems.csv` in archives.
    problems_csv: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """Every file that is evaluated, once."""
        return sorted({source.path for sources in self.sources.values() for source in sources})

    @property
    def refused(self) -> dict[str, str]:
        """The refused files with the reason."""
        return {each.file: each.reason for each in self.not_evaluated if each.status == "refused"}


def discover(config: EvaluationConfig) -> Discovery:
    """Classify every input by name and content; raises if there is nothing to evaluate."""
    found = Discovery()
    paths = [member for path in input_paths(config) for member in _with_members(path, config, found)]
    problems = first_problems_csv(config) or _problems_in_archive(paths, config)
    found = replace(found, problems_csv=problems)
    looked_at = [path for path in paths if not _same_file(path, problems)]
    classified = {path: _classified(path, config) for path in _with_bar(looked_at, "recognizing files")}
    tables = _read_ahead(classified, config)
    for path in _with_bar(looked_at, "reading files"):
        _add_file(path, classified[path], tables, config, found)
    _mark_files_read_beside(config, found)
    for path in [path for path in found.adapter_tables if path.is_dir()]:
        _report_files_beside(path, set(paths), config, found)
    for model, sources in found.sources.items():
        _leave_out_copies(model, sources, found)
        native = [source.name for source in sources if source.format == NATIVE]
        if len(native) > 1:
            reason = f"{' and '.join(native)} both speak for the model '{model}'; "
            reason += "name the one to evaluate, rename it, or set 'data_type' in the config"
            found.not_evaluated.extend(NotEvaluated(name, "refused", reason, model, NATIVE) for name in native)
    refused = found.refused
    kept = {
        model: sources
        for model, sources in sorted(found.sources.items())
        if not any(source.name in refused for source in sources)
    }
    if not kept and not refused:
        raise TouchstoneError(_nothing_found(config, found))
    return replace(found, sources=kept)


def candidates(config: EvaluationConfig) -> list[Path]:
    """The inputs that may hold results, by name and the start of their content."""
    problems = first_problems_csv(config)
    files = (path for path in input_paths(config) if not _same_file(path, problems))
    return [path for path in files if _is_archive(path) or _classified(path, config).status is None]


def _with_members(path: Path, config: EvaluationConfig, found: Discovery) -> Iterable[Path]:
    """The files in an archive, which is refused as a whole if it cannot be unpacked; any other path as it is."""
    if not _is_archive(path):
        return [path]
    label = label_of(path, config.fixes_dir)
    try:
        unpacked = unpack(path)
    except InputFileError as error:
        found.not_evaluated.append(NotEvaluated(label, "refused", str(error)))
        return []
    links = (f"{label}/{encodable(name)}" for name in unpacked.links)
    found.not_evaluated.extend(NotEvaluated(link, "ignored", "a link, which is not unpacked") for link in links)
    return files_below(unpacked.folder)


def require_problems_csv(config: EvaluationConfig) -> Path:
    """The problems file that `discover` finds, also in an archive; an error if there is none."""
    archives = (path for path in input_paths(config) if _is_archive(path))
    members = (member for path in archives for member in _with_members(path, config, Discovery()))
    return first_problems_csv(config) or _problems_in_archive(members, config) or find_problems_csv(config)


def _problems_in_archive(paths: Iterable[Path], config: EvaluationConfig) -> Path | None:
    named = (path for path in paths if path.name.startswith("problems.csv") and archive_of(path) is not None)
    found = [path for path in named if _why_not_fixes(path, config) == UNUSED_PROBLEMS]
    return found[0] if len(found) == 1 else None


def _with_bar(paths: Sequence[Path], what: str) -> Iterator[Path]:
    """The paths, with a bar if there are many."""
    with track(what, len(paths), cached=0 if len(paths) >= _MANY else len(paths)) as advance:
        for path in paths:
            yield path
            advance(1)


def _is_archive(path: Path) -> bool:
    """Whether a file is one to unpack: a log of Inspect is a ZIP file, too."""
    named = is_archive(path) and not path.is_dir()
    return named and (path.suffix.lower() != ".zip" or detect_format(path) is None)


def files_with_problems(discovery: Discovery, config: EvaluationConfig) -> list[Path]:
    """The files whose problems are added to those of the problems file; none if the configuration names that.

    These are the files of other systems, and without a problems file also tables that record outcomes.
    """
    if config.problems_csv is not None:
        return []
    found = list(discovery.adapter_tables)
    if discovery.problems_csv is not None:
        return [path for path in found if discovery.adapter_tables[path].format not in PLAIN_TABLES]
    every = (source for sources in discovery.sources.values() for source in sources)
    native = [source.path for source in every if source.format == NATIVE]
    if not native:
        return found
    unused = next((each.file for each in discovery.not_evaluated if each.reason == UNUSED_PROBLEMS), None)
    if unused is not None:
        raise TouchstoneError(
            f"{unused} looks like the problems file: call it problems.csv (in archives only one may be), or set "
            "'problems_csv' in the config"
        )
    recording = {path: _records_outcomes(path, config) for path in native}
    return found if False in recording.values() else [*found, *(path for path in native if recording[path])]


def _records_outcomes(path: Path, config: EvaluationConfig) -> bool | None:
    """Whether a CSV has outcomes; None if it cannot be read, as reading it will say."""
    try:
        return has_outcomes(read_header(path, config.columns, fixes_columns(config.problem_key)))
    except InputFileError:
        return None


def _read_ahead(classified: "Mapping[Path, _Classified]", config: EvaluationConfig) -> dict[Path, AdapterTable]:
    """The tables of files that workers parse, as far as that pays."""
    options = read_options(config)
    items = [
        FileToRead(path, seen.format, options, config.input_limits)
        for path, seen in classified.items()
        if seen.format not in (None, SUBMISSION_FORMAT) and not _other_type(path, config)
    ]
    return read_ahead(items, config.worker_settings) if len(items) > 1 else {}


def _add_file(
    path: Path, seen: "_Classified", tables: Mapping[Path, AdapterTable], config: EvaluationConfig, found: Discovery
) -> None:
    """Add one file or folder to the discovery. The problems file is reported where it is read."""
    label = label_of(path, config.fixes_dir)
    if seen.status is not None:
        found.not_evaluated.append(NotEvaluated(label, seen.status, seen.reason))
        return
    if seen.format is None and not is_named_fixes(path):
        reason = _why_not_fixes(path, config)
        if reason:
            found.not_evaluated.append(NotEvaluated(label, "unknown", reason))
            return
    try:
        _add_results(path, seen.format, tables, config, found)
    except TouchstoneError as error:
        # An adapter says so if the file is not to blame: its attempts are in another file, or it never has any.
        status: FileStatus = error.status if isinstance(error, NotEvaluatedError) else "refused"
        reason = str(error) if status == "refused" else reason_of(error, path)
        found.not_evaluated.append(NotEvaluated(label, status, reason, format=seen.format or NATIVE))


def _add_results(
    path: Path, kind: str | None, tables: Mapping[Path, AdapterTable], config: EvaluationConfig, found: Discovery
) -> None:
    """Add the models of a results file, split into those that the configuration includes and excludes."""
    used_as, label = kind or NATIVE, label_of(path, config.fixes_dir)
    if _other_type(path, config):
        which = "has no 'synthetic'" if config.data_type == "synthetic" else "has 'synthetic'"
        reason = f"data_type is '{config.data_type}' and the file's name {which} in it"
        model = None if kind else model_of(path)
        found.not_evaluated.append(NotEvaluated(label, "left_out", reason, model, used_as))
        return
    table = None if kind is None else tables.get(path) or read_as(kind, path, _options(kind, config, found))
    names = [model_of(path)] if table is None else table.models()
    if table is not None and not names:
        line, reason = table.rows.select(LINE, ROW_ERROR).head(1).collect().row(0)
        raise InputFileError(f"{path}: no row names a usable model (line {line}: {reason})")
    for name in names:
        if config.models and not any(wanted in name for wanted in config.models):
            reason = f"'models' in the config does not name {name}"
            found.not_evaluated.append(NotEvaluated(label, "left_out", reason, name, used_as))
            continue
        source = Source(check_model_name(name), path, used_as, label)
        found.sources.setdefault(name, []).append(source)
        if table is not None:
            found.adapter_tables[path] = table


def _leave_out_copies(model: str, sources: list[Source], found: Discovery) -> None:
    """Leave out fixes files with the same bytes as another of the model, as where outcomes were copied."""
    first: dict[tuple[int, str], Source] = {}
    native = [source for source in sources if source.format == NATIVE]
    for source in native if len(native) > 1 else ():
        with readable(source.path), open_regular(source.path) as file:
            key = source.path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
        other = first.setdefault(key, source)
        if other is not source:
            sources.remove(source)
            reason = f"a copy of {other.name}"
            found.not_evaluated.append(NotEvaluated(source.name, "left_out", reason, model, NATIVE))


def _report_files_beside(folder: Path, named: set[Path], config: EvaluationConfig, found: Discovery) -> None:
    """Report results directly in a folder that is one source, but which the reader of the folder does not read.

    Of its subfolders the first of each format is named.
    """
    table = found.adapter_tables[folder]
    title = adapter_of(table.format, read_options(config)).title
    known = {file.absolute() for file in (*table.files, *named)}
    known |= {above for file in known for above in file.parents}
    folders = [path for path in subfolders(folder) if path.absolute() not in known]
    files = [path for path in files_in(folder, "") if path.absolute() not in known]
    formats_of_folders = {table.format}
    for path in (*files, *folders[:_PROBED_FOLDERS]):
        seen = _classified(path, config)
        if seen.status is not None or (seen.format is None and _why_not_fixes(path, config)):
            continue
        if seen.format and adapter_of(seen.format, read_options(config)).unread == "ignored":
            continue
        if path in folders:
            if seen.format in formats_of_folders:
                continue
            formats_of_folders.add(seen.format or NATIVE)
        # The usual place of predictions is beside the logs with their verdicts.
        status: FileStatus = "ignored" if seen.format == PREDICTIONS_FORMAT else "unknown"
        reason = f"its folder is read as {title} only; name it as well, or move it to another folder"
        label = label_of(path, config.fixes_dir)
        found.not_evaluated.append(NotEvaluated(label, status, reason, format=seen.format or NATIVE))


def _mark_files_read_beside(config: EvaluationConfig, found: Discovery) -> None:
    """A file of an unknown kind may have been read for another one, such as one that names the model."""
    beside = {label_of(file, config.fixes_dir) for table in found.adapter_tables.values() for file in table.files}
    for place, each in enumerate(found.not_evaluated):
        if each.status == "unknown" and each.format is None and each.file in beside:
            found.not_evaluated[place] = replace(each, status="ignored", reason="read for the results of another file")


def read_options(config: EvaluationConfig) -> ReadOptions:
    """The settings of the configuration for files whose content leaves it open."""
    return ReadOptions(
        config.score,
        config.junit_pattern,
        columns=config.columns,
        problem_key=config.problem_key,
        formats=tuple(config.formats),
        adapters=tuple(config.adapters),
    )


def _options(kind: str, config: EvaluationConfig, found: Discovery) -> ReadOptions:
    """The options of a format: with the ids of the problems file, if there is one, where results list no failures."""
    options = read_options(config)
    if kind != SUBMISSION_FORMAT or found.problems_csv is None:
        return options
    return replace(options, problems=problem_ids(found.problems_csv, config.problem_key))


def _other_type(path: Path, config: EvaluationConfig) -> bool:
    """Whether the configuration leaves a file out by its name."""
    return config.data_type != "all" and ("synthetic" in path.name) != (config.data_type == "synthetic")


@dataclass(frozen=True)
class _Classified:
    """The status and reason of what cannot be results; without a status it may be, in this format if one is known."""

    status: FileStatus | None
    reason: str = ""
    format: str | None = None


def _classified(path: Path, config: EvaluationConfig) -> _Classified:
    if path.is_dir():
        kind = detect_format(path, read_options(config))
        return _Classified("ignored", "a folder: files inside it are not read") if kind is None else _results(kind)
    if path.name.startswith(".") and label_of(path, config.fixes_dir) not in config.inputs:
        return _Classified("ignored", "a hidden file")
    if path.exists() and not path.is_file():
        return _Classified("ignored", "not a regular file")
    if _is_archive(path):
        return _Classified("unknown", "an archive in an archive is not read; unpack the outer one")
    suffix = data_suffix(path)
    if suffix in _READ_SUFFIXES:
        seen = _status_of_output(path) if suffix in CSV_SUFFIXES else _status_of_config(path)
        if seen.status is not None:
            return seen
        kind = detect_format(path, read_options(config))
        damage = damage_of(path) if kind is None and suffix not in CSV_SUFFIXES else ""
        return _Classified("refused", damage) if damage else _results(kind)
    kind = detect_format(path, read_options(config))
    if kind is not None:
        return _results(kind)
    if path.suffix.lower() in _ARCHIVES:
        return _Classified("unknown", f"{path.suffix} files are not read; pack it as .zip, .gz or .tar.gz")
    if suffix in (*_SHEETS, *_DATABASES):
        return _Classified("unknown", f"{suffix} files are not read; save it as CSV")
    if path.suffix.lower() in _COMPRESSED:
        return _Classified("unknown", why_unknown(path))
    if suffix in _READ_IF_KNOWN:
        return _Classified("unknown", why_not_plain(path, read_options(config)) or why_unknown(path))
    if _looks_like_fixes(path, config):
        return _Classified("unknown", "it looks like a fixes file, but its name does not end in .csv")
    return _Classified("ignored", "not a data file")


def _results(kind: str | None) -> _Classified:
    return _Classified(None, format=kind)


def _same_file(path: Path, other: Path | None) -> bool:
    return other is not None and os.path.realpath(path) == os.path.realpath(other)


def _status_of_output(path: Path) -> _Classified:
    """Status and reason of a CSV that touchstone wrote, recognised by its header wherever it was copied to."""
    try:
        columns = set(read_header(path))
    except InputFileError:
        return _results(None)
    if path.name.endswith("_outcomes.csv") and columns == set(OUTCOMES_CSV_COLUMNS):
        return _Classified("output", "outcomes written by touchstone, which are never read back under this name")
    if "LLM" in columns and any(name.startswith("pass@") for name in columns):
        return _Classified("output", "a summary of pass@k, which is never read back")
    table = exported_table(columns)
    if table is None:
        return _results(None)
    return _Classified("output", f"an export of the table {table}, which is never read back")


def _status_of_config(path: Path) -> _Classified:
    try:
        data = json.loads(read_bytes(path, _CONFIG_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return _results(None)
    is_config = isinstance(data, dict) and {"fixes_dir", "output_dir"}.issubset(data)
    return _Classified("ignored", "a configuration of touchstone") if is_config else _results(None)


def _why_not_fixes(path: Path, config: EvaluationConfig) -> str:
    """Why a file with a readable suffix holds no attempts; empty if it does."""
    if data_suffix(path) not in CSV_SUFFIXES:
        return why_not_plain(path, read_options(config)) or why_unknown(path)
    try:
        columns = read_header(path, config.columns, fixes_columns(config.problem_key))
        about_files = not {"filename", "test_command"}.isdisjoint(columns)
        if config.problem_key in columns and about_files and not has_attempts(columns):
            return UNUSED_PROBLEMS
        require_fixes_columns(path, columns, config.problem_key)
    except InputFileError as error:
        return reason_of(error, path)
    return ""


def _looks_like_fixes(path: Path, config: EvaluationConfig) -> bool:
    """Whether the first line has the columns of a fixes file, whatever the name and the separator."""
    try:
        with open_input(path) as file:
            line = file.readline(1 << 16).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, InputFileError):
        return False
    wanted = {config.problem_key, "iteration_id"}
    return any(wanted.issubset(name.strip(' "\r\n') for name in line.split(mark)) for mark in _SEPARATORS)


def _nothing_found(config: EvaluationConfig, found: Discovery) -> str:
    models = sorted({each.model for each in found.not_evaluated if each.status == "left_out" and each.model})
    unknown = [f"{each.file}: {each.reason}" for each in found.not_evaluated if each.status == "unknown"]
    if models:
        names = ", ".join(models[:10]) + (", …" if len(models) > 10 else "")
        wanted = f"models={config.models} and data_type='{config.data_type}'"
        return f"{config.fixes_dir}: no fixes file matches {wanted}; there are: {names}"
    if config.inputs:
        inputs = (each for each in found.not_evaluated if each.status != "output")
        others = [f"{config.fixes_dir / each.file}: {each.reason}" for each in inputs]
        return "; ".join(others[:5]) + ("; …" if len(others) > 5 else "") or f"{config.fixes_dir}: no files found"
    if unknown:
        shown = "; ".join(unknown[:5]) + ("; …" if len(unknown) > 5 else "")
        return f"{config.fixes_dir}: no fixes file ({shown})"
    return f"{config.fixes_dir}: no fixes file; expected <model>_fixes.csv, or a file of a system that is known"
