"""The benchmark of large inputs: every form that it writes is the same evaluation."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import PROJECT
from touchstone.config import load_config
from touchstone.ingest.read_inputs import read_inputs
from touchstone.tables import TABLES


@pytest.fixture
def large_inputs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    return importlib.import_module("large_inputs")


def test_every_form_has_the_same_attempts(tmp_path: Path, large_inputs: ModuleType) -> None:
    data = importlib.import_module("whole_run_data")
    read = {}
    for form in large_inputs.FORMS:
        inputs = tmp_path / form / "input"
        data.make(inputs.parent, 2, 5, 4)
        if form != "csv":
            large_inputs.convert(inputs, form)
        found = read_inputs(load_config(inputs / "evaluation_config.json"), tmp_path)
        assert not found.unreadable and len(found.attempts) == 2
        read[form] = [frame.select(list(TABLES["attempts"].dtypes)).rows() for frame in found.attempts.values()]
    assert all(rows == read["csv"] for rows in read.values())
    assert [len(rows) for rows in read["csv"]] == [20, 20]


def test_the_exponent_of_linear_growth_is_one(large_inputs: ModuleType) -> None:
    def took(attempts: int, cpu: float) -> object:
        return large_inputs.Measured(attempts, 1.0, large_inputs.Run(1.0, cpu, 1.0, ""))

    assert large_inputs.exponent(took(10, 3.0), took(1000, 300.0)) == pytest.approx(1)
