"""Adapter for NeMo-Skills: a folder `eval-results/<benchmark>` with `output-rs<seed>.jsonl` files, or one such file.

Each seed is an attempt at every problem. A problem is called by its id, else by its place, which is the same for all
seeds. A file that was appended to itself counts once. The scores are those of the tool: `symbolic_correct` (once
`is_correct`), `judge_correct` by the last `Judgement:` of the judge, where anything but yes is wrong, the base and
plus tests of code, and what LiveCodeBench, SWE-bench and IFEval decide by. The files do not name the model: the folder
above `eval-results` does. `metrics.json` states the figures, in percent: beside the outputs, or those of all benchmarks
in a folder above.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from touchstone.config.json_paths import follow, parse_path
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.folders import files_in, object_beside
from touchstone.ingest.adapters.json_files import inside, number_of, numbered_lines, parse_line, scalar_of, text_of
from touchstone.ingest.adapters.table import APPENDED, AdapterTable, Record, RefusedRecordError, repeated_block
from touchstone.ingest.adapters.tool_figures import Sample, scored_table
from touchstone.ingest.compressed import ENDINGS, uncompressed_name
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH

FORMAT = "nemo-skills"
_FILE = re.compile(r"output(?:-rs(?P<seed>\d+))?\.jsonl")
_VERDICTS = {
    "symbolic_correct": "symbolic_correct",
    "is_correct": "symbolic_correct",
    "is_correct-plus": "passing_plus_tests",
    "passing_base_tests": "passing_base_tests",
    "passing_plus_tests": "passing_plus_tests",
    "graded_list[0]": "accuracy",
    "swe-bench-metrics.resolved": "issues_resolved",
    "strict_eval.follow_all_instructions": "prompt_strict_accuracy",
    "loose_eval.follow_all_instructions": "prompt_loose_accuracy",
}
_IDS = ("id", "task_id", "problem_id", "question_id", "unique_id", "instance_id")
_TOKENS = {"input_tokens": "num_input_tokens", "output_tokens": "num_generated_tokens"}


def read_nemo_skills(path: Path, options: ReadOptions) -> AdapterTable:
    """Read the outputs of all seeds into rows of text cells."""
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    files = _outputs(folder) if path.is_dir() else [path]
    model = folder.parents[1].name if folder.parent.name == "eval-results" else folder.parent.name
    metrics, figures = _metrics(folder) if path.is_dir() else ([], {})
    # How many outputs each file has before they are repeated to its end.
    sizes = {file: repeated_block(pl.Series([hash(text) for _, text in numbered_lines(file)])) for file in files}
    seeds = len(files)
    modes = (f"pass@1[avg-of-{seeds}]", f"pass@1[{seeds}]", *(("pass@1", "greedy") if seeds == 1 else ()))
    mode = next((each for each in modes if each in figures), "")
    numbers = {name: number_of(value) for name, value in inside(figures, mode).items()}

    def raw(_: Path, numbers: set[int]) -> dict[int, str]:
        return {number: text[:MAX_RAW_LENGTH] for number, (*_, text) in _numbered(sizes) if number in numbers}

    return scored_table(
        path,
        FORMAT,
        _Samples(sizes, model or "unnamed", folder.name),
        raw,
        options.score,
        stated={(folder.name, name): value / 100 for name, value in numbers.items() if value is not None},
        notes=[f"the files do not name the model; '{model}' is the name of a folder"],
        files=[*files, *metrics],
    )


def _metrics(folder: Path) -> tuple[list[Path], dict[str, object]]:
    """The nearest file that states figures of this benchmark, and those."""
    for above in (folder, *folder.parents[:2]):
        file, stated = object_beside(above / "output.jsonl", "metrics.json")
        if figures := inside(stated, folder.name):
            return file, figures
    return [], {}


def _outputs(folder: Path) -> list[Path]:
    """The outputs of all seeds; that without one is of a greedy run, and no attempt beside theirs."""
    named = [file for file in files_in(folder, ".jsonl", *ENDINGS) if _FILE.fullmatch(uncompressed_name(file))]
    seeds = [file for file in named if "-rs" in file.name]
    return sorted(seeds or named, key=lambda file: (len(file.name), file.name))


def _recognizes(head: Head) -> bool:
    if head.is_folder:
        named = sorted(name for name in head.names if name.startswith(("output-rs", "output.jsonl")))[:3]
        return any(_recognizes(Head(head.path / name)) for name in named)
    # Under another name it may be anyone's table: the seed is in the name only.
    is_named = _FILE.fullmatch(head.name) is not None and "generation" in head.first_record
    return is_named and _verdicts(head.first_record) != {}


ADAPTER = Adapter(FORMAT, "NeMo-Skills outputs", _recognizes, read_nemo_skills)


def _numbered(sizes: Mapping[Path, int]) -> Iterator[tuple[int, tuple[str, int, int, str]]]:
    """The outputs of all files, numbered from 1: seed, place in the file, place of the output it repeats, and line."""
    named = ((file, _FILE.fullmatch(uncompressed_name(file)), size) for file, size in sizes.items())
    seeds = [(file, f"rs{name['seed']}" if name and name["seed"] else "1", size) for file, name, size in named]
    return enumerate(
        (
            (seed, place, (place - 1) % size + 1, text)
            for file, seed, size in seeds
            for place, (_, text) in enumerate(numbered_lines(file), start=1)
        ),
        start=1,
    )


@dataclass(frozen=True)
class _Samples:
    """The samples of all files, read again by each iteration."""

    sizes: Mapping[Path, int]
    model: str
    suite: str

    def __iter__(self) -> Iterator[Sample]:
        for number, (seed, place, first, text) in _numbered(self.sizes):
            record = Record(number, {"llm_name": self.model, "suite": self.suite, "iteration_id": seed})
            values: dict[str, float | None] = {}
            try:
                if place > first:
                    raise RefusedRecordError("duplicate", APPENDED.format(first))
                output = parse_line(text, "output")
                own = next((found for name in _IDS if (found := scalar_of(output.get(name)))), str(place))
                record.cells |= {"oid": f"{self.suite}/{own}", "answer": text_of(output.get("predicted_answer"))}
                record.cells |= {ours: scalar_of(output.get(theirs)) for ours, theirs in _TOKENS.items()}
                values = _values(output)
            except RefusedRecordError as refusal:
                record.refuse(refusal)
            yield Sample(record, values)


def _verdicts(output: Mapping[str, object]) -> dict[str, object]:
    paths = ((parse_path(text).steps, name) for text, name in _VERDICTS.items())
    verdicts = {name: follow(output, steps) for steps, name in paths if steps[0] in output}
    if "is_correct-plus" in output:
        verdicts["passing_base_tests"] = verdicts.pop("symbolic_correct", None)
    if isinstance(judged := output.get("judgement"), str):
        verdicts["judge_correct"] = judged.rpartition("Judgement:")[2].strip().lower().startswith("yes")
    return verdicts


def _values(output: Mapping[str, object]) -> dict[str, float | None]:
    verdicts = _verdicts(output)
    unknown = next((name for name, value in verdicts.items() if not isinstance(value, bool | None)), None)
    if unknown is not None:
        raise RefusedRecordError("bad_boolean", f"{unknown}: {text_of(verdicts[unknown])!r} is not true or false")
    return {name: None if value is None else float(value is True) for name, value in verdicts.items()}
