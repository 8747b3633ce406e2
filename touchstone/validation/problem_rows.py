"""The rows of the problems file as validation reads them, for commands that need no run."""

import tempfile
from pathlib import Path
from typing import Any

from touchstone.config import EvaluationConfig, find_problems_csv
from touchstone.ingest.input_paths import fetch_inputs
from touchstone.ingest.problems import read_problems
from touchstone.validation.targets import COLUMNS


def problem_rows(config: EvaluationConfig) -> dict[str, dict[str, Any]]:
    """The columns that control validation, by oid."""
    fetch_inputs(config)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as scratch:
        path = find_problems_csv(config)
        problems = read_problems(path, Path(scratch) / "problems.parquet", config.problem_key, config.columns).problems
        present = [name for name in COLUMNS if name in problems.collect_schema()]
        rows = problems.select("oid", *present).sort("oid").collect()
        return {row["oid"]: row for row in rows.iter_rows(named=True)}
