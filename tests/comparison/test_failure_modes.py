"""Failure modes against a baseline: worked by hand, and through run, gate, report, compare and dashboard."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder, made_once
from tests.publish.dashboard.client import Client
from touchstone.comparison.failure_modes import compare_failures, describe_changes
from touchstone.comparison.inputs import ComparisonInput
from touchstone.comparison.pairs import ComparisonSettings
from touchstone.evaluation import Evaluation, run
from touchstone.publish.dashboard.pages import dashboard
from touchstone.publish.report.summary import why_they_fail
from touchstone.publish.reported_run import ReportedRun
from touchstone.storage.snapshots import list_snapshots, pin
from touchstone.tables import TABLES

MARKUP = "<b>boom</b> at 0x7f3a"


def side(*modes: str) -> ComparisonInput:
    """Ten problems with two attempts each, the first of which fails in the given way; `-` passes."""
    keys = {"model": "m", "tier": "T0"}
    scores = [keys | {"oid": f"p{place}", "pass_rate": 0.0} for place in range(len(modes)) for _ in range(2)]
    failed = [
        keys | {"oid": f"p{place}", "fingerprint": mode, "attempts": 1, "example": mode}
        for place, mode in enumerate(modes)
        if mode != "-"
    ]
    return ComparisonInput("", pl.LazyFrame(scores), failures=pl.DataFrame(failed, schema=TABLES["failures"].dtypes))


def test_new_grown_and_gone_by_hand() -> None:
    changes = compare_failures(side(*"ag--------"), side(*"aaaaaaaaan"), ComparisonSettings())
    found = {row["fingerprint"]: row for row in changes.to_dicts()}
    grown = found["a"]
    # Of 9 problems that got worse, all in one direction: 2 / 2^8, times 3 modes.
    assert (grown["mode_change"], grown["baseline_attempts"], grown["compared_attempts"]) == ("grown", 1, 9)
    assert grown["difference"] == pytest.approx(8 / 20) and grown["p_adjusted"] == pytest.approx(3 * 2 / 2**8)
    assert found["n"]["mode_change"] == "new" and found["g"]["mode_change"] == "gone"
    assert describe_changes(changes, 0.05) == [
        "failure modes new: n (1 attempt, which may be chance)",
        "failure modes grown: a (1 to 9 attempts)",
        "failure modes gone: g (1 attempt, which may be chance)",
    ]
    same = compare_failures(side(*"aab"), side(*"aab"), ComparisonSettings())
    assert set(same["mode_change"]) == {"unchanged"} and describe_changes(same, 0.05) == []


def test_a_side_without_reasons_is_not_compared() -> None:
    known, unknown, passing = side(*"aab"), side(*"---"), side(*"---")
    passing = replace(passing, attempt_scores=passing.attempt_scores.with_columns(pass_rate=pl.lit(1.0)))
    assert compare_failures(unknown, known, ComparisonSettings()).is_empty()
    assert compare_failures(replace(known, failures=None), known, ComparisonSettings()).is_empty()
    assert set(compare_failures(passing, known, ComparisonSettings())["mode_change"]) == {"new"}


def evaluate(folder: Folder) -> None:
    assert run(Evaluation.load(folder.config)).exit_code == 0


def fixes(error: str) -> str:
    rows = [f"p{place},{attempt},false,{error} {place}{attempt}" for place in range(8) for attempt in (1, 2)]
    return "\n".join(["oid,iteration_id,passed,error", *rows, "p8,1,true,", "p8,2,false,"]) + "\n"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A pinned run whose attempts fail in one way, and a second run in which they fail in another."""

    def make(root: Path) -> None:
        folder = Folder(root)
        folder.problems("oid,filename\n" + "".join(f"p{place},a.py\n" for place in range(9)))
        folder.fixes("m", fixes("missing key"))
        folder.configure(k_values=[1])
        evaluate(folder)
        pin(folder.output, "latest", "baseline")
        folder.fixes("m", fixes(MARKUP))
        evaluate(folder)

    return Folder(made_once(tmp_path_factory, "changed_modes", make))


@pytest.mark.services
def test_a_run_says_why_attempts_fail_and_what_changed(changed: Folder) -> None:
    shown = ReportedRun(changed.output)
    first, second = (snapshot.id for snapshot in list_snapshots(changed.output))
    modes = shown.table("failure_modes").select(
        "fingerprint", "attempts", "mode_change", "first_snapshot", "last_snapshot"
    )
    assert modes.rows() == [
        ("<b>boom</b> at # #", 16, "new", second, second),
        ("missing key #", 0, "gone", first, first),
    ]
    assert why_they_fail(shown) == [
        "16 of 17 failed attempts (8 problems, 1 model, new since the baseline): <b>boom</b> at # #",
        "no reason known: 1",
    ]
    report = (changed.output / "comparison.md").read_text()
    assert r"failure modes new: \<b\>boom\</b\> at \# \# (16 attempts)" in report
    assert "failure modes gone: missing key" in report


def test_compare_says_it_too(tmp_path: Path, touchstone: Command) -> None:
    both = [Folder(tmp_path / error).fixes("m", fixes(error)) for error in ("missing key", "boom")]
    assert "failure modes gone: missing key # (16 attempts)" in touchstone("compare", *both).stdout


@pytest.mark.services
def test_a_reason_leads_to_its_attempts(changed: Folder) -> None:
    client = Client(dashboard(changed.output, "token"))
    page = client.get("/failures").text
    assert "&lt;b&gt;boom&lt;/b&gt; at # #" in page and "<b>boom" not in page
    assert "/attempts?mode=%3Cb%3Eboom%3C%2Fb%3E+at+%23+%23" in page
    attempts = client.get("/attempts", mode="<b>boom</b> at # #").text
    assert "p7" in attempts and "p8" not in attempts.partition("<table")[2]
    one = client.get("/attempts", mode="missing key #", of_model="m", of_tier="T0", problem="p0")
    assert one.status == 200 and "attempt=1" not in one.text


def test_nothing_known_is_one_line(finished: Folder) -> None:
    unknown = "Why they fail is not known: 3 failed attempts have neither diagnostics nor an error."
    assert why_they_fail(ReportedRun(finished.output)) == [unknown]
    assert "why is not known" in Client(dashboard(finished.output, "token")).get("/failures").text
