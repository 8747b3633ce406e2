"""Reading aider's benchmark: one attempt per exercise and run, with aider's pass rates."""

import json
import shutil
from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.adapters import AdapterTable, detect_format, read_adapted

MADE = Path(__file__).parent / "made"
RUN = MADE / "aider" / "2026-05-01-09-00-00--fixer-diff"


def read(path: Path) -> AdapterTable:
    assert detect_format(path) == "aider"
    return read_adapted(path)


def test_a_run_is_read_like_the_folder_that_it_is_in() -> None:
    run, runs = read(RUN), read(RUN.parent)
    assert run.frame.equals(runs.frame) and run.figures == runs.figures


@pytest.mark.parametrize(("level", "oids"), [("go", ["go/bowling", "go/forth"]), (".", ["bowling"])])
def test_a_part_of_a_run_and_an_old_run(tmp_path: Path, level: str, oids: list[str]) -> None:
    practice = RUN / "go" / "exercises" / "practice"
    shutil.copytree(RUN / "go" if level == "go" else practice / "bowling", tmp_path / "run" / (oids[0].split("/")[0]))
    table = read(tmp_path / "run" / level)
    assert table.frame["oid"].to_list() == oids
    assert table.frame["run_id"].unique().to_list() == ["run"]


def test_another_run_has_further_attempts(tmp_path: Path) -> None:
    for name in ("2026-05-01--one", "2026-05-02--two"):
        shutil.copytree(RUN, tmp_path / name)
    table = read(tmp_path)
    assert table.frame.filter(table.frame["oid"] == "go/forth")["run_id", "iteration_id"].rows() == [
        ("2026-05-01--one", "1"),
        ("2026-05-02--two", "2"),
    ]


def test_a_model_that_ran_with_several_edit_formats_has_them_as_tiers(tmp_path: Path) -> None:
    for run, edit_format in (("a", "diff"), ("b", "whole")):
        for name, result in (
            ("forth", {"model": "m", "tests_outcomes": [True], "edit_format": edit_format}),
            ("bowling", {"exception": "Traceback\nValueError: x"}),
        ):
            (tmp_path / run / name).mkdir(parents=True)
            (tmp_path / run / name / ".aider.results.json").write_text(json.dumps(result))
    table = read(tmp_path)
    assert sorted(table.frame["tier", "oid", "passed"].rows()) == [
        ("edit_format diff", "bowling", "false"),
        ("edit_format diff", "forth", "true"),
        ("edit_format whole", "bowling", "false"),
        ("edit_format whole", "forth", "true"),
    ]
    assert table.notes == ("several agents drive m; each is a tier",)
    assert read(tmp_path / "a").frame["tier"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("result", "passed", "kind"),
    [
        ({"model": "m", "tests_outcomes": []}, None, None),
        ({"model": "m", "tests_outcomes": [True, False]}, "false", None),
        ({"model": "m", "tests_outcomes": [1]}, None, "bad_boolean"),
        ({"model": "m"}, None, "bad_boolean"),
        ({}, None, "bad_id"),
        ({"exception": "Traceback\nValueError: x"}, "false", "bad_id"),
    ],
)
def test_what_the_last_try_says(tmp_path: Path, result: object, passed: str | None, kind: str | None) -> None:
    (tmp_path / "forth").mkdir()
    (tmp_path / "forth" / ".aider.results.json").write_text(json.dumps(result))
    assert read(tmp_path).frame["passed", "__kind"].row(0) == (passed, kind)


def test_an_exercise_that_was_only_set_up_is_no_failure_here(tmp_path: Path) -> None:
    for name, outcomes in (("forth", []), ("bowling", [True])):
        (tmp_path / name).mkdir()
        result = {"model": "m", "tests_outcomes": outcomes}
        (tmp_path / name / ".aider.results.json").write_text(json.dumps(result))
    (figure,) = read(tmp_path).figures
    assert figure.recomputed == 50
    assert figure.note == "counts 1 without an outcome as failed; Touchstone leaves them out"


def test_a_leaderboard_has_no_attempts() -> None:
    with pytest.raises(InputFileError, match="pass rates of runs, without attempts"):
        read_adapted(MADE / "aider-leaderboard" / "polyglot_leaderboard.yml")
