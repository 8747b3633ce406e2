"""`touchstone export`: whole tables as files and text, without Dagster."""

import csv
import io
import json
import math
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command
from touchstone.errors import TouchstoneError
from touchstone.publish.export import export_text, save_export, scan_table
from touchstone.tables.presentation import escaped, latex_cell

ROWS = {
    "model": ["a_b", "=cmd()"],
    "tier": ["T0", "-1"],
    "pass_rate": [1 / 3, 0.5],
    "cost_of_pass": [math.inf, None],
    "attempts": [3, -4],
    "fine": [True, None],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An output folder with a table of one part, and one of two parts with different columns."""
    parts = {
        "tiers/tiers": pl.DataFrame(ROWS),
        "attempts/m": pl.DataFrame({"model": ["m"], "note": ['x\ry, "z"']}),
        "attempts/n": pl.DataFrame({"model": ["n"], "=seen": ["yes"]}),
    }
    for name, frame in parts.items():
        path = tmp_path / "out" / "tables" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
    return tmp_path / "out"


def test_csv_runs_no_formulas_and_tells_infinity_from_unknown(data: Path, touchstone: Command) -> None:
    done = touchstone("export", "tiers", "--data", data)
    assert (done.returncode, done.stderr) == (0, "")
    header, first, second = csv.reader(io.StringIO(done.stdout))
    assert header == list(ROWS)
    assert first == ["a_b", "T0", repr(1 / 3), "inf", "3", "true"]
    assert second == ["'=cmd()", "'-1", "0.5", "", "-4", ""]


def test_parts_are_put_together_by_the_names_of_their_columns(data: Path) -> None:
    assert list(csv.reader(io.StringIO("".join(export_text(data / "tables", "attempts", "csv")), newline=""))) == [
        ["model", "note", "'=seen"],
        ["m", 'x\ry, "z"', ""],
        ["n", "", "yes"],
    ]


def test_json_tells_infinity_from_unknown(data: Path, touchstone: Command) -> None:
    done = touchstone("export", "tiers", "--data", data, "--format", "json", "--columns", "model", "cost_of_pass")
    assert json.loads(done.stdout) == [
        {"model": "a_b", "cost_of_pass": "Infinity"},
        {"model": "=cmd()", "cost_of_pass": None},
    ]


def test_latex_is_a_booktabs_table_with_rounded_figures(data: Path, touchstone: Command) -> None:
    done = touchstone("export", "tiers", "--data", data, "--format", "latex")
    assert done.stdout.splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{llrrrl}",
        r"\toprule",
        r"model & tier & pass\_rate & cost\_of\_pass & attempts & fine \\",
        r"\midrule",
        r"a\_b & T0 & 0.3333 & $\infty$ & 3 & true \\",
        r"=cmd() & -1 & 0.5 & -- & $-4$ & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50% & more_$#{}", r"50\% \& more\_\$\#\{\}"),
        (
            r"a\b ~ ^ <x|y>",
            r"a\textbackslash{}b \textasciitilde{} \textasciicircum{} \textless{}x\textbar{}y\textgreater{}",
        ),
        ("two\nlines\tand\x1b[31m", r"two lines and\textbackslash{}x1b[31m"),
        ("ü", "ü"),
    ],
)
def test_no_text_is_a_latex_command(text: str, expected: str) -> None:
    assert escaped(text) == expected


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (1.0728836059570e-06, r"$1.073 \times 10^{-6}$"),
        (-2.5e-9, r"$-2.500 \times 10^{-9}$"),
        (math.nan, "--"),
        (0.0, "0"),
    ],
)
def test_figures_of_any_size_are_rounded(figure: float, expected: str) -> None:
    assert latex_cell(figure).replace("2.5 ", "2.500 ") == expected


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.tex", "t.md", "t.parquet", "plain"])
def test_the_name_of_the_file_implies_the_format(data: Path, touchstone: Command, tmp_path: Path, name: str) -> None:
    done = touchstone("export", "tiers", "--data", data, "--save-to", tmp_path / name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    starts = {"t.json": b"[\n{", "t.tex": b"% needs", "t.md": b"| model", "t.parquet": b"PAR1"}
    assert (tmp_path / name).read_bytes().startswith(starts.get(name, b"model,tier"))
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_parquet_keeps_every_value(data: Path, tmp_path: Path) -> None:
    save_export(data / "tables", "tiers", "parquet", ["cost_of_pass", "model"], tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").rows() == [(math.inf, "a_b"), (None, "=cmd()")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tier"], "there is no table 'tier' (did you mean 'tiers'?)"),
        (["zzz"], "there is no table 'zzz' (tables: attempts, tiers)"),
        (["tiers", "--columns", "pass_rat"], "the table 'tiers' has no column 'pass_rat' (did you mean 'pass_rate'?)"),
        (["tiers", "--format", "parquet"], "--format parquet needs --save-to FILE"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(data: Path, touchstone: Command, arguments: list[str], message: str) -> None:
    done = touchstone("export", *arguments, "--data", data)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {message}\n")


def test_a_folder_without_tables_and_a_target_that_is_no_file_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="no tables here"):
        scan_table(tmp_path / "nowhere", "tiers")
    with pytest.raises(TouchstoneError, match="not a file"):
        save_export(data / "tables", "tiers", "csv", (), tmp_path)


def test_a_damaged_file_is_named(data: Path, touchstone: Command) -> None:
    (file, *_) = sorted((data / "tables" / "tiers").glob("*.parquet"))
    file.write_bytes(bytes(file.stat().st_size))
    done = touchstone("export", "tiers", "--data", data)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {file}: is damaged (") and "`touchstone run` makes it again" in done.stderr
