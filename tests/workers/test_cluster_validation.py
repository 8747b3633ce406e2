"""Validation on a Dask cluster: every table as if it had been made in this process, also when a worker is killed."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Folder, copy_of
from tests.pipelines.test_retrying import table
from tests.pipelines.test_validation import make_repairs
from tests.workers.conftest import Cluster, forked_cluster
from touchstone.config import load_config
from touchstone.evaluation import Evaluation, run
from touchstone.progress import Bar, set_display
from touchstone.storage.run_log import TABLE as RUN_LOG
from touchstone.tables import TABLES

# How long things took, and when: no two runs agree on that. A snapshot is named after its time.
TIMES = ("duration_seconds", "made_at", "snapshot", "first_snapshot", "last_snapshot")


def many_repairs(root: Path, fixes: int) -> Folder:
    """One problem, with every third of many fixes right."""
    folder = make_repairs(root)
    lines = [("p", n, f"def add(a, b):\n    return a + b + {n % 3}\n# {n}\n") for n in range(fixes)]
    folder.fixes("m", table(("oid", "iteration_id", "fixed_code"), *lines))
    return folder


def on(cluster: Cluster | None, folder: Folder, root: Path) -> Folder:
    """A copy of an evaluation, to be validated on a cluster or, without one, in this process."""
    copy = copy_of(folder, root)
    workers = {"kind": "in_process"} if cluster is None else {"kind": "dask", "address": cluster.address}
    copy.configure(clones_dir="clones", k_values=[1], workers=workers)
    return copy


def tables(folder: Folder, names: list[str]) -> dict[str, pl.DataFrame]:
    """Some tables of a run, without times."""
    evaluation = Evaluation(load_config(folder.config))
    if names == list(TABLES):
        assert run(evaluation).failures == []
        found = {name: evaluation.store.scan_published(name).collect() for name in names}
    else:
        with evaluation.store.lock(), closing(evaluation):
            for name in names:
                evaluation.materialize(name)
            found = {name: evaluation.store.scan(name).collect() for name in names}
    return {name: frame.drop(TIMES, strict=False) for name, frame in found.items()}


class DoAfterFirstReports:
    """A display that does something once, when the first reports on fixes have arrived."""

    def __init__(self, action: Callable[[], None], reports: int = 1) -> None:
        self.action, self.reports, self.done = action, reports, 0

    def show_stage(self, *_: object) -> None: ...

    def show_step(self, *_: object) -> None: ...

    def show_warning(self, *_: object) -> None: ...

    def add_bar(self, description: str, *_: object) -> Bar:
        self.fixes = description == "validating m"
        return self

    def update(self, done: int, note: str) -> None:
        if self.fixes and done >= self.reports and self.done == 0:
            self.done = done
            self.action()

    def close(self) -> None: ...


VALIDATED = ["problems", "problem_slices", "attempts", "validator_noise", "baselines", "outcomes"]


@pytest.mark.parametrize(
    ("fixes", "names"),
    [
        pytest.param(40, VALIDATED, marks=pytest.mark.services),
        pytest.param(5000, list(TABLES), marks=pytest.mark.nightly),
    ],
)
def test_tables_are_identical_although_one_of_three_workers_is_killed(
    tmp_path: Path, fixes: int, names: list[str]
) -> None:
    folder = many_repairs(tmp_path / "given", fixes)
    here = tables(on(None, folder, tmp_path / "here"), names)
    with forked_cluster(3) as cluster:
        display = DoAfterFirstReports(lambda: cluster.kill(1), fixes // 4)
        set_display(display)
        try:
            there = tables(on(cluster, folder, tmp_path / "there"), names)
        finally:
            set_display(None)
    assert display.reports <= display.done < fixes, "the worker was killed in the middle"
    assert_same(here, there)
    statuses = here["outcomes"]["status"].value_counts(sort=True)
    assert statuses.rows() == [("failed", fixes * 2 // 3), ("passed", -(-fixes // 3))]


def assert_same(here: dict[str, pl.DataFrame], there: dict[str, pl.DataFrame]) -> None:
    assert here.keys() == there.keys()
    # The run log is another in every run.
    assert [name for name in here if name != RUN_LOG and not here[name].equals(there[name])] == []
    key = TABLES["outcomes"].key
    assert not there["outcomes"].select(key).is_duplicated().any()
