"""Two sides whose outcomes were not decided alike: `compare` and the gate's report say so."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Folder
from tests.pipelines.test_run import evaluate
from touchstone.comparison.compare import CompareOptions, compare, validation_differences
from touchstone.comparison.inputs import open_input
from touchstone.comparison.pairs import ComparisonSettings
from touchstone.storage.snapshots import list_snapshots, pin
from touchstone.validation.validators_used import SCHEMA

Row = tuple[str | None, ...]
RECORDED: Row = ("recorded", None, "recorded", None)
STATIC: Row = ("hcl", "1", "static", "bubblewrap")
FULL: Row = ("terraform", "1.9.0", "full", "bubblewrap")


def used(*rows: Row, model: str = "m") -> pl.DataFrame:
    return pl.DataFrame([(model, "T0", *row) for row in rows], schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([RECORDED], [FULL], "baseline by recorded outcomes, current by terraform 1.9.0 (full, bubblewrap)"),
        ([STATIC], [FULL], "baseline by hcl 1 (static, bubblewrap), current by terraform 1.9.0 (full, bubblewrap)"),
        ([FULL], [(*FULL[:3], "landlock")], "(full, bubblewrap), current by terraform 1.9.0 (full, landlock)"),
        ([FULL], [("terraform", "1.10.0", *FULL[2:])], "terraform 1.9.0 (full, bubblewrap), current by terraform 1.10"),
        ([FULL], [FULL, RECORDED], "current by recorded outcomes and terraform 1.9.0 (full, bubblewrap)"),
    ],
)
def test_every_difference_is_said(before: list[Row], after: list[Row], words: str) -> None:
    (line,) = validation_differences(used(*before), used(*after))
    assert line.startswith("validated differently: baseline by ") and words in line
    assert validation_differences(used(*after), used(*after)) == []


def test_models_are_named_where_not_all_differ_and_only_shared_ones_count() -> None:
    before = pl.concat([used(RECORDED), used(FULL, model="n"), used(STATIC, model="gone")])
    after = pl.concat([used(FULL), used(FULL, model="n"), used(FULL, model="new")])
    (line,) = validation_differences(before, after)
    assert line.endswith("current by terraform 1.9.0 (full, bubblewrap) (m T0)")


def test_nothing_is_said_of_a_side_that_did_not_record_it() -> None:
    assert validation_differences(None, used(FULL)) == [] == validation_differences(used(FULL), None)


def decided_by(folder: Folder, copy: Path, row: Row) -> Path:
    """The results once more, with outcomes that another validator decided."""
    for table in ("attempt_scores", "problems", "outcomes"):
        frame = pl.read_parquet(folder.output / "tables" / table / "*.parquet")
        if table == "outcomes":
            details = zip(list(SCHEMA)[2:], row, strict=True)
            frame = frame.with_columns(**{name: pl.lit(value, pl.String) for name, value in details})
        (copy / "tables" / table).mkdir(parents=True)
        frame.write_parquet(copy / "tables" / table / "m.parquet")
    return copy


def test_a_file_and_a_snapshot_are_known_too(finished: Folder, tmp_path: Path) -> None:
    (snapshot,) = list_snapshots(finished.output)
    sides = [str(snapshot.folder), str(finished.root / "fixes" / "m_fixes.csv")]
    for side in sides:
        validators = open_input(side).validators
        assert validators is not None and validators.equals(used(RECORDED))
    other = str(decided_by(finished, tmp_path / "other", STATIC))
    for side in sides:
        told = compare(side, other, CompareOptions(), ComparisonSettings()).report.notes
        assert any("current by hcl 1 (static, bubblewrap)" in line for line in told)


@pytest.mark.nightly
def test_the_gates_report_says_it(evaluated: Folder) -> None:
    folder = evaluated
    pin(folder.output, "latest", "baseline")
    (snapshot,) = list_snapshots(folder.output)
    manifest = snapshot.folder / "manifest.json"
    told = json.loads(manifest.read_text())
    assert [row["validator"] for row in told["validation"]] == ["recorded"]
    told["validation"] = used(FULL).to_dicts()
    manifest.write_text(json.dumps(told))
    outcome = evaluate(folder)
    words = "validated differently: baseline by terraform 1.9.0 (full, bubblewrap), this run by recorded outcomes"
    report = (folder.output / "comparison.md").read_text()
    assert words in report
    (gate,) = [check for check in outcome.checks if check.name == "regressions.holds_against_baseline"]
    assert words in gate.message
    # An older version did not record it.
    del told["validation"]
    manifest.write_text(json.dumps(told))
    evaluate(folder)
    assert "validated differently" not in (folder.output / "comparison.md").read_text()
