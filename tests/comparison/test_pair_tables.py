"""The table of all pairs: which pairs it has, what Holm does to a row, and what must not matter."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from tests.comparison.test_pairs import SETTINGS, compare_pair
from touchstone.cli.live import LineDisplay
from touchstone.comparison.pairs import compare_counts
from touchstone.inference.multiplicity import adjust_p_values
from touchstone.tables import TABLES


def run_of(models: int, tiers: int, problems: int = 30) -> tuple[pl.DataFrame, pl.DataFrame]:
    generator = np.random.default_rng(11)
    chances = generator.beta(1, 1, problems)
    rows = [
        (f"m{model}", f"T{tier}", f"p{problem:03}", 4, int(generator.binomial(4, chances[problem] / (1 + model))))
        for model in range(models)
        for tier in range(tiers)
        for problem in range(problems)
        if (problem + model) % 7
    ]
    clusters = [f"k{problem // 3}" if problem < 12 else None for problem in range(problems)]
    names = [f"p{problem:03}" for problem in range(problems)]
    counts = pl.DataFrame(rows, schema=["model", "tier", "oid", "n", "c"], orient="row")
    return counts, pl.DataFrame({"oid": names, "cluster": clusters})


def test_all_pairs_of_models_in_each_tier_and_of_tiers_in_each_model() -> None:
    counts, problems = run_of(models=3, tiers=2)
    table = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    assert table.schema == TABLES["model_comparison"].dtypes
    keys = ["kind", "model_a", "tier_a", "model_b", "tier_b"]
    expected = sorted(
        [("models", a, t, b, t) for t in ("T0", "T1") for a, b in combinations(("m0", "m1", "m2"), 2)]
        + [("tiers", m, "T0", m, "T1") for m in ("m0", "m1", "m2")]
    )
    assert table.select(keys).rows() == expected
    assert table["p_adjusted"].to_list() == adjust_p_values(table["p_value"].to_numpy(), "all").tolist()
    assert all("adjusted for 9 pairs" in line for line in table["sentence"])
    assert (set(table["correction"]), set(table["pairs"])) == ({"holm"}, {9})
    assert table["sentence"][0].count("m0 (T0)") == 1


def test_of_many_pairs_only_those_that_matter_have_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, problems = run_of(models=5, tiers=1)
    every = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    monkeypatch.setattr("touchstone.comparison.pairs._MOST_SENTENCES", 9)
    monkeypatch.setattr("touchstone.comparison.verdicts.BEST_MODELS", 3)
    table = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    # m0 is the best and m4 the worst.
    matter = {("m0", "m1"), ("m0", "m2"), ("m1", "m2"), ("m2", "m3"), ("m3", "m4")}
    kept = pl.struct("model_a", "model_b").map_elements(lambda pair: tuple(pair.values()) in matter, pl.Boolean)
    assert table.equals(every.with_columns(sentence=pl.when(kept).then("sentence")))


@pytest.mark.parametrize("uneven", [False, True])
def test_a_row_of_the_table_is_the_pair_on_its_own_but_for_holm(uneven: bool) -> None:
    counts, problems = run_of(models=3, tiers=2)
    if uneven:
        counts = counts.with_columns(n=pl.col("n") + pl.int_range(pl.len()) % 3)
    table = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    for row in table.iter_rows(named=True):
        sides = [
            counts.filter(model=row[f"model_{end}"], tier=row[f"tier_{end}"]).select(
                "oid", pl.col("n", "c").name.suffix(f"_{end}")
            )
            for end in ("a", "b")
        ]
        joined = sides[0].join(sides[1], on="oid", how="full", coalesce=True).join(problems, on="oid", how="left")
        alone = compare_pair(joined, SETTINGS)
        strict = compare_pair(joined, replace(SETTINGS, alpha=SETTINGS.alpha / table.height))
        corrected = {"p_adjusted", "pairs", "verdict", "minimum_detectable_effect", "units_needed"}
        corrected |= {name for name in row if name.startswith(("adjusted", "detectable"))}
        for name in row.keys() & vars(alone).keys() - corrected:
            assert row[name] == getattr(alone, name)
        assert row["minimum_detectable_effect"] == strict.minimum_detectable_effect
        assert row["adjusted_confidence"] == 1 - SETTINGS.alpha / table.height
        assert (row["only_a"], row["only_b"]) == (alone.problems_only_a, alone.problems_only_b)
        assert (row["ci_method"], row["ci_units"]) == (alone.method, alone.units)
    assert set(table["ci_method"]) == {"t", "t-widened"}
    assert table["only_a"].sum() > 0


def test_many_pairs_show_how_far_they_are() -> None:
    shown: list[int] = []

    class Counted:
        def update(self, done: int, note: str) -> None:
            shown.append(done)

        def close(self) -> None:
            shown.append(-1)

    class Counter(LineDisplay):
        def add_bar(self, description: str, total: int, cached: int, poll: object) -> Counted:
            assert (description, total, cached, poll) == ("comparing", 528, 0, None)
            return Counted()

    counts = pl.LazyFrame({"model": [f"m{place:02}" for place in range(33)], "tier": "T0", "oid": "p", "n": 1, "c": 1})
    problems = pl.LazyFrame({"oid": ["p"], "cluster": [None]}, schema={"oid": pl.String, "cluster": pl.String})
    with Counter():
        assert compare_counts(counts, problems, SETTINGS).height == 528
        assert shown == [528, -1]
        compare_counts(counts.head(20), problems, SETTINGS)
        assert shown[-1] == -1, "a few pairs are compared before anyone would read about them"


def test_the_table_does_not_depend_on_the_order_of_rows() -> None:
    counts, problems = run_of(models=4, tiers=2)
    first = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    for seed in range(2):
        again = compare_counts(
            counts.sample(fraction=1, shuffle=True, seed=seed).lazy(),
            problems.sample(fraction=1, shuffle=True, seed=seed).lazy(),
            SETTINGS,
        )
        assert again.equals(first)


def test_nor_do_the_approximate_p_values_of_many_problems() -> None:
    """Floats added in the order of the problems, which is that of their names."""
    generator = np.random.default_rng(3)
    n = generator.integers(18, 21, (3, 300))
    c = generator.binomial(n, generator.beta(1, 1, 300))
    counts = pl.DataFrame(
        [(f"m{m}", "T0", f"p{p}", int(n[m, p]), int(c[m, p])) for m, p in np.ndindex(*n.shape)],
        schema=["model", "tier", "oid", "n", "c"],
        orient="row",
    )
    problems = counts.select("oid", cluster=pl.lit(None, pl.String)).unique()
    first = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    assert set(first["test"]) == {"permutation-hypergeometric-saddlepoint"}
    for seed in range(2):
        again = counts.sample(fraction=1, shuffle=True, seed=seed).lazy()
        assert compare_counts(again, problems.lazy(), SETTINGS).equals(first)


def test_sides_without_a_common_problem_get_a_row_of_nulls_and_do_not_count_for_holm() -> None:
    counts = pl.DataFrame(
        {
            "model": ["a"] * 9 + ["b"] * 9 + ["c"],
            "tier": "T0",
            "oid": [str(i) for i in range(9)] * 2 + ["x"],
            "n": 1,
            "c": [1] * 9 + [0] * 9 + [1],
        }
    )
    problems = pl.DataFrame({"oid": [str(i) for i in range(9)]}).with_columns(cluster=pl.lit(None))
    table = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    assert table["p_value"].to_list() == [2 / 512, None, None]
    assert table["p_adjusted"].to_list() == [2 / 512, None, None]
    assert table["verdict"].to_list() == ["worse", "inconclusive", "inconclusive"]
    assert table.select("only_a", "only_b").rows() == [(0, 0), (9, 1), (9, 1)]


def test_one_side_has_no_pair() -> None:
    counts, problems = run_of(models=1, tiers=1)
    table = compare_counts(counts.lazy(), problems.lazy(), SETTINGS)
    assert table.is_empty()
    assert table.schema == TABLES["model_comparison"].dtypes


def test_tiers_are_named_if_any_side_has_another_one() -> None:
    counts, problems = run_of(models=3, tiers=2)
    lone = counts.filter((pl.col("tier") == "T0") | (pl.col("model") == "m2")).filter(
        (pl.col("tier") == "T1") | (pl.col("model") != "m2")
    )
    table = compare_counts(lone.lazy(), problems.lazy(), SETTINGS)
    assert table.height == 1 and "m0 (T0)" in table["sentence"][0]
