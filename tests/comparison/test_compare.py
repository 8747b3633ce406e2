"""`touchstone compare` as a user calls it: two sides in, the changed cases and an honest verdict out."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest

from tests.comparison.test_gate import HEADER, PROBLEMS, fixes
from tests.conftest import Command, Folder
from tests.pipelines.test_run import evaluate
from touchstone.comparison.comparability import compare_sides
from touchstone.comparison.compare import CompareOptions, compare, selected
from touchstone.comparison.inputs import ComparisonInput
from touchstone.comparison.pairs import ComparisonSettings
from touchstone.comparison.report import FORMATS, format_report
from touchstone.storage.snapshots import list_snapshots
from touchstone.vocabulary import REQUIRED_DIMENSIONS


@pytest.fixture
def sides(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.problems("oid,filename\n" + "".join(f"p{place:02},a.tf\n" for place in range(PROBLEMS)))
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    for side, passing in (("old", 25), ("new", 5)):
        (tmp_path / side / "m_fixes.csv").write_text(fixes(passing))
    return folder


def asked(folder: Folder) -> list[str]:
    old, new = (folder.root / side / "m_fixes.csv" for side in ("old", "new"))
    return [
        "compare", "--baseline", str(old), "--current", str(new),
        "--problems-csv", str(folder.root / "fixes" / "problems.csv"),
    ]  # fmt: skip


def test_a_drop_is_found_told_and_fails_the_gate(sides: Folder, touchstone: Command) -> None:
    done = touchstone(*asked(sides), "--fail-on-verdict", "worse")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("m: current is worse than baseline by 66.7 points (95% CI ")
    assert "20 regressions (10.0 expected by chance alone), 0 improvements, 10 unchanged" in done.stdout
    assert touchstone(*asked(sides), "--fail-on-regression", "--threshold", "1").returncode == 0


def test_every_format_is_whole_and_the_same_twice(sides: Folder, touchstone: Command) -> None:
    _, _, old, _, new, _, problems = asked(sides)
    report = compare(old, new, CompareOptions(files={"problems_csv": Path(problems)}), ComparisonSettings()).report
    said = {form: format_report(report, form) for form in FORMATS}
    told = json.loads(said["json"])
    assert told["counts"]["regression"] == 20
    assert "| case |" in said["markdown"].lower()
    assert len(ET.fromstring(said["junit"]).findall(".//failure")) == 20
    assert json.loads(said["sarif"])["version"] == "2.1.0"
    again = touchstone(*asked(sides), "--format", "markdown", "--fail-on-regression")
    assert (again.returncode, again.stdout) == (1, said["markdown"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--threshold", "-1"], "threshold"),
        (["--format", "yaml"], "format"),
        (["--model", "nobody"], "nothing to compare"),
        (["--baseline", "latest"], "to name a snapshot, add --data DIR"),
    ],
)
def test_wrong_use_is_one_line(sides: Folder, touchstone: Command, more: list[str], words: str) -> None:
    done = touchstone(*asked(sides), *more)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_refused_rows_and_sides_without_a_common_model_are_told(sides: Folder, touchstone: Command) -> None:
    new = sides.root / "new" / "m_fixes.csv"
    new.write_text(fixes(5) + "p00,2,maybe\n")
    done = touchstone(*asked(sides))
    assert (
        done.returncode == 0
        and "note: m_fixes.csv: 1 row was refused; line 32: plausible_fix: 'maybe' is not a boolean" in done.stderr
    )
    new.rename(new.with_name("n_fixes.csv"))
    done = touchstone(*asked(sides)[:4], str(new.with_name("n_fixes.csv")), *asked(sides)[5:])
    assert done.returncode == 0 and "note: different models: n (current) is compared with m (baseline)" in done.stderr


@pytest.mark.nightly
def test_snapshots_by_name(evaluated: Folder) -> None:
    folder = evaluated
    folder.fixes("m", HEADER + "a,1,true\na,2,true\nb,1,true\nb,2,true\n")
    evaluate(folder)
    assert len(list_snapshots(folder.output)) == 2
    options = CompareOptions(data=folder.output, score="pass_rate")
    done = compare("previous", "latest", options, ComparisonSettings())
    assert done.report.counts["improvement"] == 2 and done.report.counts["regression"] == 0
    assert done.verdicts == {("m", "T0"): "inconclusive"}
    same = compare("latest", "latest", options, ComparisonSettings())
    assert same.report.counts["unchanged"] == 2


def test_a_verdict_says_whether_it_holds_under_both_bounds_of_undecided_attempts(
    tmp_path: Path, touchstone: Command
) -> None:
    """The drop of 15 of 20 problems stays whatever two more were; with ten more it may be none."""
    for undecided, words in ((2, "holds under both bounds of"), (20, "depends on")):
        for name, passing in (("before", 18), ("after", 3)):
            rows = [f"p{place},1,{place < passing}" for place in range(20)]
            rows += [f"u{place},1,{'' if name == 'after' else 'false'}" for place in range(undecided)]
            folder = tmp_path / f"{name}-{undecided}"
            folder.mkdir()
            (folder / "m_fixes.csv").write_text("oid,iteration_id,passed\n" + "\n".join(rows) + "\n")
        sides = [tmp_path / f"{name}-{undecided}" / "m_fixes.csv" for name in ("before", "after")]
        done = touchstone("compare", *sides, "--format", "markdown")
        assert f"the verdict {words} the undecided attempts" in done.stdout, done.stdout + done.stderr


def test_sides_are_as_comparable_as_the_tiers_that_are_compared() -> None:
    """T1 was recorded in one and validated in the other; T0 was recorded in both."""
    attempts = pl.LazyFrame({"model": "m", "tier": ["T0", "T1"], "oid": "a", "pass_rate": 1.0})
    sides = []
    for validator in ("recorded", "hcl"):
        judged = pl.DataFrame({"model": "m", "tier": ["T0", "T1"], "validator": ["recorded", validator]})
        others = pl.lit(None, pl.String)
        judged = judged.with_columns(validator_version=others, fidelity=others, sandbox=others)
        sides.append(ComparisonInput(validator, attempts, attempts.select("oid").unique(), validators=judged))
    for tiers, agreement in (((), "different"), (("T0",), "unknown")):
        rows = compare_sides(*(selected(side, (), tiers) for side in sides), REQUIRED_DIMENSIONS)
        assert next(row.agreement for row in rows if row.dimension == "validator") == agreement
