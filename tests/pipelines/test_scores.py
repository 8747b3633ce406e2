"""Scores of a whole run: classes, missing judge's scores and costs, from CSV files to the tables."""

from pathlib import Path

import polars as pl

from tests.conftest import Folder
from tests.pipelines.test_run import evaluate
from touchstone.run_outcome import RunOutcome


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


def test_suite_score_and_pass_at_k_agree_because_a_contradiction_is_refused(tmp_path: Path) -> None:
    rows = [
        f"c{place:02},1,{'true' if place < 20 else 'false'},{'pass' if place < 20 else 'fail'}\n" for place in range(39)
    ]
    fixes = "oid,iteration_id,passed,classification\n" + "".join(rows) + "c39,1,true,fail\n"
    folder, outcome = evaluation(tmp_path, fixes)
    assert outcome.exit_code == 0
    assert table(folder, "quarantine").select("line", "kind").rows() == [(41, "contradiction")]
    assert table(folder, "suite_scores")["score"].item() == table(folder, "pass_at_k")["pass_at_k"].item() == 20 / 39
