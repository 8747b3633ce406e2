"""Reading the problems file."""

from pathlib import Path

import pytest

from touchstone.errors import InputFileError
from touchstone.ingest.problems import IngestedProblems, read_problems


def read(tmp_path: Path, text: str) -> IngestedProblems:
    path = tmp_path / "problems.csv"
    path.write_text(text)
    return read_problems(path, tmp_path / "scratch.parquet")


def test_defaults_and_extra_columns(tmp_path: Path) -> None:
    table = read(tmp_path, "oid,filename,severity\n2,b.tf,high\n1,a.tf,\n").problems.collect()
    assert table.columns == ["oid", "filename", "suite", "cluster", "only_tier", "severity"]
    assert table.rows() == [("1", "a.tf", "default", None, None, None), ("2", "b.tf", "default", None, None, "high")]


@pytest.mark.parametrize("levels", [["repo", "filename"], ["filename", "repo"], ["filename", "repo", "suite"]])
def test_the_outermost_of_several_levels_is_the_cluster(tmp_path: Path, levels: list[str]) -> None:
    """A suite is not a level above repositories, because it cuts through them."""
    path = tmp_path / "problems.csv"
    path.write_text("oid,filename,repo,suite\n1,a,x,s\n2,a,x,t\n3,b,x,s\n4,c,y,s\n5,d,,t\n")
    found = read_problems(path, tmp_path / "s", cluster_columns=levels)
    assert found.problems.collect()["cluster"].to_list() == ["x", "x", "x", "y", None]
    assert found.notes == ("clusters: the values of 'repo'",)


def test_levels_that_the_file_lacks_are_refused_and_a_renamed_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "problems.csv"
    path.write_text("oid,filename,specific_oid\n1,a,1-x\n1,b,1-y\n")
    with pytest.raises(InputFileError, match="repo"):
        read_problems(path, tmp_path / "s", "specific_oid", cluster_columns=["repo"])
    table = read_problems(path, tmp_path / "s", "specific_oid", cluster_columns=["oid"]).problems.collect()
    assert table.select("oid", "cluster").rows() == [("1-x", "1"), ("1-y", "1")]


def test_exact_duplicate_is_quarantined(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,filename\n1,a\n1,a\n")
    assert result.problems.collect().height == 1
    assert result.quarantine.row(0)[1:4] == (3, "duplicate", "repeats line 2")


def test_another_key_column(tmp_path: Path) -> None:
    path = tmp_path / "problems.csv"
    path.write_text("oid,filename,specific_oid\n1,a,1-x\n1,b,1-y\n")
    with pytest.raises(
        InputFileError, match="same oid; set 'problem_key' in the config to specific_oid that is unique"
    ):
        read_problems(path, tmp_path / "s")
    table = read_problems(path, tmp_path / "s", "specific_oid").problems.collect()
    assert table.select("oid", "input_oid", "filename").rows() == [("1-x", "1", "a"), ("1-y", "1", "b")]


def test_a_wide_file_with_cells_of_many_lines(tmp_path: Path) -> None:
    names = [f"column_{place}" for place in range(54)]
    cells = ",".join('"line one\nline two, with ""quotes"""' for _ in names)
    table = read(
        tmp_path, f"oid,filename,specific_oid,{','.join(names)}\n" + "".join(f"{i},f,s{i},{cells}\n" for i in range(3))
    )
    problems = table.problems.collect()
    assert problems.width == 60 and problems.height == 3
    assert problems["column_53"][2] == 'line one\nline two, with "quotes"'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("oid\n1\n", "missing column filename"),
        ("oid,filename\n", "there is no problem in the file"),
        ("oid,filename\n,a\n", "there is no problem in the file"),
        ("oid,filename\n1,a\n1,b\n", r"problems\.csv, line 2: two different problems have the same oid"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputFileError, match=reason):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "column", "values"),
    [
        ("oid,filename,only_tier\n1,a,T1\n2,b,\n", "only_tier", ["T1", None]),
        ("oid,filename,project_name\n1,a,p\n", "cluster", ["p"]),
        ("oid,filename,project_name\n1,a,p\n", "project_name", ["p"]),
        ("oid,filename,project_name,cluster\n1,a,p,c\n", "cluster", ["c"]),
        ("oid,test_command\n1,make test\n", "filename", [None]),
        ("oid,test_command\n1,make test\n", "test_command", ["make test"]),
    ],
)
def test_columns(tmp_path: Path, text: str, column: str, values: list[str | None]) -> None:
    assert read(tmp_path, text).problems.collect()[column].to_list() == values
