"""`--json` prints one document with unrounded figures, `--quiet` only errors; exit codes stay as they are."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import PROJECT, Command, Folder
from touchstone.cli.console import plain
from touchstone.cli.run import RUN_TABLES

LOGS = PROJECT / "tests" / "ingest" / "adapters" / "files" / "inspect"


def commands(folder: Folder) -> dict[str, list[object]]:
    fixes = folder.root / "fixes"
    return {
        "run": ["run", "--config", folder.config],
        "compare": ["compare", folder.output, folder.output],
        "pass-at-k": ["pass-at-k", fixes],
        "snapshots": ["snapshots", "--data", folder.output],
        "snapshots list": ["snapshots", "list", "--data", folder.output],
        "inspect-files": ["inspect-files", fixes],
    }


NAMES = list(commands(Folder(Path())))


@pytest.mark.parametrize("name", NAMES)
def test_json_is_one_document_and_nothing_else(finished: Folder, touchstone: Command, name: str) -> None:
    done = touchstone(*commands(finished)[name], "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_quiet_prints_nothing_where_all_is_well(finished: Folder, touchstone: Command, name: str) -> None:
    done = touchstone(*commands(finished)[name], "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("command", [("pass-at-k", "--fixes-csv", "none"), ("compare", "none", "none")])
def test_an_error_is_never_quiet(touchstone: Command, command: list[str]) -> None:
    done = touchstone(*command, "--quiet", "--json")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.startswith("error: ")


def test_a_run_as_json_has_the_tables_it_shows(finished: Folder, touchstone: Command) -> None:
    document = json.loads(touchstone("run", "--config", finished.config, "--json").stdout)
    assert document["up_to_date"] and document["published"] and document["exit_code"] == 0
    assert all(check["passed"] for check in document["checks"])
    for name in RUN_TABLES:
        stored = pl.read_parquet(finished.output / "tables" / name / "*.parquet")
        assert document[name] == plain(stored.to_dicts())
    assert [(row["k"], row["pass_at_k"]) for row in document["pass_at_k"]] == [(1, 0.25), (2, 0.5)]
    described = (PROJECT / "docs" / "terminal.md").read_text()
    assert set(re.findall(r"`(\w+)`", described.split("## `--json`")[1])) >= document.keys()


@pytest.mark.services
def test_a_run_that_a_check_fails_says_so_and_has_its_exit_code(evaluated: Folder, touchstone: Command) -> None:
    evaluated.fixes("broken", "no,such,columns\n1,2,3\n")
    done = touchstone("run", "--config", evaluated.config, "--json", "--quiet")
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 1
    assert "error: check failed sources.files_readable" in done.stderr
    assert any(check["name"] == "sources.files_readable" and not check["passed"] for check in document["checks"])


def test_infinite_figures_are_text_and_undefined_ones_null() -> None:
    assert plain({"a": [float("inf"), float("-inf"), float("nan"), None, 0.1, Path("x")]}) == {
        "a": ["Infinity", "-Infinity", None, None, 0.1, "x"]
    }


def test_json_is_short_for_its_format(finished: Folder, touchstone: Command) -> None:
    for name in ("pass-at-k", "compare"):
        command = commands(finished)[name]
        assert touchstone(*command, "--json").stdout == touchstone(*command, "--format", "json").stdout
        assert (
            "leave one of them out"
            in touchstone(*command, "--json", "--format", {"pass-at-k": "csv"}.get(name, "text")).stderr
        )


def test_figures_that_files_state_are_in_the_document(touchstone: Command) -> None:
    document = json.loads(touchstone("inspect-files", LOGS / "letters.eval", "--json").stdout)
    assert [(each["file"], each["attempts"]) for each in document["files"]] == [("letters.eval", 15)]
    assert document["not_evaluated"] == []
    assert {"reported", "recomputed", "figure"} <= document["reported_figures"][0].keys()
    assert "Inspect AI log" in json.loads(touchstone("inspect-files", "--formats", "--json").stdout)
