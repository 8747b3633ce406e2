"""Validation as part of a run: fixes go in, outcomes come out, and the gates stop what cannot be trusted."""

import json
import os
import signal
import sqlite3
import time
from multiprocessing import resource_tracker
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder, copy_of, made_once
from tests.ingest.adapters.test_swe_agent import trajectory, write
from tests.pipelines.test_retrying import evaluation_of, table
from tests.pipelines.test_run import evaluate, start_without_dagster, summary
from tests.processes import descendants, wait_until_gone
from tests.validation.test_outcomes import STATIC
from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.sandbox import runner
from touchstone.validation.session import ValidationSession

GOOD = "def add(a, b):\n    return a + b\n"
ALSO_GOOD = "def add(a, b):\n    return b + a\n"
WRONG = "def add(a, b):\n    return a * b\n"
BROKEN = "def add(a, b)\n    return a + b\n"
TESTS = """\
from calc import add


def test_small():
    assert add(2, 3) == 5


def test_zero():
    assert add(0, 0) == 0
"""
COLUMNS = ("oid", "filename", "working_directory", "reference_fix")


def make_repairs(root: Path) -> Folder:
    folder = Folder(root)
    clone = root / "clones" / "calc"
    clone.mkdir(parents=True)
    (clone / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (clone / "test_calc.py").write_text(TESTS)
    folder.problems(table(COLUMNS, ("p", "calc.py", "calc", GOOD)))
    fixes = [GOOD, ALSO_GOOD, WRONG, BROKEN, ""]
    lines = [("p", number, fix) for number, fix in enumerate(fixes, start=1)]
    folder.fixes("m", table(("oid", "iteration_id", "fixed_code"), *lines))
    folder.configure(clones_dir="clones", k_values=[1])
    return folder


@pytest.fixture
def repairs(tmp_path: Path) -> Folder:
    """One broken function, and a model that tries five times: right, right otherwise, wrong, not Python, nothing."""
    return make_repairs(tmp_path)


@pytest.fixture(scope="module")
def finished_repairs(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The same after a run: to be read only."""

    def make(root: Path) -> None:
        folder = make_repairs(root)
        clone = folder.root / "clones" / "calc"
        before = contents(clone)
        resource_tracker.ensure_running()  # Python's own helper, which stays.
        mine = set(descendants(os.getpid()))
        assert evaluate(folder).exit_code == 0
        assert contents(clone) == before, "the original is never written"
        wait_until_gone(sorted(set(descendants(os.getpid())) - mine))

    return Folder(made_once(tmp_path_factory, "repairs", make))


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.iterdir()}


@pytest.fixture
def validated(finished_repairs: Folder, tmp_path: Path) -> Folder:
    """A copy of it, to change."""
    return copy_of(finished_repairs, tmp_path / "validated")


def outcomes(folder: Folder) -> pl.DataFrame:
    return pl.read_parquet(folder.output / "tables" / "outcomes" / "*.parquet").sort("model", "oid", "iteration_id")


def validate(folder: Folder) -> pl.DataFrame:
    """The outcomes of a run that goes no further, which is a third of the work."""
    with evaluation_of(folder) as evaluation:
        return evaluation.store.scan("outcomes").collect().sort("model", "oid", "iteration_id")


def verdicts(outcomes: pl.DataFrame) -> dict[str, str]:
    return dict(outcomes.select("iteration_id", "status").iter_rows())


def test_fixes_are_applied_validated_and_counted(finished_repairs: Folder) -> None:
    repairs = finished_repairs
    assert verdicts(outcomes(repairs)) == {"1": "passed", "2": "passed", "3": "failed", "4": "failed", "5": "failed"}
    assert summary(repairs)["m"]["pass@1"] == 0.4
    table = outcomes(repairs)
    assert table["applied"].to_list() == [True, True, True, True, False]
    assert table["compiled"].to_list() == [True, True, True, False, False]
    assert table["fixed"].to_list() == [True, True, False, False, False]
    assert table["tests_passed"].to_list() == [2, 2, 1, None, None]
    assert table["introduced_module"].to_list() == [0, 0, 0, 1, None]
    assert set(table["validator"]) == {"python"} and set(table["fidelity"]) == {"full"}
    assert set(table["sandbox"]) == {"bubblewrap"} and set(table["passed"]) == {True, False}
    assert "SyntaxError" in table["diagnostics"][3] and table["diagnostics"][4] == "the fix is empty"
    baseline = pl.read_parquet(repairs.output / "tables" / "baselines" / "*.parquet").row(0, named=True)
    assert baseline["baseline_status"] == "failed" and baseline["baseline_errors"] == 1
    assert baseline["fails_as_recorded"] and baseline["reference_status"] == "passed"


@pytest.mark.services
def test_after_a_change_of_a_clone_everything_is_validated_again(validated: Folder) -> None:
    (validated.root / "clones" / "calc" / "test_calc.py").write_text(
        TESTS + "\n\ndef test_more():\n    assert add(1, 1) == 2\n"
    )
    assert validate(validated)["tests_passed"].to_list() == [3, 3, 1, None, None]


@pytest.mark.services
def test_another_model_with_the_same_fixes_is_served_from_the_cache(validated: Folder) -> None:
    header = ("oid", "iteration_id", "fixed_code")
    validated.fixes(
        "n", table(header, ("p", 1, f"```python\n{GOOD}```"), ("p", 2, WRONG), ("p", 3, "def add(): pass\n"))
    )
    mine = validate(validated).filter(pl.col("model") == "n")
    assert mine["status"].to_list() == ["passed", "failed", "failed"]
    assert mine["cached"].to_list() == [True, True, False]


def test_what_passed_means_is_configured(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    clone = tmp_path / "clones" / "net"
    clone.mkdir(parents=True)
    (clone / "main.tf").write_text('output "cidr" {\n  value = var.cidr\n}\n\noutput "name" {\n  value = var.name\n}\n')
    (clone / "variables.tf").write_text('variable "name" {}\n')
    header = ("oid", "filename", "working_directory", "line_start", "line_end", "summary")
    folder.problems(table(header, ("p", "main.tf", "net", 1, 3, "Reference to undeclared input variable")))
    rest = '\noutput "name" {\n  value = var.name\n}\n'
    fixes = {
        "1": 'output "cidr" {\n  value = "10.0.0.0/8"\n}\n' + rest,
        "2": 'output "cidr" {\n  value = local.cidr\n}\n' + rest,
        "3": 'output "cidr" {\n  value = "10.0.0.0/8"\n}\n' + rest.replace("var.name", "local.name"),
        "4": 'output "cidr" {\n  value = var.cidr\n}\n# nothing\n' + rest,
    }
    folder.fixes("m", table(("oid", "iteration_id", "fixed_file"), *(("p", *fix) for fix in fixes.items())))
    expected = {
        "plausible": {"1"},
        "clean": {"1"},
        "fixed": {"1", "2", "3"},
        "strict_block": {"1", "3"},
        "strict_module": {"1"},
    }
    for success in ("plausible", "strict_block"):
        folder.configure(clones_dir="clones", k_values=[1], validation={"success": success, **STATIC})
        found = validate(folder)
        assert {name for name, status in verdicts(found).items() if status == "passed"} == expected[success]
    by_columns = {
        "plausible": pl.col("fixed") & (pl.col("introduced_errors") == 0) & (pl.col("block_errors") == 0),
        "clean": pl.col("fixed") & (pl.col("introduced_errors") == 0) & (pl.col("module_errors") == 0),
        "fixed": pl.col("fixed"),
        "strict_block": pl.col("fixed") & (pl.col("introduced_block") == 0) & (pl.col("block_errors") == 0),
        "strict_module": pl.col("fixed") & (pl.col("introduced_module") == 0) & (pl.col("block_errors") == 0),
    }
    for success, passed in by_columns.items():
        assert set(found.filter(passed)["iteration_id"]) == expected[success]


def test_a_fix_that_leaves_another_error_in_its_block_has_not_passed(tmp_path: Path) -> None:
    """Two errors in one resource: the named one is gone, "Missing required argument" is still there."""
    folder = Folder(tmp_path)
    clone = tmp_path / "clones" / "site"
    clone.mkdir(parents=True)
    (clone / "main.tf").write_text('resource "store_bucket" "site" {\n  tag = "x"\n}\n')
    block = {"attributes": {"name": {"type": "string", "required": True}, "tags": {"type": "string", "optional": True}}}
    schema = {
        "provider_schemas": {"example/store": {"resource_schemas": {"store_bucket": {"version": 0, "block": block}}}}
    }
    header = ("oid", "filename", "working_directory", "line_start", "line_end", "summary", "resource_schema")
    folder.problems(table(header, ("p", "main.tf", "site", 1, 3, "Unsupported argument", json.dumps(schema))))
    fixes = {
        "half": 'resource "store_bucket" "site" {\n  tags = "x"\n}\n',
        "whole": 'resource "store_bucket" "site" {\n  name = "site"\n  tags = "x"\n}\n',
    }
    folder.fixes("m", table(("oid", "iteration_id", "fixed_code"), *(("p", *fix) for fix in fixes.items())))
    folder.configure(clones_dir="clones", k_values=[1], validation=STATIC)
    found = validate(folder)
    assert verdicts(found) == {"half": "failed", "whole": "passed"}
    left = found.filter(pl.col("iteration_id") == "half")
    assert "left in the block: error: Missing required argument" in left["diagnostics"].item()
    assert left.select("fixed", "introduced_errors", "block_errors", "module_errors").row(0) == (True, 0, 1, 1)


@pytest.mark.nightly
def test_without_a_sandbox_verdicts_are_the_same_and_say_so(repairs: Folder) -> None:
    repairs.configure(clones_dir="clones", k_values=[1], validation={"unsandboxed": True})
    found = validate(repairs)
    assert verdicts(found) == {"1": "passed", "2": "passed", "3": "failed", "4": "failed", "5": "failed"}
    assert set(found["sandbox"]) == {"none"}


@pytest.mark.nightly
def test_without_bubblewrap_landlock_serves(repairs: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = validate(repairs)
    assert verdicts(found) == {"1": "passed", "2": "passed", "3": "failed", "4": "failed", "5": "failed"}
    assert set(found["sandbox"]) == {"landlock"}


def test_without_any_sandbox_validation_is_refused_and_nothing_is_counted(
    repairs: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BACKENDS", ())
    outcome = evaluate(repairs)
    assert outcome.exit_code == 2
    (failure,) = outcome.failures
    assert "no sandbox works here" in failure and "apt-get install bubblewrap" in failure and "\n" not in failure
    assert not (repairs.output / "summary_pass_at_k.csv").exists()


def test_recorded_outcomes_need_no_sandbox(repairs: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKENDS", ())
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code", "passed"), ("p", 1, WRONG, "true")))
    assert validate(repairs)["validator"].to_list() == ["recorded"]


@pytest.mark.nightly
def test_always_validates_what_has_an_outcome_too(repairs: Folder) -> None:
    repairs.fixes("m", table(("oid", "iteration_id", "fixed_code", "passed"), ("p", 1, WRONG, "true")))
    repairs.configure(clones_dir="clones", k_values=[1], validation={"mode": "always"})
    assert verdicts(validate(repairs)) == {"1": "failed"}


# The gates


def many_fixes(folder: Folder, count: int, sleep: float = 0.0) -> None:
    fixes = [
        f"import time\n\n\ndef add(a, b):\n    time.sleep({sleep})\n    return a + b + {n % 2}\n# {n}\n"
        for n in range(count)
    ]
    lines = [("p", number, fix) for number, fix in enumerate(fixes)]
    folder.fixes("m", table(("oid", "iteration_id", "fixed_code"), *lines))


@pytest.mark.nightly
def test_verdicts_depend_neither_on_workers_nor_on_order_nor_on_the_cache(repairs: Folder, tmp_path: Path) -> None:
    many_fixes(repairs, 4)
    config = load_config(repairs.config)
    evaluation = Evaluation(config)
    evaluation.materialize("problems")
    evaluation.materialize("attempts")
    attempts = evaluation.store.scan_with_extras("attempts", "m").collect().rows(named=True)
    subjects = evaluation.validation.targets(["p"])

    def judged(workers: int, cache: Path, backwards: bool) -> list[dict[str, object]]:
        settings = config.validation.model_copy(update={"workers": workers})
        with ValidationSession(settings, cache, tmp_path / "scratch") as validation:
            found = outcome_rows(attempts[::-1] if backwards else attempts, subjects, validation)
        for row in found:
            del row["cached"], row["duration_seconds"]
        return sorted(found, key=lambda row: str(row["iteration_id"]))

    one = judged(1, tmp_path / "one", backwards=False)
    assert one == judged(3, tmp_path / "three", backwards=True)
    assert one == judged(2, tmp_path / "one", backwards=True)
    assert [row["status"] for row in one].count("passed") == 2


@pytest.mark.nightly
def test_a_killed_run_goes_on_where_it_stopped_and_leaves_nothing_running(repairs: Folder, tmp_path: Path) -> None:
    many_fixes(repairs, 12, sleep=0.05)
    run = start_without_dagster(repairs)
    cache = repairs.output / "cache" / "reports.sqlite"
    wait_for_reports(cache, 4)
    family = list(descendants(run.pid))
    assert len(family) > 4, "workers and their sandboxes were at work"
    run.send_signal(signal.SIGKILL)
    run.wait()
    wait_until_gone(family)
    kept = reports(cache)
    assert 4 <= kept < 14
    table = validate(repairs)
    assert table.height == 12 and reports(cache) == 14
    passed = table.filter(pl.col("iteration_id").cast(pl.Int64) % 2 == 0)
    assert set(passed["status"]) == {"passed"} and passed.height == 6
    assert set(table.filter(pl.col("iteration_id").cast(pl.Int64) % 2 == 1)["status"]) == {"failed"}
    assert table["cached"].sum() == kept - 2, "what was validated before the kill was not validated again"


def reports(cache: Path) -> int:
    with sqlite3.connect(f"file:{cache}?mode=ro", uri=True) as database:
        return int(database.execute("SELECT count(*) FROM reports").fetchone()[0])


def wait_for_reports(cache: Path, wanted: int) -> int:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            if (found := reports(cache)) >= wanted:
                return found
        except sqlite3.OperationalError:
            pass
        time.sleep(0.02)
    raise AssertionError("no reports came")


@pytest.mark.services
def test_validate_shows_one_fix_in_full(repairs: Folder, tmp_path: Path, touchstone: Command) -> None:
    fix = tmp_path / "fix.py"
    fix.write_text(GOOD)
    done = touchstone("validate", "--config", repairs.config, "--problem", "p", "--fix", fix)
    assert done.returncode == 0, done.stderr
    for words in ("-    return a - b", "+    return a + b", "test failed: test_small", "2 of 2 tests passed", "passed"):
        assert words in done.stdout
    fix.write_text(GOOD + "\n# " + "a long comment " * 10 + "and its end\n")
    asked = ("validate", "--config", repairs.config, "--problem", "p", "--fix", fix)
    seen = touchstone(*asked, columns=60, terminal=True).stdout
    assert max(map(len, seen.splitlines())) <= 60 and "and its end" in " ".join(seen.split())
    fix.write_text(WRONG)
    done = touchstone("validate", "--config", repairs.config, "--problem", "p", "--fix", fix)
    assert done.returncode == 1 and "still there: error: test failed: test_small" in done.stdout
    done = touchstone("validate", "--config", repairs.config, "--problem", "nobody", "--fix", fix)
    assert done.returncode == 2 and done.stderr.strip().endswith("there is no problem 'nobody'")
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_cache_can_be_looked_at_and_pruned(
    validated: Folder, touchstone: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = touchstone("cache", "stats", "--data", tmp_path)
    assert done.returncode == 2 and "there is no validation cache" in done.stderr
    done = touchstone("cache", "stats", "--data", validated.output)
    assert done.returncode == 0 and "5 reports" in done.stdout
    monkeypatch.chdir(validated.root)
    assert "5 reports" in touchstone("cache", "stats").stdout
    done = touchstone("cache", "prune", "--data", validated.output, "--unused-for-days", "1")
    assert done.stdout.strip() == "0 reports removed, 5 kept"
    done = touchstone("cache", "prune", "--data", validated.output, "--unused-for-days", "0")
    assert done.stdout.strip() == "5 reports removed, 0 kept; a run that needs one validates again"


@pytest.mark.services
def test_an_attempt_that_the_provider_ended_has_no_fix_to_judge(repairs: Folder) -> None:
    repairs.problems(table(COLUMNS, *((oid, "calc.py", "calc", GOOD) for oid in ("p", "q"))))
    for oid, status in (("p", "exit_api"), ("q", "exit_cost")):
        write(repairs.root / "fixes" / "run" / oid / f"{oid}.traj", trajectory(status, None))
    mine = validate(repairs).filter(pl.col("model") == "acme/fixer")
    assert mine.select("oid", "passed").rows() == [("p", None), ("q", False)]
