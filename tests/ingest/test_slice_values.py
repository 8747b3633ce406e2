"""The value of every problem in every slice: nothing is dropped, and what cannot be read says so."""

from typing import Any

import polars as pl
import pytest

from tests.conftest import Folder
from touchstone.config import SliceSettings, load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.slice_values import problem_slices
from touchstone.storage.store import Part


def values(cells: list[str | None], column: str = "x", **settings: Any) -> dict[str, list[str]]:
    """The values of a slice in order, with their problems."""
    problems = pl.DataFrame(
        {"oid": [f"p{n}" for n in range(len(cells))], column: cells}, schema_overrides={column: pl.String}
    )
    rows = problem_slices(problems, [SliceSettings(column=column, **settings)])
    assert sorted(rows["oid"]) == sorted(problems["oid"])
    ordered = rows.sort("position", "oid").group_by("value", maintain_order=True).agg("oid")
    return dict(ordered.iter_rows())


def test_values_are_as_in_the_column_and_missing_ones_come_last() -> None:
    assert values(["hard", " easy ", None, "", "  ", "hard"]) == {
        "easy": ["p1"],
        "hard": ["p0", "p5"],
        "(missing)": ["p2", "p3", "p4"],
    }


def test_numbers_in_bins_whose_edges_belong_to_the_bin_above() -> None:
    found = values(["0", "99.9", "100", "-1", "1e6", "many", None, "nan"], bins=[0, 100, 1000])
    assert found == {
        "< 0": ["p3"],
        "0 to < 100": ["p0", "p1"],
        "100 to < 1000": ["p2"],
        ">= 1000": ["p4"],
        "(not a number)": ["p5", "p7"],
        "(missing)": ["p6"],
    }


def test_dates_on_either_side_of_the_cutoff() -> None:
    cells = ["2025-05-31T23:59:59Z", "2025-06-01", "2025-06-02 00:00", None, "last week", "2025-02-30"]
    assert values(cells, cutoff={"m": "2025-06-01"}) == {
        "before cutoff": ["p0", "p1"],
        "after cutoff": ["p2"],
        "no date": ["p3"],
        "(not a date)": ["p4", "p5"],
    }


def test_a_cutoff_is_each_models_own() -> None:
    cut = SliceSettings.model_validate({"column": "day", "cutoff": {"new": "2026-01-01", "old": "2024-01-01"}})
    rows = problem_slices(pl.DataFrame({"oid": ["p"], "day": ["2025-01-01"]}), [cut])
    assert rows.select("cutoff_model", "value").rows() == [("new", "before cutoff"), ("old", "after cutoff")]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("extension", {".py": ["p0", "p1"], "(missing)": ["p2", "p3", "p4"]}),
        ("folder", {".": ["p1", "p2"], "src": ["p0", "p3"], "(missing)": ["p4"]}),
    ],
)
def test_folder_and_extension_follow_from_the_filename(column: str, expected: dict[str, list[str]]) -> None:
    names = ["src/a.PY", "b.py", "Makefile", "src/.gitignore", None]
    problems = pl.DataFrame({"oid": [f"p{n}" for n in range(5)], "filename": names})
    rows = problem_slices(problems, [SliceSettings(column=column)])
    assert dict(rows.group_by("value", maintain_order=True).agg("oid").iter_rows()) == expected
    own = problem_slices(problems.with_columns(pl.lit("own").alias(column)), [SliceSettings(column=column)])
    assert set(own["value"]) == {"own"}, "a column of that name counts"


def test_slices_are_in_the_order_of_the_configuration() -> None:
    problems = pl.DataFrame({"oid": ["p"], "b": ["1"], "a": ["2"]})
    rows = problem_slices(problems, [SliceSettings(column="b"), SliceSettings(column="a")])
    assert rows.select("slice", "column").rows() == [(0, "b"), (1, "a")]
    assert problem_slices(problems, []).is_empty()


def test_a_column_with_too_many_values_says_what_to_do() -> None:
    with pytest.raises(TouchstoneError, match=r"'loc' has 51 values, and at most 50 .*\"bins\": \[0, 100, 1000\]"):
        values([str(n) for n in range(51)], "loc")
    with pytest.raises(TouchstoneError, match="'name' has 51 values, and at most 50 can be compared; choose a column"):
        values([f"name {n}" for n in range(51)], "name")
    assert len(values([str(n) for n in range(50)])) == 50


def test_an_unknown_column_is_answered_with_those_there_are() -> None:
    problems = pl.DataFrame({"oid": ["p"], "filename": ["a.py"], "difficulty": ["easy"]})
    message = r"no column 'dificulty' \(did you mean 'difficulty'\? columns: filename, difficulty, extension, folder\)"
    with pytest.raises(TouchstoneError, match=message):
        problem_slices(problems, [SliceSettings(column="dificulty")])


def test_a_run_refuses_an_unknown_column_before_it_reads_attempts_and_makes_again_only_what_changed(
    folder: Folder,
) -> None:
    def part_of(*slices: str) -> Part:
        folder.configure(slices=list(slices))
        evaluation = Evaluation(load_config(folder.config))
        evaluation.materialize("problems")
        [part] = evaluation.materialize("problem_slices").values()
        return part

    with pytest.raises(TouchstoneError, match="the problems have no column 'kind'"):
        part_of("kind")
    assert not (folder.output / ".store" / "draft" / "tables" / "attempts").exists()
    assert [part_of(*slices).reused for slices in (("extension",), ("extension",), ("folder",))] == [False, True, False]
    assert part_of().rows == 0
