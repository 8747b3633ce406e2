"""Files as people have them: what can mean only one thing gives the usual figures, with a note that says what it is."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import NOT_DRAWN, Command, Folder, nightly_but
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.attempts import read_fixes
from touchstone.ingest.csv_rows import open_table, read_rows
from touchstone.ingest.implied_config import implied_settings, write_config

PROBLEMS = "oid,filename\na,a.py\nb,b.py\nc,c.py\n"
FIXES = "oid,iteration_id,plausible_fix,weighted_score,note\n" + "".join(
    f"{oid},{number},{'true' if passed else 'false'},0.25,caf\xe9\n"
    for oid, outcomes in (("a", (1, 0)), ("b", (1, 1)), ("c", (0, 0)))
    for number, passed in enumerate(outcomes, start=1)
)


def without_numbers(text: str) -> str:
    return "\n".join(
        ",".join(cell for place, cell in enumerate(line.split(",")) if place != 1) for line in text.split("\n")
    )


def renamed(text: str, header: str) -> str:
    return header + text[text.index("\n") :]


DIALECTS: list[tuple[str, str | bytes, str | None]] = [
    ("m_fixes.csv", FIXES, None),
    ("m_fixes.csv", renamed(FIXES, "OID,Iteration ID,PlausibleFix,Weighted-Score,Note"), "'OID' as oid, 'Iter"),
    ("m_fixes.csv", renamed(FIXES, "Task ID,iteration_id,passed,impl_rate,note"), "'Task ID' as oid"),
    ("m_fixes.csv", FIXES.replace(",", ";"), "the cells are separated by semicolons"),
    ("m_fixes.csv", FIXES.replace(",", "\t"), "the cells are separated by tabs"),
    ("m.tsv", FIXES.replace(",", "\t"), "the cells are separated by tabs"),
    ("m_fixes.csv", FIXES.encode("cp1252"), "not UTF-8, so read as Windows-1252"),
    ("m_fixes.csv", FIXES.replace("true", "pass").replace("false", "FAIL"), "plausible_fix: pass is read as true"),
    ("m_fixes.csv", FIXES.replace("true", "RESOLVED").replace("false", "unresolved"), "pass is read as true, fail"),
    ("m_fixes.csv", FIXES.replace("0.25", "25%"), "weighted_score: 91% is read as 0.91"),
    ("m_fixes.csv", without_numbers(FIXES), "no iteration_id, so the rows of each problem"),
]
EACH_DIALECT = [(*each, with_problems) for each in DIALECTS for with_problems in (True, False)]


@pytest.mark.parametrize(
    ("name", "text", "note", "with_problems"), nightly_but([EACH_DIALECT[1], *EACH_DIALECT[::2]], EACH_DIALECT)
)
def test_the_same_figures_and_a_note(
    touchstone: Command, tmp_path: Path, name: str, text: str | bytes, note: str | None, with_problems: bool
) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if with_problems:
        (tmp_path / "problems.csv").write_text(PROBLEMS)
    done = touchstone("pass-at-k", tmp_path, "--json")
    figures = {row["k"]: row["pass_at_k"] for row in json.loads(done.stdout)}
    assert figures == {1: 0.5, 2: pytest.approx(2 / 3)}
    assert ("no problems file, so the problems are those that the results name" in done.stderr) is not with_problems
    assert done.stderr.count("\n") == (note is not None) + (not with_problems)
    assert note is None or (f"note: {name}: " in done.stderr and note in done.stderr)


@pytest.mark.services
def test_a_run_says_what_was_assumed_and_counts_refusals_once(touchstone: Command, tmp_path: Path) -> None:
    (tmp_path / "problems.csv").write_text(PROBLEMS.replace("oid", "OID").replace(",", ";"))
    (tmp_path / "m_fixes.csv").write_text(FIXES.replace("true", "pass") + ",9,fail\n")
    (tmp_path / "n_fixes.csv").write_text(FIXES.replace("true", "good"))
    config, settings = implied_settings([tmp_path])
    write_config(config, settings | NOT_DRAWN)
    done = touchstone("run", tmp_path, dagster=False)
    assert "m_fixes.csv: plausible_fix: pass is read as true, fail as false" in done.stdout
    assert "problems.csv: the cells are separated by semicolons; columns are read by their meaning" in done.stdout
    recognized = done.stdout.partition("quarantine:")[0]
    assert "refused" not in recognized and "4 in total: SELECT * FROM quarantine" in done.stdout


def test_problems_that_only_results_name_are_those_of_all_files(folder: Folder) -> None:
    (folder.root / "fixes" / "problems.csv").unlink()
    folder.fixes("m", "oid,iteration_id,passed,suite\na,1,true,s\n")
    folder.fixes("n", "oid,iteration_id,passed\nb,1,maybe\n")
    evaluation = Evaluation.load(folder.configure())
    evaluation.ingest.problems()
    assert evaluation.store.scan("problems").select("oid", "suite").collect().rows() == [("a", "s"), ("b", "default")]
    (folder.root / "fixes" / "tasks.csv").write_text(PROBLEMS)
    with pytest.raises(TouchstoneError, match=r"tasks\.csv looks like the problems file: call it problems\.csv"):
        Evaluation.load(folder.config).ingest.problems()


def test_rows_of_several_models_are_not_numbered_as_attempts_of_one(tmp_path: Path) -> None:
    path = tmp_path / "results_fixes.csv"
    path.write_text("llm_name,oid,passed\nx,a,1\ny,a,0\n")
    problems = pl.LazyFrame({"oid": ["a"], "suite": ["s"]})
    with pytest.raises(InputFileError, match="several models in the column 'llm_name' and no iteration_id"):
        read_fixes(path, "results", problems, tmp_path / "scratch")
    path.write_text("llm_name,oid,passed\nx,a,1\nx,a,0\n")
    assert read_fixes(path, "results", problems, tmp_path / "scratch").accepted == 2


def test_a_character_may_lie_across_two_chunks(tmp_path: Path) -> None:
    path, size = tmp_path / "m.csv", 1 << 20
    path.write_bytes(b"oid,note\na," + b"x" * (size - 12) + "é".encode() + b"\nb,\xe9\n")
    with pytest.raises(InputFileError, match=f"not UTF-8 .at byte {size + 4}"):
        open_table(path, known=["oid"])
    path.write_bytes(b"oid;note\na;" + b"x" * (size - 12) + b"\xe9\nb;\x80\n")
    rows = read_rows(open_table(path, known=["oid"]), lambda rows: rows.select("note").collect())
    assert [row[-1] for row in rows["note"]] == ["é", "€"]
