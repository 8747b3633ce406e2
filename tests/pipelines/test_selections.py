"""Every asset alone, what is before and after it, and every group can be materialized."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.stages import STAGES
from pipelines.definitions import build_defs
from pipelines.resources import EvaluationResource
from tests.conftest import Folder, copy_of, nightly_but
from tests.pipelines.test_run import HEADER, summary
from touchstone.tables import TABLES

pytestmark = pytest.mark.services

NAMES = [*TABLES, "summary_pass_at_k", "model_csvs", "report", "warehouse"]
SELECTIONS = [
    *(f"group:{group}" for group in STAGES),
    *(form.format(name) for name in NAMES for form in ("{}", "*{}", "{}+", "{}*")),
]
# One of each kind that makes another part of a stage.
BY_DAY = ["problem_slices", "sources", "baselines", "validated_fixes", "pass_at_k", "tiers*", "run_log", "warehouse"]


@pytest.fixture(scope="module")
def place(finished_pair: Folder, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A finished run of two models, of which parts are made again and again."""
    return copy_of(finished_pair, tmp_path_factory.mktemp("selections") / "pair")


@pytest.fixture(scope="module")
def defs(place: Folder) -> dg.Definitions:
    """The definitions, with a job for every selection."""
    jobs = [
        dg.define_asset_job(f"job_{number}", dg.AssetSelection.from_string(selection))
        for number, selection in enumerate(SELECTIONS)
    ]
    own = build_defs(EvaluationResource(config_file=str(place.config)))
    return dg.Definitions.merge(own, dg.Definitions(jobs=jobs))


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def made_by(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}


def test_every_selection_is_one_that_dagster_can_execute(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize("selection", nightly_but(BY_DAY, SELECTIONS))
def test_a_selection_makes_its_assets(defs: dg.Definitions, instance: dg.DagsterInstance, selection: str) -> None:
    job = defs.resolve_job_def(f"job_{SELECTIONS.index(selection)}")
    names = {
        key.to_user_string() for key in dg.AssetSelection.from_string(selection).resolve(defs.resolve_asset_graph())
    }
    result = job.execute_in_process(instance=instance)
    assert result.success and names <= made_by(result)


RESUMED = {"dagster/is_resume_retry": "true"}


def run(folder: Folder, instance: dg.DagsterInstance, *assets: str, **tags: str) -> dg.ExecuteInProcessResult:
    """All assets, or some, as Dagster makes them."""
    job = build_defs(EvaluationResource(config_file=str(folder.config))).resolve_implicit_global_asset_job_def()
    keys = [dg.AssetKey(name) for name in assets] or None
    return job.execute_in_process(instance=instance, asset_selection=keys, tags=tags, raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    """The step that failed, and why."""
    (event,) = result.get_step_failure_events()
    error = event.step_failure_data.error
    return str(event.step_key), str(event.step_failure_data.user_failure_data or error)


@pytest.fixture
def damaged(place: Folder, tmp_path: Path) -> Folder:
    """A finished run of two models, of which the file of one was damaged since."""
    folder = copy_of(place, tmp_path / "damaged")
    folder.fixes("n", b"\xff")
    return folder


class TestFailedChecks:
    def test_the_run_says_what_was_published_and_re_executing_it_from_its_failure_repeats_it(
        self, damaged: Folder, instance: dg.DagsterInstance
    ) -> None:
        step, reason = failure(run(damaged, instance))
        snapshot = max(path.name for path in (damaged.output / "snapshots").iterdir() if path.is_dir())
        assert step == "publish", "the last one: every other step went on"
        assert f"1 check failed, and {damaged.output} has the results of this run, snapshot {snapshot}" in reason
        assert "sources.files_readable: " in reason
        assert set(summary(damaged)) == {"m"}
        damaged.fixes("n", HEADER + "a,1,true\n")
        again = run(damaged, instance, "warehouse", **RESUMED)
        assert again.success and set(summary(damaged)) == {"m", "n"}
        assert made_by(again) == {*NAMES, "models"}

    def test_what_is_not_published_fails_in_its_own_step(self, damaged: Folder, instance: dg.DagsterInstance) -> None:
        run(damaged, instance, "attempts")
        step, reason = failure(run(damaged, instance, "sources", "pass_at_k"))
        assert step == "metrics" and f"and nothing was published; {damaged.output} is as it was" in reason

    @pytest.mark.parametrize("assets", [["warehouse"], ["pass_at_k", "warehouse"]], ids=" ".join)
    def test_publishing_brings_everything_up_to_date_first(
        self, place: Folder, instance: dg.DagsterInstance, tmp_path: Path, assets: list[str]
    ) -> None:
        folder = copy_of(place, tmp_path / "changed")
        folder.fixes("n", HEADER + "a,1,false\nb,1,true\n")
        assert run(folder, instance, *assets).success
        assert summary(folder)["n"]["pass@1"] == 0.5

    def test_nothing_is_published_if_every_row_was_refused(self, folder: Folder, instance: dg.DagsterInstance) -> None:
        folder.fixes("m", HEADER + "a,1,maybe\nb,1,perhaps\n")
        step, reason = failure(run(folder, instance))
        assert step == "ingest" and "sources.rows_accepted: " in reason and "nothing was published" in reason
        assert not (folder.output / "tables").exists()
