"""The committed sample: made by its script, refused only where meant to be, and consistent elsewhere."""

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from touchstone.config import load_config
from touchstone.ingest.attempts import IngestedAttempts, read_fixes
from touchstone.ingest.discovery import discover
from touchstone.ingest.problems import IngestedProblems, read_problems

SAMPLE = Path(__file__).parents[1] / "data" / "sample"

REFUSALS = {
    "atlas-large": {"ragged": 1, "duplicate": 1, "bad_boolean": 1},
    "boreal-mini": {"unknown_oid": 1, "conflict": 2, "bad_number": 1},
    "cedar-coder": {"bad_id": 1, "ragged": 1, "unknown_oid": 1},
}


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SAMPLE / "make_sample.py"))


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> IngestedProblems:
    return read_problems(SAMPLE / "problems.csv", tmp_path_factory.mktemp("problems") / "staged.parquet")


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory, problems: IngestedProblems) -> dict[str, IngestedAttempts]:
    scratch = tmp_path_factory.mktemp("fixes")
    return {
        model: read_fixes(SAMPLE / f"{model}_fixes.csv", model, problems.problems, scratch / model)
        for model in REFUSALS
    }


@pytest.fixture(scope="module")
def attempts(fixes: dict[str, IngestedAttempts]) -> pl.DataFrame:
    return pl.concat([ingested.attempts for ingested in fixes.values()]).collect()


def breaches(attempts: pl.DataFrame, rule: pl.Expr) -> list[tuple[object, ...]]:
    """The keys of the rows for which the rule does not hold, unknown counting as a breach."""
    broken = attempts.filter(~rule.fill_null(False))
    return broken.select("model", "tier", "oid", "iteration_id").rows()


def test_the_script_writes_the_committed_bytes(tmp_path: Path, script: dict[str, Any]) -> None:
    written = script["write_sample"](tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in SAMPLE.glob("*.csv"))
    for path in written:
        assert path.read_bytes() == (SAMPLE / path.name).read_bytes(), f"{path.name}: run `make sample`"


def test_the_configuration_finds_the_three_models() -> None:
    config = load_config(SAMPLE / "evaluation_config.json")
    found = discover(config)
    assert sorted(found.sources) == sorted(REFUSALS)
    assert found.refused == {}
    assert config.problems_csv == SAMPLE / "problems.csv"
    assert config.output_dir == SAMPLE.parent / "output" / "sample"
    assert config.k_values == [1, 5, 10]


def test_problems_are_all_accepted(problems: IngestedProblems) -> None:
    frame = problems.problems.collect()
    assert problems.quarantine.is_empty()
    assert frame.height == problems.rows == 40
    assert frame.group_by("suite").len().sort("suite").rows() == [("python", 20), ("terraform", 20)]
    assert frame["cluster"].n_unique() == 28
    assert frame["summary"].str.contains("\n").sum() == 1
    assert frame["only_tier"].null_count() == frame.height, "every problem is of all tiers"
    assert frame.drop("only_tier").null_count().sum_horizontal().item() == 0


@pytest.mark.parametrize("model", REFUSALS)
def test_only_the_deliberate_rows_are_refused(fixes: dict[str, IngestedAttempts], model: str) -> None:
    ingested = fixes[model]
    assert Counter(ingested.quarantine["kind"]) == REFUSALS[model]
    assert ingested.quarantine.null_count().sum_horizontal().item() == 0
    assert ingested.rows == ingested.accepted + sum(REFUSALS[model].values())
    assert ingested.quarantine.height / ingested.rows < 0.01


def test_every_problem_has_its_attempts_less_the_refused(attempts: pl.DataFrame) -> None:
    counts = attempts.group_by("model", "tier", "oid").len()
    assert counts.height == 3 * 2 * 40
    assert Counter(counts["len"]) == {20: 234, 19: 6}


def test_what_passed_compiled_and_failed_no_test(attempts: pl.DataFrame) -> None:
    clean = pl.col("compiled") & (pl.col("tests_failed") == 0) & (pl.col("tests_passed") > 0)
    assert breaches(attempts, pl.col("passed") == clean) == []
    assert breaches(attempts, pl.col("passed") == (pl.col("classification") == "pass")) == []
    untested = (pl.col("tests_passed") == 0) & (pl.col("tests_failed") == 0)
    assert breaches(attempts, pl.col("compiled") | untested) == []
    assert breaches(attempts, pl.col("compiled") == pl.col("lint_warnings").is_not_null()) == []
    assert breaches(attempts, pl.col("weighted_score").is_between(0, 1)) == []
