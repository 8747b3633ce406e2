"""Tables whose rows of a model depend on that model alone: only the models that changed are made again.

At ten million rows this saves 29 % of the CPU time of a run with one changed model, at 134 models 17 % (measured with
`benchmarks/whole_run.py`). The stamp of such a table has a fingerprint per model, of all that the model's rows were
made from: its rows of the tables that are read, the tables without models, settings and code. A table that reads this
one takes these fingerprints for its own, so a change of one model stays one model's change all the way down.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from touchstone.storage.batches import blocks
from touchstone.storage.files import PARTS_OF_NO_MODEL
from touchstone.storage.store import Part, Store, digest
from touchstone.tables import TABLES, Table, conform

if TYPE_CHECKING:
    import polars as pl


def scan_models(store: Store, table: str, models: Collection[str]) -> "pl.LazyFrame":
    """The rows of the given models; all rows of a table that is not made model by model."""
    import polars as pl

    declared = TABLES[table]
    if not declared.has_models or "model" not in declared.fields:
        return store.scan(table)
    parts = (
        None
        if declared.by_model
        else [part for part in store.parts(table) if part in models or part in PARTS_OF_NO_MODEL]
    )
    return store.scan(table, parts).filter(pl.col("model").is_in(list(models)))


def fingerprints_by_model(store: Store, table: str) -> dict[str | None, str]:
    """The fingerprint of each model's rows; under None, that of all that belongs to no model."""
    parts = store.all_parts(table)
    if TABLES[table].by_model:
        return {model: made_from for part in parts.values() for model, made_from in part.models.items()}
    shared = {name: part for name, part in parts.items() if name in PARTS_OF_NO_MODEL or not TABLES[table].has_models}
    of_no_model = digest({name: part.fingerprint for name, part in shared.items()})
    return {None: of_no_model} | {name: part.fingerprint for name, part in parts.items() if name not in shared}


def fingerprints(store: Store, name: str, reads: Sequence[str], version: str) -> tuple[str, dict[str, str]]:
    """The fingerprints of the tables `reads`, as a whole and for each model; `version` identifies settings and code."""
    read = [fingerprints_by_model(store, table) for table in reads]
    shared = digest([name, version, [each.get(None) for each in read]])
    names = sorted({model for each in read for model in each if model is not None})
    models = {model: digest([shared, [each.get(model) for each in read]]) for model in names}
    return digest([shared, models]), models


def update_changed(
    store: Store, table: Table, models: Mapping[str, str], make: Callable[..., "pl.LazyFrame"]
) -> "pl.LazyFrame":
    """The table, with the rows of unchanged models from its last version; `make` gets frames of the other models."""
    import polars as pl

    before = store.part(table.name)
    kept = {} if before is None else before.models
    unchanged = {model for model, made_from in models.items() if kept.get(model) == made_from}
    previous = _read_rows(before) if before is not None and unchanged else None
    if previous is None:
        return make(*(store.scan(name) for name in table.reads))
    rows = {model: block for model, block in _by_model(previous).items() if model in unchanged}
    if changed := models.keys() - unchanged:
        made = make(*(scan_models(store, name, changed) for name in table.reads))
        rows |= _by_model(conform(made, table).collect())
    # Every such table is sorted by model first, which a test makes sure of.
    return pl.concat([previous.clear(), *(rows[model] for model in sorted(rows))], rechunk=True).lazy()


def _by_model(frame: "pl.DataFrame") -> "dict[str, pl.DataFrame]":
    return blocks(frame, frame["model"].unique())


def _read_rows(part: Part) -> "pl.DataFrame | None":
    """The rows of a part; None if its file is damaged."""
    import polars as pl

    try:
        rows = pl.read_parquet(part.path, glob=False)
    except (OSError, pl.exceptions.PolarsError):
        return None
    return rows if rows.height == part.rows else None
