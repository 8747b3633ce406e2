"""`touchstone run`, as a user calls it: real files, and real processes where they are stopped."""

import fcntl
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import WITH_WAREHOUSE, Command, Folder, command_environment, copy_of, parts_of
from touchstone.config import load_config
from touchstone.evaluation import Evaluation, RunOutcome, run
from touchstone.tables import TABLES

HEADER = "oid,iteration_id,plausible_fix\n"


def evaluate(
    folder: Folder, *only: str, output: Path | None = None, accept: bool = False, fresh: bool = False
) -> RunOutcome:
    """What `touchstone run` does, in this process and without Dagster: seconds less a run."""
    return evaluate_config(folder.config, *only, output=output, accept=accept, fresh=fresh)


def evaluate_config(
    config: Path, *only: str, output: Path | None = None, accept: bool = False, fresh: bool = False
) -> RunOutcome:
    """The same on any configuration."""
    return run(Evaluation.load(config, output, only, accept=accept, fresh=fresh))


def failed(outcome: RunOutcome) -> dict[str, str]:
    return {check.name: check.message for check in outcome.checks if not check.passed and check.error}


def summary(folder: Folder) -> dict[str, dict[str, float]]:
    rows = pl.read_csv(folder.output / "summary_pass_at_k.csv").rows(named=True)
    return {row["LLM"]: row for row in rows}


def test_figures_files_and_tables(folder: Folder, touchstone: Command, tmp_path: Path) -> None:
    folder.configure(publish=WITH_WAREHOUSE)
    done = touchstone("run", "--config", folder.config)
    assert done.returncode == 0, done.stderr
    assert summary(folder)["m"]["pass@1"] == 0.25
    assert summary(folder)["m"]["pass@2"] == 0.5
    assert "0.250 [" in done.stdout and "summary_pass_at_k.csv" in done.stdout
    assert "not shown: " not in done.stdout and "…" not in done.stdout, "a pipe gets every column whole"
    with duckdb.connect(str(folder.output / "warehouse.duckdb"), read_only=True) as warehouse:
        tables = {name for (name,) in warehouse.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert tables == set(TABLES)
        figures = warehouse.sql("SELECT avg(pass_at_k(n, c, 2)) FROM problem_pass_at_k WHERE k = 1").fetchall()
        assert figures == [(0.5,)]
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(folder.output, elsewhere, symlinks=True)
    shutil.rmtree(folder.output)
    with duckdb.connect(str(elsewhere / "warehouse.duckdb"), read_only=True) as warehouse:
        assert warehouse.sql("SELECT pass_at_k FROM pass_at_k ORDER BY k").fetchall() == [(0.25,), (0.5,)]


@pytest.fixture
def pair(finished_pair: Folder, tmp_path: Path) -> Folder:
    """The finished run of two models, m and n, to change."""
    return copy_of(finished_pair, tmp_path / "pair")


def test_unchanged_input_is_not_worked_on_again(evaluated: Folder) -> None:
    folder = evaluated
    before = {path: path.stat().st_ino for path in folder.output.glob(".store/draft/tables/*/*.parquet")}
    second = evaluate(folder)
    assert (second.made, second.reused) == (0, parts_of(1))
    remade = {path.parent.name for path, inode in before.items() if path.stat().st_ino != inode}
    assert remade <= {"quarantine", "run_log"}
    folder.fixes("n", HEADER + "a,1,true\n")
    third = evaluate(folder)
    assert (third.made, third.reused) == (parts_of(2) - 10, 10 + 1)
    assert set(summary(folder)) == {"m", "n"}


def test_a_changed_setting_makes_only_the_figures_again(evaluated: Folder) -> None:
    evaluated.configure(k_values=[2])
    again = evaluate(evaluated)
    assert again.reused == 32
    assert "pass@1" not in summary(evaluated)["m"]


@pytest.mark.services
def test_only_re_evaluates_the_named_models(pair: Folder, touchstone: Command) -> None:
    pair.fixes("m", HEADER + "a,1,true\nb,1,true\n")
    pair.fixes("n", HEADER + "a,1,false\n")
    assert evaluate(pair, "n").exit_code == 0
    assert (summary(pair)["m"]["pass@1"], summary(pair)["n"]["pass@1"]) == (0.25, 0.0)
    wrong = touchstone("run", "--config", pair.config, "--only", "nobody")
    assert (wrong.returncode, wrong.stderr) == (2, "error: --only nobody: no such model; there are: m, n\n")


def test_bad_models_neither_stop_the_others_nor_keep_their_old_figures(pair: Folder) -> None:
    pair.fixes("n", "")
    pair.fixes("bad", b"oid,iteration_id,plausible_fix\n\x81,1,true\n")
    pair.fixes("b...ad", HEADER)
    pair.fixes("empty", HEADER)
    outcome = evaluate(pair)
    assert (outcome.exit_code, outcome.failures) == (1, [])
    assert list(failed(outcome)) == ["sources.files_readable"]
    (message,) = failed(outcome).values()
    assert "bad_fixes.csv: not UTF-8" in message and "n_fixes.csv: the file is empty" in message
    assert "name 'b...ad' is not allowed" in message
    assert set(summary(pair)) == {"m", "empty"}
    assert (summary(pair)["m"]["pass@1"], summary(pair)["empty"]["pass@1"]) == (0.25, None)


@pytest.mark.services
def test_a_vanished_file_takes_its_figures_along(pair: Folder, touchstone: Command) -> None:
    (pair.root / "fixes" / "n_fixes.csv").unlink()
    done = touchstone("run", "--config", pair.config)
    assert done.returncode == 0 and "the fixes files of n are gone" in done.stderr
    assert set(summary(pair)) == {"m"}
    assert not list(pair.output.glob("tables/*/n.parquet"))


def test_fixes_without_any_outcome_are_undecided_and_the_run_goes_on(folder: Folder) -> None:
    folder.fixes("m", "oid,iteration_id,fixed_code\na,1,x\nb,1,y\n")
    folder.fixes("n", "oid,iteration_id,plausible_fix,cost_usd\na,1,,0.5\nb,1,true,0.5\n")
    outcome = evaluate(folder)
    assert outcome.exit_code == 0, outcome.failures
    assert summary(folder)["m"]["pass@1"] is None
    assert summary(folder)["n"]["pass@1"] == 1.0
    frontier = pl.read_parquet(folder.output / "tables" / "problem_frontier" / "*.parquet")
    assert frontier.select("oid", "mean_pass_rate", "model").rows() == [("a", None, None), ("b", 1.0, "n")]


@pytest.mark.nightly
def test_the_same_bytes_whatever_the_order_of_rows_and_files(folder: Folder) -> None:
    rows = [f"{oid},{i},{i % 3 == 0}\n" for oid in ("a", "b") for i in range(1, 60)]
    folder.fixes("m", HEADER + "".join(rows))
    folder.fixes("a", HEADER + "".join(rows[:30]))
    evaluate(folder)
    random.Random(1).shuffle(rows)
    for model in ("a", "m"):
        (folder.root / "fixes" / f"{model}_fixes.csv").unlink()
    folder.fixes("m", HEADER + "".join(rows))
    kept = [row for row in rows if row.startswith("a,") and int(row.split(",")[1]) <= 30]
    folder.fixes("a", HEADER + "".join(kept))
    evaluate(folder, output=folder.root / "again")
    same = ["summary_pass_at_k.csv"]
    same += [
        f"tables/{table}/{table}.parquet"
        for table in ("problems", "problem_pass_at_k", "pass_at_k", "tiers", "suite_scores", "model_statistics")
    ]
    same += [f"tables/{table}/{model}.parquet" for table in ("attempts", "outcomes") for model in ("a", "m")]
    _, different, missing = filecmp.cmpfiles(folder.output, folder.root / "again", same, shallow=False)
    assert (different, missing) == ([], [])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"models": ["zzz"]}, "no fixes file matches models=['zzz']"),
        ({"fixes_dir": "nowhere"}, "no such folder; set 'fixes_dir' in the config"),
        ({"problems_csv": "nowhere.csv"}, "nowhere.csv: no such problems file"),
        ({"k_values": [0]}, "k_values: k must be at least 1, got 0"),
        ({"oops": 1}, "unknown key 'oops'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(
    folder: Folder, touchstone: Command, keys: dict[str, object], message: str
) -> None:
    folder.configure(**keys)
    done = touchstone("run", "--config", folder.config)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_a_broken_problems_file_fails_the_run_in_one_line(folder: Folder, touchstone: Command) -> None:
    folder.problems("oid,filename\na,x\na,y\n")
    done = touchstone("run", "--config", folder.config, dagster=True)
    assert done.returncode == 2
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"error: problems: {folder.root}/fixes/problems.csv, line 2: two different problems")
    assert done.stderr.count("error") == 1 and "Traceback" not in done.stderr
    assert not (folder.output / "tables").exists()


@pytest.mark.nightly
def test_synthetic_data_is_made_where_the_config_asks_for_it(folder: Folder) -> None:
    settings = {"problems": 4, "iterations": 3, "models": {"gemini": 1.0}}
    folder.configure(fixes_dir="made", generate_synthetic_data=True, synthetic=settings)
    assert evaluate(folder).exit_code == 0
    assert summary(folder)["gemini"]["pass@1"] == 1.0


def test_a_second_run_at_the_same_time_is_refused(folder: Folder, touchstone: Command) -> None:
    with Evaluation(load_config(folder.config)).store.lock():
        pass
    with (folder.output / ".store" / "lock").open() as lock:
        # As another process holds it: within one process the lock of a store is reentrant.
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = touchstone("run", "--config", folder.config, dagster=True)
    assert second.returncode == 2
    assert f"another run is writing here (process {os.getpid()}, since " in second.stderr
    assert second.stderr.count("\n") == 1


@pytest.mark.nightly
def test_ctrl_c_stops_with_one_line(folder: Folder, tmp_path: Path) -> None:
    run = start(folder, tmp_path, stderr=subprocess.PIPE)
    assert run.stderr is not None
    assert b": step " in run.stderr.readline(), "the run is at work"
    # The whole group, as a terminal does it.
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate()
    assert run.returncode == 130
    *stages, last = stderr.decode().splitlines()
    assert last == "error: interrupted; the last published results are unchanged"
    assert all(": step " in line for line in stages)
    assert not (folder.output / "tables").exists()


def start(
    folder: Folder,
    tmp_path: Path,
    stderr: int = subprocess.DEVNULL,
    options: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":
    command = [Path(sys.executable).with_name("touchstone"), "run", "--config", folder.config, *options]
    environment = command_environment(tmp_path)
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True)


def start_without_dagster(folder: Folder) -> "subprocess.Popen[bytes]":
    """The same from Python, where Dagster's history is not looked at: it starts in a third of the time."""
    code = "import sys, touchstone; touchstone.evaluate(sys.argv[1])"
    return subprocess.Popen([sys.executable, "-c", code, folder.config])
