"""Which runs can be skipped because nothing changed since the published one, and what `touchstone run` then shows."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.conftest import WITH_WAREHOUSE, Command, Folder, copy_of, nightly_but, small_folder
from tests.pipelines.test_run import HEADER, evaluate
from tests.pipelines.test_validation import make_repairs
from touchstone.config import load_config
from touchstone.evaluation import Evaluation, run
from touchstone.publish.up_to_date import PublishedRun, up_to_date
from touchstone.storage.code_version import package_code_version
from touchstone.storage.snapshots import list_snapshots, pin
from touchstone.tables.checks import CHECKS
from touchstone.validation.cache import ReportCache
from touchstone.validation.files.file_identity import content_identity


def published(folder: Folder) -> PublishedRun | None:
    return up_to_date(load_config(folder.config))


@pytest.fixture(scope="module")
def done_once(finished_pair: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = copy_of(finished_pair, tmp_path_factory.mktemp("up_to_date") / "copy")
    folder.configure(publish=WITH_WAREHOUSE)
    (folder.root / "fixes" / "notes.txt").write_text("not data")
    assert evaluate(folder).exit_code == 0
    return folder


@pytest.fixture
def done(done_once: Folder) -> Iterator[Folder]:
    """A finished run, which every test leaves as it found it."""
    assert published(done_once) is not None
    yield done_once
    assert published(done_once) is not None, "the test has put back what it changed"


@contextmanager
def moved_away(path: Path) -> Iterator[None]:
    elsewhere = path.with_name(f".{path.name}.away")
    path.rename(elsewhere)
    yield
    elsewhere.rename(path)


@contextmanager
def rewritten(path: Path, text: str) -> Iterator[None]:
    """Another file of the same name for a while; then the first one again, not a copy."""
    with moved_away(path):
        path.write_text(text)
        yield
        path.unlink()


def test_the_checks_of_the_run_are_kept_with_their_warnings(done: Folder) -> None:
    found = published(done)
    assert found is not None and len(found.checks) == len(CHECKS)
    warnings = ["outcomes.all_decided", "pass_at_k.coverage", "pass_at_k.enough_samples"]
    assert [check.name for check in found.checks if not check.passed] == warnings
    assert found.reason.startswith("up to date: no input, setting, code or tool changed since the run published at 20")


def test_files_with_the_same_content_are_the_same(done: Folder) -> None:
    path = done.root / "fixes" / "m_fixes.csv"
    content = path.read_text()
    path.unlink()
    path.write_text(content)
    os.utime(path, ns=(1, 1))
    assert published(done) is not None


@pytest.mark.parametrize("name", ["m_fixes.csv", "problems.csv", "notes.txt"])
def test_another_content_of_the_same_size_and_time_is_a_change(done: Folder, name: str) -> None:
    path = done.root / "fixes" / name
    seen, content = path.stat(), path.read_text()
    with rewritten(path, content.swapcase()):
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert path.stat().st_size == seen.st_size
        assert published(done) is None


@pytest.mark.parametrize("name", ["n_fixes.csv", "notes.txt"])
def test_a_vanished_file_is_a_change(done: Folder, name: str) -> None:
    with rewritten(done.root / "fixes" / name, ""):
        (done.root / "fixes" / name).unlink()
        assert published(done) is None
        (done.root / "fixes" / name).write_text("")


@pytest.mark.parametrize("name", ["o_fixes.csv", ".hidden", "notes.md", "folder"])
def test_a_new_file_or_folder_is_a_change(done: Folder, name: str) -> None:
    path = done.root / "fixes" / name
    path.mkdir() if name == "folder" else path.write_text("x")
    assert published(done) is None
    path.rmdir() if name == "folder" else path.unlink()


def test_another_setting_is_a_change(done: Folder) -> None:
    with rewritten(done.config, done.config.read_text().replace("[1, 2]", "[1]")):
        assert published(done) is None


def test_a_setting_written_otherwise_is_the_same(done: Folder) -> None:
    with rewritten(done.config, done.config.read_text().replace("[1, 2]", "[2,  1, 1]")):
        assert published(done) is not None


def test_another_version_of_the_code_is_a_change(done: Folder) -> None:
    package_code_version.cache_clear()
    with patch("touchstone.storage.code_version._LIBRARIES", ("numpy",)):
        assert published(done) is None
    package_code_version.cache_clear()


@pytest.mark.parametrize(
    "place",
    [
        "tables/tiers/tiers.parquet",
        "tables/outcomes/m.parquet",
        "tables/attempts",
        "summary_pass_at_k.csv",
        "warehouse.duckdb",
        "csv/m_outcomes.csv",
    ],
)
def test_results_that_are_missing_or_edited_are_a_change(done: Folder, place: str) -> None:
    path = (done.output / place).resolve()
    with moved_away(path):
        assert published(done) is None
        if path.parent.name != "tables":
            path.write_bytes(path.with_name(f".{path.name}.away").read_bytes())
            assert published(done) is None, "an equal file that touchstone did not write"
            path.unlink()


@pytest.mark.parametrize("name", ["tables", "warehouse.duckdb", ".store/current", ".store/run.json"])
def test_links_and_the_record_itself_are_needed(done: Folder, name: str) -> None:
    with moved_away(done.output / name):
        assert published(done) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"dependencies": 1}', "[" * 100_000, '{"checks": [{}]}'])
def test_a_damaged_record_is_none(done: Folder, text: str) -> None:
    with rewritten(done.output / ".store" / "run.json", text):
        assert published(done) is None


def test_a_missing_snapshot_and_a_moved_pin_are_changes(done: Folder) -> None:
    *_, snapshot = list_snapshots(done.output)
    with moved_away(snapshot.folder):
        assert published(done) is None
    pin(done.output, "latest", "other")
    assert published(done) is None
    (done.output / "snapshots" / "pins.json").unlink()


# What is recorded


def forgotten(folder: Folder, *only: str, accept: bool = False, fresh: bool = False) -> bool:
    """Whether the next run is not skipped after a run with these options."""
    outcome = evaluate(folder, *only, accept=accept, fresh=fresh)
    assert outcome.published, outcome
    return published(folder) is None


@pytest.mark.nightly
def test_a_run_of_some_models_or_with_accept_is_not_recorded(evaluated: Folder) -> None:
    assert not forgotten(evaluated)
    assert forgotten(evaluated, "m")
    assert forgotten(evaluated, accept=True)
    assert not forgotten(evaluated, fresh=True)


def test_a_run_with_a_failed_check_is_not_recorded(evaluated: Folder) -> None:
    folder = evaluated
    folder.fixes("n", "no,header\n1,2\n")
    outcome = evaluate(folder)
    assert outcome.published and outcome.exit_code == 1
    assert published(folder) is None


def test_a_run_that_a_gate_stops_removes_the_record_of_the_last_one(evaluated: Folder) -> None:
    assert not forgotten(evaluated)
    good = (evaluated.root / "fixes" / "m_fixes.csv").read_text()
    evaluated.fixes("m", "oid,iteration_id,fixed_code\na,1,x\nb,1,y\n")
    evaluated.configure(clones_dir="nowhere")
    assert evaluate(evaluated).stopped
    evaluated.configure()
    evaluated.fixes("m", good)
    assert published(evaluated) is None, "a draft of the stopped run is still there"


def test_what_changes_during_a_run_is_not_taken_for_what_was_read(evaluated: Folder) -> None:
    folder = evaluated
    evaluation = Evaluation.load(folder.config)
    write_summary = evaluation.publish.summary

    def meanwhile() -> object:
        folder.fixes("m", HEADER + "a,1,true\na,2,true\nb,1,false\nb,2,false\n")
        return write_summary()

    with patch.object(evaluation.publish, "summary", meanwhile):
        assert run(evaluation).published
    assert published(folder) is None


@pytest.mark.nightly
def test_the_latest_snapshot_as_baseline_is_another_one_after_the_first_run(folder: Folder) -> None:
    folder.configure(comparison={"baseline": "latest"})
    assert forgotten(folder)
    assert not forgotten(folder)


@pytest.mark.nightly
def test_a_pinned_baseline_must_stay_the_same(evaluated: Folder) -> None:
    assert not forgotten(evaluated)
    pin(evaluated.output, "latest", "baseline")
    assert published(evaluated) is None and not forgotten(evaluated)
    [part] = (evaluated.output / "snapshots").glob("*/tables/attempt_scores/m.parquet")
    part.unlink()
    assert published(evaluated) is None


@pytest.mark.nightly
def test_the_output_folder_may_be_the_folder_of_fixes(tmp_path: Path) -> None:
    folder = small_folder(tmp_path)
    folder.configure(output_dir="fixes", publish=WITH_WAREHOUSE)
    assert not forgotten(folder), "its own results are no new inputs"
    assert evaluate(folder).made == 0
    assert not forgotten(folder)


# Validated runs


@pytest.fixture(scope="module")
def validated_once(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = make_repairs(tmp_path_factory.mktemp("validated"))
    tools = folder.root / "tools"
    tools.mkdir()
    os.utime(tools, (1, 1))
    content_identity(folder.root / "tool of another evaluation")
    with patch.dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}"):
        assert evaluate(folder).exit_code == 0
    return folder


@pytest.fixture
def validated(validated_once: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("PATH", f"{validated_once.root / 'tools'}:{os.environ['PATH']}")
    assert published(validated_once) is not None
    return validated_once


def _edit_a_test(folder: Folder) -> Path:
    path = folder.root / "clones" / "calc" / "test_calc.py"
    path.write_text(path.read_text() + "\n")
    return path


def _add_a_file(folder: Folder) -> Path:
    path = folder.root / "clones" / "calc" / "conftest.py"
    path.write_text("")
    return path


def _make_executable(folder: Folder) -> Path:
    path = folder.root / "clones" / "calc" / "calc.py"
    path.chmod(0o755)
    return path


def _install_a_program(folder: Folder) -> Path:
    path = folder.root / "tools" / "terraform"
    path.write_text("")
    return path


@pytest.mark.services
@pytest.mark.parametrize(
    "change",
    nightly_but([_edit_a_test, _install_a_program], [_edit_a_test, _add_a_file, _make_executable, _install_a_program]),
)
def test_what_validation_reads_must_stay_the_same(validated: Folder, change: Callable[[Folder], Path]) -> None:
    clones, tools = validated.root / "clones", validated.root / "tools"
    kept = shutil.copytree(clones, validated.root / "kept")
    change(validated)
    assert published(validated) is None
    shutil.rmtree(clones)
    kept.rename(clones)
    (tools / "terraform").unlink(missing_ok=True)
    os.utime(tools, (1, 1))


@pytest.mark.services
def test_tools_of_earlier_evaluations_in_the_same_process_do_not_count(validated: Folder) -> None:
    recorded = json.loads((validated.output / ".store" / "run.json").read_text())["tools"]["paths"]
    assert sysconfig.get_path("platlib") in recorded
    assert str(validated.root / "tool of another evaluation") not in recorded


@pytest.mark.services
def test_reports_removed_from_the_cache_are_made_again(validated: Folder) -> None:
    with ReportCache(validated.output / "cache") as cache:
        cache.prune(0)
    assert published(validated) is None


@pytest.mark.nightly
def test_what_could_not_be_validated_is_tried_again(tmp_path: Path) -> None:
    folder = make_repairs(tmp_path)
    folder.problems("oid,filename,working_directory\np,calc.py,calc\nq,gone.py,gone\n")
    folder.fixes("n", "oid,iteration_id,fixed_code\nq,1,x\n")
    folder.configure(clones_dir="clones", k_values=[1], checks={"max_undecided_share": 1})
    assert forgotten(folder)


# The command


@pytest.mark.services
def test_the_command_shows_the_published_results_without_dagster(done: Folder) -> None:
    program = (
        "import sys; from touchstone.cli.main import app\n"
        "app(['run', '--config', sys.argv[1]], standalone_mode=False)\n"
        "print(sys.modules.keys() & {'dagster', 'dataframely', 'duckdb', 'numpy', 'pyarrow', 'scipy'})"
    )
    shown = subprocess.run([sys.executable, "-c", program, done.config], capture_output=True, text=True, check=True)
    assert "pass@k: mean over problems" in shown.stdout and "0.250 [" in shown.stdout
    assert "check warning pass_at_k.enough_samples: " in shown.stdout
    assert "up to date: " in shown.stdout and "summary_pass_at_k.csv" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("option", ["--force", "--fresh", "--accept", "--only"])
def test_options_that_ask_for_a_run_get_one(
    done: Folder, touchstone: Command, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The whole of sys.modules must not be put back: what is imported meanwhile would be imported twice.
    monkeypatch.setitem(sys.modules, "pipelines.launch", None)
    named = ["m"] if option == "--only" else []
    asked = touchstone("run", "--config", done.config, option, *named, dagster=True)
    assert asked.returncode == 2 and "import of pipelines.launch halted" in asked.stderr
