"""The fast commands, as a user calls them."""

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from tests.conftest import PROJECT, Command, Folder, nightly_but

HEADER = "oid,iteration_id,plausible_fix\n"


def pass_at_k(touchstone: Command, folder: Folder, *more: object) -> "subprocess.CompletedProcess[str]":
    fixes = sorted((folder.root / "fixes").glob("*_fixes.csv"))
    return touchstone(
        "pass-at-k", "--problems-csv", folder.root / "fixes" / "problems.csv", "--fixes-csv", *fixes, *more
    )


def test_prints_the_seeds_table(folder: Folder, touchstone: Command) -> None:
    # Ten problems, ten attempts each, 77 passes of 100: pass@1 is .770 as in the seed's example.
    passes = [10, 10, 9, 9, 8, 8, 7, 6, 5, 5]
    folder.problems("oid,filename\n" + "".join(f"p{place},main.tf\n" for place in range(10)))
    rows = (f"p{place},{i},{i < count}\n" for place, count in enumerate(passes) for i in range(10))
    (folder.root / "fixes" / "m_fixes.csv").unlink()
    folder.fixes("gemini_synthetic", HEADER + "".join(rows))
    done = pass_at_k(touchstone, folder, "--k-values", 1, 5, 10)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["      LLM  pass@1    pass@5  pass@10", "0  gemini   0.770  0.999206    1.000"]


def test_the_seeds_table_is_aligned_whatever_the_script_of_a_tier(folder: Folder, touchstone: Command) -> None:
    rows = "".join(f"{oid},{i},{tier},true\n" for tier in ("高温", "T0") for oid in "ab" for i in range(2))
    folder.fixes("m", "oid,iteration_id,tier,plausible_fix\n" + rows)
    done = pass_at_k(touchstone, folder, "--k-values", 1)
    assert done.stdout.splitlines() == ["   LLM  tier  pass@1", "0    m    T0   1.000", "1    m  高温   1.000"]


def test_formats_and_saving(folder: Folder, touchstone: Command) -> None:
    saved = folder.root / "deep" / "out.csv"
    done = pass_at_k(touchstone, folder, "--k-values", "1", "2", "--format", "csv", "--save-to", saved)
    assert done.stdout == saved.read_text()
    assert pl.read_csv(saved).select("LLM", "pass@1", "pass@2").row(0) == ("m", 0.25, 0.5)
    assert not any("ci" in name for name in pl.read_csv(saved).columns)
    assert "m  0.500 [0.095, 0.905]" in pass_at_k(touchstone, folder, "--k-values", "2", "--intervals").stdout
    records = json.loads(pass_at_k(touchstone, folder, "--k-values", "2", "--format", "json", "--intervals").stdout)
    assert [(record["k"], record["pass_at_k"], record["ci_method"]) for record in records] == [(2, 0.5, "wilson")]


def test_options_take_many_values_or_are_repeated(folder: Folder, touchstone: Command) -> None:
    together = pass_at_k(touchstone, folder, "--k-values", 2, 1, "--format", "csv").stdout
    apart = pass_at_k(touchstone, folder, "--k-values", 2, "--k-values", 1, "--format", "csv").stdout
    assert together == apart and together.startswith("LLM,pass@1,pass@2,")


@pytest.mark.parametrize("written", nightly_but([["2,", "1"]], [["2,1"], ["2,", "1"], ["1,2,"], ["1", "2,1"]]))
def test_k_values_may_be_separated_by_commas(folder: Folder, touchstone: Command, written: list[str]) -> None:
    done = pass_at_k(touchstone, folder, "--k-values", *written, "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("LLM,pass@1,pass@2,")
    assert pass_at_k(touchstone, folder, f"--k-values={','.join(written)}", "--format", "csv").stdout == done.stdout


@pytest.mark.parametrize("command", [("run",), ("validate", "--problem", "a", "--fix", "x")])
def test_without_a_config_the_one_in_this_folder_counts(
    touchstone: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = touchstone(*command)
    assert done.returncode == 2
    assert done.stderr == "error: there is no evaluation_config.json in this folder; pass --config FILE\n"
    (tmp_path / "evaluation_config.json").write_text("{}")
    assert "evaluation_config.json: the key 'fixes_dir' is missing" in touchstone(*command).stderr


def test_refused_rows_and_short_samples_are_told(folder: Folder, touchstone: Command) -> None:
    folder.fixes("m", HEADER + "a,1,true\nb,1,maybe\n")
    done = pass_at_k(touchstone, folder, "--k-values", 1, 5)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split() == ["0", "m", "1.000", "-"]
    assert "m_fixes.csv: 1 row was refused; line 3: plausible_fix: 'maybe'" in done.stderr
    assert "m T0 pass@5: 1 of 1 problem has fewer than 5 decided attempts" in done.stderr


def test_one_unreadable_file_does_not_stop_the_others(folder: Folder, touchstone: Command) -> None:
    folder.fixes("n", "")
    done = pass_at_k(touchstone, folder)
    assert done.returncode == 2
    assert "0    m" in done.stdout
    assert done.stderr.splitlines()[-1].endswith("n_fixes.csv: the file is empty; it must start with a header line")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k-values", "0"), "error: --k-values: k must be at least 1, got 0"),
        (("--k-values", "-3"), "error: --k-values: k must be at least 1, got -3"),
        (("--k-values", "1,x"), "error: --k-values: 'x' is not a whole number"),
        (("--k-values", "1;5"), "error: --k-values: '1;5' is not a whole number"),
        (("--format", "xml"), "error: Invalid value for '--format'"),
        (("--nope",), "error: No such option"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(
    folder: Folder, touchstone: Command, arguments: tuple[str, ...], message: str
) -> None:
    done = pass_at_k(touchstone, folder, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message) and done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("group", [(), ("cache",)])
def test_without_a_command_there_is_help_and_no_error_line(touchstone: Command, group: tuple[str, ...]) -> None:
    done = touchstone(*group)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: " in done.stdout


def test_missing_files(folder: Folder, touchstone: Command) -> None:
    problems = folder.root / "fixes" / "problems.csv"
    done = touchstone("pass-at-k", "--problems-csv", problems, "--fixes-csv", folder.root / "no_fixes.csv")
    assert (done.returncode, done.stderr) == (2, f"error: {folder.root}/no_fixes.csv: no such file\n")
    done = touchstone("pass-at-k", "--problems-csv", "no.csv", "--fixes-csv", folder.root / "fixes" / "m_fixes.csv")
    assert (done.returncode, done.stderr) == (2, "error: no.csv: no such file\n")


def test_a_model_name_that_is_not_allowed(folder: Folder, touchstone: Command) -> None:
    folder.fixes("a\nb", HEADER)
    done = pass_at_k(touchstone, folder)
    assert done.returncode == 2 and "name 'a\\nb' is not allowed" in done.stderr


@pytest.mark.services
def test_pass_at_k_and_run_agree_on_the_sample(touchstone: Command, sample_results: Path) -> None:
    sample = PROJECT / "data" / "sample"
    quick = touchstone(
        "pass-at-k", "--problems-csv", sample / "problems.csv", "--fixes-csv", *sorted(sample.glob("*_fixes.csv")),
        "--format", "csv", "--intervals",
    )  # fmt: skip
    assert quick.stdout == (sample_results / "summary_pass_at_k.csv").read_text()


def test_the_engine_never_imports_dagster_or_what_builds_on_it() -> None:
    for path in (PROJECT / "touchstone").rglob("*.py"):
        lines = [line.strip() for line in path.read_text().splitlines()]
        upward = [
            line
            for line in lines
            if line.startswith(("import dagster", "from dagster", "from assets", "from pipelines"))
        ]
        assert not upward or path.parent.name == "cli", f"{path}: {upward}"


def test_synth_is_reproducible_and_never_overwrites(touchstone: Command, tmp_path: Path) -> None:
    call = ("synth", "--output", tmp_path / "s", "--problems", 3, "--iterations", 4, "--model", "x=1", "y=0.5")
    done = touchstone(*call)
    assert done.returncode == 0, done.stderr
    files = {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()}
    assert sorted(files) == ["problems.csv", "x_synthetic_fixes.csv", "y_synthetic_fixes.csv"]
    again = touchstone(*call)
    assert again.returncode == 2 and "--force" in again.stderr and again.stderr.count("\n") == 1
    assert touchstone(*call, "--force").returncode == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "s").iterdir()} == files


def test_sql_and_tables(finished: Folder, touchstone: Command) -> None:
    query = "SELECT model, k, pass_at_k FROM pass_at_k ORDER BY k"
    data = ("--data", finished.output)
    apart = touchstone("sql", *data, query, "--format", "csv", apart=True)
    assert apart.stdout == "model,k,pass_at_k\nm,1,0.25\nm,2,0.5\n"
    assert apart.stdout == touchstone("sql", *data, query, "--format", "csv").stdout
    assert "2 rows" in touchstone("sql", *data, query).stdout
    listing = touchstone("tables", *data).stdout
    assert "problem_pass_at_k" in listing and "ci_method" in listing


@pytest.mark.services
@pytest.mark.parametrize("query", ["SELECT 1; SELECT 2", "SELECT nope"])
def test_sql_refuses_in_one_line(finished: Folder, touchstone: Command, query: str) -> None:
    done = touchstone("sql", "--data", finished.output, query, apart=True)
    assert done.stderr == touchstone("sql", "--data", finished.output, query).stderr
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_sql_without_results_says_what_to_do(touchstone: Command, tmp_path: Path) -> None:
    done = touchstone("sql", "--data", tmp_path, "SELECT 1")
    assert done.returncode == 2 and "run `touchstone run` first" in done.stderr


def test_doctor_and_version(touchstone: Command) -> None:
    done = touchstone("doctor")
    assert done.returncode == 0 and "polars" in done.stdout and "bwrap" in done.stdout
    assert touchstone("--version").stdout.startswith("touchstone 0.")


@pytest.mark.services
def test_validators_lists_what_is_usable_here(touchstone: Command) -> None:
    done = touchstone("validators")
    assert done.returncode == 0, done.stderr
    for name in ("sandbox bubblewrap", "sandbox landlock", "validator hcl", "validator python", "validator rust"):
        assert name in done.stdout


def test_an_unexpected_error_shows_no_traceback(folder: Folder, touchstone: Command) -> None:
    folder.root.joinpath("blocker").write_text("a file, not a folder")
    done = pass_at_k(touchstone, folder, "--save-to", folder.root / "blocker" / "out.csv")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and done.stderr.startswith("error: ")


def test_a_panic_of_polars_is_one_line(touchstone: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(**_: object) -> None:
        raise pl.exceptions.PanicException(
            "called `Result::unwrap()` on an `Err` value: Os { code: 11, kind: WouldBlock }"
        )

    monkeypatch.setattr("touchstone.cli.main.app", panic)
    failed = touchstone("tables")
    assert (failed.returncode, failed.stderr.count("\n")) == (2, 1)
    assert failed.stderr.startswith("error: no more threads can be started; raise the limits")


@pytest.mark.services
def test_the_installed_program(folder: Folder) -> None:
    """Most tests call the command line in their own process; this one is the program itself."""
    program = Path(sys.executable).with_name("touchstone")
    files = ["--problems-csv", folder.root / "fixes" / "problems.csv", "--fixes-csv"]
    good = [program, "pass-at-k", *files, folder.root / "fixes" / "m_fixes.csv", "--k-values", "1", "--format", "csv"]
    done = subprocess.run(good, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.splitlines()[1].startswith("m,0.25,2,2")
    wrong = [program, "pass-at-k", "--nope"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_an_interrupted_run_is_one_line(folder: Folder, touchstone: Command) -> None:
    with patch("touchstone.evaluation.run", side_effect=KeyboardInterrupt):
        done = touchstone("run", "--config", folder.config)
    assert done.returncode == 130
    assert done.stderr == "error: interrupted; the last published results are unchanged\n"
