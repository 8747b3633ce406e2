"""Had the model seen the answer? Planted contamination is found, and what cannot be judged says so."""

import json

import polars as pl
import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_run import evaluate
from tests.validation.test_noise import FAST, RIGHT, WRONG, make_problems, table
from touchstone.audit.contamination import contamination, overlap, reference_overlap
from touchstone.config import IntervalSettings, SliceSettings
from touchstone.ingest.slice_values import problem_slices
from touchstone.tables import TABLES

SETTINGS = IntervalSettings()
CUTOFF = "2025-01-31"


def found_in(
    passes: dict[str, tuple[list[int], list[int]]], dates: tuple[str, str], alpha: float = 0.05
) -> pl.DataFrame:
    """The table for models that pass or fail problems of two dates, one attempt each."""
    rows, listed = [], {}
    for model, sides in passes.items():
        for date, side in zip(dates, sides, strict=True):
            for place, passed in enumerate(side):
                listed[f"{date} {place}"] = date
                rows.append({"model": model, "tier": "T0", "oid": f"{date} {place}", "k": 1, "n": 1, "c": passed})
    problems = pl.DataFrame(
        {"oid": list(listed), "created": list(listed.values()), "cluster": None},
        schema_overrides={"cluster": pl.String},
    )
    slices = problem_slices(problems, [SliceSettings(column="created", cutoff=dict.fromkeys(passes, CUTOFF))])  # type: ignore[arg-type]
    return contamination(pl.LazyFrame(rows), problems.lazy(), slices.lazy(), alpha, SETTINGS).collect()


DATES = ("2025-01-31", "2025-02-01")  # the day of the cutoff is before it


def test_a_model_that_knows_old_problems_is_found_and_an_honest_one_is_not() -> None:
    table = found_in({"honest": ([1, 0] * 15, [1, 0] * 15), "seen": ([1] * 28 + [0] * 2, [1, 0] * 15)}, DATES)
    rows = {row["model"]: row for row in table.iter_rows(named=True)}
    seen, honest = rows["seen"], rows["honest"]
    assert (seen["problems_before"], seen["problems_after"]) == (30, 30)
    assert (seen["pass_at_1_before"], seen["pass_at_1_after"]) == pytest.approx((28 / 30, 0.5))
    assert seen["difference"] == pytest.approx(28 / 30 - 0.5)
    assert 0 < seen["ci_low"] < seen["difference"] < seen["ci_high"] and seen["ci_method"] == "newcombe"
    # Holm: the smaller of two p-values counts twice.
    assert seen["p_adjusted"] == pytest.approx(2 * seen["p_value"]) and seen["finding"] == "higher before"
    assert (honest["difference"], honest["p_value"], honest["finding"]) == (0.0, 1.0, "no evidence")


def test_a_model_that_does_worse_on_old_problems_is_not_called_contaminated() -> None:
    [row] = found_in({"m": ([1, 0] * 15, [1] * 30)}, DATES).iter_rows(named=True)
    assert row["difference"] == -0.5 and row["finding"] == "lower before"


def test_what_cannot_be_judged_is_null() -> None:
    [few] = found_in({"m": ([1, 1, 1, 1], [1, 0] * 15)}, DATES).iter_rows(named=True)
    assert (few["difference"], few["ci_low"], few["p_value"], few["p_adjusted"]) == (0.5, None, None, None)
    [one_side] = found_in({"m": ([1] * 9, [1] * 9)}, ("2024-01-01", "2024-02-01")).iter_rows(named=True)
    assert (one_side["problems_after"], one_side["pass_at_1_after"], one_side["difference"]) == (0, None, None)
    assert few["finding"] == one_side["finding"] == "too few problems"


def test_without_a_cutoff_there_is_nothing() -> None:
    none = pl.LazyFrame(schema=TABLES["problem_slices"].dtypes)
    assert contamination(pl.LazyFrame(), pl.LazyFrame(), none, 0.05, SETTINGS).collect().is_empty()


# Overlap

BEFORE = "def mean(values):\n    total = sum(values)\n    return total\n"
REFERENCE = """--- a/m.py
+++ b/m.py
@@ -1,3 +1,3 @@
 def mean(values):
     total = sum(values)
-    return total
+    return total / len(values) if values else None"""


def overlap_of(*added: str) -> list[float | None]:
    """The overlap of fixes that replace the last line, in the order given."""
    fixes = [REFERENCE.rpartition("\n")[0] + f"\n+    {line}" for line in added]
    key = {"model": [f"m{place}" for place in range(len(fixes))], "tier": "T0", "oid": "p", "iteration_id": "1"}
    files = pl.LazyFrame({"oid": ["p"], "text": [BEFORE], "reference_diff": [REFERENCE]})
    problems = pl.LazyFrame({"oid": ["p"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    validated, outcomes = pl.LazyFrame({**key, "diff": fixes}), pl.LazyFrame({**key, "passed": True})
    found = reference_overlap(validated, files, outcomes, problems, SETTINGS).collect()
    shares = dict(found.select("model", "overlap_passed").iter_rows())
    return [shares.get(f"m{place}") for place in range(len(fixes))]


def test_only_what_both_add_counts() -> None:
    copied, none, partly, unchanged = overlap_of(
        "return total / len(values) if values else None",
        "raise NotImplementedError",
        "return total / len(values)",
        "return total",
    )
    # Tokens of the file before never count, and a fix that adds nothing has no overlap.
    assert (copied, none, partly, unchanged) == (1.0, 0.0, 1.0, None)
    assert overlap("@@ @@\n+a b c d", frozenset(), frozenset()) is None


def test_what_was_elsewhere_in_the_file_is_not_new() -> None:
    key = {"model": ["m"], "tier": "T0", "oid": "p", "iteration_id": "1"}
    # Both write `a b c d e`, which is in the file already; only the fix goes on with `f`.
    files = pl.LazyFrame({"oid": ["p"], "text": ["a b c d e"], "reference_diff": ["@@ @@\n+a b c d e"]})
    problems = pl.LazyFrame({"oid": ["p"], "cluster": [None]}, schema_overrides={"cluster": pl.String})
    fixes, outcomes = pl.LazyFrame({**key, "diff": "@@ @@\n+a b c d e f"}), pl.LazyFrame({**key, "passed": False})
    [row] = reference_overlap(fixes, files, outcomes, problems, SETTINGS).collect().iter_rows(named=True)
    assert (row["overlap_failed"], row["overlap_passed"], row["difference"]) == (0.0, None, None)


@pytest.mark.services
def test_through_a_run(tmp_path_factory: pytest.TempPathFactory, touchstone: Command) -> None:
    """Dates in the problems file, fixes that copy the reference, and the tables in SQL."""
    tests = "from calc import add\n\n\ndef test_add():\n    assert add(2, 1) == 3\n"
    folder: Folder = make_problems(tmp_path_factory.mktemp("seen"), [tests], [RIGHT, WRONG])
    problems = folder.root / "fixes" / "problems.csv"
    dated = problems.read_text().replace("reference_fix\n", "reference_fix,created\n", 1)
    problems.write_text(dated.removesuffix("\n") + ",2025-01-01\n")
    slices = [{"column": "created", "cutoff": {"m": CUTOFF}}]
    folder.configure(clones_dir="clones", k_values=[1], validation=FAST, slices=slices)
    assert evaluate(folder).exit_code == 0
    [row] = table(folder, "contamination").iter_rows(named=True)
    assert (row["problems_before"], row["problems_after"], row["finding"]) == (1, 0, "too few problems")
    [row] = table(folder, "reference_overlap").iter_rows(named=True)
    assert (row["fixes_passed"], row["fixes_failed"]) == (1, 1)
    assert row["overlap_passed"] == 1.0 and row["overlap_failed"] < 0.5 and row["ci_low"] is None
    assert table(folder, "problem_files")["reference_diff"][0].endswith("-    return a - b\n+    return a + b")
    shown = touchstone("sql", "--data", folder.output, "--format", "json", "SELECT model, finding FROM contamination")
    assert json.loads(shown.stdout) == [{"model": "m", "finding": "too few problems"}]
