"""The public Python API: what `import touchstone` offers, and that it costs nothing until it is used."""

import doctest
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import touchstone
from tests.conftest import PROJECT, WITH_WAREHOUSE, Folder, nightly_but
from touchstone.errors import TouchstoneError
from touchstone.tables import TABLES

HEAVY = ("polars", "numpy", "pydantic", "dagster", "duckdb", "rich", "typer", "dataframely", "scipy")


def test_importing_it_imports_nothing_heavy() -> None:
    program = f"import sys, touchstone; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.nightly
def test_neither_a_function_nor_a_comparison_imports_dagster(evaluated: Folder) -> None:
    program = (
        "import sys, touchstone; from touchstone.cli.main import app; config, data = sys.argv[1:]\n"
        "touchstone.evaluate(config); touchstone.load_results(data)['tiers']; touchstone.compare(data, data)\n"
        "app(['compare', '--baseline', data, '--current', data], standalone_mode=False)\n"
        "print('dagster imported:', 'dagster' in sys.modules)"
    )
    command = [sys.executable, "-c", program, evaluated.config, evaluated.output]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "dagster imported: False"


def test_dir_shows_the_api() -> None:
    assert dir(touchstone) == sorted(touchstone.__all__)


@pytest.mark.parametrize("kind", nightly_but(["dict"], ["text", "folder", "files", "dict"]))
def test_evaluate_takes_what_people_have(folder: Folder, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.root)
    sources: dict[str, object] = {
        "text": str(folder.config),
        "folder": folder.root / "fixes",
        "files": [folder.root / "fixes" / "m_fixes.csv", "fixes/problems.csv"],
        "dict": {"fixes_dir": Path("fixes"), "output_dir": "elsewhere", "k_values": [1], "publish": WITH_WAREHOUSE},
    }
    results = touchstone.evaluate(sources[kind])  # type: ignore[arg-type]
    places = {"text": "out", "dict": "elsewhere"}
    assert results.folder == folder.root / places.get(kind, "fixes/touchstone-results")
    assert results["pass_at_k"].filter(k=1)["pass_at_k"].item() == 0.25
    first, second, last = repr(results).splitlines()
    assert first.split()[:3] == ["model", "tier", "pass@1"] and second.split()[:3] == ["m", "T0", "0.250"]
    assert last == f"in {results.folder}: {len(results)} tables"


def test_evaluate_says_what_is_wrong_with_a_dict(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="configuration: unknown key 'fixes'"):
        touchstone.evaluate({"fixes": "x", "fixes_dir": str(tmp_path), "output_dir": str(tmp_path / "o")})


def test_an_evaluation_against_itself_says_so(finished: Folder) -> None:
    comparison = touchstone.compare(finished.output, finished.output)
    assert "every attempt ended as in the baseline" in str(comparison)


def test_results_are_a_mapping_of_tables(finished: Folder) -> None:
    results = touchstone.load_results(str(finished.output))
    assert "tiers" in results and "nothing" not in results
    assert len(results) == len(list(results)) == len(TABLES)
    assert isinstance(results.scan("attempts"), pl.LazyFrame)
    with pytest.raises(KeyError):
        results["nothing"]


@pytest.mark.nightly
def test_a_gate_that_stops_the_run_raises(evaluated: Folder) -> None:
    folder = evaluated
    from touchstone.storage.snapshots import pin

    pin(folder.output, "latest", "baseline")
    folder.configure(comparison={"on_regression": "fail"})
    folder.fixes("m", "oid,iteration_id,plausible_fix\na,1,false\na,2,false\nb,1,false\n")
    with pytest.raises(TouchstoneError, match=r"nothing was published: regressions\.holds_against_baseline"):
        touchstone.evaluate(folder.config)


def test_wrong_input_raises_the_line_that_the_command_prints(tmp_path: Path, folder: Folder) -> None:
    with pytest.raises(TouchstoneError, match="no such"):
        touchstone.evaluate(tmp_path / "missing.json")
    with pytest.raises(TouchstoneError, match="only nobody: no such model; there are: m"):
        touchstone.evaluate(folder.config, only=["nobody"])


def test_compare_takes_the_settings_of_a_configuration(evaluated: Folder) -> None:
    folder = evaluated
    folder.configure(comparison={"threshold": 0.25, "score": "pass_rate"})
    report = touchstone.compare(folder.output, folder.output, config=folder.config).report
    assert (report.threshold, report.score) == (0.25, "pass_rate")


def test_the_package_compare_stays_a_package() -> None:
    from touchstone.comparison import pairs

    assert touchstone.comparison.pairs is pairs  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        touchstone.nothing  # noqa: B018


@pytest.mark.services
def test_the_examples_in_the_documentation(
    sample_results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    names = {"output": shutil.copytree(sample_results, tmp_path / "out", symlinks=True)}
    failed, tried = doctest.testfile(str(PROJECT / "docs" / "python.md"), module_relative=False, extraglobs=names)
    assert tried > 5 and failed == 0
