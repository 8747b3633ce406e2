"""The gate's budget of looks: how sure one of many runs against the same baseline must be to call a model worse.

Every run since the baseline is a look, and each could raise a false alarm. The looks share `comparison.alpha`: the
first `comparison.looks` get 80% of it in equal parts, as many again 80% of what is left, and so on. The chance of any
false `worse` is at most the sum of the parts (Bonferroni), however often one looks and however the looks depend on each
other: they share a baseline, and perhaps attempts. Tests are two-sided and only `worse` is an alarm, so a look tests at
twice its part.

The looks are found in the snapshots since the baseline, and in the table `run_log` for runs that left none, because
they were stopped or because their snapshot was removed.

References: Lan and DeMets (1983), "Discrete sequential boundaries for clinical trials", Biometrika 70(3). Dunnett
(1955), "A multiple comparison procedure for comparing several treatments with a control", Journal of the American
Statistical Association 50(272).
"""

from contextlib import suppress
from dataclasses import replace

import polars as pl

from touchstone.comparison.compare import compare_models, verdict_row
from touchstone.comparison.inputs import open_input
from touchstone.comparison.pairs import ComparisonSettings
from touchstone.comparison.verdicts import Look
from touchstone.storage.code_version import table_code_version
from touchstone.storage.files import read_kept, replacing
from touchstone.storage.snapshots import READ_FROM_FILES, RESERVED, Snapshot, list_snapshots
from touchstone.storage.store import Store, digest
from touchstone.tables import TABLES

_TABLE = "sequential_verdicts"
# The part of what is left of alpha that each `comparison.looks` looks share.
_SHARE = 0.8
# The smallest p-value that is precise. A million looks at this level do not matter.
_SMALLEST_LEVEL = 1e-12


def look_at(number: int, looks: int, alpha: float) -> Look:
    """A look and its level.

    >>> [round(look_at(number, 60, 0.05).level, 6) for number in (1, 60, 61)]
    [0.001333, 0.001333, 0.000267]
    """
    part = alpha * _SHARE * (1 - _SHARE) ** ((number - 1) // looks) / looks
    return Look(number, looks, min(alpha, max(2 * part, _SMALLEST_LEVEL)))


def next_look(store: Store, baseline: Snapshot, name: str, looks: int, alpha: float) -> Look:
    """The look that a run in the draft takes at the baseline of that name."""
    if not looks or name in RESERVED:
        return Look(None, None, alpha)
    return look_at(len(_earlier_looks(store, baseline)) + 1, looks, alpha)


def earlier_verdicts(
    store: Store, baseline: Snapshot, until: int, looks: int, settings: ComparisonSettings
) -> pl.DataFrame:
    """The rows of `sequential_verdicts` of the looks before one, as far as their snapshots are there."""
    found = [pl.DataFrame(schema=TABLES[_TABLE].dtypes)]
    for number, snapshot in enumerate(_earlier_looks(store, baseline)[: until - 1], 1):
        if snapshot is not None:
            found.append(_kept_verdicts(baseline, snapshot, look_at(number, looks, settings.alpha), settings))
    return pl.concat(found)


def _earlier_looks(store: Store, baseline: Snapshot) -> list[Snapshot | None]:
    """The looks at the baseline, oldest first, as the snapshots of their runs; None for one without.

    A run that found its comparison current, such as a second try, takes the same look again.
    """
    since = {each.id: each for each in list_snapshots(store.root) if each.id > baseline.id}
    log = _comparisons(store).filter(
        pl.coalesce(pl.col("snapshot") > baseline.id, pl.col("started") > baseline.made_at)
    )
    looks: list[str | None] = [name for name in since if name not in log["snapshot"]]
    for name, status in log.select("snapshot", "status").iter_rows():
        if status == "kept" and looks:
            looks[-1] = name or looks[-1]
        elif name is None or name not in looks:
            looks.append(name)
    if looks and looks[-1] in since and since[looks[-1]].inputs == store.inputs(*READ_FROM_FILES):
        # The same files, evaluated by other code or settings, are the same look.
        looks.pop()
    return [since.get(name or "") for name in looks]


def _comparisons(store: Store) -> pl.DataFrame:
    """When earlier runs were compared with a baseline, as the published run log says."""
    with suppress(OSError, pl.exceptions.PolarsError):
        return store.scan_published("run_log").filter(pl.col("stage") == "baseline_verdicts").collect()
    return pl.DataFrame(schema=TABLES["run_log"].dtypes)


def _kept_verdicts(baseline: Snapshot, snapshot: Snapshot, look: Look, settings: ComparisonSettings) -> pl.DataFrame:
    """The verdicts of one look, kept in its snapshot, which never changes; made again if that file is damaged."""
    version = digest([baseline.id, vars(look), vars(settings), table_code_version(_TABLE)])
    path = snapshot.folder / f"look-{version[:16]}.parquet"
    schema = TABLES[_TABLE].dtypes
    if (kept := read_kept(path, schema)) is not None:
        return kept
    before, after = (open_input(str(each.folder)) for each in (baseline, snapshot))
    results = compare_models(before, after, replace(settings, alpha=look.level))
    named = {"baseline": baseline.id, "snapshot": snapshot.id, **vars(look)}
    rows = [named | verdict_row(model, tier, result) for (model, tier), result in results.items()]
    found = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    for stale in snapshot.folder.glob("look-*.parquet"):
        stale.unlink()
    with replacing(path) as scratch:
        found.write_parquet(scratch)
    return found
