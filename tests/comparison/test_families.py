"""Families of pairs: corrected p-values and intervals, too few units, a baseline model, the false discovery rate."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.comparison.test_pair_tables import run_of
from tests.comparison.test_pairs import SETTINGS
from tests.conftest import Folder
from touchstone.comparison.pairs import compare_counts
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.inference.multiplicity import adjust_p_values


def models_of(
    passed: dict[str, list[int]], clusters: list[str | None] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Models with one attempt per problem, at the first problems."""
    names = [f"p{place:03}" for place in range(max(len(c) for c in passed.values()))]
    counts = pl.concat(
        pl.DataFrame({"model": model, "tier": "T0", "oid": names[: len(c)], "n": 1, "c": c})
        for model, c in passed.items()
    )
    return counts, pl.DataFrame({"oid": names, "cluster": pl.Series(clusters or [None] * len(names), dtype=pl.String)})


def family_of(counts: pl.DataFrame, problems: pl.DataFrame, **changes: object) -> pl.DataFrame:
    return compare_counts(counts.lazy(), problems.lazy(), replace(SETTINGS, **changes))  # type: ignore[arg-type]


def test_a_corrected_p_stands_beside_a_corrected_interval() -> None:
    """Many pairs are significant on their own and not together; each interval says what the p beside it says."""
    generator = np.random.default_rng(1)
    counts, problems = run_of(models=10, tiers=1, problems=60)
    lift = 0.02 * counts["model"].str.tail(1).cast(pl.Int64).to_numpy()
    table = family_of(counts.with_columns(c=pl.Series(generator.binomial(4, 0.4 + lift))), problems)
    assert table.filter((pl.col("p_value") <= 0.05) & (pl.col("p_adjusted") > 0.05)).height >= 5
    for row in table.iter_rows(named=True):
        for p, low, high in (
            (row["p_value"], row["ci_low"], row["ci_high"]),
            (row["p_adjusted"], row["adjusted_ci_low"], row["adjusted_ci_high"]),
        ):
            assert (low >= 0 or high <= 0) if p <= 0.05 else low <= 0 <= high
        assert row["adjusted_ci_low"] <= row["ci_low"] and row["ci_high"] <= row["adjusted_ci_high"]


def test_clusters_that_cannot_reach_significance_are_told_with_how_many_are_needed() -> None:
    clusters = [f"k{place // 5}" for place in range(30)]
    counts, problems = models_of({"a": [0] * 30, "b": [1] * 30, "c": [0, 1] * 15}, list(clusters))
    table = family_of(counts, problems)
    assert set(table["units_needed"]) == {7} and set(table["verdict"]) == {"inconclusive"}
    shortage = "6 clusters cannot reach p ≤ 0.05 over 3 pairs; at least 7 are needed"
    assert all(line.endswith(shortage) for line in table["sentence"])
    alone = family_of(counts.filter(pl.col("model") != "c"), problems)
    assert (alone["units_needed"][0], alone["verdict"][0]) == (None, "better")


def test_few_units_are_no_obstacle_where_the_other_pairs_are_clear() -> None:
    """Holm asks less of a pair once the others are rejected: 6 problems are enough for the last one."""
    counts, problems = models_of({"a": [0] * 40, "b": [1] * 40, "c": [1] * 6})
    table = family_of(counts, problems, family="baseline", baseline_model="a")
    assert table["units_needed"].to_list() == [None, None]
    assert table["verdict"].to_list() == ["better", "better"]
    everything = family_of(counts, problems)
    assert everything["units_needed"].to_list() == [None, 7, 7]


def test_a_family_against_one_baseline_model_has_only_its_pairs_and_corrects_for_them() -> None:
    counts, problems = run_of(models=4, tiers=2)
    everything = family_of(counts, problems)
    table = family_of(counts, problems, family="baseline", baseline_model="m2")
    assert table.select("kind", "model_a", "tier_a").unique().sort("tier_a").rows() == [
        ("models", "m2", "T0"), ("models", "m2", "T1")
    ]  # fmt: skip
    assert sorted(table.select("model_b", "tier_b").rows()) == [
        (m, t) for m in ("m0", "m1", "m3") for t in ("T0", "T1")
    ]
    assert table["p_adjusted"].to_list() == adjust_p_values(table["p_value"].to_numpy(), "all").tolist() and set(
        table["pairs"]
    ) == {6}
    both = everything.join(table, on=["model_a", "tier_a", "model_b", "tier_b"])
    assert both.height == 2 and both["p_value"].equals(both["p_value_right"])
    assert (both["p_adjusted"] >= both["p_adjusted_right"]).all()


def test_a_baseline_model_that_does_not_exist_is_one_clear_line() -> None:
    counts, problems = run_of(models=2, tiers=1)
    with pytest.raises(TouchstoneError, match=r"comparison\.baseline_model: there is no model 'm7'; models: m0, m1"):
        family_of(counts, problems, family="baseline", baseline_model="m7")


def test_the_false_discovery_rate_finds_more_where_there_is_much_to_find() -> None:
    generator = np.random.default_rng(8)
    passed = {f"m{place:02}": (generator.random(90) < 0.2 + 0.06 * place).astype(int).tolist() for place in range(10)}
    counts, problems = models_of(passed)
    by_holm, by_fdr = family_of(counts, problems), family_of(counts, problems, family="fdr")
    assert set(by_fdr["correction"]) == {"benjamini-yekutieli"}
    assert by_fdr["p_value"].equals(by_holm["p_value"])
    found = [table.filter(pl.col("verdict").is_in(["better", "worse"])).height for table in (by_holm, by_fdr)]
    assert found[0] < found[1]
    assert by_fdr["adjusted_confidence"][0] < by_holm["adjusted_confidence"][0]
    assert by_fdr["minimum_detectable_effect"].mean() < by_holm["minimum_detectable_effect"].mean()  # type: ignore[operator]
    assert "95% CI adjusted for 45 pairs, false discovery rate;" in by_fdr["sentence"][0]


def test_a_run_with_an_unknown_baseline_model_stops_before_anything_is_validated(folder: Folder) -> None:
    folder.configure(comparison={"family": "baseline", "baseline_model": "nobody"})
    with pytest.raises(TouchstoneError, match=r"comparison\.baseline_model: there is no model 'nobody'; models: m"):
        Evaluation(load_config(folder.config)).inputs.require_models()
