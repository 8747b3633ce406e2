"""A results folder that an earlier version wrote is opened, brought up to date, or refused in one line."""

import tarfile
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder
from tests.pipelines.test_run import evaluate
from touchstone.storage.snapshots import list_snapshots

# Written by the version of 2026-11-16: two models, six problems, two snapshots, the first pinned as `baseline`.
GOLDEN = Path(__file__).parent / "golden" / "results-of-2026-11-16.tar.gz"
EARLIER = "results of an earlier version (the table problems has no column excluded); `touchstone run` brings them up"
PASS_AT_1 = {"alpha": 12 / 18, "beta": 7 / 18}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """To be read only, until the last test."""
    root = tmp_path_factory.mktemp("earlier")
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(root, filter="data")
    return Folder(root)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["sql", "SELECT model, round(pass_at_k, 4) FROM pass_at_k WHERE k = 1"], "0.6667"),
        (
            ["sql", "SELECT * FROM failures"],
            "there is no table failures here: this run stopped before it, or was of an earlier version",
        ),
        (["export", "pass_at_k"], "0.38888888888888884"),
        (["compare", "baseline", "latest"], "inconclusive"),
        (["compare", "baseline", "latest", "--format", "json"], '"verdict"'),
        (["snapshots", "list"], "baseline"),
        *(([name], EARLIER) for name in ("audit", "blame", "history", "report")),
        (["show", "alpha", "p1"], "the tables cannot be read (unable to find column"),
        (["tables"], "pass_at_k"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_every_command_reads_it_or_refuses_it_in_one_line(
    earlier: Folder, touchstone: Command, command: list[str], shown: str
) -> None:
    done = touchstone(*command, "--data", earlier.output)
    assert done.returncode in (0, 1) or done.stderr.count("\n") == 1, done.stderr
    assert shown in done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "TOUCHSTONE_DEBUG" not in done.stderr


@pytest.mark.services
def test_a_run_brings_it_up_to_date_and_keeps_its_snapshots(earlier: Folder) -> None:
    before = [snapshot.id for snapshot in list_snapshots(earlier.output)]
    assert evaluate(earlier).published
    assert [snapshot.id for snapshot in list_snapshots(earlier.output)][:2] == before
    rows = pl.read_csv(earlier.output / "summary_pass_at_k.csv")
    assert dict(rows.select("LLM", "pass@1").iter_rows()) == pytest.approx(PASS_AT_1)
    history = pl.read_parquet(earlier.output / "tables" / "history" / "*.parquet")
    assert set(before) <= set(history["snapshot"])
