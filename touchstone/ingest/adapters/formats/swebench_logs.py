"""Adapter for the logs of SWE-bench's harness: `logs/run_evaluation/<run>/<model>/<instance>/report.json`.

Any folder from `logs` (or the one that holds it) down to one instance is read as one source, and so is a single
`report.json` in its place: model and run are only in the names of the folders. Several runs of a model are several
attempts, `<run>:1` each. In a submission the instances are directly in `<submission>/logs`, which is then the model.
Run reports beside `logs`, or in `results` there, add the attempts that left no logs, such as empty patches. One file
may also have the reports of several instances; its name or folder is the model.
mini-swe-agent, SWE-bench-Live and SWE-smith write reports without the instance around them; the folder's name has to be
an instance, or the `instance_id`. SWE-smith's also say that the tests timed out.

Multi-SWE-bench writes `<org>/<repo>/evals/pr-<n>/report.json` into any folder, which is the model, or into
`<submission>/logs`. There `valid` is not the verdict: the fix must also pass the tests of the data set, which only the
final report says (`final_report.json` or `results/results.json` beside the logs). Invalid ones are failures.

An instance without `report.json` has no verdict, unless its log says that the patch did not apply or the tests timed
out; submissions keep no log of it, only the patch or the output of the tests. `patch.diff` is the fix. Lists of tests
become counts: passed are those that had to pass and did.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, NotEvaluatedError
from touchstone.ingest.adapters.folders import (
    MAX_SUBFOLDERS,
    beside,
    files_in,
    is_file,
    is_folder,
    object_in,
    raw_from_files,
    some_subfolders,
    subfolders,
    text_in,
)
from touchstone.ingest.adapters.formats.swebench import (
    COLUMNS,
    EMPTY_PATCH,
    ERROR,
    LOG,
    RESOLVED,
    RUNS,
    TEST_OUTPUT,
    TIMEOUT,
    UNRESOLVED,
    RunReport,
    attempt_cells,
    cause_of_error,
    is_run_report,
    model_of_folder,
    parse_report,
    repository_of,
    status_of_failure,
)
from touchstone.ingest.adapters.json_files import inside, list_of, object_of, raw_values, section_of, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    table_from_records,
)
from touchstone.ingest.compressed import uncompressed_name

FORMAT = "swebench-logs"
_REPORT, _PATCH = "report.json", "patch.diff"
# Multi-SWE-bench
_EVALS, _FIX_PATCH, _FIX_LOG, _RESULTS = "evals", "fix.patch", "fix-patch-run.log", "results"
_PULL_REQUEST = re.compile(r"pr-\d+")
_ONLY_VALID = "valid, but whether all tests of the data set pass is only in the final report"
_NO_FINAL_REPORT = "valid instances are undecided: read all logs, with final_report.json or results/results.json beside"
_COLUMNS = (*COLUMNS, "tests_passed", "tests_failed", "patch_successfully_applied", "model_patch")
_TESTS_THAT_MUST_PASS = ("FAIL_TO_PASS", "PASS_TO_PASS")
# A patch of a human or a model is far smaller; generated files are not.
_PATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class _Instance:
    """The folder of one instance, and the model and run that the folders above it name."""

    folder: Path
    model: str
    run: str | None
    oid: str


@dataclass(frozen=True)
class _Logs:
    """The folder `depth` levels above the instances."""

    root: Path
    depth: int


def read_instances(path: Path) -> AdapterTable:
    """Read the logs of all instances in a folder, or a single report, into rows of text cells."""
    folder = path.absolute()
    if path.is_dir():
        logs = _find_logs(folder)
    else:
        logs = _Logs(folder.parent, 0)
        document = _report_in(path)
        if len(document) > 1 and all("resolved" in inside(report) for report in document.values()):
            return _read_several(path, document)
        _require_place(path, document)
    if logs is None:
        raise InputFileError(f"{path}: there are no logs of SWE-bench instances in this folder")
    instances = [_instance(each) for each in _folders_at(logs) if _is_instance(each) or _has_no_verdict(each)]
    multi = {base for each in instances if (base := _submission(each.folder))}
    above = {instance.folder.parent for instance in instances} if logs.depth else set()
    places = {folder} if logs.root != folder and logs.depth == 3 else above
    submissions = {each.parent for each in above if each.name == RUNS.parent.name}
    places |= {results for each in submissions if is_folder(results := each / _RESULTS)}
    if multi:
        # The logs of making the data set are beside those of evaluating fixes.
        instances = [each for each in instances if _submission(each.folder)]
        # Only with all instances: a report would add those that are in another source.
        places = {place for base in multi for place in (base, base / _RESULTS) if logs.depth == 4 and is_folder(place)}
    reports = {file: report for place in sorted(places) for file, report in _run_reports(place).items()}
    instances = _as_listed(instances, reports.values()) if multi else instances
    figures = [figure for report in reports.values() for figure in report.figures]
    lacking = bool(multi) and not reports
    records = list(fill_records(enumerate(instances, start=1), _fill))
    files = {line: instance.folder / _REPORT for line, instance in enumerate(instances, start=1)}
    for file, report in reports.items():
        _merge(records, files, file, report)
    _number_runs(records)
    read = sorted({*_files_of(instances), *reports})
    table = table_from_records(path, FORMAT, _COLUMNS, records, raw_from_files(files), files=read)
    settings = [setting for report in reports.values() for setting in report.settings]
    notes = [each for report in reports.values() for each in report.notes]
    figures = figures or ([] if lacking else _figures(records))
    return table.stating(figures, settings, [*notes, _NO_FINAL_REPORT] if lacking else notes)


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        return _find_logs(head.path.absolute()) is not None
    paths = head.key_paths
    if head.has_keys("org", "repo", "number", "valid"):
        return True
    if head.has_keys("resolved") and not paths.isdisjoint((("patch_exists",), ("PASS_TO_PASS",))):
        return True
    return any(len(path) == 2 and path[1] == "resolved" and (path[0], "patch_exists") in paths for path in paths)


ADAPTER = Adapter(FORMAT, "logs of SWE-bench's harness", _recognizes, lambda path, _: read_instances(path))


def _find_logs(folder: Path) -> _Logs | None:
    """The folder of the instances in this one; None if it holds none."""
    runs = next((folder / each for each in (RUNS, RUNS.name) if is_folder(folder / each)), None)
    if folder.name == RUNS.name or runs is not None:
        candidates = [_Logs(runs or folder, 3)]
    else:
        candidates = [*(_Logs(folder, depth) for depth in range(3)), _Logs(folder / RUNS.parent, 1)]
        candidates += [_Logs(root, 4) for root in (folder, folder / RUNS.parent)]
    return next((logs for logs in candidates if is_folder(logs.root) and _holds_instance(logs.root, logs.depth)), None)


def _holds_instance(folder: Path, depth: int) -> bool:
    if depth == 0:
        return _is_instance(folder)
    if depth == 4:
        repositories = (below for each in some_subfolders(folder) for below in some_subfolders(each))
        return any(_holds_instance(each / _EVALS, 1) for each in repositories)
    return any(_holds_instance(below, depth - 1) for below in some_subfolders(folder))


def _is_instance(folder: Path) -> bool:
    if _submission(folder):
        return any(is_file(folder / name) for name in (_REPORT, _FIX_LOG, LOG))
    # The log alone is there if the harness failed; a report alone if somebody kept nothing else.
    return is_file(folder / LOG) or (is_file(folder / _REPORT) and _recognizes(Head(folder / _REPORT)))


def _has_no_verdict(folder: Path) -> bool:
    """Whether the folder is of an instance whose evaluation left neither a report nor a log, as submissions keep it."""
    return repository_of(folder.name) is not None and any(
        is_file(beside(folder / _REPORT, name)) for name in (_PATCH, TEST_OUTPUT)
    )


def _submission(folder: Path) -> Path | None:
    """The folder that is the model of Multi-SWE-bench, if this one is `<org>/<repo>/evals/pr-<n>`."""
    if folder.parent.name != _EVALS or not _PULL_REQUEST.fullmatch(folder.name) or len(folder.parents) < 5:
        return None
    return folder.parents[4] if folder.parents[3].name == RUNS.parent.name else folder.parents[3]


def _as_listed(instances: list[_Instance], reports: Iterable[RunReport]) -> list[_Instance]:
    """The instances under ids such as `<org>__<repo>-<n>`, if the results of the submission have those."""
    others = [each.oid.replace("/", "__").replace(":pr-", "-") for each in instances]
    if not any(oid in report.attempts for report in reports for oid in others):
        return instances
    return [replace(each, oid=oid) for each, oid in zip(instances, others, strict=True)]


def _report_in(path: Path) -> dict[str, object]:
    try:
        return object_in(path, "report")
    except RefusedRecordError as refusal:
        raise InputFileError(f"{path}: {refusal.reason}") from None


def _read_several(path: Path, reports: Mapping[str, object]) -> AdapterTable:
    """Read the reports of several instances, which somebody has put into one file."""
    stem = Path(uncompressed_name(path)).stem
    named = model_of_name(path, "" if "report" in stem else stem)

    def entries(_: Path) -> Iterator[tuple[int, dict[str, object]]]:
        return enumerate(({oid: report} for oid, report in reports.items()), start=1)

    def fill(cells: Cells, entry: Mapping[str, object]) -> None:
        ((oid, report),) = entry.items()
        status, error, details = _stated(object_of(report, "report"), oid)
        cells |= attempt_cells(oid, named.name, None, status, error) | details

    records = list(fill_records(entries(path), fill, {"llm_name": named.name}))
    figures, raw = _figures(records), raw_values(entries)
    return table_from_records(path, FORMAT, _COLUMNS, records, raw, figures=figures, notes=[named.note])


def _require_place(path: Path, document: Mapping[str, object]) -> None:
    """A single report must be where the harness put it."""
    if not _is_about(document, _instance(path.absolute().parent)):
        reason = "the model is only in the names of the harness's folders; keep the file in <model>/<instance>/"
        raise NotEvaluatedError(f"{path}: {reason}", "unknown")


def _is_about(document: Mapping[str, object], instance: _Instance) -> bool:
    """Whether a report is about an instance: under its id, by its `instance_id`, or by the name of its folder."""
    folder, oid = instance.folder, instance.oid
    if _submission(folder):
        names = [folder.parents[2].name, folder.parents[1].name, folder.name.removeprefix("pr-")]
        return names == [text_of(document.get(name)) for name in ("org", "repo", "number")]
    is_named = "__" in oid and repository_of(oid) is not None
    return oid in document or ("resolved" in document and document.get("instance_id", oid if is_named else None) == oid)


def _folders_at(logs: _Logs) -> Iterator[Path]:
    """The folders of instances in order; a folder that cannot be read fails the source."""
    level = [logs.root]
    for _ in range(logs.depth):
        level = [below for each in level for below in subfolders(each)]
        if len(level) > MAX_SUBFOLDERS:
            raise InputFileError(f"{logs.root}: more than {MAX_SUBFOLDERS:,} instances; read fewer runs at a time")
    yield from level


def _instance(folder: Path) -> _Instance:
    above = folder.parent
    if base := _submission(folder):
        return _Instance(folder, base.name, None, f"{folder.parents[2].name}/{folder.parents[1].name}:{folder.name}")
    if above.name == RUNS.parent.name:
        return _Instance(folder, above.parent.name, None, folder.name)
    # SWE-bench-Live writes to any folder, which its users call logs/<name>; SWE-smith to logs/run_evaluation/<run>.
    run = None if above.parent.name in RUNS.parts else above.parent.name
    return _Instance(folder, model_of_folder(above.name), run, folder.name)


def _fill(cells: Cells, instance: _Instance) -> None:
    cells |= {"oid": instance.oid, "llm_name": instance.model}
    status, error, details = _verdict(instance)
    cells |= attempt_cells(instance.oid, instance.model, instance.run, status, error) | details
    name = _FIX_PATCH if _submission(instance.folder) else _PATCH
    patch = text_in(instance.folder / name, _PATCH_BYTES + 1)
    cells["model_patch"] = patch if patch and len(patch) <= _PATCH_BYTES else None


def _verdict(instance: _Instance) -> tuple[str, str | None, Cells]:
    """The status of an instance, the harness's reason, and details."""
    file = instance.folder / _REPORT
    if not text_in(file, 1):
        status, error = cause_of_error(instance.folder)
        return status, error, {}
    document = object_in(file, "report")
    if document.get("timed_out") is True:
        return TIMEOUT, None, {}
    if not _is_about(document, instance):
        raise RefusedRecordError("bad_id", f"{instance.oid}/{_REPORT}: it is about another instance")
    report = object_of(document.get(instance.oid, document), "report")
    return _stated(report, f"{instance.oid}/{_REPORT}", "valid" if _submission(instance.folder) else "resolved")


def _stated(report: Mapping[str, object], place: str, key: str = "resolved") -> tuple[str, str | None, Cells]:
    resolved = report.get(key)
    if not isinstance(resolved, bool):
        raise RefusedRecordError("bad_boolean", f"{place}: {key} is not true or false")
    if key == "valid":
        return (ERROR, _ONLY_VALID, {}) if resolved else (UNRESOLVED, text_of(report.get("error_msg")), {})
    details = _test_counts(section_of(report, "tests_status") or report)
    details["patch_successfully_applied"] = text_of(report.get("patch_successfully_applied"))
    if resolved:
        return RESOLVED, None, details
    if report.get("patch_is_None") is True or report.get("patch_exists") is False:
        return EMPTY_PATCH, None, details
    reason = text_of(report.get("infra_failure_reason"))
    return status_of_failure(UNRESOLVED, report.get("infra_failure") is True, reason), reason, details


def _test_counts(tests: Mapping[str, object]) -> Cells:
    counts = {"success": 0, "failure": 0}
    found = False
    for name in _TESTS_THAT_MUST_PASS:
        section = section_of(tests, name) or {}
        for outcome in counts:
            found = found or isinstance(section.get(outcome), list)
            counts[outcome] += len(list_of(section.get(outcome)))
    if not found:
        return {}
    return {"tests_passed": str(counts["success"]), "tests_failed": str(counts["failure"])}


def _run_reports(folder: Path) -> dict[Path, RunReport]:
    """The run reports in a folder: the harness writes them beside `logs`, SWE-bench-Live beside the instances."""
    return {file: parse_report(file) for file in files_in(folder, ".json") if is_run_report(Head(file))}


def _merge(records: list[Record], files: dict[int, Path], file: Path, report: RunReport) -> None:
    """Add what a run report knows: attempts without logs, and infrastructure failures found in all logs."""
    known = {
        record.cells["oid"]: record
        for record in records
        if record.cells["llm_name"] == report.model and record.cells.get("run_id") in (report.run, None)
    }
    for oid, (status, error) in report.attempts.items():
        record = known.get(oid)
        if record is None:
            line = len(records) + 1
            records.append(Record(line, attempt_cells(oid, report.model, report.run, status, error)))
            files[line] = file
        elif record.kind is None and record.cells["swebench_status"] != status:
            _reconcile(record, report, status, error)


def _reconcile(record: Record, report: RunReport, status: str, error: str | None) -> None:
    """Two statements about one instance: the logs tell more about a failure, the report about infrastructure."""
    own, oid = record.cells["swebench_status"], record.cells["oid"]
    if own == ERROR:  # without a report, a log has no verdict
        record.cells |= attempt_cells(str(oid), report.model, report.run, status, error)
    elif RESOLVED in (own, status) or status == EMPTY_PATCH:
        reason = f"{oid}: its log says {own} and the run report says {status}; evaluate it again"
        record.refuse(RefusedRecordError("contradiction", reason))
    elif status not in (ERROR, UNRESOLVED):
        record.cells |= attempt_cells(str(oid), report.model, report.run, status, error)


def _number_runs(records: list[Record]) -> None:
    """Tell the attempts of several runs of one model apart by the run; their order is unknown."""
    runs: dict[str | None, set[str | None]] = {}
    for record in records:
        runs.setdefault(record.cells["llm_name"], set()).add(record.cells.get("run_id"))
    for record in records:
        if len(runs[record.cells["llm_name"]]) > 1 and record.kind is None:
            record.cells["iteration_id"] = f"{record.cells['run_id']}:1"


def _files_of(instances: list[_Instance]) -> Iterator[Path]:
    """The files that can change an attempt."""
    for instance in instances:
        names = (_REPORT,) if is_file(instance.folder / _REPORT) else (LOG, TEST_OUTPUT)
        every = (*names, _PATCH, _FIX_PATCH)
        yield from (file for name in every if is_file(file := instance.folder / name))


def _figures(records: list[Record]) -> list[ReportedFigure]:
    """The count that a run report would state."""
    counts: dict[str, int] = {}
    for record in records:
        model = record.cells["llm_name"] or ""
        counts[model] = counts.get(model, 0) + (record.cells.get("swebench_status") == RESOLVED)
    return [ReportedFigure(model, "resolved_instances", None, float(count)) for model, count in sorted(counts.items())]
