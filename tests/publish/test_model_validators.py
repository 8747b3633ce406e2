"""The validators of a run are those of its outcomes, however much of them was kept."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.storage.test_model_rows import MODELS, Contents, Folder, made, write_models
from touchstone.publish.model_validators import model_validators
from touchstone.storage.store import Store
from touchstone.validation.validators_used import SCHEMA, validators_used


def test_each_combination_is_named_once_in_whatever_order_the_rows_are() -> None:
    rows = [("m", "T0", "python", "1", "high", None, True), ("m", "T0", None, "1", "high", "bwrap", False)]
    rows += [("a", "T0", "python", "1", "high", None, True), ("m", "T0", "hcl", "1", "low", None, None)]
    outcomes = pl.DataFrame(rows * 3, schema=[*SCHEMA, "passed"], orient="row")
    assert validators_used(outcomes.lazy()).rows() == [
        ("a", "T0", "python", "1", "high", None),
        ("m", "T0", None, "1", "high", "bwrap"),
        ("m", "T0", "python", "1", "high", None),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        None,
        *(pytest.param(text, marks=pytest.mark.nightly) for text in (b"", b"[]", b'{"atlas": 3}')),
        b'{"atlas": {"made_from": "x", "rows": 3}}',
    ],
)
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(MODELS, id="unchanged"),
        pytest.param({"atlas": (5, 9, 2), "boreal": MODELS["boreal"], "zulu": (0, 9, 1)}, id="changed"),
    ],
)
def test_they_equal_those_read_from_all_outcomes(tmp_path: Path, after: Contents, damage: bytes | None) -> None:
    folder = write_models(Folder(tmp_path), {name: MODELS[name] for name in ("atlas", "boreal", "none")})
    model_validators(made(folder, "outcomes").store)
    store = made(write_models(folder, after), "outcomes").store
    if damage is not None:
        (store.draft / "validators.json").write_bytes(damage)
    assert_frame_equal(model_validators(store), validators_used(store.scan("outcomes")))


def test_only_the_outcomes_of_changed_models_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = write_models(Folder(tmp_path), MODELS), []
    scan = Store.scan

    def noted(store: Store, table: str, parts: list[str] | None = None) -> pl.LazyFrame:
        read.append(set(parts or []))
        return scan(store, table, parts)

    for models in (MODELS, MODELS, MODELS | {"@cedar": (1, 50, 1)}):
        store = made(write_models(folder, models), "outcomes").store
        with monkeypatch.context() as patched:
            patched.setattr(Store, "scan", noted)
            model_validators(store)
    assert read == [set(MODELS), {"@cedar"}]
