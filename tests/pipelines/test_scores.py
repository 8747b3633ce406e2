"""Scores of a whole run: classes, missing judge's scores and costs, from CSV files to the tables."""

from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import WITH_WAREHOUSE, Folder, query_here
from tests.pipelines.test_run import evaluate
from touchstone.evaluation import RunOutcome


def table(folder: Folder, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder.output / "tables" / name / "*.parquet")


def warnings(outcome: RunOutcome) -> dict[str, str]:
    return {check.name.split(".")[-1]: check.message for check in outcome.checks if not check.passed}


def evaluation(tmp_path: Path, fixes: str, **config: object) -> tuple[Folder, RunOutcome]:
    folder = Folder(tmp_path)
    oids = sorted({line.split(",")[0] for line in fixes.splitlines()[1:]})
    folder.problems("oid,filename\n" + "".join(f"{oid},{oid}.py\n" for oid in oids))
    folder.fixes("m", fixes)
    folder.configure(k_values=[1], **config)
    return folder, evaluate(folder)


def test_70_passes_among_100_cases_score_070_whatever_the_failures_are_called(tmp_path: Path) -> None:
    classes = ["pass"] * 70 + ["fail"] * 26 + ["hallucination"] * 4
    rows = [f"c{place:03},1,{name}\n" for place, name in enumerate(classes)]
    folder, outcome = evaluation(tmp_path, "oid,iteration_id,classification\n" + "".join(rows))
    assert outcome.exit_code == 0
    suite = table(folder, "suite_scores").row(0, named=True)
    assert (suite["score"], suite["class_other"], suite["other_classes"]) == (0.7, 4, "hallucination 4")
    assert table(folder, "quarantine").is_empty()
    assert table(folder, "pass_at_k")["pass_at_k"].item() == 0.7
    assert "4 of 100 attempts have an unknown class and score 0: hallucination 4" in warnings(outcome)["known_classes"]


@pytest.mark.nightly
def test_sql_macros_use_the_settings_of_the_run(tmp_path: Path) -> None:
    scoring = {
        "composite": {"pass_rate": 3, "impl_rate": 1, "missing": "zero"},
        "code": {"compilation": 0.1, "tests": 0.8, "lint": 0.1, "per_warning": 0.5},
        "grades": {"good": 0.8, "fair": 0.3},
        "failing_grade": "bad",
    }
    header = "oid,iteration_id,passed,compiled,tests_passed,tests_failed,lint_warnings,weighted_score\n"
    rows = "a,1,1,1,4,0,1,0.8\na,2,0,1,1,3,0,\nb,1,1,1,2,0,0,\nb,2,0,0,0,0,0,0.1\n"
    folder, _ = evaluation(tmp_path, header + rows, scoring=scoring, publish=WITH_WAREHOUSE)
    query = """
        SELECT count(*) FILTER (
            s.composite_score IS DISTINCT FROM composite_score(s.pass_rate, s.impl_rate)
            OR s.code_score IS DISTINCT FROM code_score(o.compiled, o.tests_passed, o.tests_failed, o.lint_warnings)
            OR s.grade IS DISTINCT FROM letter_grade(s.composite_score)
        ) AS wrong, count(DISTINCT grade) AS grades, count(s.composite_score) AS scored
        FROM attempt_scores AS s JOIN outcomes AS o USING (model, tier, oid, iteration_id)
    """
    asked = query_here(folder.output / "tables", query).to_pylist()
    assert asked == [{"wrong": 0, "grades": 3, "scored": 4}]
    with duckdb.connect(str(folder.output / "warehouse.duckdb"), read_only=True) as warehouse:
        assert warehouse.sql(query).fetchall() == [(0, 3, 4)]
        told = dict(warehouse.sql("SELECT key, value FROM settings").fetchall())
    assert told["scoring.composite.missing"] == '"zero"'
