"""Effects of the levels of factors: main effects and pairwise interactions, per model and tier.

- `main`: pass@1 at a level minus that at the factor's first level, within each problem that has both, with the levels
  of all other factors held equal: a paired comparison like any other (`pairs`).
- `interaction`: that difference at a level of a second factor minus the same difference at its first level, within each
  problem that has all four combinations. Half of it is in [-1, 1] and gets the interval of a paired difference
  (`inference.paired_intervals`, with the CR2 standard error) and the sign permutation test, which is exact if
  the differences of differences are symmetric, and approximate otherwise.

Units are problems, or their clusters; p-values are adjusted for all effects of the run (Holm).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from touchstone.comparison.pairs import ComparisonSettings, compare_pairs
from touchstone.inference.multiplicity import adjust_p_values
from touchstone.inference.paired_intervals import consistent_with_test, difference_limits
from touchstone.inference.paired_moments import PairedUnits, largest_denominator
from touchstone.inference.paired_tests import sign_permutation_test
from touchstone.inference.uncertainty import cluster_robust_se
from touchstone.inference.units import own_cluster
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.slices import NO_LEVEL, level_counts, levels_of
from touchstone.tables import TABLES

_CELLS = ("11", "12", "21", "22")
# No name starts with this character.
_SEPARATOR = "\x1f"
# Smaller standard errors are rounding errors.
_ROUNDING = 1e-12
_EFFECT = ("difference", "ci_low", "ci_high", "ci_method", "ci_units", "test", "p_value")

Row = dict[str, Any]


def factor_effects(
    attempts: pl.LazyFrame, outcomes: pl.LazyFrame, problems: pl.LazyFrame, names: Sequence[str], *settings: Any
) -> pl.LazyFrame:
    """The table `factor_effects`: main effects of every factor and interactions of every two."""
    schema = TABLES["factor_effects"].dtypes
    if not names:
        return pl.LazyFrame(schema=schema)
    statistics = replace(ComparisonSettings(*settings), family="all", baseline_model=None)
    counts = level_counts(attempts, outcomes, names)
    levels = {name: [level for level in levels_of(counts, name) if level != NO_LEVEL] for name in names}
    clusters = problems.select("oid", "cluster").collect()
    counts = counts.join(clusters, on="oid", how="left").with_columns(own_cluster())
    rows: list[Row] = []
    for (model, tier), own in counts.group_by(MODEL_TIER, maintain_order=True):
        found = [*_main_effects(own, levels, statistics), *_interactions(own, levels, statistics)]
        rows += [{"model": model, "tier": tier} | row for row in found]
    p_values = np.array([row["p_value"] for row in rows if row["p_value"] is not None])
    adjusted = iter(adjust_p_values(p_values, "all").tolist())
    rows = [row | {"p_adjusted": None if row["p_value"] is None else next(adjusted)} for row in rows]
    return pl.LazyFrame(rows, schema=schema)


def _main_effects(counts: pl.DataFrame, levels: dict[str, list[str]], settings: ComparisonSettings) -> Iterator[Row]:
    """Each level against the first of its factor."""
    named = [(name, level, known[0]) for name, known in levels.items() for level in known[1:]]
    pairs = [_cells(counts, levels, {name: (reference, level)}) for name, level, reference in named]
    sides = {f"{count}_{cell}": f"{count}_{side}" for count in "nc" for cell, side in (("1", "a"), ("2", "b"))}
    results = compare_pairs([pair.rename(sides) for pair in pairs], settings)
    for (name, level, reference), pair, result in zip(named, pairs, results, strict=True):
        renamed = {"ci_method": result.method, "ci_units": result.units}
        figures = {figure: renamed.get(figure, getattr(result, figure, None)) for figure in _EFFECT}
        about = {"kind": "main", "factor": name, "level": level, "reference": reference}
        yield about | {"problems": pair["problem"].n_unique()} | figures


def _interactions(counts: pl.DataFrame, levels: dict[str, list[str]], settings: ComparisonSettings) -> Iterator[Row]:
    """The difference that a level of one factor makes at a level of another one, minus that at its first level."""
    for (first, known), (second, others) in combinations(levels.items(), 2):
        for level in known[1:]:
            for other in others[1:]:
                cells = _cells(counts, levels, {first: (known[0], level), second: (others[0], other)})
                about = {"kind": "interaction", "factor": first, "level": level, "reference": known[0]}
                about |= {"other_factor": second, "other_level": other, "other_reference": others[0]}
                yield about | {"problems": cells["problem"].n_unique()} | difference_of_differences(cells, settings)


def _cells(counts: pl.DataFrame, levels: dict[str, list[str]], chosen: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """n and c of the two or four combinations of levels, for the problems that have all; one row per level of others.

    The columns are numbered by the places of the levels, such as `n_1` and `n_2`, or `n_11` to `n_22`.
    """
    others = [name for name in levels if name not in chosen]
    oid = pl.concat_str("oid", *others, separator=_SEPARATOR)
    rows = counts.select(*chosen, "n", "c", "cluster", oid=oid, problem="oid").sort("oid")
    joined: pl.DataFrame | None = None
    for cell in ("1", "2") if len(chosen) == 1 else _CELLS:
        wanted = {name: pair[int(place) - 1] for (name, pair), place in zip(chosen.items(), cell, strict=True)}
        own = rows.filter(*(pl.col(name) == level for name, level in wanted.items()))
        own = own.select("oid", "cluster", "problem", pl.col("n", "c").name.suffix(f"_{cell}"))
        joined = own if joined is None else joined.join(own.drop("cluster", "problem"), on="oid", maintain_order="left")
    assert joined is not None
    return joined


def difference_of_differences(cells: pl.DataFrame, settings: ComparisonSettings) -> Row:
    """The mean over problems of (22 - 12) - (21 - 11), with interval and test; undefined without problems.

    >>> cells = pl.DataFrame({"cluster": list("abcdef")} | {f"n_{cell}": [1] * 6 for cell in _CELLS}
    ...     | {"c_11": [0] * 6, "c_12": [0] * 6, "c_21": [0] * 6, "c_22": [1, 1, 1, 1, 1, 0]})
    >>> found = difference_of_differences(cells, ComparisonSettings())
    >>> round(found["difference"], 3), found["test"], found["p_value"]
    (0.833, 'permutation-exact', 0.0625)
    """
    if cells.is_empty():
        return dict.fromkeys(_EFFECT) | {"ci_units": 0}
    n, c = ({cell: cells[f"{of}_{cell}"].to_numpy() for cell in _CELLS} for of in "nc")
    common = math.lcm(*{int(many) for each in n.values() for many in each})
    exact, limit = common <= largest_denominator(cells.height), 2**20
    denominator = common if exact else limit
    signs = {"11": 1, "12": -1, "21": -1, "22": 1}
    values = sum(sign * c[cell] / n[cell] * denominator for cell, sign in signs.items())
    # Whole numbers, so that neither the order of rows nor rounding affects a sum.
    whole = pl.Series("value", np.rint(values).astype(np.int64))
    units = cells.select("cluster").with_columns(whole).group_by("cluster").agg(pl.col("value").sum(), size=pl.len())
    kinds = units.group_by("value", "size").agg(count=pl.len()).sort("value", "size").cast(pl.Int64)
    sums, sizes, counts = (kinds[name].to_numpy() for name in ("value", "size", "count"))
    halves = sums / (2 * denominator)
    problems, units_count = int((sizes * counts).sum()), int(counts.sum())
    mean = math.fsum(halves * counts) / problems
    robust = cluster_robust_se(halves, sizes, counts)
    error, degrees = (robust.standard_error, robust.degrees_of_freedom) if robust else (0.0, math.nan)
    evidence = math.fsum(np.minimum(np.abs(halves), 1.0) * counts)
    name, p_value = sign_permutation_test(
        PairedUnits(sums, counts, problems, exact), settings.permutations, settings.seed
    )
    given = [np.array([each]) for each in (mean, error if error > _ROUNDING else 0.0, degrees, units_count, evidence)]
    limits = difference_limits(given[0], given[1], given[2], given[3], given[4], settings.confidence)
    limits = consistent_with_test(limits, np.array([mean]), np.array([p_value <= 1 - settings.confidence]))
    ends = {"ci_low": 2 * float(limits.low[0]), "ci_high": 2 * float(limits.high[0]), "ci_method": limits.methods[0]}
    return {"difference": 2 * mean, **ends, "ci_units": units_count, "test": name, "p_value": p_value}
