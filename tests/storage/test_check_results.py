"""A check of unchanged tables is not run again."""

from functools import wraps
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import Folder, copy_of, small_folder
from touchstone.config import load_config
from touchstone.evaluation import Evaluation
from touchstone.tables import TABLES
from touchstone.tables.checks import CHECKS, CheckResult

pytestmark = pytest.mark.services

KEPT = [check for check in CHECKS if not check.against_baseline]
HEADER = "oid,iteration_id,plausible_fix,cost_usd,classification\n"
GOOD = HEADER + "a,1,true,1,pass\nb,1,false,1,fail\n"
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
            groups = ("ingest", "validation", "metrics", "scores", "comparison", "audit")
            if table.group in groups and table.name != "gate_results":
                evaluation.materialize(table.name)
        return evaluation

    def results(self) -> dict[str, CheckResult]:
        return {check.name: self.check(check) for check in KEPT}

    @property
    def check_functions(self) -> dict[str, Any]:
        return {name: self._recording(name, function) for name, function in super().check_functions.items()}

    def _recording(self, check: str, function: Any) -> Any:
        @wraps(function)
        def record(*arguments: Any) -> Any:
            frames = [each for each in arguments if isinstance(each, pl.LazyFrame) and "model" in each.collect_schema()]
            self.looked_at[check] = {model for each in frames for model in each.collect()["model"].drop_nulls()}
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


@pytest.mark.parametrize(("before", "after"), [(GOOD, BAD), (BAD, GOOD)], ids=["passed", "failed"])
def test_a_check_of_a_changed_table_says_what_it_says_in_a_new_folder(
    folder: Folder, tmp_path: Path, before: str, after: str
) -> None:
    folder.fixes("n", before)
    Recorded.of(folder).results()
    folder.fixes("n", after)
    found = Recorded.of(folder).results()
    assert found["known_classes"].passed == (after == GOOD)
    assert found == fresh(folder, tmp_path)


def test_other_settings_and_damaged_results_make_a_check_run_again(folder: Folder) -> None:
    folder.configure(checks={"min_coverage": 0.5})
    kept = folder.output / ".store" / "draft" / "checks"
    (kept / "pass_at_k.enough_samples.json").write_text("{}")
    again = Recorded.of(folder)
    again.results()
    assert {"coverage", "enough_samples", "undecided_share"} <= again.looked_at.keys()
    assert "within_bounds" not in again.looked_at
