"""The contracts: complete, described, enforced on write, and in step with the docs."""

from pathlib import Path
from types import new_class

import dataframely as dy
import polars as pl
import pytest

from tests.conftest import PROJECT
from touchstone.publish.data_dictionary import main
from touchstone.storage.store import Store
from touchstone.tables import TABLES, Table, conform, violations

PROBLEM = {"oid": ["a"], "filename": ["f"], "suite": ["s"], "cluster": [None], "only_tier": [None], "excluded": [False]}


def test_every_column_is_described_in_one_line() -> None:
    for table in TABLES.values():
        for column, text in table.descriptions.items():
            assert text and "\n" not in text and text.endswith((".", "…")), f"{table.name}.{column}"


def test_the_generated_docs_are_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(PROJECT / "docs")]) == 0
    assert main(["--write", str(tmp_path)]) == 0
    stale = [tmp_path / name for name in ("tables/metrics.md", "configuration.md", "tables/gone.md")]
    for page in stale:
        page.write_text("old")
    assert main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert all(f"{page} is out of date; run `make docs`" in told for page in stale)
    assert main(["--write", str(tmp_path)]) == main(["--check", str(tmp_path)]) == 0


def test_a_missing_or_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="table 'problems' lacks cluster"):
        conform(pl.LazyFrame(PROBLEM).drop("cluster"), TABLES["problems"])
    with pytest.raises(ValueError, match="table 'pass_at_k' has no column more"):
        frame = pl.LazyFrame(schema={**TABLES["pass_at_k"].dtypes, "more": pl.String})
        conform(frame, TABLES["pass_at_k"])


def test_extra_columns_stand_behind_the_contracts_own() -> None:
    frame = pl.LazyFrame({"note": ["n"], **PROBLEM})
    assert conform(frame, TABLES["problems"]).collect_schema().names() == [
        "oid",
        "filename",
        "suite",
        "cluster",
        "only_tier",
        "excluded",
        "note",
    ]


def test_broken_rules_are_counted_and_the_write_is_refused(tmp_path: Path) -> None:
    twice = pl.LazyFrame({name: values * 2 for name, values in PROBLEM.items()})
    assert violations(conform(twice, TABLES["problems"]), TABLES["problems"]) == {"primary_key": 2}
    store = Store(tmp_path)
    with pytest.raises(ValueError, match=r"table 'problems' violates its contract: primary_key \(2 rows\)"):
        store.write("problems", twice, "f")
    assert store.part("problems") is None


def dataframely_schema(table: Table) -> type[dy.Schema]:
    columns = {}
    for name, field in table.fields.items():
        kind = getattr(dy, field.type_name.replace("Boolean", "Bool"))
        infinite = {"allow_inf": field.infinite} if field.type_name == "Float64" else {}
        primary_key = table.unique and name in table.key
        columns[name] = kind(nullable=field.nullable, primary_key=primary_key, **infinite, **field.bounds)
    return new_class(table.name, (dy.Schema,), exec_body=lambda namespace: namespace.update(columns))


def test_the_rules_are_those_of_dataframely() -> None:
    for table in TABLES.values():
        checked = dataframely_schema(table)
        assert set(table.rules) == set(checked._validation_rules(with_cast=False)), table.name
        for name, column in checked.columns().items():
            for rule, holds in column.validation_rules(pl.col(name)).items():
                assert holds.meta.eq(table.rules[f"{name}|{rule}"]), f"{table.name}.{name}: {rule}"
