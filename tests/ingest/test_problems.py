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


def test_a_problem_may_belong_to_one_tier(tmp_path: Path) -> None:
    table = read(tmp_path, "oid,filename,only_tier\n1,a,T1\n2,b,\n").problems.collect()
    assert table["only_tier"].to_list() == ["T1", None]


def test_project_name_is_the_cluster_unless_there_is_one(tmp_path: Path) -> None:
    by_project = read(tmp_path, "oid,filename,project_name\n1,a,p\n").problems.collect()
    assert by_project.select("cluster", "project_name").row(0) == ("p", "p")
    own = read(tmp_path, "oid,filename,project_name,cluster\n1,a,p,c\n").problems.collect()
    assert own["cluster"].item() == "c"


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


def test_two_problems_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"problems\.csv, line 2: two different problems have the same oid"):
        read(tmp_path, "oid,filename\n1,a\n1,b\n")


@pytest.mark.parametrize("text", ["oid,filename\n", "oid,filename\n,a\n"])
def test_no_problem_at_all(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputFileError, match="there is no problem in the file"):
        read(tmp_path, text)


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


def test_missing_column(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="missing column filename"):
        read(tmp_path, "oid\n1\n")


def test_a_problem_with_a_test_command_needs_no_file(tmp_path: Path) -> None:
    table = read(tmp_path, "oid,test_command\n1,make test\n").problems.collect()
    assert table.select("oid", "filename", "test_command").rows() == [("1", None, "make test")]
