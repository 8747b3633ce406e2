"""The rivals of the benchmark of a whole run come to the figures of a run; if one did not, the benchmark would stop."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from tests.conftest import PROJECT
from touchstone.evaluation import Evaluation, run

BENCHMARKS = PROJECT / "benchmarks"


@pytest.fixture(scope="module")
def data() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module("whole_run_data")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: ModuleType) -> Path:
    """The inputs of a small shape, and the results of a run on them."""
    made = tmp_path_factory.mktemp("shape")
    data.make(made, 3, 12, 10)
    assert run(Evaluation.load(made / "input" / "evaluation_config.json", made / "results")).exit_code == 0
    return made


@pytest.fixture
def whole_run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("whole_run")


def script(name: str, *words: object) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_the_bare_script_makes_the_figures_of_a_run(folder: Path, data: ModuleType) -> None:
    script("bare_run.py", folder / "input", folder / "bare")
    said = data.check(folder / "results", folder / "bare")
    assert said == "equal to 1e-09: bare: 9 of 9 pass@k, 3 of 3 paired differences"


@pytest.mark.nightly
def test_the_bare_query_makes_the_tables_of_a_run(folder: Path, data: ModuleType) -> None:
    script("bare_run.py", folder / "input", folder / "tables_only", "--tables")
    for table in ("attempts", "outcomes", "attempt_scores"):
        theirs = pl.read_parquet(folder / "tables_only" / table / "*.parquet")
        ours = pl.read_parquet(folder / "results" / "tables" / table / "*.parquet")
        key = ["model", "oid", "iteration_id"]
        # Nothing is said in these inputs about the columns that the query does without, nor has anybody ruled.
        left_out = [name for name in ours.columns if name not in theirs.columns]
        assert all(ours[name].is_null().all() for name in left_out if name != "measured"), table
        ours = ours.drop(left_out)
        assert theirs.select(ours.columns).sort(key).equals(ours.sort(key)), table
    said = data.check(folder / "results", folder / "tables_only")
    assert said == "equal to 1e-09: tables_only: 9 of 9 pass@k"


@pytest.mark.nightly
def test_the_pandas_script_makes_the_figures_of_a_run(folder: Path, data: ModuleType) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed; `make setup` installs it")
    spent = json.loads(script("pandas_run.py", folder / "input", folder / "pandas", "--intervals", 1, "--pairs", 2))
    assert [(part["done"], part["all"]) for part in spent.values()] == [(1, 9), (2, 3)]
    said = data.check(folder / "results", folder / "pandas")
    assert said.endswith("9 of 9 pass@k, 2 of 3 paired differences, 2 p-values within Monte Carlo error")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("figures", "message"),
    [
        (pl.col("pass_at_k") + 1e-8, "9 of 9 found, 9 differ"),
        (pl.when(pl.col("k") > 1).then("pass_at_k"), "6 of 9 found, 0 differ"),
        (pl.when(pl.col("k") > 1).then("pass_at_k").otherwise(float("nan")), "9 of 9 found, 3 differ"),
    ],
    ids=["differs", "missing", "NaN"],
)
def test_another_figure_stops_the_benchmark(
    folder: Path, data: ModuleType, tmp_path: Path, figures: pl.Expr, message: str
) -> None:
    own = pl.read_parquet(folder / "results" / "tables" / "pass_at_k" / "pass_at_k.parquet")
    own.with_columns(pass_at_k=figures).write_parquet(tmp_path / "pass_at_k.parquet")
    with pytest.raises(SystemExit, match=message):
        data.check(folder / "results", tmp_path)


def test_what_the_pandas_script_left_out_is_extrapolated_and_said(whole_run: ModuleType) -> None:
    parts = {
        "intervals": {"wall": 2.0, "cpu": 1.0, "done": 5, "all": 5},
        "pairs": {"wall": 6.0, "cpu": 4.0, "done": 10, "all": 100},
    }
    found = whole_run.Measured(whole_run.SHAPES["small"])
    whole = whole_run.extrapolated(whole_run.Run(10.0, 7.0, 100.0, json.dumps(parts)), found)
    assert (whole.seconds, whole.cpu, whole.peak_mb) == (10 + 9 * 6, 7 + 9 * 4, 100)
    assert found.notes == {whole_run.PANDAS: "extrapolated from 10 of 100 pairs"}


def test_tables_can_be_pasted_into_markdown(whole_run: ModuleType) -> None:
    assert whole_run.ratios.as_markdown(["run", "s"], [["first", "1.0"]]) == "| run | s |\n|---|--:|\n| first | 1.0 |\n"
