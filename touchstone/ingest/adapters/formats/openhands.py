"""Adapters for OpenHands: its `output.jsonl`, and the OpenHands Index.

An output has one instance per line, with the patch, and the verdict after grading. The report in `test_result` decides.
Without one the patch (`git_patch`) is an attempt without a verdict; verdicts that a later grading wrote to
`<name>.swebench_eval.jsonl`, or as a run report of SWE-bench to `<name>.report.json` or `report.json`, are joined.
That report, the predictions that were made for it (`<name>.swebench.jsonl`) and the attempts from which a critic chose
those of the output (`<name>.critic_attempt_<n>.jsonl`) are no attempts of their own. A failed grading (`error_eval`)
has no verdict, and nor has an empty patch after an error of the model's provider or of the runtime; any other empty
patch is a failure. The model is in the metadata of the line, else in those of the output that was graded or in
`metadata.json` beside the file, else it is the folder's name. Instructions are left out; histories are read for the
audit and not kept.

The index is `<model>/instance_results/<benchmark>.json`, by instance its cost and its outcome. The model is in
`metadata.json` above the file, else it is the folder's name; the score that the index shows is in `scores.json`, in
percent. The benchmark is the suite. Ids of SWE-bench stay as they are, so that its other files pair with these; those
of other benchmarks get the benchmark's name, because some have SWE-bench's ids for another task.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, not_evaluated
from touchstone.ingest.adapters.folders import beside, bounded_document, is_file, object_in
from touchstone.ingest.adapters.formats.swebench import (
    COLUMNS,
    EMPTY_PATCH,
    ERROR,
    INFRA_FAILURE,
    NOT_RUN,
    PATCH_FAILED,
    RESOLVED,
    STATUS,
    TIMEOUT,
    UNRESOLVED,
    RunReport,
    attempt_cells,
    is_judged,
    is_run_report,
    outcome_of,
    parse_report,
    undecide_unless_judged,
)
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    identifier_of,
    inside,
    line_records,
    number_of,
    numbered_lines,
    object_of,
    objects_of,
    parse_line,
    raw_lines,
    raw_values,
    scalar_of,
    section_of,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.steps import Step, event_steps
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    number_attempts_of_rows,
    refuse_repetition,
    settle,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import tokens_without_cache
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.csv_rows import ROW_ERROR_KIND
from touchstone.text import counted

FORMAT = "openhands"
_TOKENS = words("input_tokens output_tokens cache_read_tokens cache_write_tokens")
_COLUMNS = (*COLUMNS, "suite", "cost_usd", *_TOKENS, "agent", "model_patch")
_EVALUATED, _OUTPUT = ".swebench_eval.jsonl", "output.jsonl"
_PART = re.compile(r"(?:(?P<of>.+)\.(?:report\.json|swebench\.jsonl|critic_attempt_\d+\.jsonl)|report\.json)")
# Errors of the provider, the network and the sandbox; the agent's own end otherwise, in a loop or at a limit.
_INFRASTRUCTURE = re.compile(
    r"litellm|RateLimit|APIConnection|APIError|InternalServerError|ServiceUnavailable|Authentication|Overloaded"
    r"|AgentRuntime|ConnectionError|ConnectTimeout|ReadTimeout|docker",
    re.IGNORECASE,
)
_OWN_END = re.compile(r"ContextWindowExceed|ContentPolicyViolation", re.IGNORECASE)

INDEX_FORMAT = "openhands-index"
_SWEBENCH, _INSTANCES = "swe-bench", "instance_results"


def read_openhands(path: Path) -> AdapterTable:
    """Read an output file into rows of text cells."""
    model, model_note, files = _model_beside(path)
    # An output and its grading have the same attempts.
    place = hashlib.blake2b(os.fsencode(path.absolute().with_name(_output_name(path))), digest_size=8).hexdigest()
    verdicts, evaluated = _verdicts_beside(path)
    report = parse_report(graded) if (graded := _run_report(path)) is not None else None
    settings: dict[StatedSetting, None] = {}
    judged = report.attempts if report else {}
    records = line_records(path, "instance", partial(_fill, verdicts, judged, settings), {"llm_name": model})
    # Not by the patch: gradings have none.
    table = refuse_repetition(table_from_records(path, FORMAT, _COLUMNS, records, raw_lines), STATUS)
    table = settle(table, words("llm_name oid iteration_id sample_uuid"), partial(_number, place))
    table, notes = undecide_unless_judged(table)
    taken = not table.rows.filter(pl.col("llm_name") == model).head(1).collect().is_empty()
    notes += ["instructions and histories are not kept", *([model_note] if taken and model_note else [])]
    table = replace(table, files=(path, *(files if taken else []), *evaluated, *([graded] if graded else [])))
    return table.stating(_figures(table, report), settings, notes)


def _number(place: str, rows: pl.DataFrame) -> pl.DataFrame:
    unique = pl.format("{}/{}/{}", pl.lit(place), "oid", "iteration_id")
    return number_attempts_of_rows(rows).with_columns(
        pl.when(pl.col(ROW_ERROR_KIND).is_null()).then(unique).alias("sample_uuid")
    )


def _run_report(path: Path) -> Path | None:
    """The run report of SWE-bench beside an output."""
    name = uncompressed_name(path)
    names = [f"{name.removesuffix('.jsonl')}.report.json", *(["report.json"] if name == _OUTPUT else [])]
    files = (beside(path, each) for each in names)
    return next((file for file in files if is_file(file) and is_run_report(Head(file))), None)


def _recognizes(head: Head) -> bool:
    record = head.first_record
    return "instance_id" in record and isinstance(record.get("test_result"), dict)


def _transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
    for line, text in numbered_lines(table.path):
        with suppress(RefusedRecordError):
            history = parse_line(text, "instance").get("history")
            if history:
                yield line, event_steps(history)


ADAPTER = Adapter(
    FORMAT, "OpenHands output", _recognizes, lambda path, _: read_openhands(path), transcripts=_transcripts
)


def _is_part(head: Head) -> bool:
    found = _PART.fullmatch(head.name)
    if found is None or (head.name.endswith("report.json") and not is_run_report(head)):
        return False
    return _recognizes(Head(beside(head.path, f"{found['of'] or 'output'}.jsonl")))


PARTS = not_evaluated(
    "openhands-parts",
    "a part of an OpenHands run",
    _is_part,
    "belongs to the OpenHands output beside it, which is read instead; a report is read with it",
    "ignored",
)


def _model_beside(path: Path) -> tuple[str, str | None, list[Path]]:
    """The model for lines that do not name it: from the files beside this one, else the folder's name."""
    folder = path.absolute().parent
    output = beside(path.absolute(), _output_name(path))
    if output != path.absolute() and is_file(output):
        try:
            model = _model_of(section_of(Head(output).first_record, "metadata") or {})
        except RefusedRecordError:
            model = None
        if model:
            return model, None, [output]
    file = beside(output, "metadata.json")
    if is_file(file):
        try:
            model = _model_of(object_in(file, "metadata"))
        except RefusedRecordError as refusal:
            raise InputFileError(f"{file}: {refusal.reason}") from None
        if model:
            return model, None, [file]
    return folder.name, f"the file does not name the model; its folder '{folder.name}' is taken for it", []


def _output_name(path: Path) -> str:
    """The name of the output that a grading belongs to; of an output its own."""
    name = uncompressed_name(path)
    return name.removesuffix(_EVALUATED) + ".jsonl" if name.endswith(_EVALUATED) else name


def _model_of(metadata: Mapping[str, object]) -> str | None:
    """The model of a run: `llm_config` until 2025, then `llm`."""
    for name in ("llm_config", "llm"):
        model = (section_of(metadata, name) or {}).get("model")
        if isinstance(model, str) and model.strip():
            return text_of(model)
    return None


def _verdicts_beside(path: Path) -> tuple[dict[str, dict[str, object]], list[Path]]:
    """The reports of a grading that wrote its own file, by instance."""
    name = uncompressed_name(path)
    file = beside(path, name.removesuffix(".jsonl") + _EVALUATED)
    if name.endswith(_EVALUATED) or not is_file(file):
        return {}, []
    verdicts: dict[str, dict[str, object]] = {}
    for line, text in numbered_lines(file):
        try:
            instance = parse_line(text, "instance")
            report = section_of(section_of(instance, "test_result") or {}, "report")
            if report is not None:
                verdicts[identifier_of(instance, "instance_id")] = report
        except RefusedRecordError as refusal:
            raise InputFileError(f"{file}: line {line}: {refusal.reason}") from None
    return verdicts, [file]


def _fill(
    verdicts: Mapping[str, Mapping[str, object]],
    judged: Mapping[str, tuple[str, str | None]],
    settings: dict[StatedSetting, None],
    cells: Cells,
    instance: Mapping[str, object],
) -> None:
    metadata = section_of(instance, "metadata") or {}
    cells["llm_name"] = model = _model_of(metadata) or cells["llm_name"] or ""
    oid = identifier_of(instance, "instance_id")
    result = section_of(instance, "test_result") or {}
    report = section_of(result, "report") or verdicts.get(oid)
    patch, error = text_of(result.get("git_patch")), text_of(instance.get("error"))
    by_run, reason = judged.get(oid, (None, None))
    # Benchmarks without patches have other results.
    is_empty = not (patch and patch.strip()) and ("git_patch" in result or not result)
    status = _status(report, by_run, is_empty, error)
    cells |= attempt_cells(oid, model, None, status, error or reason) | _usage(instance)
    cells |= {
        "iteration_id": text_of(instance.get("attempt")),
        "suite": text_of(metadata.get("dataset")),
        "agent": text_of(metadata.get("agent_class")),
        "model_patch": patch,
    }
    settings |= dict.fromkeys(stated_settings(model, "generation", inside(metadata, "llm_config"), GENERATION))
    settings |= dict.fromkeys(stated_settings(model, "limits", metadata, "max_iterations"))


def _status(report: Mapping[str, object] | None, judged: str | None, is_empty: bool, error: str | None) -> str:
    """The status by the report of the line, else as it is `judged` by the report of the run."""
    if report is not None and report.get("resolved") is True:
        return RESOLVED
    if report is None and judged not in (None, EMPTY_PATCH, ERROR):
        return judged
    if (is_empty or judged == EMPTY_PATCH) if report is None else report.get("empty_generation") is True:
        infrastructure = error is not None and _INFRASTRUCTURE.search(error) and not _OWN_END.search(error)
        return INFRA_FAILURE if infrastructure else EMPTY_PATCH
    if report is None:
        return judged or NOT_RUN
    flags = {"failed_apply_patch": PATCH_FAILED, "test_timeout": TIMEOUT, "error_eval": ERROR}
    found = next((status for flag, status in flags.items() if report.get(flag) is True), None)
    if found is None and report.get("resolved") is not False:
        raise RefusedRecordError("bad_boolean", "resolved is not true or false")
    return found or UNRESOLVED


def _usage(instance: Mapping[str, object]) -> Cells:
    metrics = section_of(instance, "metrics") or {}
    tokens = section_of(metrics, "accumulated_token_usage") or {}
    read, write = (text_of(tokens.get(f"cache_{kind}_tokens")) for kind in ("read", "write"))
    return {
        "cost_usd": text_of(metrics.get("accumulated_cost")),
        "input_tokens": tokens_without_cache(text_of(tokens.get("prompt_tokens")), read, write),
        "output_tokens": text_of(tokens.get("completion_tokens")),
        "cache_read_tokens": read,
        "cache_write_tokens": write,
    }


def _figures(table: AdapterTable, report: RunReport | None) -> list[ReportedFigure]:
    """The share that the grading script prints: resolved of all lines; and what the report of the run states."""
    known = table.rows.filter(pl.col(ROW_ERROR_KIND).is_null()).group_by("llm_name", STATUS).len().collect()
    by_model: dict[str, dict[str, int]] = {}
    for model, status, count in known.iter_rows():
        by_model.setdefault(model, {})[status or NOT_RUN] = count
    stated = report.figures[:1] if report is not None and len(by_model) == 1 else []
    return [
        ReportedFigure(model, figure.name, figure.reported, float(by_model[model].get(RESOLVED, 0)))
        for figure in stated
        for model in by_model
    ] + [
        ReportedFigure(
            model,
            "resolved / instances",
            None,
            statuses.get(RESOLVED, 0) / sum(statuses.values()),
            note=_note(sum(count for status, count in statuses.items() if outcome_of(status) is None)),
        )
        for model, statuses in sorted(by_model.items())
        if NOT_RUN not in statuses or any(map(is_judged, statuses))
    ]


def _note(undecided: int) -> str | None:
    without = counted(undecided, "line without a verdict", "lines without a verdict")
    return f"OpenHands counts {without} as not resolved; Touchstone leaves them out" if undecided else None


def read_index(path: Path) -> AdapterTable:
    """Read the instance results of the OpenHands Index into rows of text cells."""
    benchmark = uncompressed_name(path).removesuffix(".json")
    model, score, notes, files = _index_entry(path, benchmark)
    records = list(fill_records(_instances(path), partial(_fill_index, model, benchmark), {"llm_name": model}))
    resolved = sum(record.cells.get("passed") == "true" for record in records)
    share = 100 * resolved / len(records) if records else None
    note = "in percent, rounded to one decimal; instances without a result count as failures in the index"
    figures = [ReportedFigure(model, "accuracy", score, share, benchmark, note)]
    columns, read = (*COLUMNS, "suite", "cost_usd"), [path, *files]
    table = table_from_records(path, INDEX_FORMAT, columns, records, raw_values(_instances), files=read)
    return table.stating(figures, notes=notes)


def _recognizes_index(head: Head) -> bool:
    paths = head.key_paths
    is_index = any(len(path) == 2 and path[1] == "resolved" and (path[0], "cost") in paths for path in paths)
    return is_index and head.path.absolute().parent.name == _INSTANCES


INDEX = Adapter(
    INDEX_FORMAT, "instance results of the OpenHands Index", _recognizes_index, lambda path, _: read_index(path)
)


def _instances(path: Path) -> Iterator[tuple[int, tuple[str, object]]]:
    document = bounded_document(path)
    if not isinstance(document, dict):
        raise InputFileError(f"{path}: the results of the OpenHands Index are an object by instance")
    yield from enumerate(document.items(), start=1)


def _index_entry(path: Path, benchmark: str) -> tuple[str, float | None, list[str], list[Path]]:
    """The model and the score of the benchmark, in the files above `instance_results`."""
    folder = path.absolute().parent.parent
    model, score, files = None, None, []
    metadata, scores = (beside(folder / name, name) for name in ("metadata.json", "scores.json"))
    if is_file(metadata):
        model = scalar_of(inside(bounded_document(metadata)).get("model"))
        files.append(metadata)
    if is_file(scores):
        entries = [each for each in objects_of(bounded_document(scores)) if each.get("benchmark") == benchmark]
        # Other metrics leave out instances that nobody can solve, and have the accuracy beside them.
        stated = [each.get("score") for each in entries if each.get("metric") == "accuracy"]
        stated += [inside(each, "component_scores").get("combined_accuracy") for each in entries]
        score = next((number for each in stated if (number := number_of(each)) is not None), None)
        files.append(scores)
    if model is not None and model.strip():
        return model, score, [], files
    return folder.name, score, [f"no metadata.json names the model; its folder '{folder.name}' is taken for it"], files


def _fill_index(model: str, benchmark: str, cells: Cells, instance: tuple[str, object]) -> None:
    oid, value = instance
    result = object_of(value, "result")
    resolved = result.get("resolved")
    if resolved is not None and not isinstance(resolved, bool):
        raise RefusedRecordError("bad_boolean", "resolved is not true or false")
    status = ERROR if resolved is None else RESOLVED if resolved else UNRESOLVED
    name = identifier_of({"instance": oid}, "instance")
    unique = name if benchmark == _SWEBENCH else f"{benchmark}/{name}"
    cells |= attempt_cells(unique, model, None, status)
    cells |= {"suite": benchmark, "cost_usd": text_of(result.get("cost"))}
