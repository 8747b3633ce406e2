"""The summary CSV: the seed's columns first, and the interval of every figure behind them."""

from pathlib import Path

import polars as pl

from touchstone.publish.summary import summary, write_summary
from touchstone.tables import TABLES


def figures(*rows: dict[str, object]) -> pl.DataFrame:
    defaults: dict[str, object] = {
        "model": "m", "tier": "T0", "k": 1, "pass_at_k": 0.5, "ci_low": 0.25, "ci_high": 0.75, "ci_method": "wilson",
        "ci_units": 9, "pass_at_k_all": 0.5, "pass_hat_k": 0.5, "problems": 10, "attempted": 9, "eligible": 9,
    }  # fmt: skip
    return pl.DataFrame([defaults | row for row in rows], schema=TABLES["pass_at_k"].dtypes)


def test_methods_and_units_stand_behind_the_columns_that_were_there() -> None:
    table = summary(figures({}, {"k": 5, "ci_method": "wilson-t", "ci_units": 7}))
    assert table.columns == [
        "LLM", "pass@1", "pass@5", "attempted", "problems", "pass@1_ci_low", "pass@1_ci_high", "pass@5_ci_low",
        "pass@5_ci_high", "pass@1_ci_method", "pass@1_ci_units", "pass@5_ci_method", "pass@5_ci_units",
    ]  # fmt: skip
    row = table.row(0, named=True)
    assert (row["pass@1_ci_method"], row["pass@1_ci_units"]) == ("wilson", 9)
    assert (row["pass@5_ci_method"], row["pass@5_ci_units"]) == ("wilson-t", 7)


def test_a_model_without_attempts_has_an_empty_method_and_no_units(tmp_path: Path) -> None:
    nothing = dict.fromkeys(["pass_at_k", "ci_low", "ci_high", "ci_method"]) | {"ci_units": 0, "attempted": 0}
    write_summary(figures(nothing), tmp_path / "summary.csv")
    assert (tmp_path / "summary.csv").read_text().splitlines()[1] == "m,,0,10,,,,0"
