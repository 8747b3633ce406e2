"""Sides of a comparison: every kind of folder and file, and what is said of those that cannot be used."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.comparison.regressions import case_scores, regressions
from touchstone.config.scoring import CodeWeights, Scoring
from touchstone.errors import TouchstoneError
from touchstone.storage.files import file_key
from touchstone.tables import TABLES, conform

SCYLLA = """experiment,agent_model,tier,subtest,run_number,impl_rate,passed
repair,some model,T0,001,1,1.0,True
repair,some model,T1,001,1,0.5,False
"""


def scores(side: ComparisonInput) -> list[tuple[object, ...]]:
    return side.attempt_scores.select("model", "tier", "oid", "iteration_id", "pass_rate").collect().rows()


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def native(folder: Path, outcome: str = "true", model: str = "m") -> str:
    write(folder / "problems.csv", "oid,filename,cluster\na,a.tf,c1\nb,b.tf,\n")
    return write(folder / f"{model}_fixes.csv", f"oid,iteration_id,plausible_fix\na,1,{outcome}\nb,1,\n")


def forgetest(path: Path, *results: dict[str, object]) -> str:
    usual = {"model": "openai/gpt", "attempt": 1, "compilation": {"success": True}}
    return write(path, json.dumps({"results": [usual | result for result in results]}))


def result_folder(folder: Path, side: ComparisonInput) -> str:
    """An output folder with the side's scores, one part per model, as a run leaves it."""
    table = folder / "tables" / "attempt_scores"
    table.mkdir(parents=True)
    frame = conform(side.attempt_scores, TABLES["attempt_scores"]).collect()
    for (model,), part in frame.partition_by("model", as_dict=True).items():
        part.write_parquet(table / f"{file_key(model)}.parquet")
    (folder / "tables" / "problems").mkdir()
    if side.problems is not None:
        side.problems.collect().write_parquet(folder / "tables" / "problems" / "problems.parquet")
    return str(folder)


def test_a_fixes_file_with_the_problems_beside_it(tmp_path: Path) -> None:
    text = native(tmp_path)
    side = open_input(text)
    assert side.label == text
    assert scores(side) == [("m", "T0", "a", "1", 1.0), ("m", "T0", "b", "1", None)]
    assert side.problems is not None
    assert side.problems.select("oid", "cluster").collect().rows() == [("a", "c1"), ("b", None)]
    assert side.quarantine == ()


def test_a_fixes_file_with_problems_that_are_named(tmp_path: Path) -> None:
    text = native(tmp_path)
    other = Path(write(tmp_path / "other.csv", "id,filename\na,a.tf\n"))
    with pytest.raises(TouchstoneError, match="missing column oid"):
        open_input(text, problems_csv=other)
    Path(text).write_text("id,iteration_id,passed\na,1,1\nz,1,1\n")
    side = open_input(text, problems_csv=other, problem_key="id")
    assert scores(side) == [("m", "T0", "a", "1", 1.0)]
    assert [frame["kind"].to_list() for frame in side.quarantine] == [["unknown_oid"]]


def test_a_fixes_file_without_problems_and_outcomes_is_refused(tmp_path: Path) -> None:
    text = write(tmp_path / "m_fixes.csv", "oid,iteration_id,fixed_code\na,1,x\n")
    with pytest.raises(TouchstoneError, match=r"m_fixes\.csv: no problems file \(.*problems\.csv does not exist\)"):
        open_input(text)


def test_a_forgetest_report(tmp_path: Path) -> None:
    tests = {"passed": 1, "failed": 1}
    text = forgetest(tmp_path / "r.json", {"case_id": "a", "test_execution": tests}, {"case_id": "b", "model": None})
    side = open_input(text)
    row = side.attempt_scores.collect().row(0, named=True)
    assert (row["model"], row["oid"], row["pass_rate"]) == ("openai/gpt", "a", 0.0)
    assert row["code_score"] == pytest.approx(0.75)
    assert [frame["reason"].to_list() for frame in side.quarantine] == [["the model is missing"]]
    assert side.problems is not None
    assert side.problems.collect()["oid"].to_list() == ["a"]


def test_weights_are_those_of_the_configuration(tmp_path: Path) -> None:
    text = forgetest(tmp_path / "r.json", {"case_id": "a", "test_execution": {"passed": 1, "failed": 1}})
    scoring = Scoring(code=CodeWeights(compilation=0.0, tests=1.0, lint=0.0))
    assert open_input(text, scoring=scoring).attempt_scores.collect()["code_score"].item() == 0.5


def test_a_report_beside_a_problems_file_learns_from_it_and_keeps_its_own_problems(tmp_path: Path) -> None:
    write(tmp_path / "problems.csv", "oid,filename,cluster\na,a.rs,c1\nz,z.rs,c2\n")
    text = forgetest(tmp_path / "r.json", {"case_id": "a"}, {"case_id": "b"})
    side = open_input(text)
    assert side.problems is not None
    assert side.problems.select("oid", "cluster").collect().rows() == [("a", "c1"), ("b", None), ("z", "c2")]
    assert [row[2] for row in scores(side)] == ["a", "b"]


def test_a_scylla_runs_file(tmp_path: Path) -> None:
    side = open_input(write(tmp_path / "runs.csv", SCYLLA))
    assert scores(side) == [
        ("some model", "T0", "repair/T0/001", "1", 1.0),
        ("some model", "T1", "repair/T1/001", "1", 0.0),
    ]
    assert side.attempt_scores.collect()["composite_score"].to_list() == [1.0, 0.25]


@pytest.mark.parametrize("name", nightly_but(["results"], ["results.jsonl", "results.ndjson", "results"]))
def test_failproof_results(tmp_path: Path, name: str) -> None:
    record = {
        "case_id": "c",
        "suite_id": "s",
        "run_id": "r",
        "model_id": "p",
        "timestamp_utc": "2026-01-01T00:00:00Z",
        "classification": {"primary": "pass"},
        "scores": {"accuracy": 1},
    }
    assert scores(open_input(write(tmp_path / name, json.dumps(record) + "\n"))) == [("p", "T0", "c", "1", 1.0)]


def test_an_output_folder_and_a_snapshot_are_the_same_as_their_file(tmp_path: Path) -> None:
    side = open_input(native(tmp_path / "in"))
    output = open_input(result_folder(tmp_path / "out", side))
    snapshot = open_input(result_folder(tmp_path / "out" / "snapshots" / "20260101-1", side))
    for found in (output, snapshot):
        assert scores(found) == scores(side)
        assert found.problems is not None
        assert found.problems.collect()["oid"].to_list() == ["a", "b"]


def test_an_output_folder_of_several_models_without_a_problems_table(tmp_path: Path) -> None:
    report = forgetest(tmp_path / "r.json", {"case_id": "a"}, {"case_id": "a", "model": "other"})
    text = result_folder(tmp_path / "out", open_input(report))
    (tmp_path / "out/tables/problems/problems.parquet").unlink()
    side = open_input(text)
    assert [row[0] for row in scores(side)] == ["openai/gpt", "other"]
    assert side.problems is None


def test_a_folder_is_read_from_one_run_even_if_the_next_is_published_meanwhile(tmp_path: Path) -> None:
    result_folder(tmp_path / "1", open_input(native(tmp_path / "in", "true")))
    result_folder(tmp_path / "2", open_input(native(tmp_path / "in", "false")))
    (tmp_path / "tables").symlink_to("1/tables")
    side = open_input(str(tmp_path))
    (tmp_path / "tables").unlink()
    (tmp_path / "tables").symlink_to("2/tables")
    assert scores(side)[0][-1] == 1.0


def test_two_files_of_one_model_compare(tmp_path: Path) -> None:
    before, after = (open_input(native(tmp_path / word, word)).attempt_scores for word in ("true", "false"))
    rows = regressions(case_scores(before, "best", after), case_scores(after, "best", before)).collect()
    assert rows.select("oid", "category", "kind").rows() == [("a", "outcome", "regression"), ("b", None, "unscored")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.json", "{", "broken JSON at line 1"),
        ("r.json", "[]", "not in a known format"),
        ("r.json", '{"eval_set": {}, "results": []}', "the file holds no results"),
        ("r.jsonl", "", "the file is empty"),
        ("r.csv", "x,y\n1,2\n", "missing column oid"),
        ("r.txt", "hello", "r.txt: not a data file"),
        ("bad...name.csv", "oid,iteration_id,passed\na,1,1\n", "model name 'bad...name' is not allowed"),
        ("m_fixes.csv", "oid,iteration_id,passed\nz,1,1\n", "there is no usable attempt; m_fixes.csv, line 2: the oid"),
        ("r.json", '{"results": [{"case_id": "a", "compilation": {}}]}', "no row names a usable model (line 1: the"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    write(tmp_path / "problems.csv", "oid,filename\na,a.tf\n")
    with pytest.raises(TouchstoneError) as told:
        open_input(write(tmp_path / name, content))
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_side_that_is_not_there(tmp_path: Path) -> None:
    for text, message in ((str(tmp_path / "x"), "x: no such file or folder"), ("", "the empty name: no such file")):
        with pytest.raises(TouchstoneError, match=message):
            open_input(text)


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no files found"):
        open_input(str(tmp_path))
    (tmp_path / "snapshots").mkdir()
    with pytest.raises(TouchstoneError, match="name one of the folders in its 'snapshots'"):
        open_input(str(tmp_path))
    (tmp_path / "tables" / "attempt_scores").mkdir(parents=True)
    with pytest.raises(TouchstoneError, match="tables/attempt_scores has no attempts"):
        open_input(str(tmp_path))


def test_a_folder_with_broken_or_other_tables(tmp_path: Path) -> None:
    text = result_folder(tmp_path / "out", open_input(native(tmp_path / "in")))
    part = tmp_path / "out/tables/attempt_scores/m.parquet"
    pl.read_parquet(part).drop("lint_score").write_parquet(part)
    with pytest.raises(
        TouchstoneError, match=r"attempt_scores/m\.parquet lacks lint_score, so it is from another version"
    ):
        open_input(text)
    part.write_bytes(b"PAR1 nothing")
    with pytest.raises(TouchstoneError, match=r"attempt_scores/m\.parquet cannot be read") as told:
        open_input(text)
    assert "\n" not in str(told.value)


@pytest.mark.nightly
def test_folders_are_opened_without_readers_and_dagster(tmp_path: Path) -> None:
    text = result_folder(tmp_path / "out", open_input(native(tmp_path / "in")))
    script = (
        "import sys; from touchstone.comparison.inputs import open_input\n"
        "from touchstone.comparison.regressions import *\n"
        "from touchstone.comparison.report import ComparisonReport, format_report\n"
        "scores = open_input(sys.argv[1]).attempt_scores\n"
        "format_report(ComparisonReport('a', 'b', 0.05, 'best', compare_cases(scores, scores)), 'json')\n"
        "heavy = ('dagster', 'duckdb', 'rich', 'touchstone.ingest')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, text], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
