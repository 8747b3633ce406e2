"""`--save-to` implies the format, and contradicting it is refused."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import Command, Folder


def test_the_result_of_a_query_is_saved_as_the_files_name_says(
    finished: Folder, touchstone: Command, tmp_path: Path
) -> None:
    for name in ("a.parquet", "a.CSV"):
        done = touchstone("sql", "--data", finished.output, "SELECT 1 AS x", "--save-to", tmp_path / name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "a.CSV").read_text().split() == ["x", "1"]
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == {"x": [1]}


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("a.csv", ["--format", "json"], "--save-to a.csv implies --format csv, but --format is json"),
        ("a.csv", ["--format", "table"], "--save-to a.csv implies --format csv, but --format is table"),
        ("a.xyz", [], "--save-to a.xyz: add --format csv, json, latex, markdown or parquet"),
        ("a", ["--format", "table"], "--save-to a: add --format csv, json, latex, markdown or parquet"),
    ],
)
def test_a_query_whose_format_is_not_clear_is_one_line(
    finished: Folder, touchstone: Command, tmp_path: Path, name: str, more: list[str], words: str
) -> None:
    done = touchstone("sql", "--data", finished.output, "SELECT 1 AS x", "--save-to", tmp_path / name, *more)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / name).exists()


@pytest.mark.nightly
def test_a_comparison_is_saved_as_the_files_name_says_and_shown_as_text(
    finished: Folder, touchstone: Command, tmp_path: Path
) -> None:
    asked = ["compare", "--baseline", finished.output, "--current", finished.output]
    shown = touchstone(*asked).stdout
    for name in ("a.json", "a.md", "a.xml", "a.sarif", "b.sarif.json", "a.txt", "a"):
        done = touchstone(*asked, "--save-to", tmp_path / name)
        assert (done.returncode, done.stdout) == (0, shown)
    assert json.loads((tmp_path / "a.json").read_text())["counts"]["unchanged"] == 2
    assert "**0 regressions" in (tmp_path / "a.md").read_text()
    assert ET.fromstring((tmp_path / "a.xml").read_text()).tag == "testsuites"
    assert (tmp_path / "a.sarif").read_text() == (tmp_path / "b.sarif.json").read_text()
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "a").read_text() == shown
    done = touchstone(*asked, "--save-to", tmp_path / "c.md", "--format", "json")
    assert done.returncode == 2 and "--save-to c.md implies --format markdown, but --format is json" in done.stderr
    assert not (tmp_path / "c.md").exists()
    done = touchstone(*asked, "--save-to", tmp_path / "report.out", "--format", "json")
    assert json.loads((tmp_path / "report.out").read_text()) == json.loads(done.stdout)
