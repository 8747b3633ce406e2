"""Adapter for RepairBench's `evaluation_<benchmark>_<prompt>_<provider>.jsonl`: a bug per line, with its candidates.

Each candidate is an attempt. As in RepairBench, it is plausible, and so passes, if `test` is true; one that could not
be evaluated (null) is not. A bug for which there was no prompt has no candidates. The model is the folder, or the one
above that of the benchmark (`results/<model>/<benchmark>/`). `statistics_*.json` beside the file states the figures,
over the candidates of all bugs together. `candidates_*.jsonl` are the same bugs before they were evaluated, and
`samples_*.jsonl` before there were candidates.
"""

from dataclasses import replace
from pathlib import Path

from touchstone.config.formats import JsonFormat
from touchstone.config.json_paths import Found
from touchstone.ingest.adapters.adapter import ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import object_beside
from touchstone.ingest.adapters.json_files import number_of, object_of, text_of
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import AdapterTable, NamedModel, RefusedRecordError, ReportedFigure
from touchstone.ingest.adapters.tool_figures import counts_of_table, estimate
from touchstone.text import counted

_EVALUATION = JsonFormat(
    name="repairbench",
    title="RepairBench evaluations",
    records="[].evaluation[]",
    problem="^.identifier",
    passed="@",
    fix="generation",
    columns={"compiled": "compile", "exact_match": "exact_match", "ast_match": "ast_match"},
    requires=("[].identifier", "[].generation"),
)
_POOLED = "RepairBench puts the candidates of all bugs together"


def read_repairbench(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the candidates of all bugs into rows of text cells."""
    folder, run = path.absolute().parent, path.name.partition(".")[0].removeprefix("evaluation_")
    benchmark = run.partition("_")[0]
    model = (folder.parent.name if folder.name == benchmark else folder.name) or "unnamed"
    named = NamedModel(model, f"the file does not name the model; '{model}' is the name of a folder")
    table = mapped_adapter(
        _EVALUATION, judge=_is_plausible, fill=lambda cells, _: cells.update(suite=benchmark), named=lambda _: named
    ).read(path, options)
    (file, stated), counts = object_beside(path, f"statistics_{run}.json"), counts_of_table(table)
    total, passed = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0)
    figures = [
        ReportedFigure(model, name, number_of(stated[name]), round(estimate(total, passed, k), 3), benchmark, _POOLED)
        for k in (1, 10, 100)
        if (name := f"plausible@{k}") in stated and total >= k
    ]
    missing = int(number_of(stated.get("num_bugs")) or 0) - len(counts)
    notes = [named.note, *([f"without candidates, and left out: {counted(missing, 'bug')}"] if missing > 0 else [])]
    return replace(table, files=(path, *file)).stating(figures, notes=notes)


def _is_plausible(found: Found) -> bool:
    passed = None if found.value is None else object_of(found.value, "candidate").get("test")
    if not isinstance(passed, bool | None):
        raise RefusedRecordError("bad_boolean", f"test: {text_of(passed)!r} is not true or false")
    return passed is True


ADAPTER = replace(mapped_adapter(_EVALUATION), read=read_repairbench)
CANDIDATES = not_evaluated(
    "repairbench-candidates",
    "RepairBench candidates",
    lambda head: {"identifier", "buggy_code", "fixed_code"}.issubset(head.first_record),
    "bugs or candidates without verdicts; RepairBench's evaluate_patches.py writes evaluation_*.jsonl with them",
)
FIGURES = not_evaluated(
    "repairbench-figures",
    "RepairBench figures",
    lambda head: head.has_keys("num_bugs", "num_plausible_patches") or head.has_keys("prompt_cost", "completion_cost"),
    "figures of RepairBench; the attempts are in evaluation_*.jsonl",
    "ignored",
)
