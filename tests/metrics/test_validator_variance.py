"""The share of the variance of attempts that the validator adds: worked examples, edges, and coverage by simulation."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.config import IntervalSettings
from touchstone.inference.ratios import share_interval
from touchstone.inference.uncertainty import Interval
from touchstone.metrics.variance import validator_variance
from touchstone.tables import TABLES

SETTINGS = IntervalSettings()
SHARE = ["share_from_validator", "ci_low", "ci_high", "ci_method"]


def noise(*rows: tuple[str, str, int, int], validated: str = "fix", test: str | None = None) -> pl.LazyFrame:
    """Problem, attempt, runs and passes of each repeated verdict."""
    frame = pl.LazyFrame(rows, schema=["oid", "iteration_id", "runs", "passes"], orient="row")
    return frame.with_columns(
        model=pl.lit("m"), tier=pl.lit("T0"), validated=pl.lit(validated), test=pl.lit(test, pl.String)
    )


def counts(*pairs: tuple[int, int]) -> pl.LazyFrame:
    """n and c of the problems a, b, c and so on."""
    rows = [("m", "T0", chr(97 + place), 1, n, c) for place, (n, c) in enumerate(pairs)]
    return pl.LazyFrame(rows, schema=["model", "tier", "oid", "k", "n", "c"], orient="row")


def problems(clusters: dict[str, str | None]) -> pl.LazyFrame:
    types = {"oid": pl.String, "cluster": pl.String}
    return pl.LazyFrame({"oid": list(clusters), "cluster": list(clusters.values())}, schema=types)


ALONE = problems({"a": None, "b": None, "c": None})


def figures(
    repeated: pl.LazyFrame, attempted: pl.LazyFrame, known: pl.LazyFrame = ALONE, exclude: bool = False
) -> dict[str, object]:
    return validator_variance(repeated, attempted, known, SETTINGS, exclude).collect().row(0, named=True)


def test_variances_are_averaged_over_problems_and_divided() -> None:
    """a: two fixes, one passes 3 of 4 times (variance 3/12), the other always; b: 2 of 4 (4/12); c: never."""
    repeated = noise(("a", "1", 4, 3), ("a", "2", 4, 4), ("b", "1", 4, 2), ("c", "1", 4, 0))
    row = figures(repeated, counts((4, 2), (4, 2), (4, 0)))
    assert (row["problems"], row["fixes"], row["flaky"], row["ci_units"]) == (3, 4, 2, 3)
    assert row["validator_variance"] == pytest.approx((1 / 8 + 1 / 3 + 0) / 3)
    assert row["sampling_variance"] == pytest.approx((1 / 3 + 1 / 3 + 0) / 3)
    assert row["share_from_validator"] == pytest.approx((1 / 8 + 1 / 3) / (2 / 3))
    assert row["ci_low"] < row["share_from_validator"]  # type: ignore[operator]
    assert (row["ci_high"], row["ci_method"]) == (1.0, "mover")


def test_only_repeated_verdicts_on_fixes_count() -> None:
    verdict = noise(("a", "1", 4, 4))
    others = [
        noise(("a", "1", 4, 2), test="test_x"),
        noise(("a", "1", 4, 2), validated="reference"),
        noise(("b", "1", 1, 1)),
    ]
    row = figures(pl.concat([verdict, *others]), counts((4, 2), (4, 2)))
    assert (row["problems"], row["fixes"], row["flaky"], row["validator_variance"]) == (1, 1, 0, 0.0)
    assert row["share_from_validator"] == row["ci_low"] == 0.0 and row["ci_high"] == 1.0


@pytest.mark.parametrize(
    ("attempted", "variance"), [(counts((1, 1), (1, 0)), None), (counts((4, 4), (4, 0)), 0.0)],
    ids=["single attempts", "attempts that agree"],
)  # fmt: skip
def test_without_variance_between_attempts_there_is_no_share(attempted: pl.LazyFrame, variance: float | None) -> None:
    row = figures(noise(("a", "1", 4, 2), ("b", "1", 4, 4)), attempted)
    assert row["validator_variance"] == pytest.approx(1 / 6)
    assert (row["sampling_variance"], *(row[name] for name in SHARE)) == (variance, None, None, None, None)


def test_there_is_no_share_if_flaky_tests_were_excluded() -> None:
    row = figures(noise(("a", "1", 4, 2), ("b", "1", 4, 4)), counts((4, 2), (4, 2)), exclude=True)
    assert row["validator_variance"] == pytest.approx(1 / 6)
    assert [row[name] for name in SHARE] == [None] * 4


def test_without_repeats_the_table_is_empty() -> None:
    nothing = pl.LazyFrame(schema=TABLES["validator_noise"].dtypes)
    table = validator_variance(nothing, counts((4, 2)), ALONE, SETTINGS, False).collect()
    assert table.is_empty() and table.schema == TABLES["validator_variance"].dtypes


def test_problems_of_a_cluster_are_one_unit_and_the_order_of_rows_does_not_matter() -> None:
    repeated = noise(("a", "1", 4, 3), ("a", "2", 4, 1), ("b", "1", 4, 2), ("c", "1", 4, 0))
    attempted, known = counts((4, 1), (4, 2), (4, 3)), problems({"a": "x", "b": "x", "c": "y"})
    row = figures(repeated, attempted, known)
    assert (row["ci_units"], row["ci_method"]) == (2, "mover")
    shuffled = (frame.collect().reverse().lazy() for frame in (repeated, attempted, known))
    assert figures(*shuffled) == row


def test_a_share_whose_whole_may_be_nothing_may_be_everything() -> None:
    found = share_interval(0.1, Interval(0.05, 0.2, "wilson", 9), 0.2, Interval(0.0, 0.5, "wilson", 9))
    assert found.high == 1.0 and found.low is not None and 0 < found.low < 0.5
    undefined = share_interval(0.1, Interval(0.05, 0.2, "wilson", 9), 0.0, Interval(0.0, 0.1, "wilson", 9))
    assert (undefined.low, undefined.high, undefined.method, undefined.units) == (None, None, None, 9)


@dataclass(frozen=True)
class Noise:
    """Problems a share of which has a test that passes with a chance; pass rates without it are Beta(a, b)."""

    share: float
    chance: float
    a: float = 1.0
    b: float = 1.0

    @property
    def truth(self) -> float:
        """The share of the variance: E[t (1 - t)] / E[p (1 - p)]."""
        mean = self.a / (self.a + self.b)
        square = mean * (self.a + 1) / (self.a + self.b + 1)
        noisy = self.share * (self.chance * mean - self.chance**2 * square)
        return self.share * mean * self.chance * (1 - self.chance) / (noisy + (1 - self.share) * (mean - square))


NOISES = {
    "one problem in a hundred": Noise(0.01, 0.5),
    "one problem in ten": Noise(0.1, 0.5),
    "every problem, once in a hundred runs": Noise(1.0, 0.99),
    "every problem, half the runs": Noise(1.0, 0.5),
    "solved or not": Noise(0.2, 0.8, 0.3, 0.3),
}
CELLS = [(name, *size) for name in NOISES for size in [(30, 5), (100, 2), (100, 5), (100, 20)]]
QUICK = [("one problem in ten", 100, 5)]
ATTEMPTS = 5


def simulated(noise: Noise, models: int, size: int, repeat: int) -> pl.DataFrame:
    """The table for many models at once, each with problems of its own; the first attempt at each is repeated."""
    generator = np.random.default_rng(size + repeat)
    shape = (models, size)
    chance = np.where(generator.random(shape) < noise.share, noise.chance, 1.0)
    right = generator.random((ATTEMPTS, *shape)) < generator.beta(noise.a, noise.b, shape)
    passed = right & (generator.random((ATTEMPTS, *shape)) < chance)
    # The verdict that counts is the first of the runs.
    passes = passed[0] + right[0] * generator.binomial(repeat - 1, chance)
    model, oid = (axis.ravel() for axis in np.indices(shape))
    keys = pl.LazyFrame({"model": model, "tier": "T0", "oid": oid}).with_columns(pl.col("model", "oid").cast(pl.String))
    text = {"validated": pl.lit("fix"), "test": pl.lit(None, pl.String)}
    repeated = keys.with_columns(runs=pl.lit(repeat, pl.Int64), passes=pl.Series(passes.ravel()), **text)
    attempted = keys.with_columns(
        k=pl.lit(1, pl.Int64), n=pl.lit(ATTEMPTS, pl.Int64), c=pl.Series(passed.sum(axis=0).ravel())
    )
    known = problems({str(number): None for number in range(size)})
    return validator_variance(repeated, attempted, known, SETTINGS, False).collect()


@pytest.mark.parametrize(("name", "size", "repeat"), nightly_but(QUICK, CELLS))
def test_the_interval_contains_the_true_share(name: str, size: int, repeat: int) -> None:
    """In at least 93% of cases, less three standard errors of the simulation; it takes both parts as independent."""
    models = 200 if (name, size, repeat) in QUICK else 1000
    table, truth = simulated(NOISES[name], models, size, repeat), NOISES[name].truth
    covered = table.select(((pl.col("ci_low") <= truth) & (truth <= pl.col("ci_high"))).mean()).item()
    width = table.select((pl.col("ci_high") - pl.col("ci_low")).mean()).item()
    print(f"{name}, {size} problems, {repeat} runs: share {truth:.3f}, coverage {covered:.3f}, width {width:.3f}")
    assert covered >= 0.93 - 3 * (0.93 * 0.07 / models) ** 0.5
    estimate = table["share_from_validator"]
    assert estimate.mean() == pytest.approx(truth, abs=3 * estimate.std() / models**0.5 + 0.1 * truth)
