"""The cost of reading large results files of other tools, beside parsing the same file with Python's own parser.

    python benchmarks/large_results.py [--megabytes 100,300] [--formats human-eval,evalplus] [--whole-run]
                                       [--folder /tmp]

The files are made in a temporary folder and removed at the end. Each is read in a process of its own, down to the
counts of every problem, or evaluated by `touchstone run`. The rival parses the same file: `json.loads` of every line,
`json.load` of the whole, or `iterparse` of XML.
Memory is bounded if the peak is about the same for all sizes. Nothing here asserts a time.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from arguments import at_least_one
from processes import Run, run

_SOURCE = random.Random(1)


def main() -> None:
    """Measure every format in every size, and print a table."""
    arguments = _arguments()
    print("| format | MB | CPU s | MB per CPU s | peak MB | parser's CPU s | parser's peak MB | CPU ratio |")
    print("|:--|" + "--:|" * 7)
    for name in arguments.formats:
        for megabytes in arguments.megabytes:
            with tempfile.TemporaryDirectory(prefix="touchstone-large-", dir=arguments.folder) as folder:
                path = write(Path(folder), name, megabytes * 1_000_000)
                read = _evaluated(path) if arguments.whole_run else _measured("--read", path)
                rival = _measured("--parse", path)
            figures = (read.cpu, megabytes / read.cpu, read.peak_mb, rival.cpu, rival.peak_mb, read.cpu / rival.cpu)
            shown = " | ".join(f"{figure:,.1f}" for figure in figures)
            print(f"| {name} | {megabytes} | {shown} |", flush=True)


def write(folder: Path, name: str, size: int) -> Path:
    """Write a file of this format with about so many bytes."""
    file_name, writer = FORMATS[name]
    path = folder / file_name
    with path.open("w") as file:
        writer(file, size)
    return path


def _until(file: TextIO, size: int, parts: Iterable[str], separator: str = ",\n") -> None:
    """Write parts until the file has this size."""
    for number, part in enumerate(parts):
        file.write(separator * (number > 0) + part)
        if file.tell() >= size:
            return


def _code() -> str:
    """A program of some 400 characters."""
    lines = [f"    value_{place} = compute({_SOURCE.random():.6f})" for place in range(_SOURCE.randrange(6, 14))]
    return "def solve(values):\n" + "\n".join(lines) + '\n    return "done"\n'


def _solved() -> bool:
    return _SOURCE.random() < 0.5


def _human_eval(file: TextIO, size: int) -> None:
    def lines() -> Iterator[str]:
        for number in count():
            solved = _solved()
            sample = {"task_id": f"HumanEval/{number % 164}", "completion": _code()}
            yield json.dumps(sample | {"result": "passed" if solved else "failed: no", "passed": solved})

    _until(file, size, lines(), "\n")


def _evalplus(file: TextIO, size: int) -> None:
    def tasks() -> Iterator[str]:
        for number in count():
            statuses = {"base_status": "pass", "base_fail_tests": [], "plus_fail_tests": [[[1.5, 2]]]}
            samples = [
                {"task_id": f"HumanEval/{number}", "solution": _code(), "plus_status": "pass" if _solved() else "fail"}
                for _ in range(200)
            ]
            yield f'"HumanEval/{number}": {json.dumps([each | statuses for each in samples])}'

    file.write('{"date": "2026-01-01 00:00", "hash": "0", "eval": {')
    _until(file, size, tasks())
    file.write("}}")


def _cruxeval(file: TextIO, size: int) -> None:
    written = 0

    def generations() -> Iterator[str]:
        nonlocal written
        for written in count(1):
            texts = [f"assert f({_SOURCE.random():.6f}) == ['{_SOURCE.randrange(1000)}']" for _ in range(10)]
            yield f'"sample_{written}": {json.dumps(texts)}'

    file.write('{"raw_generations": {')
    _until(file, size * 6 // 7, generations())
    file.write('}, "raw_scored_generations": {')
    scores = (f'"sample_{number}": {json.dumps([_solved() for _ in range(10)])}' for number in range(1, written + 1))
    _until(file, sys.maxsize, scores)
    file.write("}}")


def _promptfoo_rows() -> Iterator[dict[str, object]]:
    for number in count():
        solved, code = _solved(), _code()
        yield {
            "promptIdx": 0,
            "testIdx": number,
            "testCase": {"description": f"test {number}", "vars": {"bug": code}, "assert": [{"type": "python"}]},
            "vars": {"bug": code},
            "prompt": {"raw": f"Fix this:\n{code}", "label": "fix"},
            "provider": {"id": "openai:gpt", "label": "gpt"},
            "response": {"output": _code(), "tokenUsage": {"prompt": 900, "completion": 150}, "cached": False},
            "gradingResult": {"pass": solved, "score": float(solved), "componentResults": [{"pass": solved}]},
            "success": solved,
            "score": float(solved),
            "namedScores": {},
            "failureReason": 0 if solved else 1,
            "latencyMs": 1200,
            "cost": 0.00125,
        }


def _promptfoo(file: TextIO, size: int) -> None:
    file.write('{"evalId": "eval-1", "results": {"version": 3, "prompts": [], "results": [')
    _until(file, size, map(json.dumps, _promptfoo_rows()))
    file.write(']}, "config": {"description": "repairs"}}')


def _promptfoo_lines(file: TextIO, size: int) -> None:
    _until(file, size, map(json.dumps, _promptfoo_rows()), "\n")


def _terminal_bench(file: TextIO, size: int) -> None:
    def trials() -> Iterator[str]:
        for number in count():
            task, solved = f"task-{number // 5}", _solved()
            trial = {
                "id": f"id-{number}",
                "trial_name": f"{task}.{number % 5 + 1}-of-5.run",
                "task_id": task,
                "instruction": _code(),
                "is_resolved": solved,
                "failure_mode": "unset",
                "parser_results": {f"test_{place}": "passed" if solved else "failed" for place in range(8)},
                "total_input_tokens": 900,
                "total_output_tokens": 150,
                "trial_started_at": "2026-01-01T00:00:00+00:00",
                "trial_ended_at": "2026-01-01T00:01:00+00:00",
            }
            yield json.dumps(trial)

    file.write('{"id": "run", "results": [')
    _until(file, size, trials())
    file.write('], "n_resolved": 0, "n_unresolved": 0, "accuracy": 0.5}')


def _predictions(file: TextIO, size: int) -> None:
    def predictions() -> Iterator[str]:
        for number in count():
            patch = {"model_name_or_path": "acme", "model_patch": _code(), "full_output": _code() * 3}
            yield f'"django__django-{number}": {json.dumps(patch)}'

    file.write("{")
    _until(file, size, predictions())
    file.write("}")


def _livecodebench(file: TextIO, size: int) -> None:
    def questions() -> Iterator[str]:
        for number in count():
            codes, graded = [_code() for _ in range(10)], [_solved() for _ in range(10)]
            question = {"question_id": f"q{number}", "difficulty": "easy", "question_content": _code()}
            lists = {"output_list": codes, "code_list": codes, "graded_list": graded, "metadata": ["{}"] * 10}
            yield json.dumps(question | lists | {"pass@1": sum(graded) / 10})

    file.write("[")
    _until(file, size, questions())
    file.write("]")


def _lm_eval(file: TextIO, size: int) -> None:
    def samples() -> Iterator[str]:
        for number in count():
            prompt = {"gen_args_0": {"arg_0": _code(), "arg_1": {"until": ["\n"]}}}
            answer = {"resps": [[_code()]], "filtered_resps": [_code()], "filter": "none", "metrics": ["exact_match"]}
            sample = {"doc_id": number, "doc": {"question": _code()}, "target": "4", "arguments": prompt}
            yield json.dumps(sample | answer | {"doc_hash": f"{number:064}", "exact_match": float(_solved())})

    _until(file, size, samples(), "\n")


def _nemo_skills(file: TextIO, size: int) -> None:
    def outputs() -> Iterator[str]:
        for number in count():
            output = {"id": f"p{number}", "problem": _code(), "generation": _code() * 3, "num_generated_tokens": 900}
            yield json.dumps(output | {"predicted_answer": "4", "symbolic_correct": _solved()})

    _until(file, size, outputs(), "\n")


def _junit(file: TextIO, size: int) -> None:
    def cases() -> Iterator[str]:
        for number in count():
            failure = "" if _solved() else f"<failure message='expected 1'>{_code().replace('<', '&lt;')}</failure>"
            yield f'<testcase classname="shop.Cart{number % 977}" name="test_{number}" time="0.01">{failure}</testcase>'

    file.write('<testsuites><testsuite name="shop">')
    _until(file, size, cases(), "\n")
    file.write("</testsuite></testsuites>")


FORMATS: dict[str, tuple[str, Callable[[TextIO, int], None]]] = {
    "human-eval": ("acme_samples.jsonl_results.jsonl", _human_eval),
    "evalplus": ("acme_openai_temp_0.8_eval_results.json", _evalplus),
    "cruxeval": ("acme_temp0.8_output.json", _cruxeval),
    "promptfoo": ("promptfoo.json", _promptfoo),
    "promptfoo-lines": ("promptfoo.jsonl", _promptfoo_lines),
    "terminal-bench": ("results.json", _terminal_bench),
    "swebench-predictions": ("preds.json", _predictions),
    "livecodebench": ("Scenario.codegeneration_10_0.2_eval_all.json", _livecodebench),
    "lm-eval": ("samples_fix_2026-01-01T00-00-00.000000.jsonl", _lm_eval),
    "nemo-skills": ("output-rs0.jsonl", _nemo_skills),
    "junit": ("TEST-shop.xml", _junit),
}


def _read(path: Path) -> None:
    from touchstone.ingest.adapters import read_adapted
    from touchstone.ingest.adapters.tool_figures import counts_of_table

    print(sum(attempts for attempts, _ in counts_of_table(read_adapted(path))))


def _parse(path: Path) -> None:
    with path.open("rb") as file:
        if path.suffix == ".xml":
            for _, element in ElementTree.iterparse(file):
                element.clear()
        elif path.suffix == ".jsonl":
            for line in file:
                json.loads(line)
        else:
            json.load(file)


def _evaluated(path: Path) -> Run:
    touchstone = str(Path(sys.executable).with_name("touchstone"))
    return run([touchstone, "run", str(path), "--output-dir", str(path.parent / "results")], path.parent)


def _measured(step: str, path: Path) -> Run:
    return run([sys.executable, __file__, step, str(path)], path.parent)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure large results files of other tools.")
    sizes = [100, 300]
    parser.add_argument(
        "--megabytes", type=lambda text: [at_least_one(each) for each in text.split(",")], default=sizes
    )
    parser.add_argument("--formats", type=lambda text: text.split(","), default=list(FORMATS))
    parser.add_argument("--whole-run", action="store_true", help="evaluate each file with `touchstone run`")
    parser.add_argument("--folder", type=Path, help="where the files are made; by default the temporary folder")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        _read(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--parse"]:
        _parse(Path(sys.argv[2]))
    else:
        main()
