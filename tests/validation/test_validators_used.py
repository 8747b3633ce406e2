"""The validators of a run are those of its outcomes."""

import polars as pl

from touchstone.validation.validators_used import SCHEMA, validators_used


def test_each_combination_is_named_once_in_whatever_order_the_rows_are() -> None:
    rows = [("m", "T0", "python", "1", "high", None, True), ("m", "T0", None, "1", "high", "bwrap", False)]
    rows += [("a", "T0", "python", "1", "high", None, True), ("m", "T0", "hcl", "1", "low", None, None)]
    outcomes = pl.DataFrame(rows * 3, schema=[*SCHEMA, "passed"], orient="row")
    assert validators_used(outcomes.lazy()).rows() == [
        ("a", "T0", "python", "1", "high", None),
        ("m", "T0", None, "1", "high", "bwrap"),
        ("m", "T0", "python", "1", "high", None),
    ]
