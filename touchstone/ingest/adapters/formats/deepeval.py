"""Adapter for DeepEval test runs: `.deepeval/.latest_run_full.json`, `.latest_test_run.json`, `test_run_<time>.json`.

A test case, of one turn or a conversation, is an attempt at the problem that its name stands for. `deepeval test run
--repeat` numbers the attempts in the names (`test_fix[null-1-2]`); a name with several inputs, as of a loop within one
test, is followed by a digest of the input. `success` decides, as in DeepEval's own counts: without it a test case is
undecided. The model is the hyperparameter `model` if the run logged it, else the identifier of the run, else the name
of the project's folder. The scores of metrics are the columns `metric_<name>`.
`.temp_test_run_data.json` has no counts; older versions wrote it beside the tests, without the first dot.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import LIST, Adapter, Head
from touchstone.ingest.adapters.json_files import (
    GENERATION,
    Carried,
    digest_of,
    inside,
    list_of,
    number_of,
    object_of,
    objects_of,
    raw_values,
    read_document,
    scalar_of,
    stated_settings,
    text_of,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    number_attempts,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import mean

FORMAT = "deepeval"
COLUMNS = words(
    "oid iteration_id llm_name suite run_id passed classification input_tokens output_tokens cost_usd duration_seconds "
    "error asked_sha"
)
_LATEST = (".latest_run_full.json", ".latest_test_run.json", ".temp_test_run_data.json")
# What a run on Confident AI leaves, if anything, instead of its test cases.
_LINK = {("testRunLink",)}
_LISTS = ("testCases", "conversationalTestCases")
_USAGE = {
    "input_tokens": "inputTokenCount",
    "output_tokens": "outputTokenCount",
    "cost_usd": "tokenCost",
    "duration_seconds": "completionTime",
}
_MAPPED = (*_USAGE.values(), *words("name success metricsData metricsMetadata trace traceStack turns imagesMapping"))
_TIME = re.compile(r"\d{8}_\d{6}(?:_\d+)?")
_REPETITION = re.compile(r"(?P<test>.+?)-?(?P<nth>\d{1,4})-(?P<of>\d{1,4})\]")


def read_deepeval(path: Path) -> AdapterTable:
    """Read the test cases of one run into rows of text cells."""
    files = [path / name for name in _LATEST if (path / name).is_file()] if path.is_dir() else [path]
    file = next((each for each in files if Head(each).key_paths != _LINK), files[0])
    run, carried = _run(file), Carried(_MAPPED, COLUMNS)
    named = _model(file, run)
    cases = list(_cases(run))
    time = _TIME.search(file.name)
    common: Cells = {
        "llm_name": named.name,
        "suite": scalar_of(run.get("testFile")),
        "run_id": time[0] if time else None,
    }
    values = enumerate(zip(_problems(cases), cases, strict=True), start=1)
    records = list(fill_records(values, lambda cells, value: _fill(cells, *value, carried), common))
    number_attempts(records)
    judges = (
        [scalar_of(each.get(key)) for key in ("name", "threshold", "evaluationModel")] for each in _metrics(*cases)
    )
    used = "; ".join(sorted({" ".join(filter(None, each)) for each in judges}))
    settings = [
        *stated_settings(named.name, "problems", run, "datasetAlias datasetVersion"),
        *stated_settings(named.name, "generation", inside(run, "hyperparameters"), GENERATION),
        *stated_settings(named.name, "scorer", {"metrics": used}, "metrics"),
    ]
    raw = raw_values(lambda _: enumerate(_cases(_run(file)), start=1))
    table = table_from_records(path, FORMAT, COLUMNS, records, raw, files=(file,))
    return table.stating(_figures(named.name, run, cases), settings, [named.note, *carried.notes()])


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        return not head.names.isdisjoint(_LATEST)
    paths = {keys[1:] if keys[0] == "testRunData" else keys for keys in head.key_paths}
    marks = {("metricsScores",), ("metricScores",), ("testCases", LIST, "metricsData")}
    return head.key_paths == _LINK or (("testCases",) in paths and not marks.isdisjoint(paths))


ADAPTER = Adapter(FORMAT, "a DeepEval test run", _recognizes, lambda path, _: read_deepeval(path))


def _run(file: Path) -> dict[str, object]:
    document = read_document(file)
    run = inside(document, "testRunData") or inside(document)
    if not any(isinstance(run.get(name), list) for name in _LISTS):
        if "testRunLink" in run:
            kept = "set DEEPEVAL_RESULTS_FOLDER to keep test_run_<time>.json"
            raise InputFileError(f"{file}: only a link to the run on Confident AI, without its test cases; {kept}")
        raise InputFileError(f"{file}: a DeepEval test run needs a list 'testCases'")
    return run


def _cases(run: Mapping[str, object]) -> Iterator[object]:
    return (case for name in _LISTS for case in list_of(run.get(name)))


def _metrics(*cases: object) -> list[dict[str, object]]:
    """The metrics of test cases; `metricsMetadata` in older files, where the name is called `metric`."""
    lists = (inside(case).get("metricsData") or inside(case).get("metricsMetadata") for case in cases)
    return [{"name": each.get("metric"), **each} for own in lists for each in objects_of(own)]


def _model(file: Path, run: Mapping[str, object]) -> NamedModel:
    stated = scalar_of(inside(run, "hyperparameters").get("model")) or scalar_of(run.get("identifier"))
    if stated:
        return NamedModel(stated, f"the model '{stated}' is a hyperparameter, or the identifier of the run")
    if f".{file.name.lstrip('.')}" in _LATEST:
        folder = file.absolute().parent
        return model_of_name(folder if folder.name == ".deepeval" else file, "")
    return model_of_name(file, file.stem)


def _problems(cases: Sequence[object]) -> list[str]:
    """The problem of each test case; empty if it has no name."""
    named = [(scalar_of(inside(case).get("name")) or "", _asked(inside(case))) for case in cases]
    parts = [_REPETITION.fullmatch(name) for name, _ in named]
    keys = [part and (part["test"], part["of"], asked) for part, (_, asked) in zip(parts, named, strict=True)]
    seen = {(key, part["nth"]) for key, part in zip(keys, parts, strict=True) if key and part}
    times = Counter(key for key, _ in seen)
    # Two numbers in brackets may be parameters: those of repetitions are all there.
    names = [
        f"{key[0]}]".replace("[]", "") if key and times[key] == int(key[1]) else name
        for key, (name, _) in zip(keys, named, strict=True)
    ]
    asked = [asked for _, asked in named]
    inputs = Counter(name for name, _ in {*zip(names, asked, strict=True)})
    return [f"{name}#{own}" if name and inputs[name] > 1 else name for name, own in zip(names, asked, strict=True)]


def _asked(case: Mapping[str, object]) -> str:
    return digest_of(text_of(case.get("input") or case.get("scenario") or case.get("turns")) or "")


def _fill(cells: Cells, problem: str, value: object, carried: Carried) -> None:
    case, metrics = object_of(value, "test case"), _metrics(value)
    success = case.get("success")
    if not problem.strip():
        raise RefusedRecordError("bad_id", "the name is missing")
    if not isinstance(success, bool | None):
        raise RefusedRecordError("bad_boolean", f"success: {text_of(success)!r} is not true or false")
    failed = [each for each in metrics if each.get("success") is False]
    reasons = (f"{scalar_of(each.get('name'))}: {text_of(each.get('error') or each.get('reason'))}" for each in failed)
    word = "error" if failed and all(each.get("error") for each in failed) else "fail"
    cells |= {
        "oid": problem,
        "passed": None if success is None else text_of(success),
        "classification": None if success is None else "pass" if success else word,
        "error": None if success else "; ".join(reasons)[:1000] or None,
        "asked_sha": _asked(case),
        **{ours: text_of(case.get(theirs)) for ours, theirs in _USAGE.items()},
        **{f"metric_{scalar_of(each.get('name'))}": scalar_of(each.get("score")) for each in metrics},
        **carried.cells(case),
    }


def _figures(model: str, run: Mapping[str, object], cases: Sequence[object]) -> list[ReportedFigure]:
    """The share of test cases that passed, and the mean score of each metric."""
    passed, failed = (number_of(run.get(name)) or 0 for name in ("testPassed", "testFailed"))
    stated = passed / (passed + failed) if passed + failed else None
    verdicts = [float(success) for case in cases if isinstance(success := inside(case).get("success"), bool)]
    figures = [ReportedFigure(model, "pass rate", stated, mean(verdicts))]
    judged = [each for each in _metrics(*cases) if each.get("success") is not None]
    for each in list_of(run.get("metricsScores")):
        name, theirs = scalar_of(inside(each).get("metric")), list_of(inside(each).get("scores"))
        ours = [metric.get("score") for metric in judged if metric.get("name") == name]
        figures.append(ReportedFigure(model, f"mean of {name}", _mean(theirs), _mean(ours)))
    return figures


def _mean(values: Sequence[object]) -> float | None:
    return mean([number for number in map(number_of, values) if number is not None])
