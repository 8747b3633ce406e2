"""Pairs measured in an earlier run are taken from there, and nothing tells the results from those of a first run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.compare.test_pair_tables import run_of
from tests.compare.test_pairs import SETTINGS
from touchstone.compare.pairs import compare_counts
from touchstone.inference.paired_moments import PairChunk, pair_moments
from touchstone.storage.kept_results import KeptResults


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs were measured, chunk by chunk."""
    many: list[int] = []

    def counting(chunk: PairChunk) -> object:
        many.append(len(chunk.first))
        return pair_moments(chunk)

    monkeypatch.setattr("touchstone.compare.measured_pairs.pair_moments", counting)
    return many


def attempts(least: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Six models, 120 problems in part in clusters, `least` to 4 attempts at each."""
    generator = np.random.default_rng(seed)
    counts, problems = run_of(models=6, tiers=1, problems=120)
    n = generator.integers(least, 5, counts.height)
    return counts.with_columns(n=pl.Series(n), c=pl.Series(generator.binomial(n, 0.5))), problems


def with_other_outcomes(counts: pl.DataFrame, model: str) -> pl.DataFrame:
    return counts.with_columns(c=pl.when(pl.col("model") == model).then(pl.col("n") - pl.col("c")).otherwise("c"))


@pytest.mark.parametrize("least", [4, 2], ids=["equal attempts", "unequal attempts"])
def test_one_changed_model_has_its_own_pairs_measured(least: int, tmp_path: Path, computed: list[int]) -> None:
    counts, problems = attempts(least, seed=5)
    models = counts["model"].unique().sort().to_list()
    kept = KeptResults(tmp_path / "pairs.parquet", "1")
    compare_counts(counts.lazy(), problems.lazy(), SETTINGS, kept)
    assert sum(computed) == 15
    changed = with_other_outcomes(counts, models[0])
    computed.clear()
    table = compare_counts(changed.lazy(), problems.lazy(), SETTINGS, kept)
    assert sum(computed) == 5
    assert_frame_equal(table, compare_counts(changed.lazy(), problems.lazy(), SETTINGS), check_exact=True)


def test_pairs_of_removed_models_go_and_those_of_new_ones_come(tmp_path: Path, computed: list[int]) -> None:
    counts, problems = attempts(4, seed=6)
    models = counts["model"].unique().sort().to_list()
    kept = KeptResults(tmp_path / "pairs.parquet", "1")
    for gone, measured, rows in ((models[5], 10, 10), (models[0], 4, 10), (models[0], 0, 10), (None, 5, 15)):
        computed.clear()
        here = counts.filter(pl.col("model") != (gone or ""))
        table = compare_counts(here.lazy(), problems.lazy(), SETTINGS, kept)
        assert (sum(computed), pl.read_parquet(kept.path).height) == (measured, rows)
        assert_frame_equal(table, compare_counts(here.lazy(), problems.lazy(), SETTINGS), check_exact=True)


@pytest.mark.parametrize("change", ["code", "damage"])
def test_what_other_code_kept_or_what_is_damaged_is_measured_again(
    change: str, tmp_path: Path, computed: list[int]
) -> None:
    counts, problems = attempts(4, seed=7)
    kept = KeptResults(tmp_path / "pairs.parquet", "1")
    first = compare_counts(counts.lazy(), problems.lazy(), SETTINGS, kept)
    computed.clear()
    if change == "damage":
        kept.path.write_bytes(kept.path.read_bytes()[:-9])
    else:
        kept = KeptResults(kept.path, "2")
    assert_frame_equal(compare_counts(counts.lazy(), problems.lazy(), SETTINGS, kept), first, check_exact=True)
    assert sum(computed) == 15


def test_random_signs_are_drawn_again_if_there_are_more_of_them(tmp_path: Path) -> None:
    """The number of draws grows with the number of pairs."""
    generator = np.random.default_rng(8)
    oids = [f"p{place:03}" for place in range(40)]
    # Attempts without a small common denominator leave only random signs; so many numbers of them need no table.
    n = generator.permutation(np.arange(80, 120))
    first, second = generator.binomial(n, 0.5, (2, 40))
    # The third model has no outcome that neither of the others has: such a one has every pair measured again.
    passes = (first, second, np.where(n % 2, first, second))
    sides = [
        pl.DataFrame({"model": f"m{place}", "tier": "T0", "oid": oids, "n": n, "c": c})
        for place, c in enumerate(passes)
    ]
    problems = pl.LazyFrame({"oid": oids, "cluster": pl.Series([None] * 40, dtype=pl.String)})
    settings = replace(SETTINGS, permutations=100)  # so few that three pairs need more of them than one
    kept = KeptResults(tmp_path / "pairs.parquet", "1")
    for many, drawn in ((2, "200 7"), (3, "600 7")):
        counts = pl.concat(sides[:many]).lazy()
        table = compare_counts(counts, problems, settings, kept)
        assert set(table["test"]) == {"permutation"}
        assert set(pl.read_parquet(kept.path)["drawn"]) == {drawn}
        assert_frame_equal(table, compare_counts(counts, problems, settings), check_exact=True)
