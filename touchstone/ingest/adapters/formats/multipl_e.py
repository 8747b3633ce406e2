"""Adapter for MultiPL-E: a folder with one `<problem>.results.json` (or `.json.gz`) per problem, or a single such file.

The list's order is the attempt. As in its `pass_k.py`, an attempt passes if its status is `OK` and its exit code 0;
every other status is a failure. A problem is translated into several languages, so it is `<language>/<name>` in the
suite `<benchmark>-<language>`, in the cluster `<name>`; the file's name says it if the file does not. The folder's name
says the model and the temperature: `humaneval-java-davinci-0.2-reworded`. What `pass_k.py` printed is taken from a CSV
in the folder or beside it.
"""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from touchstone.ingest.adapters.adapter import LIST, Adapter, Head, not_evaluated
from touchstone.ingest.adapters.folders import files_in, object_in, raw_from_files, text_in
from touchstone.ingest.adapters.json_files import identifier_of, number_of, object_of, stated_settings, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    RefusedRecordError,
    fill_records,
    table_from_records,
    words,
)
from touchstone.ingest.adapters.tool_figures import counts_of_records, pass_at_k_figures

FORMAT = "multipl-e"
COLUMNS = words("oid iteration_id llm_name suite cluster passed classification error program language temperature")
_ENDINGS = (".results.json", ".results.json.gz", ".results.json.zst")
_FOLDER = re.compile(r"[^-]+-[^-]+-(?P<model>.+)-\d+(?:\.\d+)?-[^-]+")
_FIGURES = words("Dataset Pass@k Estimate NumProblems MinCompletions MaxCompletions")
_KS = (1, 10, 100)
_MAX_TABLE = 1 << 20
_MAX_ERROR = 1000
# The problem, which of its results, and that.
_Result = tuple[dict[str, object], int, object]


def read_multipl_e(path: Path) -> AdapterTable:
    """Read the results of all problems in a folder, or of one problem, into rows of text cells."""
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    files = (
        [each for each in files_in(folder, *_ENDINGS) if each.name[0] != "."] if path.is_dir() else [path.absolute()]
    )
    found = _FOLDER.fullmatch(folder.name)
    model = found["model"] if found else folder.name or "unnamed"
    places: dict[int, Path] = {}
    problems: list[dict[str, object]] = []
    records = list(fill_records(_results(files, places, problems), _fill, {"llm_name": model}))
    settings = [stated_settings(model, "generation", each, "temperature top_p max_tokens") for each in problems]
    suites = sorted({record.cells["suite"] or "" for record in records if record.kind is None})
    stated = _stated(folder) if path.is_dir() and len(suites) == 1 else {}
    counted = ((suite, counts_of_records(records, suite)) for suite in suites)
    figures = (each for suite, counts in counted for each in pass_at_k_figures(model, counts, _KS, stated, suite))
    # All problems of a folder are generated alike.
    same = settings[0] if settings and all(each == settings[0] for each in settings) else []
    table = table_from_records(path, FORMAT, COLUMNS, records, raw_from_files(places), files=files)
    return table.stating(figures, same, [f"the files do not name the model; '{model}' comes from the folder's name"])


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        named = (name for name in sorted(head.names) if name.endswith(_ENDINGS) and name[0] != ".")
        return any(_recognizes(Head(head.path / name)) for name in islice(named, 3))
    return head.has_keys("language") and ("results", LIST, "exit_code") in head.key_paths


ADAPTER = Adapter(FORMAT, "MultiPL-E results", _recognizes, lambda path, _: read_multipl_e(path))
FIGURES = not_evaluated(
    "multipl-e-figures",
    "MultiPL-E figures",
    lambda head: head.csv_header.issuperset(_FIGURES),
    "figures of MultiPL-E; the attempts are in the folders with *.results.json files that it names",
    "ignored",
)


def _results(
    files: list[Path], places: dict[int, Path], problems: list[dict[str, object]]
) -> Iterator[tuple[int, _Result | RefusedRecordError]]:
    """Every result, numbered; collects where each is from, and the problems."""
    for file in files:
        found: list[_Result | RefusedRecordError]
        try:
            problem = {"name": file.name.split(".")[0], **object_in(file, "problem")}
            results = problem.pop("results", None)
            if not isinstance(results, list):
                raise RefusedRecordError("ragged", f"{file.name}: there is no list 'results'")
            problems.append(problem)
            found = [(problem, attempt, result) for attempt, result in enumerate(results, start=1)]
        except RefusedRecordError as refusal:
            found = [refusal]
        for each in found:
            places[len(places) + 1] = file
            yield len(places), each


def _fill(cells: Cells, found: _Result | RefusedRecordError) -> None:
    if isinstance(found, RefusedRecordError):
        raise found
    problem, attempt, value = found
    name, language = identifier_of(problem, "name"), identifier_of(problem, "language")
    result = object_of(value, f"result of {name[:100]}")
    status, exit_code = identifier_of(result, "status"), text_of(result.get("exit_code"))
    passed = status == "OK" and number_of(exit_code) == 0
    said = (text_of(result.get("stderr")) or text_of(result.get("stdout")) or "").strip()
    cells |= {
        "oid": f"{language}/{name}",
        "iteration_id": str(attempt),
        "suite": f"{name.partition('_')[0]}-{language}",
        "cluster": name,
        "passed": text_of(passed),
        "classification": "pass" if passed else "timeout" if status == "Timeout" else "fail",
        "error": None if passed else f"{status}: {said[-_MAX_ERROR:] or f'exit code {exit_code}'}",
        "program": text_of(result.get("program")),
        "language": language,
        "temperature": text_of(problem.get("temperature")),
    }


def _stated(folder: Path) -> dict[str, float | None]:
    """The figures of this folder in the tables that `pass_k.py` printed."""
    figures: dict[str, float | None] = {}
    for file in [*files_in(folder, ".csv"), *files_in(folder.parent, ".csv")]:
        header, *rows = csv.reader((text_in(file, _MAX_TABLE) or "").splitlines() or [""])
        if tuple(header) == _FIGURES:
            own = (row for row in rows if len(row) == len(_FIGURES) and row[0] == folder.name)
            figures |= {f"pass@{row[1]}": number_of(row[2]) for row in own}
    return figures
