"""Differences between the manifests of two snapshots: settings, problems, validator, model version, packages, code.

Only manifests and small tables are read. Settings that a manifest of an earlier version lacks are unknown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from touchstone.comparison.compare import validation_differences
from touchstone.storage.files import parquet_files
from touchstone.storage.snapshots import Snapshot
from touchstone.text import counted, some_of, visible
from touchstone.validation.validators_used import snapshot_validators

_MOST_NAMED = 3
# Beginnings of the settings that can change the verdict on a fix; the others change figures or decisions only.
_GRADING_SETTINGS = ("validation", "problems_csv", "problem_key")
_MADE_BY_RUN = ("validators",)


@dataclass(frozen=True)
class Cause:
    """One difference. `grading` is whether it can change the verdict on the same fix."""

    kind: str
    text: str
    grading: bool


def causes(before: Snapshot, after: Snapshot, model: str | None = None) -> list[Cause]:
    """The differences between two snapshots, for all models or one."""
    found = [
        *_settings(before, after),
        *_problems(before, after),
        *_validators(before, after, model),
        *_stated(before, after, model),
    ]
    if before.inputs.get("rulings") != after.inputs.get("rulings"):
        found.append(Cause("rulings", "other rulings", grading=True))
    for name in sorted({*before.versions, *after.versions} - {*_MADE_BY_RUN}):
        old, new = before.versions.get(name), after.versions.get(name)
        if old and new and old != new:
            kind = "code" if name.startswith("touchstone") else "package"
            found.append(Cause(kind, f"{name} {old} → {new}", grading=True))
    return found


def describe_causes(found: Sequence[Cause], new_attempts: bool = False) -> str:
    """The differences in one line."""
    rest = "nothing but the attempts" if new_attempts else "nothing that is recorded"
    return "; ".join(each.text for each in found) or rest


def _settings(before: Snapshot, after: Snapshot) -> Iterator[Cause]:
    if before.config_hash == after.config_hash:
        return
    if not before.settings or not after.settings:
        yield Cause("setting", "settings, unknown which (a snapshot of an earlier version)", grading=True)
        return
    for key in sorted({*before.settings, *after.settings}):
        old, new = (visible(each.settings.get(key, "not set"))[:80] for each in (before, after))
        if before.settings.get(key) != after.settings.get(key):
            yield Cause("setting", f"setting {visible(key)} {old} → {new}", key.startswith(_GRADING_SETTINGS))


def _problems(before: Snapshot, after: Snapshot) -> Iterator[Cause]:
    same_file = before.inputs.get("problems") == after.inputs.get("problems")
    if same_file and before.rows.get("problems") == after.rows.get("problems"):
        return
    old, new = (set(_read(each, "problems", ["oid"])["oid"]) for each in (before, after))
    parts = [f"{counted(len(own), 'problem')} {word}" for own, word in ((new - old, "new"), (old - new, "gone")) if own]
    yield Cause("problems", ", ".join(parts) or "problems described otherwise", grading=not parts)


def _validators(before: Snapshot, after: Snapshot, model: str | None) -> Iterator[Cause]:
    if not before.validation or not after.validation:
        return
    old, new = (
        snapshot_validators([row for row in each.validation if model is None or row.get("model") == model])
        for each in (before, after)
    )
    for line in validation_differences(old, new, "then"):
        yield Cause("validator", visible(line), grading=True)


def _stated(before: Snapshot, after: Snapshot, model: str | None) -> Iterator[Cause]:
    """Differences in how a model was run, as its files state it, such as its version."""
    for name in sorted(before.model_versions.keys() & after.model_versions.keys()):
        old, new = (visible(each.model_versions[name]) for each in (before, after))
        if old != new and model in (None, name):
            yield Cause("model", f"{visible(name)}: version {old} → {new}", grading=False)
    columns = ["model", "dimension", "setting", "value"]
    if not (before.rows.get("source_settings") and after.rows.get("source_settings")):
        return
    was_stated, is_stated = (
        _read(each, "source_settings", columns)
        .filter(pl.lit(True) if model is None else pl.col("model") == model)
        .group_by(columns[:3])
        .agg(pl.col("value").unique().sort())
        for each in (before, after)
    )
    both = was_stated.join(is_stated, on=columns[:3]).filter(pl.col("value") != pl.col("value_right")).sort(columns[:3])
    for name, dimension, setting, was, now in both.iter_rows():
        values = " → ".join(visible(some_of(each, _MOST_NAMED)) for each in (was, now))
        grading = dimension in ("problems", "scorer", "validator", "limits")
        yield Cause("model", f"{visible(name)}: {visible(setting)} {values}", grading)


def _read(snapshot: Snapshot, table: str, columns: Sequence[str]) -> pl.DataFrame:
    """Some columns of a small table of text; empty if the snapshot does not have them."""
    files = parquet_files(snapshot.tables / table)
    schema = dict.fromkeys(columns, pl.String)
    if not files:
        return pl.DataFrame(schema=schema)
    rows = pl.scan_parquet(files, glob=False, schema=schema, missing_columns="insert", extra_columns="ignore")
    return rows.collect()
