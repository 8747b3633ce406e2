"""The gate: a run held against its pinned baseline, as a user, a schedule and CI see it."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Command, Folder, copy_of, made_once
from tests.pipelines.test_run import evaluate, failed
from tests.storage.test_model_rows import made
from touchstone.comparison.gate import counts_by_model, judge_changes
from touchstone.config import ComparisonConfig
from touchstone.errors import TouchstoneError
from touchstone.evaluation import RunOutcome
from touchstone.storage.snapshots import list_snapshots, pin
from touchstone.tables.checks import CHECKS, CheckResult

HEADER = "oid,iteration_id,plausible_fix\n"
PROBLEMS = 30
GATE = "regressions.holds_against_baseline"


def fixes(passing: int) -> str:
    """Thirty problems with one attempt each, of which so many pass."""
    return HEADER + "".join(f"p{place:02},1,{place < passing}\n" for place in range(PROBLEMS))


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder with a finished run that is pinned, and a gate that fails."""

    def make(root: Path) -> None:
        folder = Folder(root)
        folder.problems("oid,filename\n" + "".join(f"p{place:02},a.tf\n" for place in range(PROBLEMS)))
        folder.fixes("m", fixes(25))
        folder.fixes("n", fixes(20))
        folder.configure(comparison={"on_worse": "fail"}, k_values=[1])
        assert evaluate(folder).exit_code == 0
        pin(folder.output, "latest", "baseline")

    return Folder(made_once(tmp_path_factory, "pinned", make))


@pytest.fixture
def held(pinned: Folder, tmp_path: Path) -> Folder:
    """A copy of it, to change."""
    return copy_of(pinned, tmp_path / "held")


@pytest.fixture(scope="module")
def worse_once(pinned: Folder, tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, RunOutcome]:
    """The next run, in which m is worse: to be read only."""
    folder = copy_of(pinned, tmp_path_factory.mktemp("worse") / "copy")
    folder.fixes("m", fixes(5))
    return folder, evaluate(folder)


@pytest.fixture
def worse(worse_once: tuple[Folder, RunOutcome], tmp_path: Path) -> Folder:
    """A copy of it, to go on from."""
    return copy_of(worse_once[0], tmp_path / "worse")


def gate_of(outcome: RunOutcome) -> tuple[bool, bool, str]:
    (check,) = [check for check in outcome.checks if check.name == GATE]
    return check.passed, check.error, check.message


def table(folder: Folder, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder.output / "tables" / name / "*.parquet")


def checked_again(folder: Folder) -> CheckResult:
    """What the gate says of the files as they are now, without the rest of a run."""
    [gate] = [check for check in CHECKS if check.name == "holds_against_baseline"]
    return made(folder, *gate.reads).check(gate)


def test_nothing_is_compared_before_a_baseline_is_pinned(evaluated: Folder) -> None:
    folder = evaluated
    found = checked_again(folder)
    assert found.passed and found.message.startswith("no snapshot is pinned as 'baseline', so nothing was compared")
    assert f"touchstone snapshots pin latest baseline --data {folder.output}" in found.message
    assert table(folder, "regressions").is_empty() and table(folder, "baseline_verdicts").is_empty()
    assert not (folder.output / "comparison.md").exists()


def test_a_worse_model_stops_the_run_before_anything_is_published(
    pinned: Folder, worse_once: tuple[Folder, RunOutcome]
) -> None:
    before = (pinned.output / "summary_pass_at_k.csv").read_bytes()
    held, outcome = worse_once
    assert (outcome.exit_code, outcome.stopped, outcome.failures) == (1, True, [])
    assert failed(outcome).keys() == {GATE}
    message = failed(outcome)[GATE]
    assert message.startswith("m T0: this run is worse than the baseline by 66.7 points (95% CI ")
    assert (
        "20 cases regressed, beyond chance (10.0 expected by chance alone), 0 improved" in message
        and "run again with --accept" in message
    )
    assert (held.output / "summary_pass_at_k.csv").read_bytes() == before
    assert len(list_snapshots(held.output)) == 1
    report = (held.output / "comparison.md").read_text()
    assert report.startswith("m: this run is worse") and "| regression | p05 | m | 1.000 | 0.000 | -1.000 |" in report
    [row] = [line for line in report.splitlines() if line.startswith("| m | worse |")]
    figures = table(pinned, "pass_at_k").filter(model="m", k=1).row(0, named=True)
    before = f"{figures['pass_at_k']:.3f} \\[{figures['ci_low']:.3f}, {figures['ci_high']:.3f}\\]"
    assert before in row, "the interval is that of the leaderboard"
    assert "**20 regressions (10.0 expected by chance alone), 0 improvements, 40 unchanged**" in report


def test_what_is_meant_can_be_accepted_and_becomes_the_baseline(worse: Folder) -> None:
    held = worse
    outcome = evaluate(held, accept=True)
    assert outcome.exit_code == 0 and gate_of(outcome)[:2] == (False, False), "a warning"
    kinds = table(held, "regressions")["kind"].to_list()
    assert kinds == ["regression"] * 20
    verdicts = table(held, "baseline_verdicts").select("model", "verdict", "difference", "losses").rows()
    assert verdicts[0] == ("m", "worse", pytest.approx(-2 / 3), 20)
    pin(held.output, "latest", "baseline")
    assert checked_again(held).passed


@pytest.mark.nightly
def test_a_better_model_passes(held: Folder) -> None:
    held.fixes("m", fixes(30))
    outcome = evaluate(held)
    assert outcome.exit_code == 0 and gate_of(outcome)[0]
    assert table(held, "regressions")["kind"].to_list() == ["improvement"] * 5
    # Checked again from the UI, after somebody removed the report.
    (held.output / "comparison.md").unlink()
    assert checked_again(held).passed
    assert (held.output / "comparison.md").is_file()


@pytest.mark.nightly
def test_the_baseline_may_be_the_last_run(held: Folder) -> None:
    held.configure(comparison={"baseline": "latest", "on_worse": "fail"}, k_values=[1])
    held.fixes("m", fixes(5))
    assert evaluate(held).exit_code == 1
    held.fixes("m", fixes(25))
    assert evaluate(held).exit_code == 0


def test_a_baseline_that_is_gone_is_told(held: Folder) -> None:
    pins = held.output / "snapshots" / "pins.json"
    pins.write_text(json.dumps({"baseline": "20000101-000000-aaaaaaaa"}))
    outcome = evaluate(held)
    assert outcome.exit_code == 2
    assert "no snapshot or pin is called 'baseline'" in outcome.failures[0]


@pytest.mark.nightly
def test_the_ui_shows_the_verdict_the_cases_and_where_the_diff_is(worse: Folder) -> None:
    # Here, because every process that collects the tests would load it.
    import dagster as dg

    from pipelines.definitions import build_defs
    from pipelines.resources import EvaluationResource

    held = worse
    defs = build_defs(EvaluationResource(config_file=str(held.config)))
    with dg.DagsterInstance.ephemeral() as instance:
        job = defs.resolve_job_def("evaluate")
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    (evaluation,) = [each for each in result.get_asset_check_evaluations() if f".{each.check_name}" in GATE]
    assert evaluation.severity == dg.AssetCheckSeverity.ERROR
    told = {name: str(shown.value) for name, shown in evaluation.metadata.items()}
    assert told["verdict"] == "m T0: worse; n T0: inconclusive"
    assert "| p05 | m |" in told["changed_cases"]
    assert told["diff"] == str(held.output / "comparison.md")
    assert told["regressions"] == "20"


VERDICTS = pl.DataFrame({"model": ["m"], "tier": "T0", "verdict": "worse", "sentence": "it is worse"})
CASES = pl.DataFrame(
    {
        **{name: ["m"] * 3 for name in ("model", "tier", "oid")},
        "kind": ["regression", "improvement", "new"],
        "fallback": False,
        "chance_of_regression": 0.5,
    }
)


# One in 64 by chance.
MORE_THAN_CHANCE = pl.concat([CASES.head(1)] * 6)


@pytest.mark.parametrize(
    ("verdicts", "cases", "settings", "passed", "error"),
    [
        (VERDICTS, CASES, {"on_worse": "fail"}, False, True),
        (VERDICTS, CASES, {"on_worse": "ignore", "on_regression": "fail"}, False, True),
        (VERDICTS, CASES, {"on_worse": "fail", "on_regression": "fail"}, False, True),
        (VERDICTS, CASES, {}, False, True),
        (VERDICTS, CASES, {"on_worse": "warn"}, False, False),
        (VERDICTS, CASES, {"on_worse": "ignore", "on_regression": "ignore"}, True, False),
        (VERDICTS.clear(), CASES, {}, True, False),
        (VERDICTS.clear(), MORE_THAN_CHANCE, {}, False, False),
        (VERDICTS.clear(), MORE_THAN_CHANCE, {"on_regression": "ignore"}, True, False),
        (VERDICTS.clear(), CASES.with_columns(kind=pl.lit("lost")), {}, False, False),
        (VERDICTS, CASES.clear(), {"on_worse": "ignore", "on_regression": "fail"}, True, False),
        (VERDICTS.clear(), CASES.clear(), {"on_worse": "fail", "on_regression": "fail"}, True, False),
    ],
)
def test_the_configuration_decides(
    verdicts: pl.DataFrame, cases: pl.DataFrame, settings: dict[str, object], passed: bool, error: bool
) -> None:
    found = judge_changes(verdicts, cases, counts_by_model(cases), ComparisonConfig.model_validate(settings))
    assert (found.passed, found.error) == (passed, error)


@pytest.mark.nightly
def test_the_workflows_gate_on_results_as_it_keeps_them(held: Folder, touchstone: Command) -> None:
    """What the artifact holds is enough for the other side of the comparison."""
    held.fixes("m", fixes(5))
    other = held.root / "results"
    assert evaluate(held, output=other).exit_code == 0
    kept = held.root / "baseline"
    kept.mkdir()
    (held.output / "tables").resolve().rename(kept / "tables")
    sides = ["--baseline", kept, "--current", other, "--format", "markdown"]
    done = touchstone("compare", *sides, "--fail-on-verdict", "worse", "--save-to", held.root / "comparison.md")
    assert done.returncode == 1
    assert (held.root / "comparison.md").read_text() == done.stdout
    assert done.stdout.startswith("m: current is worse than baseline by 66.7 points")


@pytest.mark.parametrize("baseline", ["baseline", pytest.param("latest", marks=pytest.mark.nightly)])
def test_a_baseline_whose_manifest_cannot_be_read_never_lets_a_run_through_unseen(held: Folder, baseline: str) -> None:
    (snapshot,) = list_snapshots(held.output)
    (snapshot.folder / "manifest.json").write_text("{")
    held.configure(comparison={"baseline": baseline, "on_worse": "fail"}, k_values=[1])
    held.fixes("m", fixes(5))
    if baseline == "latest":
        (failure,) = evaluate(held).failures
    else:
        with pytest.raises(TouchstoneError) as caught:
            checked_again(held)
        failure = str(caught.value)
    assert f"{snapshot.id}/manifest.json: cannot be read" in failure


def test_another_snapshot_that_cannot_be_read_is_a_warning(held: Folder) -> None:
    broken = held.output / "snapshots" / "20200101-000000-aaaaaaaa"
    broken.mkdir()
    (broken / "manifest.json").write_text("[]")
    found = checked_again(held)
    assert not found.passed and not found.error
    assert f"{broken / 'manifest.json'}: cannot be read (not a JSON object)" in found.message


def test_the_gate_says_what_rulings_and_undecided_attempts_do_to_its_verdict(held: Folder) -> None:
    """m falls from 25 to 18 of 30; a person calls its old failures undecided, and passes n on ten more problems."""
    undecided = [{"model": "m", "problem": f"p{place:02}", "ruling": "undecided"} for place in range(25, 30)]
    passed = [{"model": "n", "problem": f"p{place:02}", "ruling": "passed"} for place in range(20, 30)]
    lines = [json.dumps(row | {"reason": "r", "by": "me"}) for row in (*undecided, *passed)]
    (held.root / "fixes" / "rulings.jsonl").write_text("\n".join(lines))
    held.fixes("m", fixes(18))
    held.configure(comparison={"on_worse": "fail", "looks": 0}, k_values=[1])
    found = checked_again(held)
    message = found.message
    assert found.error and not found.passed
    assert "the verdict depends on the undecided attempts" in message
    assert "15 outcomes are as people ruled; without rulings n T0 would be" in message and "and not better" in message
    rows = pl.read_parquet(held.output / ".store/draft/tables/baseline_verdicts/*.parquet")
    assert dict(rows.select("model", "holds_if_undecided").iter_rows()) == {"m": False, "n": None}
