"""The declarations of tables and checks, and what is derived from them."""

import inspect
import json
import subprocess
import sys

import pytest

from tests.conftest import Folder
from touchstone.config import load_config
from touchstone.evaluation import Evaluation, run
from touchstone.ingest.adapters import adapters
from touchstone.storage import code_version
from touchstone.storage.code_version import modules_behind, table_code_version
from touchstone.storage.store import Store
from touchstone.tables import TABLES
from touchstone.tables.checks import CHECKS


def test_tables_come_after_what_they_read() -> None:
    names = list(TABLES)
    for table in TABLES.values():
        assert all(names.index(read) < names.index(table.name) for read in table.reads), table.name


def test_a_function_takes_the_tables_that_it_reads_and_the_settings_that_matter(folder: Folder) -> None:
    evaluation = Evaluation(load_config(folder.config))
    assert evaluation.functions.keys() == {table.name for table in TABLES.values() if not table.step}
    for name, function in evaluation.functions.items():
        table = TABLES[name]
        assert function.__module__ == table.code[0]
        inspect.signature(function).bind(*table.reads, *evaluation._settings(table))
    assert evaluation.check_functions.keys() == {check.name for check in CHECKS}
    for check in CHECKS:
        inspect.signature(evaluation.check_functions[check.name]).bind(*check.reads, *evaluation._settings(check))


def test_a_table_reads_nothing_that_it_does_not_declare(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a table's function, step or check scans in the store while it runs is in its declaration."""
    scanned: list[str] = []
    for name in ("scan", "scan_with_extras", "require_part"):
        original = getattr(Store, name)
        monkeypatch.setattr(
            Store, name, lambda store, table, *rest, _do=original: (scanned.append(table), _do(store, table, *rest))[1]
        )
    evaluation = Evaluation(load_config(folder.config))
    for table in TABLES.values():
        scanned.clear()
        evaluation.materialize(table.name)
        undeclared = set(scanned) - set(table.reads) - {table.name} - _ancestors(table.name)
        assert not undeclared, f"{table.name} reads {sorted(undeclared)}"
    for check in CHECKS:
        scanned.clear()
        evaluation.check(check)
        assert set(scanned) <= set(check.reads), check.name


def _ancestors(name: str) -> set[str]:
    """What a snapshot keeps: `history` freezes every table before it describes them."""
    return {table for table in TABLES if table != name} if name == "history" else set()


@pytest.mark.services
def test_every_module_that_takes_part_is_in_the_codes_version() -> None:
    """Whatever importing the table's function loads. One process forks for each table: the libraries load once."""
    program = (
        "import importlib, json, os, sys, duckdb, numpy, polars, pyarrow.parquet, pydantic\n"
        "for module in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"
        "        importlib.import_module(module)\n"
        "        print(json.dumps([name for name in sys.modules if name.startswith('touchstone.')]), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    tables = ["tiers", "model_comparison", "regressions", "history", "outcomes", "attempts"]
    command = [sys.executable, "-c", program, *(TABLES[table].code[0] for table in tables)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for table, loaded in zip(tables, map(json.loads, lines), strict=True):
        assert TABLES[table].code[0] in loaded
        assert set(loaded) <= modules_behind(table), table


def test_the_codes_version_follows_imports_inside_functions_and_packages_run_in_a_sandbox() -> None:
    assert "touchstone.comparison.gate" in modules_behind("baseline_verdicts")
    assert "touchstone.storage.history" in modules_behind("history")
    assert "touchstone.validation.sandbox.entrypoint" in modules_behind("outcomes")
    assert "touchstone.validation.stage" not in modules_behind("tiers")


def test_the_codes_version_follows_adapters_which_are_imported_by_name() -> None:
    loaded = {type(adapter).__module__ for adapter in adapters()}
    loaded |= {name for name in sys.modules if name.startswith("touchstone.ingest.adapters.")}
    for table in ("problems", "attempts", "sources", "quarantine", "reported_figures"):
        assert loaded <= modules_behind(table), table


def test_an_edit_changes_the_version_of_the_tables_behind_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: table_code_version(name) for name in TABLES}
    table_code_version.cache_clear()
    original = code_version._content
    edited = "touchstone.comparison.regressions"
    monkeypatch.setattr(code_version, "_content", lambda module: "edited" if module == edited else original(module))
    changed = {name for name in TABLES if table_code_version(name) != before[name]}
    table_code_version.cache_clear()
    of_snapshots = {"trends", "change_points"}
    against = {"baseline_verdicts", "sequential_verdicts", "comparability", "failure_changes", "gate_results"}
    assert changed == against | {"regressions", "regression_counts"} | of_snapshots


def test_a_setting_that_does_not_matter_makes_nothing_again(evaluated: Folder) -> None:
    folder = evaluated
    folder.configure(comparison={"on_worse": "fail"})
    outcome = run(Evaluation(load_config(folder.config)))
    made = {path.parent.name for path in folder.output.glob(".store/draft/tables/*/*.parquet")}
    assert made == set(TABLES)
    # The settings themselves, and the snapshot of a run with other settings.
    assert outcome.made <= 4
