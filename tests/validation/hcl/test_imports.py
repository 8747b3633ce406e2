"""The worker in the sandbox starts fast: it imports no heavy module."""

import subprocess
import sys


def test_nothing_heavy_is_imported() -> None:
    heavy = "{'polars', 'duckdb', 'pyarrow', 'dagster', 'numpy', 'pydantic', 'subprocess'}"
    script = f"import sys, touchstone.validation.hcl; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
