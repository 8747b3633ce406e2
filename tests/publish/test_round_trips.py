"""Every format of `touchstone export --to` is read back to the same attempts, whatever their names are."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import touchstone as api
from tests.conftest import Command, Folder, fewer_examples, nightly_but
from touchstone.config import IntervalSettings
from touchstone.ingest.discovery import discover
from touchstone.ingest.implied_config import implied_config
from touchstone.ingest.read_inputs import read_inputs
from touchstone.ingest.recognized import most_attempts, recognized_sources
from touchstone.metrics.pass_at_k_files import calculate_inputs
from touchstone.publish.interchange import WRITERS
from touchstone.publish.interchange.results import Run, save_folder
from touchstone.storage.files import file_key
from touchstone.tables import TABLES

TARGETS = ("inspect", "swe-bench", "junit", "ctrf", "lm-eval", "evalplus")
# They have no attempts without a verdict.
DECIDED_ONLY = ("lm-eval", "evalplus")
MODELS = ["a/b", "a--b", "a__b", "A/B", "m_temp_0.2", "v4.5.6", "mö del", "p@q", "r%2Fs", "-x", "o'<&\">"]
SUITES = {"a": "own", "base/a": "base", "plus/a": "plus", "s/ü/1": "s/ü", "s/ü/2": "s/ü", "\x01\t<": "S", "ö ]]>": "s"}
AMOUNTS = {"cost_usd": 0.1 + 0.2, "duration_seconds": 1e-7, "input_tokens": 10**12, "weighted_score": 1 / 3}
KEY = ("model", "tier", "oid", "iteration_id")
COLUMNS = (*KEY, "suite", "cluster", "run_id", "classification", *AMOUNTS, "passed")

Key = tuple[str, str, str, str]
Outcome = tuple[bool | None, str | None]
ids = st.tuples(
    st.sampled_from(MODELS),
    st.sampled_from(["T0", "T/1"]),
    st.sampled_from(list(SUITES)),
    st.sampled_from(["1", "2", "10", "first", "run:1"]),
)
outcomes = st.tuples(st.sampled_from([True, False, None]), st.sampled_from([None, "pass", "fail", "timeout", "odd"]))


def write_tables(folder: Path, made: Mapping[Key, Outcome]) -> list[tuple[Any, ...]]:
    """Write the tables of a run with these attempts; returns what they say."""

    def write(table: str, part: str, rows: list[dict[str, Any]]) -> None:
        (folder / table).mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows, schema=TABLES[table].dtypes).write_parquet(folder / table / f"{file_key(part)}.parquet")

    write("problems", "@problems", [{"oid": oid, "suite": each, "cluster": f"{each}!"} for oid, each in SUITES.items()])
    rows: list[dict[str, Any]] = []
    for number, (key, (passed, word)) in enumerate(made.items()):
        suite = SUITES[key[2]]
        row = dict(zip(KEY, key, strict=True)) | {"suite": suite, "cluster": f"{suite}!", "status": "s"}
        row |= {"run_id": "r1" if number % 3 else None, "classification": word, "passed": passed}
        rows.append(row | (AMOUNTS if number % 2 else {}))
    for model in {row["model"] for row in rows}:
        for table in ("attempts", "outcomes"):
            write(table, model, [row for row in rows if row["model"] == model])
    for row in rows:
        # A class that contradicts the outcome is not exported.
        if row["passed"] is None or (row["classification"] == "pass") != row["passed"]:
            row["classification"] = None
    return [tuple(map(row.get, COLUMNS)) for row in rows]


def read_back(folder: Path) -> list[tuple[Any, ...]]:
    with tempfile.TemporaryDirectory() as scratch:
        read = read_inputs(implied_config([folder]), Path(scratch))
    assert not read.unreadable and all(refused.is_empty() for refused in read.quarantine)
    assert dict(read.problems.select("oid", "suite").iter_rows()).items() <= SUITES.items()
    return [row for frame in read.attempts.values() for row in frame.select(COLUMNS).rows()]


@pytest.mark.parametrize("target", nightly_but(["inspect", "junit", "evalplus"], TARGETS))
@fewer_examples
@given(made=st.dictionaries(ids, outcomes, min_size=1, max_size=8 if settings().max_examples > 10 else 4))
def test_a_round_trip_keeps_every_attempt(target: str, made: Mapping[Key, Outcome]) -> None:
    require_round_trip(target, made)


def test_a_round_trip_keeps_what_evalplus_cannot_say_of_base_and_plus() -> None:
    """It counts a failure in base as one in plus, and has no sample with a status of plus alone."""
    made: dict[Key, Outcome] = {
        ("a/b", "T0", f"{part}/a", f"{base}{plus}"): (outcome, None)
        for base in (True, False, None)
        for plus in (True, False, None)
        for part, outcome in (("base", base), ("plus", plus))
    }
    require_round_trip("evalplus", made)


def require_round_trip(target: str, made: Mapping[Key, Outcome]) -> None:
    with tempfile.TemporaryDirectory() as place:
        run, out = Run(Path(place, "tables")), Path(place, "out")
        rows = write_tables(run.tables_dir, made)
        kept = [row for row in rows if row[-1] is not None or target not in DECIDED_ONLY]
        notes = save_folder(run, out, WRITERS[target])
        left_out = f"{len(rows) - len(kept)} of {len(rows)} attempts are undecided; "
        assert [note.startswith(left_out) for note in notes] == [True] * (len(kept) < len(rows))
        if kept:
            assert sorted(read_back(out), key=str) == sorted(kept, key=str)


def test_pass_at_k_of_exported_files_is_that_of_the_run(
    finished_pair: Folder, tmp_path: Path, touchstone: Command
) -> None:
    done = touchstone("export", "--data", finished_pair.output, "--to", "swe-bench", "--save-to", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    config = implied_config([tmp_path / "out"])
    again, _ = calculate_inputs(config, [1, 2], IntervalSettings())
    before = pl.read_parquet(finished_pair.output / "tables" / "pass_at_k")
    assert again.table.select(before.columns).equals(before)
    # A report has one attempt at each problem; a run of all of them computes pass@2.
    found = discover(config)
    assert most_attempts(recognized_sources(found, config), found) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS)
def test_a_round_trip_of_the_sample_keeps_every_figure(sample_results: Path, tmp_path: Path, target: str) -> None:
    assert save_folder(Run(sample_results / "tables"), tmp_path / "files", WRITERS[target]) == []
    again = api.evaluate(tmp_path / "files", output_dir=tmp_path / "again")
    for table in ("pass_at_k", "suite_scores", "economics", "reliability"):
        before = pl.read_parquet(sample_results / "tables" / table)
        assert again[table].select(before.columns).equals(before), table
    figures = again["reported_figures"].drop_nulls("reported")
    assert figures["reported"].equals(figures["recomputed"])
