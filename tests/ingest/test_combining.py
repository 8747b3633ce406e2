"""The attempts of one model from several files: nothing counts twice, and nothing that is another run is lost."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from touchstone.ingest.attempts import IngestedAttempts
from touchstone.ingest.combining import combine
from touchstone.ingest.quarantine import SCHEMA
from touchstone.ingest.sources import NATIVE, Source

Row = tuple[str, str, bool | None, str | None, str | None]


def part(*rows: Row) -> IngestedAttempts:
    """Attempts from (oid, iteration, passed, run, sample)."""
    columns = {
        "oid": pl.String,
        "iteration_id": pl.String,
        "passed": pl.Boolean,
        "run_id": pl.String,
        "sample_uuid": pl.String,
    }
    frame = pl.DataFrame(list(rows), schema=columns, orient="row").with_columns(
        tier=pl.lit("T0"), fix_sha=pl.col("sample_uuid")
    )
    return IngestedAttempts(frame.lazy(), pl.DataFrame(schema=SCHEMA), frame.height, frame.height)


def sources(*formats: str) -> list[Source]:
    return [Source("m", Path(f"{place}.json"), name) for place, name in enumerate(formats)]


def keys(parts: list[IngestedAttempts]) -> list[tuple[str, str, bool | None]]:
    return pl.concat([each.attempts.select("oid", "iteration_id", "passed") for each in parts]).collect().rows()


def test_files_about_different_attempts_are_left_as_they_are() -> None:
    found = combine(
        "m", sources(NATIVE, "inspect"), [part(("a", "1", True, None, None)), part(("a", "2", True, "r", "u"))]
    )
    assert found.conflict is None and found.notes == [None, None]
    assert keys(found.parts) == [("a", "1", True), ("a", "2", True)]


@pytest.mark.parametrize(
    ("temperatures", "tiers"),
    [
        (("0.2", "0.8", "0.8"), ["temperature 0.2", "temperature 0.8", "temperature 0.8"]),
        (("0.2", "0.2", "0.2"), None),
        (("0.2", "0.8", None), None),
    ],
)
def test_files_of_several_temperatures_are_tiers(temperatures: tuple[str | None, ...], tiers: list[str] | None) -> None:
    parts = [
        part(("a", "1", True, None, None)),
        part(("a", "1", False, None, None)),
        part(("b", "1", True, None, None)),
    ]
    parts = [
        replace(each, attempts=each.attempts.with_columns(temperature=pl.lit(own, pl.String)))
        for each, own in zip(parts, temperatures, strict=True)
    ]
    found = combine("m", sources("cruxeval", "cruxeval", "cruxeval"), parts)
    if tiers is None:
        assert found.conflict is not None and "at tier 'T0', oid 'a'" in found.conflict
    else:
        assert found.conflict is None and len(keys(found.parts)) == 3
        assert [each.attempts.collect()["tier"][0] for each in found.parts] == tiers


def test_predictions_beside_the_report_on_them_count_once() -> None:
    fixes = part(("a", "1", None, None, None), ("b", "1", None, None, None), ("empty", "1", False, None, None))
    report = part(("a", "1", True, "r", None), ("empty", "1", False, "r", None), ("b", "1", None, "r", None))
    found = combine("m", sources("predictions", "swebench"), [fixes, report])
    assert sorted(keys(found.parts)) == [("a", "1", True), ("b", "1", None), ("empty", "1", False)]
    assert found.notes == ["3 attempts not counted again: another file has them too", None]
    assert (found.parts[0].rows, found.parts[0].accepted) == (0, 0)


def test_the_same_fixes_in_two_files_count_once() -> None:
    first = part(("a", "1", None, None, "x"), ("b", "1", False, None, None))
    second = part(("a", "1", None, None, "x"), ("b", "1", False, None, None), ("c", "1", None, None, "y"))
    found = combine("m", sources("predictions", "predictions"), [first, second])
    assert sorted(keys(found.parts)) == [("a", "1", None), ("b", "1", False), ("c", "1", None)]
    other = combine("m", sources("predictions", "predictions"), [first, part(("a", "1", None, None, "another"))])
    assert other.conflict is not None


def test_two_files_that_contradict_each_other_are_refused() -> None:
    found = combine(
        "m", sources("predictions", "swebench"), [part(("a", "1", value, "r", None)) for value in (True, False)]
    )
    assert found.conflict is not None


def test_an_empty_prediction_is_no_verdict_of_its_own() -> None:
    predictions = part(("a", "1", None, None, None), ("b", "1", False, None, None), ("c", "1", False, None, None))
    logs = part(("a", "1", True, "r", None), ("b", "1", False, "r", None))
    found = combine("m", sources("swebench-predictions", "swebench-logs"), [predictions, logs])
    assert found.conflict is None
    assert sorted(keys(found.parts)) == [("a", "1", True), ("b", "1", False), ("c", "1", False)]


def test_a_sample_that_was_copied_counts_once() -> None:
    first = part(("a", "1", True, "r1", "u1"), ("b", "1", True, "r1", "u2"))
    second = part(("a", "1", True, "r2", "u1"), ("c", "1", False, "r2", "u3"))
    found = combine("m", sources("inspect", "inspect"), [first, second])
    assert keys(found.parts) == [("a", "1", True), ("b", "1", True), ("c", "1", False)]
    assert found.notes == [None, "1 attempt not counted again: copied from another log"]


def test_another_run_adds_attempts() -> None:
    found = combine(
        "m", sources("inspect", "inspect"), [part(("a", "1", True, "r1", "u1")), part(("a", "1", False, "r2", "u2"))]
    )
    assert keys(found.parts) == [("a", "1", True), ("a", "r2:1", False)]
    assert found.conflict is None and "another run" in (found.notes[1] or "")


@pytest.mark.parametrize(
    ("formats", "runs"),
    [
        (("inspect", "inspect"), ("r", "r")),
        (("inspect", "inspect"), ("r", None)),
        ((NATIVE, NATIVE), ("r1", "r2")),
        ((NATIVE, "inspect"), ("r1", "r2")),
    ],
)
def test_what_may_be_the_same_attempt_is_refused(formats: tuple[str, str], runs: tuple[str | None, str | None]) -> None:
    found = combine("m", sources(*formats), [part(("a", "1", True, run, None)) for run in runs])
    assert found.conflict == (
        "0.json and 1.json both have an attempt of the model 'm' at tier 'T0', oid 'a', iteration_id '1'; "
        "keep one of them"
    )


def test_only_the_files_that_share_an_attempt_are_named() -> None:
    other = part(("z", "1", True, None, None))
    found = combine("m", sources("harbor", "inspect", NATIVE), [other, *[part(("a", "1", True, None, None))] * 2])
    assert found.conflict is not None and found.conflict.startswith("1.json and 2.json both have")
