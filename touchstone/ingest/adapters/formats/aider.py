"""Adapter for aider's benchmark: the `.aider.results.json` of every exercise below the folder of a run.

An exercise is one attempt, because a later try sees why the tests failed: it passes if the last of `tests_outcomes` is
true. aider's `pass_rate_1` counts exercises that the first try solved, `pass_rate_2` those that the first two did, of
all that have a result; an exercise that ended in an exception counts as failed. One without any outcome, because
the tests were not run, is undecided here. Several runs of a model are further attempts, in the order of their names; a
model that ran with several edit formats, efforts or editors has them as tiers.

The problem is `<language>/<exercise>`. Leaderboards have pass rates without attempts, and are recognized to say so.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, not_evaluated
from touchstone.ingest.adapters.folders import (
    MAX_SUBFOLDERS,
    is_file,
    is_folder,
    object_in,
    raw_from_files,
    some_subfolders,
    subfolders,
)
from touchstone.ingest.adapters.formats.terminal_bench import separate_agents
from touchstone.ingest.adapters.json_files import Carried, list_of, scalar_of, stated_settings, text_of
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    number_attempts,
    table_from_records,
    words,
)

FORMAT = "aider"
_FILE, _PRACTICE = ".aider.results.json", ("exercises", "practice", "*")
# From an exercise up to a folder of runs, with and without languages.
_LAYOUTS = ((), ("*",), _PRACTICE, ("*", *_PRACTICE), ("*", "*"), ("*", "*", *_PRACTICE))
_COLUMNS = words(
    "oid iteration_id llm_name tier suite run_id passed classification error cost_usd duration_seconds input_tokens "
    "output_tokens agent tries"
)
_MAPPED = words(
    "testdir testcase model tests_outcomes cost duration prompt_tokens completion_tokens exception chat_hashes"
)


def read_results(path: Path) -> AdapterTable:
    """Read the results of all exercises in a folder into rows of text cells."""
    exercises = dict(enumerate(_exercises(path.absolute(), subfolders), start=1))
    carried, settings = Carried(_MAPPED, _COLUMNS), dict[StatedSetting, None]()
    records = list(fill_records(exercises.items(), lambda cells, each: _fill(cells, each, carried, settings)))
    _name_models(records)
    number_attempts(records)
    files = {line: folder / _FILE for line, folder in exercises.items()}
    table = table_from_records(path, FORMAT, _COLUMNS, records, raw_from_files(files), files=list(files.values()))
    table, several = separate_agents(table)
    return table.stating(_figures(records), list(settings), [*several, *carried.notes()])


ADAPTER = Adapter(
    FORMAT,
    "results of aider's benchmark",
    lambda head: head.is_folder and bool(_exercises(head.path.absolute(), some_subfolders)),
    lambda path, _: read_results(path),
)

LEADERBOARD = not_evaluated(
    "aider-leaderboard",
    "a leaderboard of aider",
    lambda head: head.text.startswith("- dirname:") and "pass_rate_1:" in head.text,
    "a leaderboard of aider: pass rates of runs, without attempts; the folder of a run has them (.aider.results.json)",
    "ignored",
)


def _exercises(folder: Path, below: Callable[[Path], list[Path]]) -> list[Path]:
    """The folders of exercises with results, in the first layout that has any."""
    for layout in _LAYOUTS:
        level = [folder]
        for name in layout:
            level = [each for above in level for each in (below(above) if name == "*" else [above / name])]
            level = [each for each in level if is_folder(each)]
            if len(level) > MAX_SUBFOLDERS:
                raise InputFileError(f"{folder}: more than {MAX_SUBFOLDERS:,} exercises; read fewer runs at a time")
        if found := [each for each in level if is_file(each / _FILE)]:
            return found
    return []


def _fill(cells: Cells, folder: Path, carried: Carried, settings: dict[StatedSetting, None]) -> None:
    """An exercise is at `<run>/<language>/exercises/practice/<exercise>`, in old runs at `<run>/<exercise>`."""
    language, run = None, folder.parent
    if folder.parent.name == _PRACTICE[1]:
        language, run = folder.parents[2].name, folder.parents[3]
    oid = f"{language}/{folder.name}" if language else folder.name
    cells |= {"oid": oid, "suite": language, "run_id": run.name, "llm_name": None}
    result = object_in(folder / _FILE, "result")
    model, tried = scalar_of(result.get("model")), result.get("tests_outcomes")
    cells["llm_name"] = model
    outcomes, exception = list_of(tried), scalar_of(result.get("exception"))
    if (not isinstance(tried, list) and exception is None) or not all(isinstance(each, bool) for each in outcomes):
        raise RefusedRecordError("bad_boolean", f"{oid}: tests_outcomes is not a list of true and false")
    passed = outcomes[-1] if outcomes else None if exception is None else False
    cells |= {
        "passed": text_of(passed),
        "classification": "error" if exception is not None and not passed else None,
        "error": exception and (exception.strip().splitlines() or [""])[-1][:300],
        "cost_usd": text_of(result.get("cost")),
        "duration_seconds": text_of(result.get("duration")),
        "input_tokens": text_of(result.get("prompt_tokens")),
        "output_tokens": text_of(result.get("completion_tokens")),
        "tries": str(len(outcomes)),
        **carried.cells(result),
    }
    if model is not None:
        stated = [
            *stated_settings(model, "generation", result, "reasoning_effort thinking_tokens"),
            *stated_settings(model, "agent", result, "edit_format editor_model editor_edit_format"),
            *stated_settings(model, "harness", result, "commit_hash"),
        ]
        settings |= dict.fromkeys(stated)
        cells["agent"] = ", ".join(f"{each.name} {each.value}" for each in stated if each.dimension != "harness")


def _name_models(records: list[Record]) -> None:
    """An exercise that ended in an exception does not name the model: it is that of the others in its run."""
    runs: dict[str | None, set[tuple[str, str | None]]] = {}
    for record in records:
        known = runs.setdefault(record.cells["run_id"], set())
        known |= {(name, record.cells.get("agent"))} if (name := record.cells["llm_name"]) else set()
    for record in (record for record in records if not record.cells["llm_name"]):
        if len(known := runs[record.cells["run_id"]]) == 1:
            ((record.cells["llm_name"], record.cells["agent"]),) = known
        else:
            record.refuse(RefusedRecordError("bad_id", f"{record.cells['oid']}: no result of the run names its model"))


def _figures(records: list[Record]) -> Iterator[ReportedFigure]:
    """aider's pass rates of each run, in percent."""
    runs: dict[tuple[str, str], list[Cells]] = {}
    for record in records:
        if record.kind is None:
            runs.setdefault((record.cells["llm_name"] or "", record.cells["run_id"] or ""), []).append(record.cells)
    for (model, run), results in runs.items():
        solved = [int(cells["tries"] or 0) for cells in results if cells["passed"] == "true"]
        last = max(int(cells["tries"] or 0) for cells in results)
        waiting = sum(not cells["passed"] for cells in results)
        for number in range(1, last + 1):
            rate = 100 * sum(tries <= number for tries in solved) / len(results)
            note = f"counts {waiting:,} without an outcome as failed; Touchstone leaves them out" if waiting else None
            note = note if number == last else f"by try {number}; Touchstone counts what any try solved"
            yield ReportedFigure(model, f"{run} pass_rate_{number}", None, rate, note=note)
