"""Small results on disk, table by table: columns that a test does not care about have a value of their type."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.publish.reported_run import ReportedRun
from touchstone.storage.files import file_key
from touchstone.tables import TABLES, Table
from touchstone.tables.checks import CHECKS

Row = dict[str, Any]
_REQUIRED = {pl.String: "x", pl.Int64: 0, pl.Float64: 0.0, pl.Boolean: False}


def write_results(root: Path, checks: dict[str, Row] | None = None, **tables: list[Row]) -> Path:
    """A results folder with these rows. `checks` has results by the full name of the check."""
    for name, rows in tables.items():
        table = TABLES[name]
        frame = pl.DataFrame([_whole(table, row) for row in rows], schema=table.dtypes)
        # One file per model, as a run writes them.
        parts = frame.partition_by("model", as_dict=True) if table.per_model else {(name,): frame}
        folder = root / "tables" / name
        folder.mkdir(parents=True)
        for (part,), each in parts.items():
            each.write_parquet(folder / f"{file_key(str(part))}.parquet")
    for name, result in (checks or {}).items():
        assert name in {check.full_name for check in CHECKS}
        file = root / "checks" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"made_from": "", "models": {}, "result": result}))
    (root / "tables").mkdir(parents=True, exist_ok=True)
    return root


def reported(root: Path, **tables: list[Row]) -> ReportedRun:
    """The same, opened."""
    return ReportedRun(write_results(root, **tables))


def _whole(table: Table, row: Row) -> Row:
    columns = table.fields
    assert set(row) <= set(table.dtypes), set(row) - set(table.dtypes)
    return {
        name: row.get(name, None if columns[name].nullable else _REQUIRED[type(dtype)])
        for name, dtype in ((name, _instance(dtype)) for name, dtype in table.dtypes.items())
    }


def _instance(dtype: Any) -> Any:
    return dtype() if isinstance(dtype, type) else dtype


def figure(model: str, rate: float | None, tier: str = "T0", k: int = 1, problems: int = 40, **more: Any) -> Row:
    """A row of pass_at_k with an interval."""
    ends = {} if rate is None else {"ci_low": max(rate - 0.1, 0.0), "ci_high": min(rate + 0.1, 1.0)}
    counts = {"problems": problems, "attempted": problems, "eligible": problems, "ci_units": problems}
    row = {"model": model, "tier": tier, "k": k, "pass_at_k": rate, "ci_method": "wilson", **ends, **counts}
    return row | more


def pair(a: str, b: str, verdict: str, tier: str = "T0", pairs: int = 3, **more: Any) -> Row:
    """A row of model_comparison: the verdict on b."""
    sides = {"kind": "models", "model_a": a, "tier_a": tier, "model_b": b, "tier_b": tier}
    row = {**sides, "verdict": verdict, "pairs": pairs, "correction": "holm", "ci_method": "t", "problems": 40}
    return row | {"difference": 0.1, "p_adjusted": 0.01, "minimum_detectable_effect": 0.08} | more


def outcome(model: str = "m", oid: str = "a", iteration: str = "1", passed: bool | None = True, **more: Any) -> Row:
    """A row of outcomes."""
    status = {True: "passed", False: "failed", None: "sandbox_error"}[passed]
    row = {"model": model, "tier": "T0", "oid": oid, "iteration_id": iteration, "status": status, "passed": passed}
    return row | {"validator": "pytest", "fidelity": "full"} | more
