"""The attempts of one model from several files: nothing counts twice, and nothing that is another run is lost."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from touchstone.ingest.adapters.table import AdapterTable, StatedSetting
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


@pytest.mark.parametrize(
    ("column", "values", "tiers"),
    [
        ("temperature", ("0.2", "0.8", "0.8"), ["temperature 0.2", "temperature 0.8", "temperature 0.8"]),
        ("temperature", ("0.2", "0.2", "0.2"), None),
        ("temperature", ("0.2", "0.8", None), None),
        ("agent", ("pi", "goose", "goose"), ["pi", "goose", "goose"]),
        # Without a shared attempt.
        ("agent", ("pi", "pi", "goose"), ["pi", "pi", "goose"]),
        ("agent", ("pi", "pi", "pi"), None),
    ],
)
def test_files_of_several_temperatures_or_agents_are_tiers(
    column: str, values: tuple[str | None, ...], tiers: list[str] | None
) -> None:
    runs = ("r1", "r2", "r3") if column == "agent" else (None,) * 3
    rows = [("a", "1", True), ("a", "1", False), ("b", "1", True)]
    parts = [
        replace(made, attempts=made.attempts.with_columns(pl.lit(own, pl.String).alias(column)))
        for row, run, own in zip(rows, runs, values, strict=True)
        for made in [part((*row, run, None))]
    ]
    found = combine("m", sources("cruxeval", "cruxeval", "cruxeval"), parts)
    if tiers is None and column == "temperature":
        assert found.conflict is not None and "at tier 'T0', oid 'a'" in found.conflict
    else:
        assert found.conflict is None and len(keys(found.parts)) == 3
        assert [each.attempts.collect()["tier"][0] for each in found.parts] == (tiers or ["T0"] * 3)


@pytest.mark.parametrize("number", ["1", "2"])
@pytest.mark.parametrize(
    ("second", "tiers"),
    [
        ({"solver": "react"}, ["solver basic", "solver react"]),
        ({"solver": "react", "task_args": "1f"}, ["solver basic, task_args 0e", "solver react, task_args 1f"]),
        ({"task_version": "2"}, ["task_version 1", "task_version 2"]),
        ({"seed": "2", "swe_agent_version": "2"}, None),
        # Of another suite, in which nothing differs.
        ({"solver": "react", "suite": "other"}, None),
    ],
)
def test_files_that_state_another_way_of_running_are_tiers(
    second: dict[str, str], tiers: list[str] | None, number: str
) -> None:
    """Also if the files number the attempts of all runs."""
    first = {"solver": "basic", "task_args": "0e", "seed": "1", "swe_agent_version": "1", "suite": "s"}
    first |= {"task_version": "1"}
    dimensions = {"task_args": "harness", "task_version": "task_version"}
    found = sources("inspect", "inspect")
    tables = {
        source.path: AdapterTable(source.path, "inspect", (), pl.LazyFrame(), lambda *_: {}).stating(
            [],
            settings=[
                StatedSetting("m", dimensions.get(name, "agent"), name, value, stated["suite"])
                for name, value in stated.items()
                if name != "suite"
            ],
        )
        for source, stated in zip(found, (first, first | second), strict=True)
    }
    combined = combine("m", found, [part(("a", "1", True, "r1", None)), part(("a", number, False, "r2", None))], tables)
    assert combined.conflict is None and len(keys(combined.parts)) == 2
    assert [each.attempts.collect()["tier"][0] for each in combined.parts] == (tiers or ["T0", "T0"])
    assert (combined.notes[0] is None) == (tiers is None)


def attempts(text: str) -> IngestedAttempts:
    """Attempts from words such as `a1+/run/sample`: the problem, its iteration, the outcome, the run and the sample."""
    rows = [(*each.split("/"), "", "")[:3] for each in text.split()]
    outcomes = {"+": True, "-": False, "?": None}
    return part(*((key[0], key[1], outcomes[key[2]], run or None, sample or None) for key, run, sample in rows))


ONCE = "1 attempt not counted again"
COMBINED = {
    "different attempts are left as they are": ((NATIVE, "inspect"), ("a1+", "a2+/r/u"), "a1+ a2+", (None, None)),
    "predictions beside the report on them count once": (
        ("predictions", "swebench"),
        ("a1? b1? e1-", "a1+/r e1-/r b1?/r"),
        "a1+ b1? e1-",
        ("3 attempts not counted again: another file has them too", None),
    ),
    "an empty prediction is no verdict of its own": (
        ("swebench-predictions", "swebench-logs"),
        ("a1? b1- c1-", "a1+/r b1-/r"),
        "a1+ b1- c1-",
        (f"{ONCE}: another file has them too",) * 2,
    ),
    "the same fixes in two files count once": (
        ("predictions", "predictions"),
        ("a1?//x b1-", "a1?//x b1- c1?//y"),
        "a1? b1- c1?",
        (None, f"{ONCE}: copied from another log; {ONCE}: the same fix is in another file"),
    ),
    "a sample that was copied counts once": (
        ("inspect", "inspect"),
        ("a1+/r1/u1 b1+/r1/u2", "a1+/r2/u1 c1-/r2/u3"),
        "a1+ b1+ c1-",
        (None, f"{ONCE}: copied from another log"),
    ),
    "another run adds attempts": (
        ("inspect", "inspect"),
        ("a1+/r1/u1", "a1-/r2/u2"),
        "a1+ ar2:1-",
        (None, "another run, so its attempts are further ones (numbered <run>:1, …)"),
    ),
    "another run of several tasks adds attempts": (
        ("inspect",) * 4,
        ("a1+/r1/u1", "b1+/r1/u2", "a1-/r2/u3", "b1-/r2/u4"),
        "a1+ ar2:1- b1+ br2:1-",
        (None, None, *("another run, so its attempts are further ones (numbered <run>:1, …)",) * 2),
    ),
}


@pytest.mark.parametrize(("formats", "texts", "expected", "notes"), COMBINED.values(), ids=COMBINED)
def test_attempts_that_are_combined(
    formats: tuple[str, ...], texts: tuple[str, ...], expected: str, notes: tuple[str | None, ...]
) -> None:
    given = list(map(attempts, texts))
    found = combine("m", sources(*formats), given)
    words = {True: "+", False: "-", None: "?"}
    assert sorted(f"{oid}{number}{words[passed]}" for oid, number, passed in keys(found.parts)) == expected.split()
    assert found.conflict is None and found.notes == list(notes)
    assert sum(each.accepted for each in found.parts) == len(expected.split())


@pytest.mark.parametrize(
    ("formats", "texts"),
    [
        (("inspect", "inspect"), ("a1+/r", "a1+/r")),
        (("inspect", "inspect"), ("a1+/r", "a1+")),
        ((NATIVE, NATIVE), ("a1+/r1", "a1+/r2")),
        ((NATIVE, "inspect"), ("a1+/r1", "a1+/r2")),
        (("predictions", "predictions"), ("a1?//x b1-", "a1?//another")),
        (("predictions", "swebench"), ("a1+/r", "a1-/r")),
        (("inspect", NATIVE, "harbor"), ("a1+", "a1+", "z1+")),
        (("jsonl", "jsonl"), ("a1+ b1-", "a1+ b1-")),
    ],
)
def test_what_may_be_the_same_attempt_is_refused(formats: tuple[str, ...], texts: tuple[str, ...]) -> None:
    found = combine("m", sources(*formats), list(map(attempts, texts)))
    assert found.conflict == (
        "0.json and 1.json both have an attempt of the model 'm' at tier 'T0', oid 'a', iteration_id '1'; "
        "keep one of them" + (", or name their runs in a column run_id" if "jsonl" in formats else "")
    )
