"""Where a count is 1, the noun is in the singular and the verb agrees."""

import re
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder
from touchstone.checks import CheckResult
from touchstone.cli.results import explain_nulls
from touchstone.comparison.gate import counts_by_model, judge_changes
from touchstone.config import CheckLimits, ComparisonConfig
from touchstone.ingest import checks as ingest_checks
from touchstone.metrics import checks as metric_checks
from touchstone.validation import checks as validation_checks

LIMITS = CheckLimits()
WRONG = re.compile(
    r"\b1 (of 1 )?(more )?(rows|attempts|problems|fixes|files|models and|tiers|cases|checks|parts|pairs|reports|suites|"
    r"figures|keys|tests|clusters|snapshots|regressions|improvements)\b"
    r"|\b1 (of \d+ )?\w+ (have|are|were|name|stand|count|mix|lie|contradict)\b"
)


def outcomes(**cells: object) -> pl.LazyFrame:
    usual: dict[str, object] = {
        "model": "m",
        "tier": "T0",
        "oid": "a",
        "iteration_id": "1",
        "passed": True,
        "fidelity": "full",
        "applied": True,
        "compiled": True,
        "sandbox": "s",
        "status": "passed",
        "diagnostics": None,
        "consistent": True,
    }
    schema = {"passed": pl.Boolean, "applied": pl.Boolean, "compiled": pl.Boolean, "diagnostics": pl.String}
    given = pl.LazyFrame([usual | cells], schema_overrides=schema)
    return given.with_columns(measured="passed", ruling=pl.lit(None, pl.String))


SOURCES = pl.DataFrame({"model": ["m"], "source_file": "f", "rows": 1, "quarantined": 1})
QUARANTINE = pl.DataFrame({"kind": ["unknown_oid"], "source_file": "f", "line": 2, "reason": "r"})
UNDECIDED = outcomes(passed=None, status="no_report", diagnostics="gone")
BASELINES = pl.LazyFrame({"oid": ["a"], "reference_status": "failed", "fails_as_recorded": False, "diagnostics": "d"})
COUNTING = pl.LazyFrame({"oid": ["a"], "excluded": False})
RULING = {"line": 1, "model": "m", "tier": "T0", "oid": "a", "iteration_id": "1", "applied": False, "why_not": "w"}
PASS_AT_K = pl.DataFrame(
    {
        "model": ["m"],
        "tier": "T0",
        "k": 5,
        "attempted": 1,
        "problems": 2,
        "eligible": 0,
        "pass_at_k": 2.0,
        "ci_low": 0.0,
        "ci_high": 1.0,
        "pass_at_k_all": 0.0,
        "pass_hat_k": 0.0,
    }
)
TWICE = pl.concat([outcomes(fidelity="full"), outcomes(fidelity="static", iteration_id="2")])

FINDINGS = {
    "quarantine": lambda: ingest_checks.quarantine_share(SOURCES, LIMITS),
    "unknown oids": lambda: ingest_checks.unknown_oids(SOURCES, QUARANTINE, LIMITS),
    "keys": lambda: ingest_checks.unique_keys(pl.concat([outcomes(), outcomes()])),
    "undecided": lambda: validation_checks.all_decided(UNDECIDED),
    "undecided share": lambda: validation_checks.undecided_share(UNDECIDED, LIMITS),
    "all decided": lambda: validation_checks.undecided_share(outcomes(), LIMITS),
    "references": lambda: validation_checks.reference_fixes_pass(BASELINES, COUNTING, LIMITS),
    "references pass": lambda: validation_checks.reference_fixes_pass(
        BASELINES.with_columns(reference_status=pl.lit("passed")), COUNTING, LIMITS
    ),
    "rulings": lambda: validation_checks.rulings_applied(pl.LazyFrame([RULING])),
    "rulings applied": lambda: validation_checks.rulings_applied(pl.LazyFrame([RULING | {"applied": True}])),
    "reports": lambda: validation_checks.reports_consistent(outcomes(consistent=False, diagnostics="d")),
    "funnel": lambda: validation_checks.funnel_is_monotone(outcomes(applied=False)),
    "fidelity": lambda: validation_checks.one_fidelity(TWICE),
    "coverage": lambda: metric_checks.coverage(PASS_AT_K, LIMITS),
    "bounds": lambda: metric_checks.within_bounds(PASS_AT_K),
    "suites": lambda: metric_checks.classes_add_up(pl.DataFrame({"cases": [2], "class_pass": [1]})),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_checks(name: str) -> None:
    found: CheckResult = FINDINGS[name]()
    assert re.search(r"\b1\b", found.message), found.message
    assert not WRONG.search(found.message), found.message


def test_notes_on_missing_figures() -> None:
    (line,) = explain_nulls(PASS_AT_K)
    assert "1 of 1 problem has fewer than 5" in line


def test_the_gate() -> None:
    verdict = {"tier": "T0", "verdict": "worse", "sentence": "is worse"}
    verdicts = pl.DataFrame([{"model": f"m{place}", **verdict} for place in range(4)])
    rows = {"model": ["m"] * 2, "tier": "T0", "oid": ["a", "b"], "kind": ["regression", "lost"]}
    cases = pl.DataFrame({**rows, "fallback": False, "chance_of_regression": 0.5})
    told = judge_changes(verdicts, cases, counts_by_model(cases), ComparisonConfig()).message
    assert "1 more model and tier is worse" in told and "1 case regressed" in told and "1 case lost" in told


@pytest.mark.nightly
def test_commands(folder: Folder, touchstone: Command, tmp_path: Path) -> None:
    folder.problems("oid,filename\na,a.tf\n")
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,true\na,1,true\n")
    folder.configure(k_values=[1, 5])
    said = [touchstone("run", "--config", folder.config, dagster=False)]
    data = ["--data", folder.output]
    said += [touchstone("sql", *data, "SELECT 1 AS x"), touchstone("snapshots", "list", *data)]
    said += [touchstone("snapshots", "prune", *data, "--keep", 1)]
    said += [touchstone("compare", "--baseline", folder.output, "--current", folder.output)]
    for done in said:
        text = " ".join((done.stdout + done.stderr).split())
        assert not WRONG.search(text), WRONG.search(text)
    assert "1 row\n" in said[1].stdout
