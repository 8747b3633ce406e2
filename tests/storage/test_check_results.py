"""A check of unchanged tables is not run again, and one of a changed model looks at that model, to the same result."""

from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Folder, copy_of, nightly_but, small_folder
from touchstone.checks import CHECKS, Check, CheckResult
from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.tables import TABLES

KEPT = [check for check in CHECKS if "Gate." not in check.made_by]
BY_MODEL = {check.name for check in CHECKS if check.by_model}
HEADER = "oid,iteration_id,plausible_fix,cost_usd,classification\n"
GOOD = HEADER + "a,1,true,1,pass\nb,1,false,1,fail\n"
OTHER = HEADER + "a,1,true,2,pass\nb,1,true,1,pass\n"
BAD = HEADER + "a,1,true,,pass\nb,1,false,1,nonsense\n"


class Recorded(Evaluation):
    """An evaluation that keeps account of the models that each check looks at."""

    looked_at: dict[str, set[str]]

    @classmethod
    def of(cls, folder: Folder) -> "Recorded":
        """With all tables made that the checks are about."""
        evaluation = cls(load_config(folder.config))
        evaluation.looked_at = {}
        for table in TABLES.values():
            if table.group in ("ingest", "validation", "metrics", "scores"):
                evaluation.materialize(table.name)
        return evaluation

    def results(self) -> dict[str, CheckResult]:
        return {check.name: self.check(check) for check in KEPT}

    def _function(self, reference: str) -> Any:
        function = super()._function(reference)
        [*checks] = [check for check in KEPT if check.made_by == reference]
        return self._recording(checks[0], function) if checks else function

    def _recording(self, check: Check, function: Any) -> Any:
        def record(*arguments: Any) -> Any:
            frames = [each for each in arguments if isinstance(each, pl.LazyFrame) and "model" in each.collect_schema()]
            self.looked_at[check.name] = {model for each in frames for model in each.collect()["model"].drop_nulls()}
            return function(*arguments)

        return record


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two models, after a first run: to be read only."""
    folder = small_folder(tmp_path_factory.mktemp("first"))
    for model in ("m", "n"):
        folder.fixes(model, GOOD)
    Recorded.of(folder).results()
    return folder


@pytest.fixture
def folder(first: Folder, tmp_path: Path) -> Folder:
    """The same, as a copy of the test's own."""
    return copy_of(first, tmp_path / "copy")


def fresh(folder: Folder, tmp_path: Path) -> dict[str, CheckResult]:
    """What the checks say in an output folder without anything kept."""
    folder.configure(output_dir=str(tmp_path / "fresh"))
    return Recorded.of(folder).results()


@pytest.mark.nightly
def test_what_a_check_found_is_kept(folder: Folder, tmp_path: Path) -> None:
    again = Recorded.of(folder)
    found = again.results()
    assert again.looked_at == {}
    assert found == fresh(folder, tmp_path)


@pytest.mark.parametrize(
    ("models", "looked_at"),
    [
        pytest.param({"m": GOOD, "n": OTHER}, {"n"}, id="edited"),
        pytest.param({"m": GOOD, "n": GOOD, "o": OTHER}, {"o"}, id="added", marks=pytest.mark.nightly),
        pytest.param({"m": OTHER, "n": OTHER}, {"m", "n"}, id="all-edited", marks=pytest.mark.nightly),
    ],
)
def test_a_check_that_passed_looks_at_the_models_that_changed(
    folder: Folder, tmp_path: Path, models: dict[str, str], looked_at: set[str]
) -> None:
    for model, text in models.items():
        folder.fixes(model, text)
    again = Recorded.of(folder)
    found = again.results()
    assert {name: again.looked_at[name] for name in BY_MODEL} == dict.fromkeys(BY_MODEL, looked_at)
    assert found == fresh(folder, tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    nightly_but([(GOOD, BAD)], product([GOOD, BAD], [OTHER, BAD])),
    ids=["passed-passes", "passed-fails", "failed-passes", "failed-fails"],
)
def test_a_check_that_failed_or_fails_now_says_what_it_says_of_all_models(
    folder: Folder, tmp_path: Path, before: str, after: str
) -> None:
    folder.fixes("m", before)
    Recorded.of(folder).results()
    folder.fixes("n", after)
    found = Recorded.of(folder).results()
    assert found["known_classes"].passed == (BAD not in (before, after))
    assert found == fresh(folder, tmp_path)


def test_other_settings_and_damaged_results_make_a_check_run_again(folder: Folder) -> None:
    folder.configure(checks={"min_coverage": 0.5})
    kept = folder.output / ".store" / "draft" / "checks"
    (kept / "pass_at_k.enough_samples.json").write_text("{}")
    again = Recorded.of(folder)
    again.results()
    assert {"coverage", "enough_samples", "undecided_share"} <= again.looked_at.keys()
    assert "within_bounds" not in again.looked_at
