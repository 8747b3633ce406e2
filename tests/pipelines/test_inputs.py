"""Whole runs on inputs that are odd, absurd or strangely named: every file is accounted for, and none stops another."""

import shutil
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Command, Folder, copy_of, nightly_but, small_folder
from tests.pipelines.test_run import HEADER, evaluate, failed, summary
from touchstone.publish.views import create_views

pytestmark = pytest.mark.services


def query(folder: Folder, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        create_views(connection, folder.output / "tables")
        return connection.sql(sql).fetchall()


def files(folder: Folder) -> dict[object, object]:
    return dict(query(folder, "SELECT source_file, status FROM sources"))


@pytest.mark.nightly
def test_absurd_cells_and_odd_columns_stop_no_model(folder: Folder) -> None:
    folder.fixes("huge", "oid,iteration_id,passed,cost_usd,latency_ms\na,1,1,1e19,5\na,2,1,0.5,1e19\nb,1,1,0.25,5\n")
    folder.fixes("odd", "oid,iteration_id,passed,__line,__broken,OID,len,model\na,1,1,7,8,x,y,z\nb,1,0,7,8,x,y,z\n")
    folder.fixes("dear", "oid,iteration_id,passed,input_tokens,output_tokens\na,1,1,1000000000000,0\nb,1,1,1,1\n")
    large = "".join(f"a,{attempt},1,1e9\n" for attempt in range(20))
    folder.fixes("large", "oid,iteration_id,passed,cost_usd\n" + large)
    folder.configure(scoring={"prices": {"dear": {"input": 1e6, "output": 1}}})
    outcome = evaluate(folder)
    assert outcome.failures == []
    assert list(failed(outcome)) == ["quarantine.quarantine_share"]
    assert {name: row["pass@1"] for name, row in summary(folder).items()} == {
        "huge": 1.0, "odd": 0.5, "dear": 1.0, "large": 1.0, "m": 0.25
    }  # fmt: skip
    totals = dict(query(folder, "SELECT model, total_cost_usd FROM model_statistics"))
    assert (totals["huge"], totals["dear"], totals["large"]) == (0.25, None, 2e10)
    extras = "SELECT input___line, input___broken, len, input_model FROM attempts WHERE model = 'odd' AND oid = 'a'"
    assert query(folder, extras) == [("7", "8", "y", "z")]


@pytest.mark.nightly
def test_every_file_in_the_folder_is_accounted_for(folder: Folder, touchstone: Command) -> None:
    fixes = folder.root / "fixes"
    rows = HEADER + "a,1,true\nb,1,false\n"
    for name in ("claude_outcomes.csv", "llm_fullfile_repair_results_gemini.csv", "out_of_scope.csv"):
        (fixes / name).write_text(rows)
    (fixes / "gpt.csv").write_text("name;score\na;1\n")
    (fixes / "summary_pass_at_k.csv").write_text("LLM,pass@1\nm,0.5\n")
    (fixes / "README.md").write_text("# Results\n")
    folder.configure(models=["m", "claude"])
    done = touchstone("run", "--config", folder.config)
    assert done.returncode == 0, "what is not understood is a warning, not an error"
    assert set(summary(folder)) == {"claude", "gemini", "m"}
    assert files(folder) == {
        "README.md": "ignored",
        "claude_outcomes.csv": "evaluated",
        "gpt.csv": "unknown",
        "llm_fullfile_repair_results_gemini.csv": "evaluated",
        "m_fixes.csv": "evaluated",
        "out_of_scope.csv": "left_out",
        "problems.csv": "problems",
        "summary_pass_at_k.csv": "output",
    }
    assert query(folder, "SELECT count(*) FROM sources WHERE (status = 'evaluated') <> (reason IS NULL)") == [(0,)]
    screen = " ".join(done.stdout.split())
    assert "│ gpt.csv │ unknown │ missing column oid" in screen
    assert "│ out_of_scope.csv │ left out │ 'models' in the config does not name out_of_scope │" in screen
    assert "not read: summary_pass_at_k.csv (a summary of pass@k, which" in screen
    assert (
        "check warning sources.files_accounted_for: 3 files evaluated; 1 data file not evaluated: gpt.csv (" in screen
    )


def test_copies_of_a_runs_own_csv_files_are_not_read_back(evaluated: Folder) -> None:
    folder = evaluated
    for path in [*(folder.output / "csv").iterdir(), folder.output / "summary_pass_at_k.csv"]:
        shutil.copy(path, folder.root / "fixes")
    assert evaluate(folder).exit_code == 0
    assert set(summary(folder)) == {"m"}
    assert files(folder) == {
        "m_fixes.csv": "evaluated",
        "m_outcomes.csv": "output",
        "m_pass_at_k.csv": "output",
        "problems.csv": "problems",
        "summary_pass_at_k.csv": "output",
    }


SUBTESTS = {"T0": range(4), "T1": range(1, 4), "T6": range(1, 2)}


def scylla_passes(model: str, tier: str, experiment: int, subtest: int, run: int) -> bool:
    """Hard for both models in experiment 0; the later tier and the better model pass more often."""
    return (3 * experiment + subtest + run + 2 * (tier != "T0") + (model == "good")) % 5 > 1


def scylla_runs() -> str:
    header = "experiment,agent_model,tier,subtest,run_number,passed\n"
    return header + "".join(
        f"test-{experiment:03},{model},{tier},{subtest:02},{run},"
        f"{scylla_passes(model, tier, experiment, subtest, run)}\n"
        for model in ("good", "plain")
        for tier, subtests in SUBTESTS.items()
        for experiment in range(3)
        for subtest in subtests
        for run in range(3)
    )


def test_three_scylla_experiments_are_three_units_and_tiers_pair_by_experiment(folder: Folder) -> None:
    for path in (folder.root / "fixes").iterdir():
        path.unlink()
    (folder.root / "fixes" / "runs.csv").write_text(scylla_runs())
    folder.configure(k_values=[1])
    outcome = evaluate(folder)
    assert outcome.failures == []
    counts = query(folder, "SELECT DISTINCT tier, problems, attempted, ci_units FROM pass_at_k ORDER BY tier")
    assert counts == [("T0", 12, 12, 3), ("T1", 9, 9, 3), ("T6", 3, 3, 3)]
    assert query(folder, "SELECT count(*) FROM pass_at_k WHERE pass_at_k <> pass_at_k_all") == [(0,)]
    (coverage,) = [check for check in outcome.checks if check.name == "pass_at_k.coverage"]
    assert coverage.passed
    columns = "kind, tier_a, tier_b, problems, only_a, only_b, ci_units, difference"
    pairs = query(folder, f"SELECT {columns} FROM model_comparison WHERE model_a = 'good' ORDER BY ALL")
    assert [row[:-1] for row in pairs] == [
        ("models", "T0", "T0", 12, 0, 0, 3),
        ("models", "T1", "T1", 9, 0, 0, 3),
        ("models", "T6", "T6", 3, 0, 0, 3),
        ("tiers", "T0", "T1", 3, 0, 0, 3),
        ("tiers", "T0", "T6", 3, 0, 0, 3),
        ("tiers", "T1", "T6", 3, 0, 0, 3),
    ]

    def rate(tier: str, experiment: int) -> float:
        runs = [(subtest, run) for subtest in SUBTESTS[tier] for run in range(3)]
        return sum(scylla_passes("good", tier, experiment, *each) for each in runs) / len(runs)

    by_experiment = [rate("T1", experiment) - rate("T0", experiment) for experiment in range(3)]
    assert pairs[3][-1] == pytest.approx(sum(by_experiment) / 3)


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A finished run with something to note about each file: to be read only."""
    folder = small_folder(tmp_path_factory.mktemp("noted"))
    folder.problems("oid,filename\na,a.tf\nb,b.tf\n,c.tf\n")
    folder.fixes("m", HEADER + "a,1,true\nb,1,false\nc,1,true\n")
    evaluate(folder)
    return folder


# One of the problems and one of a model at once, and each alone.
DAMAGED = ["quarantine/@problems sources/m", "quarantine/@problems", "sources/@problems", "quarantine/m", "sources/m"]


@pytest.mark.parametrize("parts", nightly_but(["quarantine/@problems sources/m"], DAMAGED))
def test_what_was_noted_about_a_file_is_noted_again_if_it_is_damaged(noted: Folder, tmp_path: Path, parts: str) -> None:
    folder = copy_of(noted, tmp_path / "copy")
    notes = {table: query(folder, f"SELECT * FROM {table} ORDER BY ALL") for table in ("sources", "quarantine")}
    assert all(len(rows) > 1 for rows in notes.values())
    for part in parts.split():
        (stamp,) = (folder.output / ".store" / "draft" / "stamps").glob(f"{part.replace('@', '*')}.json")
        stamp.write_text("{}")
    evaluate(folder)
    assert {table: query(folder, f"SELECT * FROM {table} ORDER BY ALL") for table in notes} == notes


def test_of_nested_clusters_the_outermost_are_the_units(folder: Folder) -> None:
    folder.problems("oid,filename,repo\na,1.tf,x\nb,2.tf,x\nc,3.tf,y\n")
    folder.fixes("m", HEADER + "a,1,1\nb,1,1\nc,1,0\n")
    units = {}
    for levels in ([], ["filename", "repo"]):
        folder.configure(cluster_columns=levels, k_values=[1])
        assert evaluate(folder).failures == []
        units[len(levels)] = query(folder, "SELECT problems, ci_units FROM pass_at_k")
    assert units == {0: [(3, 3)], 2: [(3, 2)]}
    assert query(folder, "SELECT notes FROM sources WHERE source_file = 'problems.csv'") == [
        ("clusters: the values of 'repo'",)
    ]
    folder.configure(cluster_columns=["project"])
    assert "project" in "".join(evaluate(folder).failures)
