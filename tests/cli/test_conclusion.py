"""The end of a run: one sentence (who is best, how sure that is, what failed) and how to read the report."""

import polars as pl
import pytest

from tests.conftest import Command, Folder
from touchstone.checks import CheckOutcome
from touchstone.cli.run_tables import conclusion, tier_table
from touchstone.tables import TABLES


def figures(**rates: float | None) -> pl.DataFrame:
    rows = [
        {"model": name.partition("_")[0], "tier": name.partition("_")[2] or "T0", "k": 1, "pass_at_k": rate}
        | ({} if rate is None else {"ci_low": rate - 0.1, "ci_high": rate + 0.1})
        for name, rate in rates.items()
    ]
    return pl.DataFrame(rows, schema=TABLES["pass_at_k"].dtypes)


def pairs(*rows: tuple[str, str, str]) -> pl.DataFrame:
    named = [
        {"kind": "models", "model_a": a, "tier_a": "T0", "model_b": b, "tier_b": "T0", "verdict": verdict}
        for a, b, verdict in rows
    ]
    return pl.DataFrame(named, schema=TABLES["model_comparison"].dtypes)


@pytest.mark.parametrize(
    ("rates", "compared", "sentence"),
    [
        ({"x": 0.5}, (), "x: pass@1 0.500 (95% CI 0.400 to 0.600)"),
        ({"x": None}, (), "no attempt is decided, so there is no figure"),
        (
            {"x": 0.8, "y": 0.5, "z": 0.4},
            (("y", "x", "better"), ("x", "z", "worse")),
            "x is best: pass@1 0.800 (95% CI 0.700 to 0.900), clearly ahead of both others",
        ),
        (
            {"x": 0.8, "y": 0.5, "z": 0.4},
            (("y", "x", "no evidence"), ("x", "z", "worse")),
            "x has the highest pass@1, 0.800 (95% CI 0.700 to 0.900), but is not clearly ahead of y",
        ),
        # Without a verdict nothing is claimed, and a verdict of another tier says nothing.
        (
            {"x": 0.8, "y": 0.5},
            (),
            "x has the highest pass@1, 0.800 (95% CI 0.700 to 0.900), but is not clearly ahead of y",
        ),
        (
            {"x_T1": 0.8, "y_T1": 0.5, "y_T0": 0.4},
            (("y", "x", "better"),),
            "x T1 has the highest pass@1, 0.800 (95% CI 0.700 to 0.900), but is not clearly ahead of y at T1",
        ),
    ],
)  # fmt: skip
def test_who_is_best_and_how_sure_that_is(
    rates: dict[str, float | None], compared: tuple[tuple[str, str, str], ...], sentence: str
) -> None:
    assert conclusion(figures(**rates), pairs(*compared), [], 0, 0.95) == sentence
    checks = [CheckOutcome("a.good", True, True, ""), CheckOutcome("b.bad", False, True, "")]
    failed = conclusion(figures(**rates), pairs(*compared), checks, 2, 0.95)
    assert failed == f"{sentence}; 2 rows were refused; 1 of 2 checks passed (failed: b.bad)"


def test_a_run_ends_with_the_sentence_and_the_command_that_opens_the_report(
    touchstone: Command, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.configure(publish={"report": True})
    monkeypatch.chdir(folder.root)
    for _ in ("first", "up to date"):
        *_, sentence, command = touchstone("run", dagster=False).stdout.splitlines()
        assert sentence.startswith("m: pass@1 0.250 (95% CI ") and sentence.endswith("checks passed")
        assert command == "to read the report: touchstone report --open"
    monkeypatch.chdir(folder.root.parent)
    done = touchstone("run", "--config", folder.config, dagster=False)
    assert done.stdout.splitlines()[-1] == f"to read the report: touchstone report --open --data {folder.root.name}/out"


def test_what_says_nothing_is_not_shown(touchstone: Command, folder: Folder) -> None:
    """Recorded outcomes only: no grade, no cost, one suite, and folders beside the files."""
    (folder.root / "fixes" / "clones").mkdir()
    shown = touchstone("run", "--config", folder.config, dagster=False).stdout
    for words in ("tiers:", "suites:", "not read", "parts", "default", "0 of 0"):
        assert words not in shown


def test_a_run_that_fails_at_once_counts_no_checks(touchstone: Command, folder: Folder) -> None:
    folder.problems("x,y\n1,2\n")
    done = touchstone("run", "--config", folder.config)
    assert done.returncode and "checks" not in done.stdout + done.stderr


def test_columns_without_figures_are_left_out() -> None:
    row = {"model": "m", "tier": "T0", "attempts": 4, "scored": 0, "pass_rate": 0.5, "cost_of_pass": 0.25}
    tiers = pl.DataFrame([row], schema=TABLES["tiers"].dtypes)
    cross = pl.DataFrame(schema=TABLES["cross_tier"].dtypes)
    assert [column.header for column in tier_table(tiers, cross).columns] == [
        "model", "tier", "passed attempts", "cost of pass",
    ]  # fmt: skip
    two = pl.concat([tiers, tiers.with_columns(tier=pl.lit("T1"))]).with_columns(composite_median=pl.lit(0.5))
    assert "uplift: change of the composite from T0" in tier_table(two, cross).caption
